/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * CUB's radix sort of pairs of 32-bit keys and 32-bit values: what the sort by buckets of a
 * multi-scalar product is compared with.
 *
 *     gpu-sort FROM TO        2^FROM to 2^TO pairs
 *
 * Prints a table and ends with 0; 1: a result is wrong; 77: no device. A size that does not fit
 * into the device's memory ends the table.
 */
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cub/device/device_radix_sort.cuh>

#define RUNS     7
#define BITS_FEW 16 /* a bucket's number with windows of 16 bits */
#define BITS_ALL 32

static void check(cudaError_t result, const char *what)
{
	if (result == cudaSuccess)
		return;
	fprintf(stderr, "gpu-sort: %s: %s\n", what, cudaGetErrorString(result));
	exit(result == cudaErrorNoDevice ? 77 : 1);
}

static __device__ uint32_t key_of(uint32_t i, int bits)
{
	uint32_t x = i * 2654435761u + 12345;

	x ^= x >> 16;
	x *= 0x85ebca6bu;
	x ^= x >> 13;
	return bits == BITS_ALL ? x : x & ((1u << bits) - 1);
}

static __global__ void fill(uint32_t *keys, uint32_t *values, uint32_t n, int bits)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x) {
		keys[i] = key_of(i, bits);
		values[i] = i;
	}
}

/*
 * Counts the pairs at a wrong place: keys ascend, equal keys keep their order, and each value still
 * has its key.
 */
static __global__ void count_wrong(
	const uint32_t *keys, const uint32_t *values, uint32_t n, int bits, unsigned *wrong)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x) {
		bool bad = values[i] >= n || key_of(values[i], bits) != keys[i];

		if (i + 1 < n)
			bad = bad || keys[i] > keys[i + 1] ||
				(keys[i] == keys[i + 1] && values[i] >= values[i + 1]);
		if (bad)
			atomicAdd(wrong, 1);
	}
}

struct buffers {
	uint32_t *keys, *values, *keys_out, *values_out;
	void *work;
	size_t work_bytes;
	unsigned *wrong;
	cudaEvent_t start, stop;
};

static cudaError_t sort(struct buffers *b, uint32_t n, int bits)
{
	return cub::DeviceRadixSort::SortPairs(b->work, b->work_bytes, b->keys, b->keys_out,
		b->values, b->values_out, (int64_t)n, 0, bits);
}

/* False: there is no memory for so many. */
static bool allocate(struct buffers *b, uint32_t n)
{
	uint32_t **arrays[] = { &b->keys, &b->values, &b->keys_out, &b->values_out };

	for (uint32_t **array : arrays)
		if (cudaMalloc(array, (size_t)n * sizeof(uint32_t)) != cudaSuccess)
			return false;
	b->work = NULL;
	check(sort(b, n, BITS_ALL), "asking for the room to sort");
	return cudaMalloc(&b->work, b->work_bytes) == cudaSuccess;
}

static void release(struct buffers *b)
{
	for (void *p : { (void *)b->keys, (void *)b->values, (void *)b->keys_out,
		     (void *)b->values_out, b->work })
		cudaFree(p);
	cudaGetLastError(); /* of an allocation that failed */
}

/* Returns milliseconds: the median of some runs after one that does not count. */
static float measure(struct buffers *b, uint32_t n, int bits, bool *ret_right)
{
	float ms[RUNS];
	unsigned wrong = 0;

	fill<<<1024, 256>>>(b->keys, b->values, n, bits);
	check(sort(b, n, bits), "sorting");
	for (float &m : ms) {
		check(cudaEventRecord(b->start), "an event");
		check(sort(b, n, bits), "sorting");
		check(cudaEventRecord(b->stop), "an event");
		check(cudaEventSynchronize(b->stop), "waiting");
		check(cudaEventElapsedTime(&m, b->start, b->stop), "an event's time");
	}
	check(cudaMemset(b->wrong, 0, sizeof *b->wrong), "clearing");
	count_wrong<<<1024, 256>>>(b->keys_out, b->values_out, n, bits, b->wrong);
	check(cudaMemcpy(&wrong, b->wrong, sizeof wrong, cudaMemcpyDeviceToHost), "reading");
	if (wrong)
		fprintf(stderr,
			"gpu-sort: %u of %u pairs are not in their place, keys of %d bits\n", wrong,
			n, bits);
	*ret_right = *ret_right && wrong == 0;
	std::sort(ms, ms + RUNS);
	return ms[RUNS / 2];
}

int main(int argc, char **argv)
{
	int from = argc > 1 ? atoi(argv[1]) : 20, to = argc > 2 ? atoi(argv[2]) : 29;
	struct buffers b = {};
	cudaDeviceProp device;
	bool right = true;

	if (argc > 3 || from < 1 || to < from || to > 31) {
		fprintf(stderr, "usage: gpu-sort [FROM [TO]], 1 <= FROM <= TO <= 31\n");
		return 2;
	}
	check(cudaGetDeviceProperties(&device, 0), "device 0");
	check(cudaMalloc(&b.wrong, sizeof *b.wrong), "memory");
	check(cudaEventCreate(&b.start), "an event");
	check(cudaEventCreate(&b.stop), "an event");
	printf("%s, CUB %d.%d.%d, median of %d\n\n", device.name, CUB_MAJOR_VERSION,
		CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION, RUNS);
	printf("| pairs | ms, keys of %d bits | 10^9 pairs/s | ms, keys of %d bits | 10^9 pairs/s "
	       "|\n|---|---|---|---|---|\n",
		BITS_FEW, BITS_ALL);
	for (int log_n = from; log_n <= to; log_n++) {
		uint32_t n = 1u << log_n;

		if (!allocate(&b, n)) {
			printf("\n2^%d pairs do not fit into the device's memory\n", log_n);
			break;
		}
		float few = measure(&b, n, BITS_FEW, &right),
		      all = measure(&b, n, BITS_ALL, &right);
		printf("| 2^%d | %.4f | %.2f | %.4f | %.2f |\n", log_n, few, n / few / 1e6, all,
			n / all / 1e6);
		fflush(stdout);
		release(&b);
		b.keys = b.values = b.keys_out = b.values_out = NULL;
		b.work = NULL;
	}
	return right ? 0 : 1;
}
