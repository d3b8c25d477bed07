/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Kernels that set a condition which does not exist. CUDA leaves open what happens then; the software
 * device reports an illegal address. Each kernel runs in a process of its own.
 */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

__global__ void set(cudaGraphConditionalHandle handle, unsigned thread)
{
	if (threadIdx.x == thread)
		cudaGraphSetConditional(handle, 1);
}

/* delta: from an address of device memory that exists. */
static int child(bool null, long long delta)
{
	cudaGraphConditionalHandle handle;
	char *memory;

	CU(cudaMalloc(&memory, 256));
	handle = null ? 0 : (cudaGraphConditionalHandle)((uintptr_t)memory + delta);
	set<<<1, 64>>>(handle, 37);
	CU(cudaGetLastError());
	EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	return check_failures != 0;
}

int main(void)
{
	static const long long deltas[] = { 0, 1ll << 45, -(1ll << 46) };

	for (int i = 0; i < 3; i++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(child(i == 0, deltas[i]));
		OK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	}
	printf("no condition was set\n");
	return verdict("graph_wild_handle");
}
