/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* All forms of cudaMemset: odd addresses and lengths, 2D and 3D, synchronous and asynchronous. */
#include "check.h"
#include <algorithm>
#include <vector>

enum { BYTES = 10007, PITCH = 96, ROWS = 40 };

int main()
{
	std::vector<unsigned char> want(BYTES), got(BYTES);
	unsigned char *device;
	cudaStream_t stream;
	uint32_t seed = 4;

	CU(cudaStreamCreate(&stream));
	CU(cudaMalloc(&device, BYTES));
	CU(cudaMemset(device, 0x5a, BYTES));
	std::fill(want.begin(), want.end(), 0x5a);
	for (int i = 0; i < 200; i++) {
		unsigned start = random_next(&seed) % BYTES,
			 length = random_next(&seed) % (BYTES - start + 1);
		int value = (int)(random_next(&seed) & 0xffff) - 0x8000;

		length = i % 3 ? length % 300 : length;
		if (i % 2)
			CU(cudaMemsetAsync(device + start, value, length, stream));
		else
			CU(cudaMemset(device + start, value, length));
		/* cudaMemset does not wait either, and has no order with respect to the stream. */
		CU(cudaDeviceSynchronize());
		memset(want.data() + start, value, length);
	}
	CU(cudaMemcpy(got.data(), device, BYTES, cudaMemcpyDeviceToHost));
	OK(got == want);
	printf("1-D %016llx\n", (unsigned long long)checksum(got.data(), BYTES));

	CU(cudaMemset2D(device + 5, PITCH, 0xee, 31, ROWS));
	CU(cudaDeviceSynchronize());
	CU(cudaMemset2DAsync(device + 1 + 41 * PITCH, PITCH, 0x33, PITCH, ROWS, stream));
	CU(cudaStreamSynchronize(stream));
	for (int y = 0; y < ROWS; y++)
		memset(want.data() + 5 + y * PITCH, 0xee, 31);
	memset(want.data() + 1 + 41 * PITCH, 0x33, PITCH * ROWS);
	CU(cudaMemcpy(got.data(), device, BYTES, cudaMemcpyDeviceToHost));
	OK(got == want);
	printf("2-D %016llx\n", (unsigned long long)checksum(got.data(), BYTES));

	cudaPitchedPtr box = make_cudaPitchedPtr(device + 7, 64, 64, 10);
	CU(cudaMemset3D(box, 0x77, make_cudaExtent(13, 4, 9)));
	for (int z = 0; z < 9; z++)
		for (int y = 0; y < 4; y++)
			memset(want.data() + 7 + (z * 10 + y) * 64, 0x77, 13);
	CU(cudaMemset3DAsync(box, 0x12, make_cudaExtent(64, 0, 3), stream));
	CU(cudaStreamSynchronize(stream));
	CU(cudaMemcpy(got.data(), device, BYTES, cudaMemcpyDeviceToHost));
	OK(got == want);
	printf("3-D %016llx\n", (unsigned long long)checksum(got.data(), BYTES));
	CU(cudaFree(device));
	CU(cudaStreamDestroy(stream));
	return verdict("memset_variants");
}
