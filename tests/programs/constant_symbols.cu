/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Constant memory, __device__ variables with and without initial values, and every way to copy to
 * and from a symbol.
 */
#include "check.h"

enum { COUNT = 64 };

struct settings {
	int scale;
	double offset;
	char name[16];
};

__constant__ int table[COUNT] = { 1, 2, 3, 5, 8, 13, 21, 34 };
__constant__ settings config;
__device__ int counter = 1000;
__device__ unsigned long long squares[COUNT];
__device__ const short small[4] = { -7, 8, -9, 10 };
__device__ int *where = &counter;
__device__ char text[] = "set at compile time";
static __device__ float ratio = 0.75f;

template <int N> __device__ int held = N *N;

__global__ void use(int *out)
{
	__shared__ int first;
	int i = threadIdx.x;

	if (i == 0)
		first = atomicAdd(where, 5);
	__syncthreads();
	squares[i] = (unsigned long long)table[i] * table[i];
	out[i] = table[i] * config.scale + (int)config.offset + config.name[i % 16] + first +
		small[i % 4] + text[i % 8] + (int)(ratio * 100) + held<3> + held<5>;
}

static int host(const int *table_now, const settings &config_now, int i, int first, float ratio_now)
{
	static const short SMALL[4] = { -7, 8, -9, 10 };

	return table_now[i] * config_now.scale + (int)config_now.offset + config_now.name[i % 16] +
		first + SMALL[i % 4] + "set at compile time"[i % 8] + (int)(ratio_now * 100) + 9 +
		25;
}

int main()
{
	int values[COUNT] = { 1, 2, 3, 5, 8, 13, 21, 34 }, got[COUNT], *out, count = 0;
	unsigned long long squared[COUNT];
	settings now = { 3, 17.5, "abcdefghijklmno" };
	void *address = nullptr;
	size_t size = 0;
	cudaStream_t stream;
	float new_ratio = 0.25f;

	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaStreamCreate(&stream));
	CU(cudaMemcpyToSymbol(config, &now, sizeof(now)));
	use<<<1, COUNT>>>(out);
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		OK(got[i] == host(values, now, i, 1000, 0.75f));
	printf("first run  %016llx\n", (unsigned long long)checksum(got, sizeof(got)));

	/* Copies a part of the table, at an offset, on a stream. */
	for (int i = 8; i < COUNT; i++)
		values[i] = -i * i;
	CU(cudaMemcpyToSymbolAsync(table, values + 8, (COUNT - 8) * sizeof(int), 8 * sizeof(int),
		cudaMemcpyHostToDevice, stream));
	CU(cudaMemcpyToSymbolAsync(
		ratio, &new_ratio, sizeof(ratio), 0, cudaMemcpyHostToDevice, stream));
	now.scale = -2;
	CU(cudaMemcpyToSymbolAsync(
		config, &now.scale, sizeof(now.scale), 0, cudaMemcpyHostToDevice, stream));
	use<<<1, COUNT, 0, stream>>>(out);
	CU(cudaMemcpyAsync(got, out, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CU(cudaMemcpyFromSymbolAsync(
		squared, squares, sizeof(squared), 0, cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++) {
		OK(got[i] == host(values, now, i, 1005, 0.25f));
		OK(squared[i] == (unsigned long long)((long long)values[i] * values[i]));
	}
	printf("second run %016llx squares %016llx\n",
		(unsigned long long)checksum(got, sizeof(got)),
		(unsigned long long)checksum(squared, sizeof(squared)));

	CU(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
	OK(count == 1010);
	CU(cudaGetSymbolAddress(&address, counter));
	CU(cudaMemset(address, 0, sizeof(int)));
	CU(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
	OK(count == 0);
	CU(cudaGetSymbolSize(&size, squares));
	OK(size == sizeof(squared));
	CU(cudaGetSymbolSize(&size, config));
	OK(size == sizeof(settings));
	CU(cudaMemcpyFromSymbol(&count, held<5>, sizeof(count)));
	OK(count == 25);
	EXPECT(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&count, &count, sizeof(count)));
	EXPECT(cudaErrorInvalidSymbol, cudaGetLastError());
	EXPECT(cudaErrorInvalidValue, cudaMemcpyToSymbol(counter, got, sizeof(got)));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	CU(cudaStreamDestroy(stream));
	return verdict("constant_symbols");
}
