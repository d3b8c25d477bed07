/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Virtual memory management: a range that is reserved once and grows by mapping memory into it, as
 * in allocators of machine learning frameworks; one allocation mapped at two addresses; memory that
 * remains after its handle is released; refused calls.
 */
#include "driver.h"

#define PAGE   ((size_t)2 << 20)
#define PIECES 3

/* for (i = thread; i < n; i += threads) p[i] += i */
static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
			  ".visible .entry add(.param .u64 at, .param .u32 count)\n{\n"
			  ".reg .u64 %rd<4>;\n.reg .u32 %r<8>;\n.reg .pred %p;\n"
			  "ld.param.u64 %rd1, [at];\nld.param.u32 %r1, [count];\n"
			  "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\n"
			  "mad.lo.u32 %r2, %r3, %r4, %r2;\nmov.u32 %r5, %nctaid.x;\n"
			  "mul.lo.u32 %r4, %r4, %r5;\n"
			  "again:\nsetp.ge.u32 %p, %r2, %r1;\n@%p bra done;\n"
			  "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd2, %rd1, %rd2;\n"
			  "ld.global.u32 %r6, [%rd2];\nadd.u32 %r6, %r6, %r2;\n"
			  "st.global.u32 [%rd2], %r6;\nadd.u32 %r2, %r2, %r4;\nbra again;\n"
			  "done:\nret;\n}\n";

static CUmemAllocationProp prop;
static CUmemAccessDesc access_both;
static unsigned host[PIECES * PAGE / sizeof(unsigned)];

static CUmemGenericAllocationHandle create(size_t size)
{
	CUmemGenericAllocationHandle handle = 0;

	CU(cuMemCreate(&handle, size, &prop, 0));
	return handle;
}

static void properties(void)
{
	size_t least = 0, recommended = 0;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp got;

	CU(cuMemGetAllocationGranularity(&least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CU(cuMemGetAllocationGranularity(
		&recommended, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	OK(PAGE % least == 0 && recommended % least == 0);
	handle = create(PAGE);
	memset(&got, 0x77, sizeof got);
	CU(cuMemGetAllocationPropertiesFromHandle(&got, handle));
	OK(!memcmp(&got, &prop, sizeof got));
	CU(cuMemRelease(handle));
	printf("granularity divides 2 MiB %d\n", PAGE % least == 0);
}

/* The range grows by one allocation at a time; a kernel and copies use it as one array. */
static void growing(CUfunction add)
{
	CUmemGenericAllocationHandle pieces[PIECES];
	CUdeviceptr p = 0, base = 0;
	size_t size = 0;
	int ordinal = -1;

	CU(cuMemAddressReserve(&p, 1024 * PAGE, 0, 0, 0));
	for (unsigned i = 0; i < PIECES; i++) {
		unsigned n = (unsigned)((i + 1) * PAGE / sizeof(unsigned));
		void *params[] = { &p, &n };

		pieces[i] = create(PAGE);
		CU(cuMemMap(p + i * PAGE, PAGE, 0, pieces[i], 0));
		CU(cuMemSetAccess(p + i * PAGE, PAGE, &access_both, 1));
		CU(cuMemsetD32(p + i * PAGE, 1000 * (i + 1), PAGE / sizeof(unsigned)));
		CU(cuLaunchKernel(add, 64, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	}
	CU(cuMemcpyDtoH(host, p, sizeof host));
	for (unsigned i = 0; i < PIECES * PAGE / sizeof(unsigned); i++) {
		unsigned piece = (unsigned)(i / (PAGE / sizeof(unsigned)));

		if (host[i] != 1000 * (piece + 1) + (PIECES - piece) * i) {
			OK(!"a number of the grown array is wrong");
			break;
		}
	}
	printf("grown %016llx\n", (unsigned long long)checksum(host, sizeof host));
	CU(cuMemGetAddressRange(&base, &size, p + PAGE + 5));
	OK(base == p + PAGE && size == PAGE);
	CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	OK(ordinal == 0);
	/* cuMemFree cannot free mapped memory, and its addresses cannot be released. */
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 1024 * PAGE));
	CU(cuMemUnmap(p, 2 * PAGE)); /* two mappings in one call */
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, p, 4));
	CU(cuMemcpyDtoH(host, p + 2 * PAGE, 4));
	CU(cuMemUnmap(p + 2 * PAGE, PAGE));
	for (unsigned i = 0; i < PIECES; i++)
		CU(cuMemRelease(pieces[i]));
	CU(cuMemAddressFree(p, 1024 * PAGE));
}

/* Memory mapped at two addresses, one of them read-only, remains after its handle is released. */
static void aliases(void)
{
	CUmemGenericAllocationHandle handle = create(2 * PAGE);
	CUmemAccessDesc reading = access_both;
	CUdeviceptr p = 0;
	unsigned long long flags = 9;
	unsigned got = 0;

	reading.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	CU(cuMemAddressReserve(&p, 4 * PAGE, 4 * PAGE, 0, 0));
	OK(p % (4 * PAGE) == 0);
	CU(cuMemMap(p, 2 * PAGE, 0, handle, 0));
	CU(cuMemMap(p + 2 * PAGE, PAGE, PAGE, handle, 0));
	CU(cuMemRelease(handle));
	CU(cuMemGetAccess(&flags, &access_both.location, p));
	OK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CU(cuMemSetAccess(p, 2 * PAGE, &access_both, 1));
	CU(cuMemSetAccess(p + 2 * PAGE, PAGE, &reading, 1));
	CU(cuMemGetAccess(&flags, &access_both.location, p));
	OK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CU(cuMemGetAccess(&flags, &access_both.location, p + 2 * PAGE));
	OK(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	CU(cuMemsetD32(p + PAGE, 0xabcd1234, 4));
	CU(cuMemcpyDtoH(&got, p + 2 * PAGE + 8, 4));
	printf("alias %x\n", got);
	CU(cuMemUnmap(p, 3 * PAGE));
	CU(cuMemAddressFree(p, 4 * PAGE));
}

static void refused(void)
{
	CUmemGenericAllocationHandle handle = create(PAGE);
	CUmemAllocationProp bad = prop;
	CUdeviceptr p = 0, q = 0;
	unsigned long long flags = 0;
	size_t size = 0;

	CU(cuMemAddressReserve(&p, 2 * PAGE, 0, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&q, PAGE + 1, 0, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&q, 0, 0, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&q, PAGE, 3 * PAGE, 0, 0));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAddressReserve(&q, (size_t)1 << 55, 0, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p + PAGE, PAGE));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, PAGE + 1, &prop, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, PAGE, &prop, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, PAGE, NULL, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(NULL, PAGE, &prop, 0));
	EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, (size_t)1 << 50, &prop, 0));
	bad.location.id = 99;
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, PAGE, &bad, 0));
	bad.location.id = 0;
	bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, PAGE, &bad, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationGranularity(&size, &prop, 7));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, PAGE, 0, 0x1234, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, 2 * PAGE, 0, handle, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, PAGE, PAGE, handle, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 1, PAGE, 0, handle, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p + 2 * PAGE, PAGE, 0, handle, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(p, PAGE));
	CU(cuMemMap(p, PAGE, 0, handle, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(p, PAGE, 0, handle, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, 2 * PAGE, &access_both, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, PAGE, NULL, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(p, PAGE, &access_both, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &access_both.location, p + PAGE));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(NULL, &access_both.location, p));
	CU(cuMemRelease(handle));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&bad, handle));
	CU(cuMemUnmap(p, PAGE));
	CU(cuMemAddressFree(p, 2 * PAGE));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 2 * PAGE));
}

/* Memory is freed by the last of release and unmap, in either order. */
static void nothing_lost(void)
{
	size_t before, after, total;

	CU(cuMemGetInfo(&before, &total));
	for (unsigned i = 0; i < 100; i++) {
		CUmemGenericAllocationHandle handle = create(PAGE);
		CUdeviceptr p = 0;

		CU(cuMemAddressReserve(&p, PAGE, 0, 0, 0));
		CU(cuMemMap(p, PAGE, 0, handle, 0));
		if (i % 2)
			CU(cuMemRelease(handle));
		CU(cuMemUnmap(p, PAGE));
		if (i % 2 == 0)
			CU(cuMemRelease(handle));
		CU(cuMemAddressFree(p, PAGE));
	}
	CU(cuMemGetInfo(&after, &total));
	OK(before == after);
}

int main(void)
{
	CUmemGenericAllocationHandle handle;
	CUcontext context;
	CUmodule module;
	CUfunction add;
	size_t size;
	int supported = 0;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access_both.location = prop.location;
	access_both.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuMemCreate(&handle, PAGE, &prop, 0));
	EXPECT(CUDA_ERROR_NOT_INITIALIZED,
		cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CU(cuInit(0));
	CU(cuDeviceGetAttribute(
		&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	OK(supported == 1);
	properties(); /* no context is needed */
	CU(cuDevicePrimaryCtxRetain(&context, 0));
	CU(cuCtxSetCurrent(context));
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&add, module, "add"));
	growing(add);
	aliases();
	refused();
	nothing_lost();
	return verdict("driver_vmm");
}
