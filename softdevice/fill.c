/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* cuMemset* and the values that streams write and wait for: all asynchronous to the host. */
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "protocol/obd_locals.h"
#include "softdevice/context.h"
#include "softdevice/copy.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"
#include "softdevice/window.h"

struct fill_op {
	struct obd_op op;
	uint64_t dst;
	uint32_t value;
	unsigned element;            /* 1, 2 or 4 bytes */
	size_t pitch, width, height; /* bytes, elements, rows */
};

static void row_fill(uint64_t dst, uint32_t value, unsigned element, size_t n)
{
	if (element == 1) {
		memset((void *)dst, (int)value, n);
	} else if (element == 2) {
		uint16_t *p = (uint16_t *)dst;

		for (size_t i = 0; i < n; i++)
			p[i] = (uint16_t)value;
	} else {
		uint32_t *p = (uint32_t *)dst;

		for (size_t i = 0; i < n; i++)
			p[i] = value;
	}
}

static void fill_run(struct obd_op *op)
{
	struct fill_op *f = (struct fill_op *)op;

	for (size_t y = 0; y < f->height; y++)
		row_fill(f->dst + y * f->pitch, f->value, f->element, f->width);
}

static CUresult fill(uint64_t dst, size_t pitch, uint32_t value, unsigned element, size_t width,
	size_t height, bool soon, CUstream stream)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	struct fill_op *op;
	uint64_t row, bytes;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result)
		return result;
	if (dst % element || ob_mul_overflows((uint64_t)width, element, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (width == 0 || height == 0)
		return CUDA_SUCCESS;
	if ((height > 1 && (pitch < row || pitch % element)) ||
		ob_mul_overflows((uint64_t)(height - 1), pitch, &bytes) ||
		ob_add_overflows(bytes, row, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = obd_copy_check(dst, bytes);
	if (result)
		return result;
	op = obd_op_new(sizeof *op, OBD_OP_COPY, s->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = fill_run;
	op->dst = dst;
	op->value = value;
	op->element = element;
	op->pitch = pitch;
	op->width = width;
	op->height = height;
	/* Pinned host memory is the one kind for which CUDA waits. */
	if (!obd_window_holds(dst))
		result = obd_sched_perform(&op->op, s);
	else if (bytes <= OBD_SHORT_MAX || soon)
		result = obd_sched_soon(&op->op, s);
	else
		result = obd_sched_submit(&op->op, s, NULL);
	obd_op_unref(&op->op);
	return result;
}

#define FILL(name, type, element)                                             \
	CUresult obd_cuMemset##name##_v2(                                     \
		CUdeviceptr dst, type value, size_t count, CUstream stream)   \
	{                                                                     \
		return fill(dst, 0, value, element, count, 1, true, stream);  \
	}                                                                     \
	CUresult obd_cuMemset##name##Async(                                   \
		CUdeviceptr dst, type value, size_t count, CUstream stream)   \
	{                                                                     \
		return fill(dst, 0, value, element, count, 1, false, stream); \
	}

#define FILL_2D(name, type, element)                                                              \
	CUresult obd_cuMemset##name##_v2(CUdeviceptr dst, size_t pitch, type value, size_t width, \
		size_t height, CUstream stream)                                                   \
	{                                                                                         \
		return fill(dst, pitch, value, element, width, height, true, stream);             \
	}                                                                                         \
	CUresult obd_cuMemset##name##Async(CUdeviceptr dst, size_t pitch, type value,             \
		size_t width, size_t height, CUstream stream)                                     \
	{                                                                                         \
		return fill(dst, pitch, value, element, width, height, false, stream);            \
	}

FILL(D8, unsigned char, 1)
FILL(D16, unsigned short, 2)
FILL(D32, unsigned int, 4)
FILL_2D(D2D8, unsigned char, 1)
FILL_2D(D2D16, unsigned short, 2)
FILL_2D(D2D32, unsigned int, 4)

/* ---- stream memory operations ---- */

enum { WAIT_GEQ, WAIT_EQ, WAIT_AND, WAIT_NOR, WAIT_WAYS };
#define WRITE_NO_BARRIER 1u /* CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER */
#define POLL_NS          20000

struct value_op {
	struct obd_op op;
	uint64_t addr, value;
	unsigned bytes, way;
};

static void value_write(struct obd_op *op)
{
	struct value_op *v = (struct value_op *)op;

	if (v->bytes == 4)
		__atomic_store_n((uint32_t *)v->addr, (uint32_t)v->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint64_t *)v->addr, v->value, __ATOMIC_SEQ_CST);
}

static bool value_there(const struct value_op *v)
{
	uint64_t now;
	int64_t ahead;

	if (v->bytes == 4) {
		now = __atomic_load_n((uint32_t *)v->addr, __ATOMIC_SEQ_CST);
		ahead = (int32_t)((uint32_t)now - (uint32_t)v->value);
	} else {
		now = __atomic_load_n((uint64_t *)v->addr, __ATOMIC_SEQ_CST);
		ahead = (int64_t)(now - v->value);
	}
	switch (v->way) {
	case WAIT_GEQ:
		return ahead >= 0; /* cyclic, as documented */
	case WAIT_EQ:
		return ahead == 0;
	case WAIT_AND:
		return (now & v->value) != 0;
	default:
		return (v->bytes == 4 ? (uint32_t) ~(now | v->value) : ~(now | v->value)) != 0;
	}
}

static void value_wait(struct obd_op *op)
{
	struct value_op *v = (struct value_op *)op;

	while (!value_there(v) && !atomic_load_explicit(&op->ctx->abort, memory_order_relaxed) &&
		!obd_ctx_failed(op->ctx))
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
}

static CUresult value_submit(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned bytes,
	unsigned way, void (*run)(struct obd_op *))
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	struct value_op *op;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result)
		result = addr % bytes ? CUDA_ERROR_INVALID_VALUE : obd_copy_check(addr, bytes);
	if (result)
		return result;
	op = obd_op_new(sizeof *op, OBD_OP_COPY, s->ctx);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = run;
	op->op.behind_code = run == value_wait; /* the program ends it when it likes */
	op->addr = addr;
	op->value = value;
	op->bytes = bytes;
	op->way = way;
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
	if (flags >= WAIT_WAYS)
		return CUDA_ERROR_INVALID_VALUE;
	return value_submit(stream, addr, value, 4, flags, value_wait);
}

CUresult obd_cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	if (flags >= WAIT_WAYS)
		return CUDA_ERROR_INVALID_VALUE;
	return value_submit(stream, addr, value, 8, flags, value_wait);
}
