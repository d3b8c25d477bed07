/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Streams write words and wait for them, one by one and in batches; what is refused, and that a
 * batch with a wrong operation does nothing. */
#include "driver.h"

#include <string.h>

static CUdeviceptr words;
static CUstream stream, other;

static CUstreamBatchMemOpParams write_32(unsigned index, cuuint32_t value)
{
	CUstreamBatchMemOpParams op;

	memset(&op, 0, sizeof op);
	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = words + 4 * index;
	op.writeValue.value = value;
	return op;
}

static CUstreamBatchMemOpParams write_64(unsigned index, cuuint64_t value)
{
	CUstreamBatchMemOpParams op = write_32(index, 0);

	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op.writeValue.value64 = value;
	return op;
}

static CUstreamBatchMemOpParams wait_32(unsigned index, cuuint32_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op;

	memset(&op, 0, sizeof op);
	op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = words + 4 * index;
	op.waitValue.value = value;
	op.waitValue.flags = flags;
	return op;
}

static CUstreamBatchMemOpParams barrier(unsigned scope)
{
	CUstreamBatchMemOpParams op;

	memset(&op, 0, sizeof op);
	op.memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
	op.memoryBarrier.flags = scope;
	return op;
}

static cuuint32_t word(unsigned index)
{
	cuuint32_t got;

	CU(cuMemcpyDtoH(&got, words + 4 * index, sizeof got));
	return got;
}

/* A stream waits in the middle of a batch for another stream's batch. */
static void batches(void)
{
	CUstreamBatchMemOpParams first[] = { write_32(0, 1),
		wait_32(1, 5, CU_STREAM_WAIT_VALUE_GEQ), barrier(CU_STREAM_MEMORY_BARRIER_TYPE_GPU),
		write_32(2, 7) };
	CUstreamBatchMemOpParams second[] = { wait_32(0, 1, CU_STREAM_WAIT_VALUE_EQ),
		write_64(4, 0x1122334455667788ull), write_32(1, 6) };

	CU(cuMemsetD32(words, 0, 16));
	CU(cuCtxSynchronize());
	CU(cuStreamBatchMemOp(stream, 4, first, 0));
	EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
	CU(cuStreamBatchMemOp(other, 3, second, 0));
	CU(cuStreamSynchronize(stream));
	CU(cuStreamSynchronize(other));
	OK(word(0) == 1 && word(1) == 6 && word(2) == 7 && word(4) == 0x55667788 &&
		word(5) == 0x11223344);
	CU(cuStreamBatchMemOp(stream, 0, first, 0));
}

static void conditions(void)
{
	const struct {
		cuuint32_t now, value;
		unsigned condition;
		int passes;
	} cases[] = { { 5, 5, CU_STREAM_WAIT_VALUE_GEQ, 1 }, { 4, 5, CU_STREAM_WAIT_VALUE_GEQ, 0 },
		{ 1, 0xfffffff0, CU_STREAM_WAIT_VALUE_GEQ, 1 }, /* the comparison is cyclic */
		{ 6, 5, CU_STREAM_WAIT_VALUE_EQ, 0 }, { 6, 2, CU_STREAM_WAIT_VALUE_AND, 1 },
		{ 4, 2, CU_STREAM_WAIT_VALUE_AND, 0 },
		{ 0xffffffff, 0, CU_STREAM_WAIT_VALUE_NOR, 0 },
		{ 0xfffffffe, 0, CU_STREAM_WAIT_VALUE_NOR, 1 } };

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		CU(cuMemsetD32(words, cases[i].now, 1));
		CU(cuCtxSynchronize());
		CU(cuStreamWaitValue32(stream, words, cases[i].value, cases[i].condition));
		if (cases[i].passes) {
			CU(cuStreamSynchronize(stream));
			continue;
		}
		EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
		/* any of these ends the wait of one of the conditions */
		CU(cuStreamWriteValue32(other, words,
			cases[i].condition == CU_STREAM_WAIT_VALUE_NOR ? 1 : cases[i].value, 0));
		CU(cuStreamSynchronize(stream));
	}
}

static void refusals(void)
{
	CUstreamBatchMemOpParams ops[256], bad;
	CUstream none = (CUstream)0x1234567;
	unsigned host = 0;

	CU(cuMemsetD32(words, 0, 16));
	for (unsigned i = 0; i < 256; i++)
		ops[i] = write_32(0, i);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 256, ops, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamBatchMemOp(none, 2, ops, 0));
	bad = write_32(0, 1);
	bad.writeValue.address += 2;
	ops[1] = bad;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
	ops[1] = write_32(1u << 29, 1);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
	ops[1] = write_32(0, 1);
	ops[1].writeValue.flags = 2;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
	ops[1] = wait_32(0, 1, 4);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
	ops[1] = barrier(2);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
	ops[1].operation = (CUstreamBatchMemOpType)7;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
	ops[0] = write_32(0, 99);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(stream, 2, ops, 0));
	OK(word(0) == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, words + 2, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64(stream, words + 4, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, words, 1, 2));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(stream, words, 1, 4));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64(stream, 0, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitValue32(none, words, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuStreamWriteValue32(stream, (CUdeviceptr)(uintptr_t)&host, 1, 0));
}

int main(void)
{
	CUdevice device;
	CUcontext context;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuMemAlloc(&words, 64));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	batches();
	conditions();
	refusals();
	CU(cuStreamDestroy(stream));
	CU(cuStreamDestroy(other));
	CU(cuMemFree(words));
	CU(cuDevicePrimaryCtxRelease(device));
	return verdict("driver_stream_values");
}
