/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The kernels of kernels.h with CUDA, for tools/dev/beside-pocl. */
#include <cuda_runtime.h>

#include "kernels.h"
#include "workload.h"

static char *buffers[BUFFERS];

static void check(cudaError_t result, const char *what)
{
	if (result == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
	exit(1);
}

static void load(const void *x, const void *y)
{
	check(cudaMemcpy(buffers[1], x, BUFFER_BYTES, cudaMemcpyHostToDevice), "copy");
	check(cudaMemcpy(buffers[2], y, BUFFER_BYTES, cudaMemcpyHostToDevice), "copy");
}

static void clear(void)
{
	check(cudaMemset(buffers[0], 0, CLEARED), "clear");
	check(cudaDeviceSynchronize(), "wait");
}

static void read(void *out)
{
	check(cudaMemcpy(out, buffers[0], BUFFER_BYTES, cudaMemcpyDeviceToHost), "copy back");
}

static void run(int k)
{
	const struct workload *w = &workloads[k];
	dim3 block((unsigned)w->bx, (unsigned)w->by);
	dim3 grid((unsigned)(w->x / w->bx), (unsigned)(w->y / w->by));
	float *out = (float *)buffers[0], *x = (float *)buffers[1], *y = (float *)buffers[2];

	switch (k) {
	case TRIAD:
		triad<<<grid, block>>>(out, x, y, w->n);
		break;
	case MATMUL:
		matmul<<<grid, block>>>(out, x, y, w->n);
		break;
	case NBODY:
		nbody<<<grid, block>>>((float4 *)out, (const float4 *)x, w->n);
		break;
	case OPTIONS:
		options<<<grid, block>>>(out, (float *)buffers[3], x, y, w->n);
		break;
	case REDUCTION:
		reduction<<<grid, block>>>(out, x, w->n, THREADS);
		break;
	case HISTOGRAM:
		histogram<<<grid, block>>>((word *)out, (const word *)x, w->n, THREADS);
		break;
	case STENCIL:
		stencil<<<grid, block>>>(out, x, w->n);
		break;
	case MANDELBROT:
		mandelbrot<<<grid, block>>>((word *)out, w->n, 256);
		break;
	default:
		hash<<<grid, block>>>((wide *)out, (const wide *)x, w->n, 64);
		break;
	}
	check(cudaGetLastError(), "launch");
	check(cudaDeviceSynchronize(), "wait");
}

int main()
{
	struct workload_device device = { load, clear, run, read };

	for (int i = 0; i < BUFFERS; i++)
		check(cudaMalloc(&buffers[i], BUFFER_BYTES), "allocate");
	return workload_answer(&device);
}
