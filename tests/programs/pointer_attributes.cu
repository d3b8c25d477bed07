/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Results of cudaPointerGetAttributes for device, pinned, registered and ordinary memory: for a
 * pointer to its start and for one into its middle.
 */
#include "check.h"

__device__ int variable[100];

static void is(const void *p, cudaMemoryType type, bool on_device, int line)
{
	cudaPointerAttributes a = {};

	CU(cudaPointerGetAttributes(&a, p));
	bool ok = a.type == type;
	if (type == cudaMemoryTypeDevice)
		ok = ok && a.devicePointer == p && a.hostPointer == nullptr && a.device == 0;
	if (type == cudaMemoryTypeHost)
		ok = ok && a.hostPointer == p && a.device == 0;
	if (type == cudaMemoryTypeUnregistered)
		ok = ok && a.devicePointer == nullptr;
	if (!ok) {
		fprintf(stderr, "line %d: type %d device %d, %s expected\n", line, (int)a.type,
			a.device, on_device ? "device" : "host");
		check_failures++;
	}
}

#define IS(p, type) is(p, type, type == cudaMemoryTypeDevice, __LINE__)

int main()
{
	char *device, *async, *pinned, *ordinary = (char *)malloc(100), local = 0;
	void *symbol, *registered;

	CU(cudaMalloc(&device, 10000));
	CU(cudaMallocAsync(&async, 10000, 0));
	CU(cudaMallocHost(&pinned, 10000));
	CU(cudaGetSymbolAddress(&symbol, variable));
	OK(posix_memalign(&registered, 4096, 8192) == 0);
	CU(cudaHostRegister(registered, 8192, cudaHostRegisterDefault));
	IS(device, cudaMemoryTypeDevice);
	IS(device + 9999, cudaMemoryTypeDevice);
	IS(async, cudaMemoryTypeDevice);
	IS(async + 5000, cudaMemoryTypeDevice);
	IS(symbol, cudaMemoryTypeDevice);
	IS((int *)symbol + 50, cudaMemoryTypeDevice);
	IS(pinned, cudaMemoryTypeHost);
	IS(pinned + 77, cudaMemoryTypeHost);
	IS(registered, cudaMemoryTypeHost);
	IS((char *)registered + 5000, cudaMemoryTypeHost);
	IS(ordinary, cudaMemoryTypeUnregistered);
	IS(&local, cudaMemoryTypeUnregistered);
	IS((void *)main, cudaMemoryTypeUnregistered);
	CU(cudaHostUnregister(registered));
	IS(registered, cudaMemoryTypeUnregistered);
	CU(cudaFreeHost(pinned));
	CU(cudaFree(device));
	IS(device, cudaMemoryTypeUnregistered);
	CU(cudaFreeAsync(async, 0));
	CU(cudaDeviceSynchronize());
	free(ordinary);
	free(registered);
	return verdict("pointer_attributes");
}
