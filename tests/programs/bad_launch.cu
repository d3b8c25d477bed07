/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Launches that CUDA refuses. The launch itself returns the documented error, and cudaGetLastError
 * returns it once. The kernel does not run; the next correct launch does.
 */
#include "check.h"

__global__ void count(int *counter)
{
	atomicAdd(counter, 1);
}

__global__ void __launch_bounds__(64) bounded(int *counter)
{
	atomicAdd(counter, 1);
}

static void not_a_kernel(int *)
{
}

static int *counter, good_launches;

static void good()
{
	int got;

	count<<<1, 32>>>(counter);
	CU(cudaGetLastError());
	CU(cudaDeviceSynchronize());
	CU(cudaMemcpy(&got, counter, sizeof(got), cudaMemcpyDeviceToHost));
	OK(got == 32 * ++good_launches);
}

static void bad(const char *what, dim3 grid, dim3 block, size_t shared, cudaError_t want)
{
	void *args[] = { &counter };

	EXPECT(want, cudaLaunchKernel((void *)count, grid, block, args, shared, 0));
	EXPECT(want, cudaPeekAtLastError());
	EXPECT(want, cudaGetLastError());
	EXPECT(cudaSuccess, cudaGetLastError());
	good();
	printf("%s: %s\n", what, cudaGetErrorName(want));
}

int main()
{
	const cudaError_t dimensions = cudaErrorInvalidValue;
	cudaStream_t stream;

	CU(cudaMalloc(&counter, sizeof(int)));
	CU(cudaMemset(counter, 0, sizeof(int)));
	good();
	bad("no blocks in x", dim3(0, 1, 1), dim3(32), 0, dimensions);
	bad("no blocks in y", dim3(1, 0, 1), dim3(32), 0, dimensions);
	bad("no blocks in z", dim3(1, 1, 0), dim3(32), 0, dimensions);
	bad("no threads in x", dim3(1), dim3(0, 1, 1), 0, dimensions);
	bad("no threads in y", dim3(1), dim3(32, 0, 1), 0, dimensions);
	bad("no threads in z", dim3(1), dim3(32, 1, 0), 0, dimensions);
	bad("1025 threads", dim3(1), dim3(1025), 0, dimensions);
	bad("33 x 32 threads", dim3(1), dim3(33, 32), 0, dimensions);
	bad("1025 threads in y", dim3(1), dim3(1, 1025), 0, dimensions);
	bad("65 threads in z", dim3(1), dim3(1, 1, 65), 0, dimensions);
	bad("65536 blocks in y", dim3(1, 65536), dim3(32), 0, dimensions);
	bad("65536 blocks in z", dim3(1, 1, 65536), dim3(32), 0, dimensions);
	bad("2^31 blocks in x", dim3(0x80000000u), dim3(32), 0, dimensions);
	bad("48 KB and a byte of shared memory", dim3(1), dim3(32), 48 * 1024 + 1,
		cudaErrorInvalidValue);
	bad("1 GB of shared memory", dim3(1), dim3(32), 1 << 30, cudaErrorInvalidValue);

	/*
	 * More threads than the kernel's launch bounds: refused; drivers differ in the error code.
	 */
	bounded<<<1, 65>>>(counter);
	cudaError_t status = cudaGetLastError();
	code_note("more threads than the launch bounds", (int)status);
	OK(status == cudaErrorInvalidConfiguration || status == cudaErrorInvalidValue ||
		status == cudaErrorLaunchOutOfResources);
	good();
	bounded<<<1, 64>>>(counter);
	CU(cudaGetLastError());
	good_launches += 2;
	good();

	void *args[] = { &counter };
	/*
	 * Not a kernel: a runtime that treats the pointer as a cudaKernel_t reports an invalid
	 * handle.
	 */
	status = cudaLaunchKernel((void *)not_a_kernel, dim3(1), dim3(1), args, 0, 0);
	code_note("not a kernel", (int)status);
	OK(status == cudaErrorInvalidDeviceFunction || status == cudaErrorInvalidResourceHandle);
	EXPECT(status, cudaGetLastError());
	good();

	/* The largest launches that are allowed. */
	count<<<dim3(1, 1, 1), dim3(1, 16, 64)>>>(counter);
	CU(cudaGetLastError());
	good_launches += 32;
	count<<<1, 1024, 48 * 1024>>>(counter);
	CU(cudaGetLastError());
	good_launches += 32;
	good();
	CU(cudaStreamCreate(&stream));
	count<<<1, 1024, 0, stream>>>(counter);
	CU(cudaGetLastError());
	CU(cudaStreamSynchronize(stream));
	good_launches += 32;
	good();
	CU(cudaStreamDestroy(stream));
	return verdict("bad_launch");
}
