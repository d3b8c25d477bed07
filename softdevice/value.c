/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Stream memory operations: a stream writes a value to memory or waits for one. */
#include <time.h>

#include "softdevice/address.h"
#include "softdevice/context.h"
#include "softdevice/dry_clock.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

#define POLL_NS 20000

struct value_op {
	struct obd_op op;
	struct obf_value value;
};

static void value_write(struct obd_op *op)
{
	const struct obf_value *v = &((struct value_op *)op)->value;

	obd_dry_wait(op->ready_ns, &op->ctx->abort); /* the program may poll the value */
	if (v->bytes == 4)
		__atomic_store_n((uint32_t *)v->addr, (uint32_t)v->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)v->addr, v->value, __ATOMIC_SEQ_CST);
}

static bool value_matches(const struct obf_value *v)
{
	uint64_t now;
	int64_t difference;

	if (v->bytes == 4) {
		now = __atomic_load_n((uint32_t *)v->addr, __ATOMIC_SEQ_CST);
		difference = (int32_t)((uint32_t)now - (uint32_t)v->value);
	} else {
		now = __atomic_load_n((uint64_t *)v->addr, __ATOMIC_SEQ_CST);
		difference = (int64_t)(now - v->value);
	}
	switch (v->flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return difference >= 0; /* cyclic comparison, as CUDA documents it */
	case CU_STREAM_WAIT_VALUE_EQ:
		return difference == 0;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & v->value) != 0;
	default:
		return (v->bytes == 4 ? (uint32_t) ~(now | v->value) : ~(now | v->value)) != 0;
	}
}

static void value_wait(struct obd_op *op)
{
	const struct obf_value *v = &((struct value_op *)op)->value;

	while (!value_matches(v) && !atomic_load_explicit(&op->ctx->abort, memory_order_relaxed) &&
		!obd_ctx_failed(op->ctx))
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
}

CUresult obd_stream_value(struct obf_stream *base, const struct obf_value *value)
{
	struct obd_stream *stream = obd_stream_of(base);
	CUresult result = obd_address_check(value->addr, value->bytes);
	struct value_op *op;

	if (result)
		return result;
	op = obd_op_new(sizeof *op, OBD_OP_COPY, stream->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = value->wait ? value_wait : value_write;
	op->op.unbounded_wait = value->wait; /* the program determines how long the wait takes */
	op->value = *value;
	result = obd_sched_submit(&op->op, stream, NULL);
	obd_op_unref(&op->op);
	return result;
}
