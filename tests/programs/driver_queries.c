/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Queries of devices, contexts, modules, libraries and functions; occupancy; old ABIs of calls by
 * their exported names.
 */
#include "driver.h"

#include <cudaProfiler.h>

/* Deprecated calls are tested too, because old programs still use them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define KERNELS 6

static const char *const kernel_names[KERNELS] = { "bounded", "count", "parameters", "polynomial",
	"saxpy", "shared_reverse" };
static int size_calls;

static int attribute(CUdevice device, CUdevice_attribute which)
{
	int value = -1;

	CU(cuDeviceGetAttribute(&value, which, device));
	return value;
}

/* The driver need not support the call; if it does, the call must succeed. */
static int offered(CUresult status)
{
	OK(status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_SUPPORTED);
	return status == CUDA_SUCCESS;
}

static void devices(CUdevice device, int count)
{
	CUdevprop prop;
	int major = -1, minor = -1, value = -1;
	char luid[8];
	unsigned mask = 0, can[2] = { ~0u, ~0u };
	size_t width = 0;
	CUatomicOperation operations[2] = { CU_ATOMIC_OPERATION_INTEGER_ADD,
		CU_ATOMIC_OPERATION_INTEGER_MIN };
	CUresult status;

	memset(&prop, 0xff, sizeof(prop));
	CU(cuDeviceGetProperties(&prop, device));
	OK(prop.maxThreadsPerBlock == attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
	OK(prop.maxThreadsDim[2] == attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
	OK(prop.maxGridSize[0] == attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
	OK(prop.maxGridSize[1] == attribute(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y));
	OK(prop.sharedMemPerBlock ==
		attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK));
	OK(prop.totalConstantMemory ==
		attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY));
	OK(prop.SIMDWidth == 32);
	OK(prop.regsPerBlock == attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK));
	OK(prop.textureAlign == attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT));
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetProperties(&prop, count));
	CU(cuDeviceComputeCapability(&major, &minor, device));
	OK(major == attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
	OK(minor == attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceComputeCapability(NULL, &minor, device));

	offered(cuDeviceGetLuid(luid, &mask, device));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
		cuDeviceGetP2PAttribute(
			&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, device));
	for (int peer = 1; peer < count; peer++) {
		int can_access = -1;
		CU(cuDeviceGetP2PAttribute(
			&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, peer));
		CU(cuDeviceCanAccessPeer(&can_access, device, peer));
		OK(value == can_access);
	}
	if (offered(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, device)))
		OK((width > 0) ==
			(attribute(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH) >
				0));
	CU(cuDeviceGetExecAffinitySupport(&value, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
	OK(value == 0 || value == 1);
	offered(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
	if (offered(cuDeviceGetHostAtomicCapabilities(can, operations, 2, device)))
		OK(can[0] != ~0u && can[1] != ~0u);
	status = cuDeviceGetP2PAtomicCapabilities(can, operations, 2, device, count - 1);
	if (count > 1 || status != CUDA_ERROR_INVALID_DEVICE)
		offered(status);
}

static void contexts(CUdevice device)
{
	CUresult (*create)(CUcontext *, CUexecAffinityParam *, int, unsigned, CUdevice) =
		driver_entry("cuCtxCreate_v3");
	CUresult (*attach)(CUcontext *, unsigned) = driver_entry("cuCtxAttach");
	CUresult (*detach)(CUcontext) = driver_entry("cuCtxDetach");
	CUcontext primary, made, same = NULL, now = NULL;
	CUexecAffinityParam affinity = { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
		.param.smCount.val = 1 };
	CUresult status;
	CUfunc_cache cache = (CUfunc_cache)77;
	CUsharedconfig banks = (CUsharedconfig)77;
	unsigned long long first = 0, second = 0, again = 0;
	unsigned flags = 99;
	int active = 99, affine = 0;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(device, 0x1000));
	CU(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_YIELD));
	CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
	OK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD && active == 0);
	CU(cuDevicePrimaryCtxRetain(&primary, device));
	CU(cuDevicePrimaryCtxGetState(device, &flags, &active));
	OK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD && active == 1);
	CU(cuCtxSetCurrent(primary));
	CU(cuCtxGetFlags(&flags));
	OK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD);
	CU(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
	CU(cuCtxGetFlags(&flags));
	OK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);

	CU(cuDeviceGetExecAffinitySupport(&affine, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
	if (!affine)
		EXPECT(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
			create(&made, &affinity, 1, 0, device));
	CU(create(&made, NULL, 0, CU_CTX_SCHED_SPIN, device));
	CU(cuCtxGetCurrent(&now));
	OK(now == made);
	CU(cuCtxGetFlags(&flags));
	OK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_SPIN);
	CU(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
	CU(cuCtxGetFlags(&flags));
	OK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(0x1000));
	CU(cuCtxGetId(made, &first));
	CU(cuCtxGetId(primary, &second));
	CU(cuCtxGetId(NULL, &again));
	OK(first != second && first == again);
	status = cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
	OK(status == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY ||
		(status == CUDA_SUCCESS &&
			affinity.param.smCount.val ==
				(unsigned)attribute(
					device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)));

	CU(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
	CU(cuCtxGetCacheConfig(&cache));
	OK(cache == CU_FUNC_CACHE_PREFER_SHARED || cache == CU_FUNC_CACHE_PREFER_NONE);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig((CUfunc_cache)77));
	CU(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
	CU(cuCtxGetSharedMemConfig(&banks));
	OK(banks == CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE ||
		banks == CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxSetSharedMemConfig((CUsharedconfig)77));
	CU(cuCtxResetPersistingL2Cache());

	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(made, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(primary, 1));
	EXPECT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(primary, 0));
	EXPECT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(primary));

	/* Attached a second time, so that only the second detach destroys it. */
	CU(attach(&same, 0));
	OK(same == made);
	CU(detach(made));
	CU(cuCtxGetCurrent(&now));
	OK(now == made);
	CU(cuCtxSynchronize());
	CU(detach(made));
	CU(cuCtxGetCurrent(&now));
	OK(now == primary);
	CU(cuDevicePrimaryCtxRelease(device));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_are_right(const char **names)
{
	qsort(names, KERNELS, sizeof(*names), by_name);
	for (int i = 0; i < KERNELS; i++)
		OK(strcmp(names[i], kernel_names[i]) == 0);
}

static void code(void)
{
	CUmodule module;
	CUlibrary library, of = NULL;
	CUfunction functions[KERNELS], bounded;
	CUkernel kernels[KERNELS], reverse;
	CUfunctionLoadingState state = (CUfunctionLoadingState)77;
	const char *names[KERNELS];
	unsigned count = 0;
	CUdeviceptr data;
	int words[64];
	size_t bytes = 0;
	void *unified = NULL;

	CU(cuModuleLoad(&module, beside("driver_kernels.fatbin")));
	CU(cuModuleGetFunctionCount(&count, module));
	OK(count == KERNELS);
	memset(functions, 0, sizeof(functions));
	CU(cuModuleEnumerateFunctions(functions, KERNELS, module));
	for (int i = 0; i < KERNELS; i++)
		CU(cuFuncGetName(&names[i], functions[i]));
	names_are_right(names);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunctionCount(NULL, module));
	CU(cuModuleGetFunction(&bounded, module, "bounded"));
	CU(cuFuncLoad(bounded));
	CU(cuFuncIsLoaded(&state, bounded));
	OK(state == CU_FUNCTION_LOADING_STATE_LOADED);
	CU(cuFuncSetCacheConfig(bounded, CU_FUNC_CACHE_PREFER_L1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetCacheConfig(bounded, (CUfunc_cache)77));
	CU(cuFuncSetSharedMemConfig(bounded, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetSharedMemConfig(bounded, (CUsharedconfig)77));
	CU(cuModuleUnload(module));

	EXPECT(CUDA_ERROR_FILE_NOT_FOUND,
		cuLibraryLoadFromFile(&library, beside("no.fatbin"), NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryLoadFromFile(
		&library, beside("driver_kernels.fatbin"), NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernelCount(&count, library));
	OK(count == KERNELS);
	CU(cuLibraryEnumerateKernels(kernels, KERNELS, library));
	for (int i = 0; i < KERNELS; i++) {
		CU(cuKernelGetName(&names[i], kernels[i]));
		CU(cuKernelGetLibrary(&of, kernels[i]));
		OK(of == library);
	}
	names_are_right(names);
	EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&data, &bytes, library, "counter"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetUnifiedFunction(&unified, library, "saxpy"));

	/* Runs a kernel of the file. */
	CU(cuLibraryGetKernel(&reverse, library, "shared_reverse"));
	CU(cuMemAlloc(&data, sizeof(words)));
	for (int i = 0; i < 64; i++)
		words[i] = 3 * i + 1;
	CU(cuMemcpyHtoD(data, words, sizeof(words)));
	void *args[] = { &data };
	CU(cuLaunchKernel((CUfunction)reverse, 1, 1, 1, 64, 1, 1, sizeof(words), NULL, args, NULL));
	CU(cuMemcpyDtoH(words, data, sizeof(words)));
	for (int i = 0; i < 64; i++)
		OK(words[i] == 3 * (63 - i) + 1);
	printf("reversed %016llx\n", (unsigned long long)checksum(words, sizeof(words)));
	CU(cuMemFree(data));
	CU(cuLibraryUnload(library));
}

static size_t CUDA_CB shared_of(int block)
{
	size_calls++;
	return (size_t)block * 4;
}

static void occupancy(CUdevice device)
{
	CUmodule module;
	CUfunction bounded;
	int blocks = -1, same = -1, grid = -1, block = -1, grid2 = -1, block2 = -1, fit = -1,
	    value = -1;
	int processors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	int threads = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
	CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		.value.clusterDim = { 2, 1, 1 } };
	CUlaunchConfig config = { .gridDimX = 64,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 128,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &cluster,
		.numAttrs = 1 };

	CU(cuModuleLoad(&module, beside("driver_kernels.ptx")));
	CU(cuModuleGetFunction(&bounded, module, "bounded"));
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 128, 0));
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&same, bounded, 128, 0, CU_OCCUPANCY_DEFAULT));
	OK(blocks >= 1 && blocks * 128 <= threads && blocks == same);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
		cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 0, 0));

	/* Launch bounds of 128 threads: no larger block can be proposed. */
	CU(cuOccupancyMaxPotentialBlockSize(&grid, &block, bounded, NULL, 0, 0));
	OK(block > 0 && block <= 128 && block % 32 == 0);
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, bounded, block, 0));
	OK(grid == fit * processors);
	CU(cuOccupancyMaxPotentialBlockSizeWithFlags(
		&grid2, &block2, bounded, NULL, 0, 0, CU_OCCUPANCY_DEFAULT));
	OK(grid2 == grid && block2 == block);
	CU(cuOccupancyMaxPotentialBlockSize(&grid2, &block2, bounded, shared_of, 0, 64));
	OK(block2 > 0 && block2 <= 64 && size_calls > 0);
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, bounded, block2, (size_t)block2 * 4));
	OK(grid2 == fit * processors);

	if (attribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)) {
		CU(cuOccupancyMaxPotentialClusterSize(&value, bounded, &config));
		OK(value >= 8);
		CU(cuOccupancyMaxActiveClusters(&value, bounded, &config));
		OK(value >= 1 && value <= blocks * processors / 2);
	} else {
		cuOccupancyMaxPotentialClusterSize(&value, bounded, &config);
		OK(cuOccupancyMaxActiveClusters(&value, bounded, &config) != CUDA_SUCCESS);
	}
	CU(cuModuleUnload(module));
}

static void session(void)
{
	CUresult (*get)(const char *, void **, int, cuuint64_t) = driver_entry("cuGetProcAddress");
	CUresult (*initialize)(const char *, const char *, int) =
		driver_entry("cuProfilerInitialize");
	CUresult (*info)(size_t *, size_t *) = NULL;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	size_t left = 0, total = 0;
	void *none = (void *)1;
	CUresult status;

	CU(get("cuMemGetInfo", (void **)&info, 12000, CU_GET_PROC_ADDRESS_DEFAULT));
	OK(info);
	if (info)
		CU(info(&left, &total));
	OK(left > 0 && left <= total);
	status = get("cuNoSuchCall", &none, 12000, CU_GET_PROC_ADDRESS_DEFAULT);
	OK((status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_FOUND) && none == NULL);

	status = initialize("", "", 0);
	OK(status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_SUPPORTED ||
		status == CUDA_ERROR_PROFILER_DISABLED);
	CU(cuProfilerStart());
	CU(cuProfilerStop());

	CU(cuThreadExchangeStreamCaptureMode(&mode));
	OK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	CU(cuThreadExchangeStreamCaptureMode(&mode));
	OK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	mode = (CUstreamCaptureMode)77;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mode));
}

int main(void)
{
	CUdevice device;
	CUcontext context;
	int count = 0;

	CU(cuInit(0));
	CU(cuDeviceGetCount(&count));
	CU(cuDeviceGet(&device, 0));
	contexts(device);
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	devices(device, count);
	code();
	occupancy(device);
	session();
	CU(cuDevicePrimaryCtxRelease(device));
	return verdict("driver_queries");
}
