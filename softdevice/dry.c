/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/dry.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "softdevice/chunk.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/memory.h"

#define REGISTERS_USUAL 32 /* of a kernel in PTX */

/* ---- modules ---- */

/*
 * Where each variable begins in the module's block. Returns the size of the block; UINT64_MAX: more
 * than any device has.
 */
static uint64_t variables_place(const struct obi_symbols *symbols, uint64_t *ret_offset)
{
	uint64_t end = 0;

	for (size_t i = 0; i < symbols->n_variables; i++) {
		if (symbols->variables[i].size > OBD_WINDOW_SIZE || end > OBD_WINDOW_SIZE)
			return UINT64_MAX;
		ret_offset[i] = end;
		end += ob_round_up(symbols->variables[i].size, OBD_BLOCK);
	}
	return end;
}

static void variable_fill(
	uint64_t at, const struct obi_variable *variable, const struct obf_image_ref *image)
{
	if (variable->init && ob_span_inside(variable->init, variable->size, image->payload_size))
		memcpy((void *)at, image->payload + variable->init, variable->size);
	else
		memset((void *)at, 0, variable->size);
}

CUresult obd_dry_module_load(
	struct obd_ctx *ctx, const struct obf_image_ref *image, struct obd_dry_module *ret)
{
	const struct obi_symbols *symbols = image->symbols;
	struct obd_dry_module module = { .symbols = symbols };
	uint64_t size;

	module.variables = calloc(symbols->n_variables + 1, sizeof *module.variables);
	if (!module.variables)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size = variables_place(symbols, module.variables);
	if (size)
		module.block = obd_memory_new(ctx, size, OBD_BLOCK, OBD_ALLOC_GLOBAL);
	if (size && !module.block) {
		free(module.variables);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (size_t i = 0; size && i < symbols->n_variables; i++) {
		module.variables[i] += module.block->span.base;
		variable_fill(module.variables[i], &symbols->variables[i], image);
	}
	*ret = module;
	return CUDA_SUCCESS;
}

void obd_dry_module_free(struct obd_dry_module *module)
{
	if (module->block)
		obd_memory_free(module->block);
	free(module->variables);
}

CUresult obd_dry_global_get(const struct obd_dry_module *module, const char *name,
	CUdeviceptr *ret_addr, size_t *ret_size)
{
	const struct obi_variable *variable = obi_symbols_variable(module->symbols, name);

	if (!variable || !variable->size)
		return CUDA_ERROR_NOT_FOUND;
	*ret_addr = module->variables[variable - module->symbols->variables];
	*ret_size = variable->size;
	return CUDA_SUCCESS;
}

/* ---- kernels ---- */

void obd_dry_func_attrs(struct obf_func *func)
{
	/* The front end has estimated the rest from the image. */
	if (!func->attrs.registers)
		func->attrs.registers = REGISTERS_USUAL;
	func->attrs.exact = true;
}

uint64_t obd_dry_grid_ns(const unsigned grid[3], const unsigned block[3])
{
	double threads = 1, ns;

	for (int i = 0; i < 3; i++)
		threads *= (double)grid[i] * block[i];
	ns = threads * OBD_DRY_THREAD_BYTES / obd_config.model->bandwidth * 1e9;
	return OBD_DRY_KERNEL_MIN + (uint64_t)ob_min(ns, (double)OBD_DRY_KERNEL_MAX);
}
