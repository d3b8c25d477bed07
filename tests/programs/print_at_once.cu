/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Two threads print some megabytes from kernels, each in its own stream, and synchronise now and
 * then. While one thread fetches the output, the kernels of the other continue. Every line must be
 * printed exactly once. The program redirects its output to a file and reads it back.
 */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 2, LAUNCHES = 150, BLOCKS = 4, WIDTH = 64, TOGETHER = 10 };

static unsigned char seen[THREADS][LAUNCHES][BLOCKS * WIDTH];

__global__ void speak(int thread, int launch)
{
	printf("%d %d %d ........................................\n", thread, launch,
		(int)(blockIdx.x * blockDim.x + threadIdx.x));
}

static void *work(void *number)
{
	cudaStream_t stream;

	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < LAUNCHES; i++) {
		speak<<<BLOCKS, WIDTH, 0, stream>>>((int)(intptr_t)number, i);
		if (i % TOGETHER == TOGETHER - 1)
			CU(cudaStreamSynchronize(stream));
	}
	CU(cudaStreamDestroy(stream));
	return NULL;
}

int main()
{
	pthread_t threads[THREADS];
	FILE *file = tmpfile();
	int own = dup(1), a, b, c, lines = 0, wrong = 0;
	char line[256];

	OK(file && own >= 0 && dup2(fileno(file), 1) == 1);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CU(cudaDeviceSynchronize());
	fflush(stdout);
	dup2(own, 1);
	rewind(file);
	while (fgets(line, sizeof(line), file)) {
		lines++;
		if (sscanf(line, "%d %d %d ...", &a, &b, &c) != 3 || a < 0 || a >= THREADS ||
			b < 0 || b >= LAUNCHES || c < 0 || c >= BLOCKS * WIDTH || seen[a][b][c]++)
			wrong++;
	}
	printf("%d lines, %d wrong or twice\n", lines, wrong);
	return verdict("print_at_once");
}
