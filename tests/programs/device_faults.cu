/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Each kind of device fault, in a separate child process: the error is the one that CUDA documents.
 * The parent never uses CUDA.
 */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

enum { FAULTS = 6 };
static const struct {
	const char *name;
	cudaError_t error;
} FAULT[FAULTS] = {
	{ "write through null", cudaErrorIllegalAddress },
	{ "read far outside", cudaErrorIllegalAddress },
	{ "atomic on null", cudaErrorIllegalAddress },
	{ "misaligned load", cudaErrorMisalignedAddress },
	{ "trap", cudaErrorLaunchFailure },
	{ "no fault", cudaSuccess },
};

__global__ void provoke(int fault, char *null, char *memory, long long far, int *out)
{
	switch (fault) {
	case 0:
		*(volatile int *)null = 1;
		break;
	case 1:
		out[0] = *(volatile int *)(memory + far);
		break;
	case 2:
		atomicAdd((int *)null, 1);
		break;
	case 3:
		out[0] = *(volatile int *)(memory + 2);
		break;
	case 4:
		__trap();
		break;
	default:
		out[0] = 5;
	}
}

static int child(int fault)
{
	char *memory;
	int *out, got = 0;

	CU(cudaMalloc(&memory, 256));
	CU(cudaMalloc(&out, sizeof(int)));
	provoke<<<1, 1>>>(fault, nullptr, memory, 1ll << 45, out);
	CU(cudaGetLastError());
	EXPECT(FAULT[fault].error, cudaDeviceSynchronize());
	EXPECT(FAULT[fault].error, cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
	return check_failures != 0;
}

int main()
{
	for (int fault = 0; fault < FAULTS; fault++) {
		int status = -1;
		pid_t pid = fork();

		if (pid == 0)
			_exit(child(fault));
		OK(pid > 0 && waitpid(pid, &status, 0) == pid);
		OK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		/* Prints no error name: the runtime call for it may initialise the runtime. */
		printf("%s: %d\n", FAULT[fault].name, (int)FAULT[fault].error);
	}
	return verdict("device_faults");
}
