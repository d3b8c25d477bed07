/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Thrust as users use it: sort, sort_by_key, reduce, transform_reduce, scan, unique, on device
 * vectors.
 */
#include "check.h"
#include <algorithm>
#include <numeric>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>
#include <vector>

enum { LENGTH = 20000 };

struct square {
	__host__ __device__ long long operator()(unsigned x) const
	{
		return (long long)x * x;
	}
};

int main()
{
	std::vector<unsigned> keys(LENGTH), want;
	uint32_t seed = 2024;

	for (unsigned &x : keys)
		x = random_next(&seed) % 3000;
	thrust::device_vector<unsigned> device(keys.begin(), keys.end());

	long long squares = thrust::transform_reduce(
		device.begin(), device.end(), square(), 0ll, thrust::plus<long long>());
	long long want_squares = 0;
	for (unsigned x : keys)
		want_squares += (long long)x * x;
	OK(squares == want_squares);
	unsigned sum = thrust::reduce(device.begin(), device.end());
	OK(sum == std::accumulate(keys.begin(), keys.end(), 0u));
	printf("sum %u squares %lld\n", sum, squares);

	thrust::device_vector<unsigned> scanned(LENGTH);
	thrust::inclusive_scan(device.begin(), device.end(), scanned.begin());
	want.resize(LENGTH);
	std::partial_sum(keys.begin(), keys.end(), want.begin());
	std::vector<unsigned> got(LENGTH);
	thrust::copy(scanned.begin(), scanned.end(), got.begin());
	OK(got == want);
	printf("scan   %016llx\n", (unsigned long long)checksum(got.data(), got.size() * 4));

	thrust::sort(device.begin(), device.end());
	std::sort(keys.begin(), keys.end());
	thrust::copy(device.begin(), device.end(), got.begin());
	OK(got == keys);
	printf("sort   %016llx\n", (unsigned long long)checksum(got.data(), got.size() * 4));

	device.erase(thrust::unique(device.begin(), device.end()), device.end());
	keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
	got.resize(device.size());
	thrust::copy(device.begin(), device.end(), got.begin());
	OK(got == keys);
	printf("unique %zu %016llx\n", got.size(),
		(unsigned long long)checksum(got.data(), got.size() * 4));
	return verdict("thrust_algorithms");
}
