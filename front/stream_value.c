/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Stream memory operations: a stream writes a word of device memory, or waits until a word has a
 * value. cuStreamBatchMemOp is a row of them.
 */
#include "front/captured.h"
#include "front/private.h"
#include "front/stream.h"
#include "front/value.h"
#include "protocol/obf_calls.h"

static bool offers(const struct obf_ctx *ctx, CUdevice_attribute attr)
{
	return obf_device_attr(obf_ctx_device(ctx), attr, 0) != 0;
}

static CUresult flags_check(const struct obf_ctx *ctx, const struct obf_value *value)
{
	unsigned condition = value->flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH;

	if (!value->wait)
		return value->flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
			? CUDA_ERROR_INVALID_VALUE
			: CUDA_SUCCESS;
	if (condition > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (condition == CU_STREAM_WAIT_VALUE_NOR &&
		!offers(ctx, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR))
		return CUDA_ERROR_NOT_SUPPORTED;
	if ((value->flags & CU_STREAM_WAIT_VALUE_FLUSH) &&
		!offers(ctx, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES))
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

static CUresult value_check(const struct obf_ctx *ctx, const struct obf_value *value)
{
	CUresult result = flags_check(ctx, value);
	bool device;

	if (result != CUDA_SUCCESS)
		return result;
	if (value->bytes == 8 && !offers(ctx, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (value->addr % value->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_mem_side(value->addr, value->bytes, true, &device);
	if (result == CUDA_SUCCESS && !device)
		return obf_absent("a stream's write to or wait for host memory",
			"the device cannot access this machine's memory: use a word of device "
			"memory");
	return result;
}

static CUresult value_put(CUstream handle, const struct obf_value *value)
{
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result == CUDA_SUCCESS)
		result = value_check(stream->ctx, value);
	if (result == CUDA_SUCCESS && ob_unlikely(stream->capture != NULL))
		return obf_capture_value(stream, value);
	if (result != CUDA_SUCCESS)
		return result;
	return obf_ctx_result(stream->ctx, obf_process.backend->stream_value(stream, value));
}

CUresult obf_cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	return value_put(stream, &(struct obf_value){ addr, value, 4, flags, false });
}

CUresult obf_cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags)
{
	return value_put(stream, &(struct obf_value){ addr, value, 8, flags, false });
}

CUresult obf_cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	return value_put(stream, &(struct obf_value){ addr, value, 4, flags, true });
}

CUresult obf_cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags)
{
	return value_put(stream, &(struct obf_value){ addr, value, 8, flags, true });
}

/* ---- batches ---- */

CUresult obf_value_take(
	const struct obf_ctx *ctx, const CUstreamBatchMemOpParams *op, struct obf_value *ret)
{
	bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
		op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;

	*ret = (struct obf_value){ .bytes = 0 };
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		*ret = (struct obf_value){ op->waitValue.address,
			wide ? op->waitValue.value64 : op->waitValue.value, wide ? 8 : 4,
			op->waitValue.flags, true };
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		*ret = (struct obf_value){ op->writeValue.address,
			wide ? op->writeValue.value64 : op->writeValue.value, wide ? 8 : 4,
			op->writeValue.flags, false };
		break;
	case CU_STREAM_MEM_OP_BARRIER:
		return op->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		if (op->flushRemoteWrites.flags != 0)
			return CUDA_ERROR_INVALID_VALUE;
		return offers(ctx, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES)
			? CUDA_SUCCESS
			: CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return value_check(ctx, ret);
}

CUresult obf_cuStreamBatchMemOp_v2(
	CUstream handle, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags)
{
	struct obf_stream *stream;
	struct obf_value value;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ops || count >= OBF_VALUES_MAX || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* All or none: a wrong operation is found before the first one is executed. */
	for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
		result = obf_value_take(stream->ctx, &ops[i], &value);
	if (result == CUDA_SUCCESS && ob_unlikely(stream->capture != NULL))
		return obf_capture_batch(stream, count, ops);
	for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++) {
		result = obf_value_take(stream->ctx, &ops[i], &value);
		if (result == CUDA_SUCCESS && value.bytes)
			result = obf_process.backend->stream_value(stream, &value);
	}
	return obf_ctx_result(stream->ctx, result);
}
