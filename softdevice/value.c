/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Stream memory operations: a stream writes a value to memory or waits for one. */
#include <time.h>

#include "protocol/obd_locals.h"
#include "softdevice/address.h"
#include "softdevice/context.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"

enum { WAIT_GEQ, WAIT_EQ, WAIT_AND, WAIT_NOR, WAIT_CONDITIONS };
#define WRITE_NO_BARRIER 1u /* CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER */
#define POLL_NS          20000

struct value_op {
	struct obd_op op;
	uint64_t addr, value;
	unsigned bytes, condition;
};

static void value_write(struct obd_op *op)
{
	struct value_op *v = (struct value_op *)op;

	if (v->bytes == 4)
		__atomic_store_n((uint32_t *)v->addr, (uint32_t)v->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)v->addr, v->value, __ATOMIC_SEQ_CST);
}

static bool value_matches(const struct value_op *v)
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
	switch (v->condition) {
	case WAIT_GEQ:
		return difference >= 0; /* cyclic comparison, as CUDA documents it */
	case WAIT_EQ:
		return difference == 0;
	case WAIT_AND:
		return (now & v->value) != 0;
	default:
		return (v->bytes == 4 ? (uint32_t) ~(now | v->value) : ~(now | v->value)) != 0;
	}
}

static void value_wait(struct obd_op *op)
{
	struct value_op *v = (struct value_op *)op;

	while (!value_matches(v) && !atomic_load_explicit(&op->ctx->abort, memory_order_relaxed) &&
		!obd_ctx_failed(op->ctx))
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
}

static CUresult value_submit(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned bytes,
	unsigned condition, void (*run)(struct obd_op *))
{
	struct obd_stream *s;
	struct value_op *op;
	CUresult result = obd_stream_enter(stream, &s);
	bool device;

	if (!result)
		result = addr % bytes ? CUDA_ERROR_INVALID_VALUE
				      : obf_mem_side(addr, bytes, true, &device);
	if (!result && device)
		result = obd_address_check(addr, bytes);
	if (result)
		return result;
	op = obd_op_new(sizeof *op, OBD_OP_COPY, s->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = run;
	op->op.unbounded_wait =
		run == value_wait; /* the program determines how long the wait takes */
	op->addr = addr;
	op->value = value;
	op->bytes = bytes;
	op->condition = condition;
	result = obd_sched_submit(&op->op, s, NULL);
	obd_op_unref(&op->op);
	return result;
}

CUresult obd_cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	if (flags & ~WRITE_NO_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return value_submit(stream, addr, value, 4, 0, value_write);
}

CUresult obd_cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	if (flags & ~WRITE_NO_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return value_submit(stream, addr, value, 8, 0, value_write);
}

CUresult obd_cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	if (flags >= WAIT_CONDITIONS)
		return CUDA_ERROR_INVALID_VALUE;
	return value_submit(stream, addr, value, 4, flags, value_wait);
}

CUresult obd_cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	if (flags >= WAIT_CONDITIONS)
		return CUDA_ERROR_INVALID_VALUE;
	return value_submit(stream, addr, value, 8, flags, value_wait);
}
