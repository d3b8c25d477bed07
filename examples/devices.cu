/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Lists the devices and their free memory. */
#include <cstdio>
#include <cuda_runtime.h>

int main()
{
	int count = 0, driver = 0, runtime = 0;
	cudaError_t status = cudaGetDeviceCount(&count);

	if (status != cudaSuccess) {
		fprintf(stderr, "no device: %s\n", cudaGetErrorString(status));
		return 1;
	}
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	printf("driver for CUDA %d.%d, runtime %d.%d, %d device%s\n", driver / 1000,
		driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, count,
		count == 1 ? "" : "s");
	for (int d = 0; d < count; d++) {
		cudaDeviceProp p;
		size_t free_bytes = 0, total = 0;

		if ((status = cudaSetDevice(d)) || (status = cudaGetDeviceProperties(&p, d)) ||
			(status = cudaMemGetInfo(&free_bytes, &total))) {
			fprintf(stderr, "device %d: %s\n", d, cudaGetErrorString(status));
			return 1;
		}
		printf("%d: %s, compute capability %d.%d, %d multiprocessors, %zu of %zu MiB "
		       "free\n",
			d, p.name, p.major, p.minor, p.multiProcessorCount, free_bytes >> 20,
			total >> 20);
	}
	return 0;
}
