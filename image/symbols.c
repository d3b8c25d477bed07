/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* struct obi_symbols (image.h): read from a cubin or PTX text, looked up by name. */
#include <stdlib.h>
#include <string.h>

#include "image/builder.h"
#include "image/elf.h"
#include "image/ptx_scan.h"

enum ob_err obi_symbols_read(const void *data, size_t size, struct obi_symbols *ret)
{
	struct obi_builder builder;
	enum ob_err err;

	if (size > OBI_PAYLOAD_MAX)
		return OB_ERR_LIMIT;
	obi_builder_init(&builder);
	if (obi_elf_is(data, size))
		err = obi_elf_scan(data, size, &builder);
	else if (obi_ptx_is(data, size))
		err = obi_ptx_scan(data, strnlen(data, size), &builder);
	else
		err = OB_ERR_IMAGE_UNKNOWN;
	if (!err)
		err = obi_builder_finish(&builder, ret);
	obi_builder_fini(&builder);
	return err;
}

void obi_symbols_fini(struct obi_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->storage);
	memset(symbols, 0, sizeof(*symbols));
}

static int find_kernel(const void *name, const void *kernel)
{
	return strcmp(name, ((const struct obi_kernel *)kernel)->name);
}

const struct obi_kernel *obi_symbols_kernel(const struct obi_symbols *symbols, const char *name)
{
	if (!symbols->n_kernels)
		return NULL;
	return bsearch(
		name, symbols->kernels, symbols->n_kernels, sizeof(*symbols->kernels), find_kernel);
}

static int find_variable(const void *name, const void *variable)
{
	return strcmp(name, ((const struct obi_variable *)variable)->name);
}

const struct obi_variable *obi_symbols_variable(const struct obi_symbols *symbols, const char *name)
{
	if (!symbols->n_variables)
		return NULL;
	return bsearch(name, symbols->variables, symbols->n_variables, sizeof(*symbols->variables),
		find_variable);
}

static int find_ref(const void *name, const void *ref)
{
	return strcmp(name, ((const struct obi_ref *)ref)->name);
}

const struct obi_ref *obi_symbols_ref(
	const struct obi_symbols *symbols, const char *name, bool is_surface)
{
	const struct obi_ref *ref;

	if (!symbols->n_refs)
		return NULL;
	ref = bsearch(name, symbols->refs, symbols->n_refs, sizeof(*symbols->refs), find_ref);
	return ref && ref->is_surface == is_surface ? ref : NULL;
}
