/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Queueing of kernel launches (front/launch_calls.h) and host functions on a stream. Any thread. */
#ifndef OBD_LAUNCH_H
#define OBD_LAUNCH_H

#include "front/stream.h"
#include "softdevice/core/program.h"

struct obd_op;

/* What a launch says of a grid. Parameters, id and `abort` are left out. */
void obd_grid_fill(
	struct obd_grid *ret, const struct obf_func *func, const struct obf_launch *launch);
/*
 * Runs it on the calling thread, an executor, as a part of the op. If it fails, the context has
 * failed. In a dry run the op takes longer on the device's clock.
 */
void obd_grid_run_in(struct obd_op *op, const struct obd_grid *grid);

/* The front end's backend table (front/backend.h). */
CUresult obd_launch_packed(struct obf_stream *stream, struct obf_func *func,
	const struct obf_launch *launch, void *packed);
CUresult obd_host_function(struct obf_stream *stream, const struct obf_host_function *function);

#endif
