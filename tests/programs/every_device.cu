/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * For each device: makes it current, allocates, computes, and copies to every device and to itself.
 * Wrong ordinals are refused.
 */
#include "check.h"
#include <thread>
#include <vector>

enum { LENGTH = 3000 };

__global__ void fill(unsigned *data, unsigned base)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < LENGTH)
		data[i] = base + i * i;
}

int main()
{
	int count = 0, current = -1, can = -1;

	CU(cudaGetDeviceCount(&count));
	OK(count >= 1);
	std::vector<unsigned *> data(count), copy(count);
	std::vector<unsigned> got(LENGTH);
	for (int d = 0; d < count; d++) {
		CU(cudaSetDevice(d));
		CU(cudaGetDevice(&current));
		OK(current == d);
		CU(cudaMalloc(&data[d], LENGTH * 4));
		CU(cudaMalloc(&copy[d], LENGTH * 4));
		fill<<<(LENGTH + 99) / 100, 100>>>(data[d], (unsigned)d * 1000);
		CU(cudaGetLastError());
		CU(cudaDeviceSynchronize());
	}
	for (int from = 0; from < count; from++)
		for (int to = 0; to < count; to++) {
			if (from == to) {
				CU(cudaMemcpyPeer(copy[to], to, data[from], from, LENGTH * 4));
			} else {
				CU(cudaDeviceCanAccessPeer(&can, to, from));
				CU(cudaSetDevice(to));
				CU(cudaMemcpyPeerAsync(
					copy[to], to, data[from], from, LENGTH * 4, 0));
				CU(cudaStreamSynchronize(0));
			}
			CU(cudaMemcpy(got.data(), copy[to], LENGTH * 4, cudaMemcpyDefault));
			for (unsigned i = 0; i < LENGTH; i++)
				OK(got[i] == (unsigned)from * 1000 + i * i);
		}

	/* The current device belongs to the thread: a new thread starts with device 0. */
	CU(cudaSetDevice(count - 1));
	std::thread([] {
		int fresh = -1;
		CU(cudaGetDevice(&fresh));
		OK(fresh == 0);
	}).join();
	CU(cudaGetDevice(&current));
	OK(current == count - 1);
	EXPECT(cudaErrorInvalidDevice, cudaSetDevice(count));
	EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
	EXPECT(cudaErrorInvalidDevice, cudaSetDevice(-1));
	EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
	CU(cudaGetDevice(&current));
	OK(current == count - 1);
	CU(cudaDeviceCanAccessPeer(&can, 0, 0));
	OK(can == 0);
	for (int d = 0; d < count; d++) {
		CU(cudaSetDevice(d));
		CU(cudaFree(data[d]));
		CU(cudaFree(copy[d]));
	}
	return verdict("every_device");
}
