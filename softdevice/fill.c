/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/address.h"
#include "softdevice/copy.h"
#include "softdevice/memory.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

struct fill_op {
	struct obd_op op;
	struct obf_fill fill;
};

static void fill_rows(void *op)
{
	obf_fill_rows(&((struct fill_op *)op)->fill);
}

static void fill_run(struct obd_op *op)
{
	obd_copy_guarded(fill_rows, op);
}

CUresult obd_fill(struct obf_stream *base, const struct obf_fill *fill)
{
	struct obd_stream *stream = obd_stream_of(base);
	uint64_t row = (uint64_t)fill->width * fill->element;
	CUresult result = obd_address_check(fill->dst, (fill->height - 1) * fill->pitch + row);
	struct fill_op *op;

	if (result)
		return result;
	op = obd_op_new(sizeof *op, OBD_OP_COPY, stream->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = fill_run;
	op->fill = *fill;
	if (fill->blocking && obd_memory_is_shared(fill->dst))
		result = obd_sched_run_and_wait(&op->op, stream);
	else if (row * fill->height <= OBD_SHORT_MAX || fill->blocking)
		result = obd_sched_run_or_submit(&op->op, stream);
	else
		result = obd_sched_submit(&op->op, stream, NULL);
	obd_op_unref(&op->op);
	return result;
}
