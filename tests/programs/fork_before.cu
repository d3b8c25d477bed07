/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A program that forks before it uses CUDA: the parent and two children work independently at the
 * same time. A child forked after CUDA was used must work or get an error; it must not hang or
 * affect its parent.
 */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 5000 };

__global__ void square(unsigned *data, int length, unsigned add)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < length)
		data[i] = data[i] * data[i] + add;
}

static uint64_t work(unsigned add)
{
	static unsigned host[LENGTH];
	unsigned *device;

	for (unsigned i = 0; i < LENGTH; i++)
		host[i] = i;
	CU(cudaMalloc(&device, sizeof(host)));
	CU(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
	square<<<(LENGTH + 127) / 128, 128>>>(device, LENGTH, add);
	CU(cudaGetLastError());
	CU(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	CU(cudaFree(device));
	for (unsigned i = 0; i < LENGTH; i++)
		OK(host[i] == i * i + add);
	return checksum(host, sizeof(host));
}

int main()
{
	int ends[2][2];
	pid_t child[2];

	for (int c = 0; c < 2; c++) {
		OK(pipe(ends[c]) == 0);
		child[c] = fork();
		if (child[c] == 0) {
			uint64_t sum = work(100 + (unsigned)c);
			OK(write(ends[c][1], &sum, sizeof(sum)) == sizeof(sum));
			_exit(check_failures != 0);
		}
		close(ends[c][1]);
	}
	uint64_t mine = work(7);
	printf("parent  %016llx\n", (unsigned long long)mine);
	for (int c = 0; c < 2; c++) {
		uint64_t sum = 0;
		int status = -1;
		OK(read(ends[c][0], &sum, sizeof(sum)) == sizeof(sum));
		OK(waitpid(child[c], &status, 0) == child[c] && WIFEXITED(status) &&
			WEXITSTATUS(status) == 0);
		printf("child %d %016llx\n", c, (unsigned long long)sum);
	}

	fflush(stdout);
	pid_t late = fork();
	if (late == 0) {
		void *p;
		alarm(20);
		cudaMalloc(&p, 64);
		_exit(0);
	}
	int status = -1;
	OK(waitpid(late, &status, 0) == late && WIFEXITED(status));
	OK(work(7) == mine);
	return verdict("fork_before");
}
