/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Device properties: checks that all queries return the same value and that the values are
 * consistent, not the values themselves.
 */
#include "check.h"
#include <cuda.h>

int main()
{
	int count = 0, device = -1, driver = 0, runtime = 0;

	CU(cudaDriverGetVersion(&driver));
	CU(cudaRuntimeGetVersion(&runtime));
	OK(runtime == CUDART_VERSION && driver >= runtime / 1000 * 1000);
	CU(cudaGetDeviceCount(&count));
	OK(count >= 1);
	for (int d = 0; d < count; d++) {
		cudaDeviceProp p;
		char bus[32] = "";
		size_t free_bytes = 0, total = 0;
		CUuuid uuid;

		CU(cudaSetDevice(d));
		CU(cudaGetDeviceProperties(&p, d));
		OK(p.name[0] && strlen(p.name) < sizeof(p.name));
		OK(p.warpSize == 32 && p.major >= 7 && p.multiProcessorCount >= 1);
		OK(p.maxThreadsPerBlock >= 1024 && p.maxThreadsDim[0] >= 1024 &&
			p.maxThreadsDim[1] >= 1024);
		OK(p.maxThreadsDim[2] >= 64 && p.maxGridSize[0] == 0x7fffffff &&
			p.maxGridSize[1] == 65535);
		OK(p.maxThreadsPerMultiProcessor >= p.maxThreadsPerBlock &&
			p.maxThreadsPerMultiProcessor % 32 == 0);
		OK(p.sharedMemPerBlock <= p.sharedMemPerBlockOptin &&
			p.sharedMemPerBlockOptin <= p.sharedMemPerMultiprocessor);
		OK(p.regsPerBlock <= p.regsPerMultiprocessor && p.totalConstMem == 65536 &&
			p.unifiedAddressing == 1);
		CU(cudaMemGetInfo(&free_bytes, &total));
		OK(free_bytes <= total && total == p.totalGlobalMem);

		const struct {
			cudaDeviceAttr attribute;
			long long value;
		} same[] = {
			{ cudaDevAttrWarpSize, p.warpSize },
			{ cudaDevAttrComputeCapabilityMajor, p.major },
			{ cudaDevAttrComputeCapabilityMinor, p.minor },
			{ cudaDevAttrMultiProcessorCount, p.multiProcessorCount },
			{ cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock },
			{ cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0] },
			{ cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2] },
			{ cudaDevAttrMaxGridDimX, p.maxGridSize[0] },
			{ cudaDevAttrMaxGridDimZ, p.maxGridSize[2] },
			{ cudaDevAttrMaxSharedMemoryPerBlock, (long long)p.sharedMemPerBlock },
			{ cudaDevAttrMaxSharedMemoryPerBlockOptin,
				(long long)p.sharedMemPerBlockOptin },
			{ cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor },
			{ cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor },
			{ cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock },
			{ cudaDevAttrConcurrentKernels, p.concurrentKernels },
			{ cudaDevAttrAsyncEngineCount, p.asyncEngineCount },
			{ cudaDevAttrCooperativeLaunch, p.cooperativeLaunch },
			{ cudaDevAttrL2CacheSize, p.l2CacheSize },
			{ cudaDevAttrPciBusId, p.pciBusID },
			{ cudaDevAttrPciDeviceId, p.pciDeviceID },
			{ cudaDevAttrTotalConstantMemory, (long long)p.totalConstMem },
		};
		for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
			int value = -1;
			CU(cudaDeviceGetAttribute(&value, same[i].attribute, d));
			if (value != same[i].value) {
				fprintf(stderr, "attribute %d: %d, in the properties %lld\n",
					(int)same[i].attribute, value, same[i].value);
				check_failures++;
			}
		}

		/* The driver API reports the same device. */
		char name[256] = "";
		size_t bytes = 0;
		OK(cuDeviceGetName(name, sizeof(name), d) == CUDA_SUCCESS && !strcmp(name, p.name));
		OK(cuDeviceTotalMem(&bytes, d) == CUDA_SUCCESS && bytes == p.totalGlobalMem);
		OK(cuDeviceGetUuid(&uuid, d) == CUDA_SUCCESS &&
			!memcmp(&uuid, &p.uuid, sizeof(uuid)));
		CU(cudaDeviceGetPCIBusId(bus, sizeof(bus), d));
		CU(cudaDeviceGetByPCIBusId(&device, bus));
		OK(device == d);
		for (int other = 0; other < d; other++) {
			cudaDeviceProp q;
			CU(cudaGetDeviceProperties(&q, other));
			OK(memcmp(&q.uuid, &p.uuid, sizeof(p.uuid)));
		}
	}
	cudaDeviceProp any = {};
	CU(cudaChooseDevice(&device, &any));
	OK(device >= 0 && device < count);
	int value;
	EXPECT(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count));
	EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
	EXPECT(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (cudaDeviceAttr)0x7fff, 0));
	cudaGetLastError();

	size_t stack = 0, fifo = 0;
	CU(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
	CU(cudaDeviceGetLimit(&fifo, cudaLimitPrintfFifoSize));
	OK(stack >= 1024 && fifo >= 1 << 16);
	CU(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
	CU(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
	OK(stack >= 4096);
	puts("all answers agree");
	return verdict("device_properties");
}
