/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* CUB's device-wide algorithms with their two-phase temporary storage, on a created stream. */
#include "check.h"
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <vector>

static const int LENGTH = 12345;

/* Calls CUB twice: the first call returns the size of the temporary storage, the second runs. */
#define CUB(call)                                  \
	do {                                       \
		void *temp = nullptr;              \
		size_t temp_bytes = 0;             \
		CU(cub::call);                     \
		CU(cudaMalloc(&temp, temp_bytes)); \
		CU(cub::call);                     \
		CU(cudaStreamSynchronize(stream)); \
		CU(cudaFree(temp));                \
	} while (0)

int main()
{
	std::vector<unsigned> in(LENGTH), want(LENGTH), got(LENGTH);
	unsigned *device_in, *device_out, *device_sum, *device_value, *device_value_out, sum,
		want_sum = 0;
	int *device_count, count;
	cudaStream_t stream;
	uint32_t seed = 31;

	for (int i = 0; i < LENGTH; i++) {
		in[i] = random_next(&seed) % 4096;
		want[i] = want_sum;
		want_sum += in[i];
	}
	CU(cudaStreamCreate(&stream));
	for (unsigned **p :
		{ &device_in, &device_out, &device_sum, &device_value, &device_value_out })
		CU(cudaMalloc(p, LENGTH * 4));
	CU(cudaMalloc(&device_count, sizeof(int)));
	CU(cudaMemcpyAsync(device_in, in.data(), LENGTH * 4, cudaMemcpyHostToDevice, stream));
	CUB(DeviceReduce::Sum(temp, temp_bytes, device_in, device_sum, LENGTH, stream));
	CU(cudaMemcpy(&sum, device_sum, 4, cudaMemcpyDeviceToHost));
	OK(sum == want_sum);
	CUB(DeviceScan::ExclusiveSum(temp, temp_bytes, device_in, device_out, LENGTH, stream));
	CU(cudaMemcpy(got.data(), device_out, LENGTH * 4, cudaMemcpyDeviceToHost));
	OK(got == want);
	printf("sum %u scan %016llx\n", sum, (unsigned long long)checksum(got.data(), LENGTH * 4));

	CU(cudaMemcpy(device_value, want.data(), LENGTH * 4, cudaMemcpyHostToDevice));
	CUB(DeviceRadixSort::SortPairs(temp, temp_bytes, device_in, device_out, device_value,
		device_value_out, LENGTH, 0, 12, stream));
	std::vector<unsigned> order(LENGTH), values(LENGTH);
	for (unsigned i = 0; i < LENGTH; i++)
		order[i] = i;
	std::stable_sort(
		order.begin(), order.end(), [&](unsigned a, unsigned b) { return in[a] < in[b]; });
	CU(cudaMemcpy(got.data(), device_out, LENGTH * 4, cudaMemcpyDeviceToHost));
	CU(cudaMemcpy(values.data(), device_value_out, LENGTH * 4, cudaMemcpyDeviceToHost));
	int wrong = 0;
	for (int i = 0; i < LENGTH; i++)
		wrong += got[i] != in[order[i]] || values[i] != want[order[i]];
	OK(wrong == 0);
	printf("keys %016llx values %016llx\n",
		(unsigned long long)checksum(got.data(), LENGTH * 4),
		(unsigned long long)checksum(values.data(), LENGTH * 4));

	CUB(DeviceSelect::Unique(
		temp, temp_bytes, device_out, device_in, device_count, LENGTH, stream));
	CU(cudaMemcpy(&count, device_count, sizeof(int), cudaMemcpyDeviceToHost));
	got.erase(std::unique(got.begin(), got.end()), got.end());
	OK(count == (int)got.size());
	std::vector<unsigned> unique(count);
	CU(cudaMemcpy(unique.data(), device_in, count * 4, cudaMemcpyDeviceToHost));
	OK(unique == got);
	printf("unique %d\n", count);
	CU(cudaStreamDestroy(stream));
	return verdict("cub_algorithms");
}
