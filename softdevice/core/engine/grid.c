/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The execution of one grid (program.h): alone, or with the grids that it launches. */
#include <stdlib.h>

#include "softdevice/core/engine/family_inside.h"
#include "softdevice/core/engine/pool.h"
#include "softdevice/core/engine/rt_launch.h"

static CUresult grid_run(
	struct obd_pool *pool, const struct obd_grid *grid, struct obd_fault *ret_fault)
{
	struct obd_family *f;
	CUresult result;

	if (!grid->program->launches)
		return obd_grid_run_alone(pool, grid, ret_fault);
	f = calloc(1, sizeof(*f));
	if (f)
		f->root = calloc(1, sizeof(*f->root));
	if (!f || !f->root) {
		free(f);
		*ret_fault = (struct obd_fault){ .result = CUDA_ERROR_OUT_OF_MEMORY };
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	f->pool = pool;
	f->ready_end = &f->ready;
	f->limit = grid->pending_launches ? grid->pending_launches : OBD_PENDING_LAUNCHES;
	f->root->family = f;
	f->root->grid = *grid;
	result = obd_launch_open(f->pool, &f->root->l, &f->root->grid, ret_fault);
	if (result) {
		free(f->root);
		free(f);
		return result;
	}
	f->root->l.runtime = obd_rt_launch_call;
	obd_family_node_init(f->root);
	return obd_family_run(f, ret_fault);
}

CUresult obd_grid_run(
	struct obd_pool *pool, const struct obd_grid *grid, struct obd_fault *ret_fault)
{
	CUresult result;

	obd_limit_enter(pool, grid->limit);
	result = grid_run(pool, grid, ret_fault);
	obd_limit_leave(pool, grid->limit);
	return result;
}
