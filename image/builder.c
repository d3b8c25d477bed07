/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "image/builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void obi_builder_init(struct obi_builder *builder)
{
	memset(builder, 0, sizeof(*builder));
	ob_buf_init(&builder->names, OBI_NAMES_MAX);
	/*
	 * A parameter needs at least a record of 16 bytes or ten characters of text, so only
	 * hostile input reaches this limit.
	 */
	ob_buf_init(&builder->params, (size_t)OBI_PAYLOAD_MAX);
	ob_buf_init(&builder->kernels, OBI_KERNEL_MAX * sizeof(struct obi_kernel));
	ob_buf_init(&builder->variables, OBI_VARIABLE_MAX * sizeof(struct obi_variable));
	ob_buf_init(&builder->refs, OBI_REF_MAX * sizeof(struct obi_ref));
}

void obi_builder_fini(struct obi_builder *builder)
{
	ob_buf_fini(&builder->names);
	ob_buf_fini(&builder->params);
	ob_buf_fini(&builder->kernels);
	ob_buf_fini(&builder->variables);
	ob_buf_fini(&builder->refs);
}

/*
 * Stores a name. Returns its offset, cast to a pointer; obi_builder_finish replaces it by the
 * address.
 */
static const char *builder_name(struct obi_builder *builder, const char *name, size_t size)
{
	uintptr_t offset = builder->names.size;

	ob_buf_append(&builder->names, name, size);
	ob_buf_append(&builder->names, "", 1);
	return (const char *)offset;
}

struct obi_kernel *obi_builder_kernel(
	struct obi_builder *builder, const char *name, size_t name_size)
{
	struct obi_kernel *kernel = ob_buf_extend(&builder->kernels, sizeof(*kernel));

	if (!kernel)
		return NULL;
	memset(kernel, 0, sizeof(*kernel));
	kernel->name = builder_name(builder, name, name_size);
	return kernel;
}

size_t obi_builder_n_kernels(const struct obi_builder *builder)
{
	return builder->kernels.size / sizeof(struct obi_kernel);
}

struct obi_kernel *obi_builder_kernel_at(struct obi_builder *builder, size_t index)
{
	return (struct obi_kernel *)(void *)builder->kernels.data + index;
}

struct obi_param *obi_builder_params(
	struct obi_builder *builder, struct obi_kernel *kernel, uint32_t n)
{
	static struct obi_param none;
	uintptr_t offset = builder->params.size;

	if (!n)
		return &none;
	struct obi_param *params = ob_buf_extend(&builder->params, n * sizeof(*params));
	if (!params)
		return NULL;
	memset(params, 0, n * sizeof(*params));
	kernel->params = (const struct obi_param *)offset;
	kernel->n_params = n;
	return params;
}

struct obi_variable *obi_builder_variable(
	struct obi_builder *builder, const char *name, size_t name_size)
{
	struct obi_variable *variable = ob_buf_extend(&builder->variables, sizeof(*variable));

	if (!variable)
		return NULL;
	memset(variable, 0, sizeof(*variable));
	variable->name = builder_name(builder, name, name_size);
	return variable;
}

void obi_builder_ref(
	struct obi_builder *builder, const char *name, size_t name_size, bool is_surface)
{
	struct obi_ref *ref = ob_buf_extend(&builder->refs, sizeof(*ref));

	if (!ref)
		return;
	memset(ref, 0, sizeof(*ref));
	ref->name = builder_name(builder, name, name_size);
	ref->is_surface = is_surface;
}

static int compare_kernels(const void *a, const void *b)
{
	return strcmp(((const struct obi_kernel *)a)->name, ((const struct obi_kernel *)b)->name);
}

static int compare_variables(const void *a, const void *b)
{
	return strcmp(
		((const struct obi_variable *)a)->name, ((const struct obi_variable *)b)->name);
}

static int compare_refs(const void *a, const void *b)
{
	return strcmp(((const struct obi_ref *)a)->name, ((const struct obi_ref *)b)->name);
}

/* The references have a position in the block that begins at `at`; names are found from `names`. */
static void refs_finish(
	const struct obi_builder *builder, uint8_t *at, const char *names, struct obi_symbols *out)
{
	out->n_refs = builder->refs.size / sizeof(struct obi_ref);
	out->refs = (struct obi_ref *)(void *)at;
	if (builder->refs.size)
		memcpy(at, builder->refs.data, builder->refs.size);
	for (size_t i = 0; i < out->n_refs; i++)
		out->refs[i].name = names + (uintptr_t)out->refs[i].name;
	qsort(out->refs, out->n_refs, sizeof(*out->refs), compare_refs);
}

enum ob_err obi_builder_finish(struct obi_builder *builder, struct obi_symbols *ret)
{
	struct obi_symbols out = { .prints = builder->prints,
		.arch = builder->arch,
		.ptx_version = builder->ptx_version,
		.plain = builder->plain };

	if (builder->names.failed || builder->params.failed || builder->kernels.failed ||
		builder->variables.failed || builder->refs.failed)
		return OB_ERR_LIMIT;
	out.n_kernels = obi_builder_n_kernels(builder);
	out.n_variables = builder->variables.size / sizeof(struct obi_variable);

	/*
	 * One block: parameters, kernels, variables, references, names; the size of each part
	 * except the last is a multiple of 8.
	 */
	size_t params_size = ob_round_up(builder->params.size, 8);
	size_t size = params_size + builder->kernels.size + builder->variables.size +
		builder->refs.size + builder->names.size;
	uint8_t *block = malloc(size ? size : 1);
	if (!block)
		return OB_ERR_NO_MEMORY;
	uint8_t *kernels = block + params_size, *variables = kernels + builder->kernels.size;
	uint8_t *refs = variables + builder->variables.size;
	char *names = (char *)refs + builder->refs.size;
	if (builder->params.size)
		memcpy(block, builder->params.data, builder->params.size);
	if (builder->kernels.size)
		memcpy(kernels, builder->kernels.data, builder->kernels.size);
	if (builder->variables.size)
		memcpy(variables, builder->variables.data, builder->variables.size);
	if (builder->names.size)
		memcpy(names, builder->names.data, builder->names.size);
	out.storage = block;
	out.kernels = (struct obi_kernel *)(void *)kernels;
	out.variables = (struct obi_variable *)(void *)variables;
	for (size_t i = 0; i < out.n_kernels; i++) {
		out.kernels[i].name = names + (uintptr_t)out.kernels[i].name;
		out.kernels[i].params = (const struct obi_param *)(void *)(block +
			(uintptr_t)out.kernels[i].params);
	}
	for (size_t i = 0; i < out.n_variables; i++) {
		out.variables[i].name = names + (uintptr_t)out.variables[i].name;
		if (ob_add_overflows(
			    out.variable_bytes, out.variables[i].size, &out.variable_bytes))
			out.variable_bytes = UINT64_MAX;
	}
	refs_finish(builder, refs, names, &out);
	qsort(out.kernels, out.n_kernels, sizeof(*out.kernels), compare_kernels);
	qsort(out.variables, out.n_variables, sizeof(*out.variables), compare_variables);
	*ret = out;
	return OB_ERR_NONE;
}
