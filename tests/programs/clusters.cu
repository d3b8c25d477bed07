/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Thread block clusters: a histogram whose bins are spread over the shared memory of a cluster, the
 * index registers, blocks that pass values around a ring through each other's shared memory, threads
 * that exit before the barrier, and launches that must fail.
 */
#include "check.h"
#include <cooperative_groups.h>
#include <vector>

namespace cg = cooperative_groups;

enum { BINS = 1000, ITEMS = 100000, ROUNDS = 50 };

__global__ void histogram(unsigned *bins, const unsigned *items, int per_block)
{
	extern __shared__ unsigned part[];
	cg::cluster_group cluster = cg::this_cluster();
	unsigned ranks = cluster.num_blocks();

	for (int i = threadIdx.x; i < per_block; i += blockDim.x)
		part[i] = 0;
	cluster.sync();
	for (unsigned i = cg::this_grid().thread_rank(); i < ITEMS; i += cg::this_grid().size()) {
		unsigned bin = items[i] % BINS;
		unsigned *there = cluster.map_shared_rank(part, bin / per_block);

		atomicAdd(there + bin % per_block, 1);
	}
	cluster.sync();
	for (int i = threadIdx.x; i < per_block; i += blockDim.x) {
		unsigned bin = cluster.block_rank() * per_block + i;

		if (bin < BINS && cluster.block_rank() < ranks)
			atomicAdd(&bins[bin], part[i]);
	}
}

/* One thread of each block writes what it sees. */
__global__ void __cluster_dims__(2, 3, 1) registers(unsigned *out)
{
	cg::cluster_group cluster = cg::this_cluster();
	unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
	dim3 at = cluster.block_index(), size = cluster.dim_blocks();
	unsigned id[3], n[3], explicit_cluster;

	asm("mov.u32 %0, %%clusterid.x;" : "=r"(id[0]));
	asm("mov.u32 %0, %%clusterid.y;" : "=r"(id[1]));
	asm("mov.u32 %0, %%clusterid.z;" : "=r"(id[2]));
	asm("mov.u32 %0, %%nclusterid.x;" : "=r"(n[0]));
	asm("mov.u32 %0, %%nclusterid.y;" : "=r"(n[1]));
	asm("mov.u32 %0, %%nclusterid.z;" : "=r"(n[2]));
	asm("{\n.reg .pred p;\nmov.pred p, %%is_explicit_cluster;\nselp.u32 %0, 1, 0, p;\n}"
		: "=r"(explicit_cluster));
	bool right = id[0] == blockIdx.x / 2 && id[1] == blockIdx.y / 3 && id[2] == blockIdx.z &&
		n[0] == gridDim.x / 2 && n[1] == gridDim.y / 3 && n[2] == gridDim.z &&
		at.x == blockIdx.x % 2 && at.y == blockIdx.y % 3 && at.z == 0 && size.x == 2 &&
		size.y == 3 && size.z == 1 && cluster.num_blocks() == 6 &&
		cluster.block_rank() == at.x + 2 * at.y && explicit_cluster == 1;

	if (threadIdx.x == 0)
		out[block] = right ? 1 : 2;
}

/* Each block adds to the value of its neighbour, with the two halves of the barrier. */
__global__ void __cluster_dims__(4, 1, 1) ring(unsigned *out)
{
	__shared__ unsigned value[2][64];
	cg::cluster_group cluster = cg::this_cluster();
	unsigned rank = cluster.block_rank(), t = threadIdx.x;
	unsigned there, mine;

	value[0][t] = rank * 100 + t;
	cluster.sync();
	for (int round = 0; round < ROUNDS; round++) {
		unsigned *next = &value[round & 1][t];
		unsigned address = (unsigned)__cvta_generic_to_shared(next), got, whose;

		asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
			     : "=r"(there)
			     : "r"(address), "r"((rank + 1) % 4));
		asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(there));
		asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(whose) : "r"(there));
		value[(round & 1) ^ 1][t] = got * 3 + whose;
		asm volatile("barrier.cluster.arrive.release.aligned;");
		asm volatile("barrier.cluster.wait.acquire.aligned;");
	}
	mine = value[ROUNDS & 1][t];
	asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
		     : "=r"(there)
		     : "r"((unsigned)__cvta_generic_to_shared(&value[0][t])), "r"(3 - rank));
	cluster.sync();
	asm volatile("st.shared::cluster.u32 [%0], %1;" : : "r"(there), "r"(mine));
	cluster.sync();
	asm volatile("red.shared::cluster.add.u32 [%0], %1;" : : "r"(there), "r"(rank));
	cluster.sync();
	out[blockIdx.x * 64 + t] = value[0][t];
}

/* Odd threads and a whole block leave; the others still meet. */
__global__ void __cluster_dims__(2, 1, 1) leave(unsigned *out)
{
	__shared__ unsigned here;
	cg::cluster_group cluster = cg::this_cluster();

	here = 0;
	cluster.sync();
	if (threadIdx.x & 1)
		return;
	if (cluster.block_rank() == 0)
		atomicAdd(cluster.map_shared_rank(&here, 1), 1);
	cluster.sync();
	if (cluster.block_rank() == 0)
		return;
	cluster.sync();
	if (threadIdx.x == 0)
		out[blockIdx.x / 2] = here;
}

static cudaError_t launch(unsigned *bins, const unsigned *items, unsigned grid, unsigned cluster)
{
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute;
	int per_block = (BINS + cluster - 1) / cluster;

	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = cluster;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.gridDim = grid;
	config.blockDim = 96;
	config.dynamicSmemBytes = per_block * sizeof(unsigned);
	config.attrs = &attribute;
	config.numAttrs = 1;
	return cudaLaunchKernelEx(&config, histogram, bins, items, per_block);
}

static void histograms(void)
{
	std::vector<unsigned> host(ITEMS), want(BINS), got(BINS);
	unsigned *items, *bins, state = 12345;

	for (unsigned &item : host) {
		state = state * 1664525 + 1013904223;
		item = state >> 8;
		want[item % BINS]++;
	}
	CU(cudaMalloc(&items, ITEMS * sizeof *items));
	CU(cudaMalloc(&bins, BINS * sizeof *bins));
	CU(cudaMemcpy(items, host.data(), ITEMS * sizeof *items, cudaMemcpyHostToDevice));
	for (unsigned cluster : { 1u, 2u, 4u, 8u, 16u }) {
		if (cluster == 16)
			CU(cudaFuncSetAttribute(
				histogram, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
		CU(cudaMemset(bins, 0, BINS * sizeof *bins));
		CU(launch(bins, items, 16, cluster));
		CU(cudaMemcpy(got.data(), bins, BINS * sizeof *bins, cudaMemcpyDeviceToHost));
		OK(got == want);
		printf("histogram, clusters of %u: right\n", cluster);
	}
	printf("grid not a multiple: %s\n", cudaGetErrorName(launch(bins, items, 15, 2)));
	cudaGetLastError();
	printf("32 blocks: %s\n", cudaGetErrorName(launch(bins, items, 32, 32)));
	cudaGetLastError();
	CU(cudaFree(items));
	CU(cudaFree(bins));
}

int main()
{
	cudaFuncAttributes attributes;
	unsigned *out, want[4 * 64], next[4 * 64];
	int device, major;

	CU(cudaGetDevice(&device));
	CU(cudaDeviceGetAttribute(&major, cudaDevAttrClusterLaunch, device));
	OK(major == 1);
	histograms();

	CU(cudaMallocManaged(&out, 1024 * sizeof *out));
	memset(out, 0, 1024 * sizeof *out);
	registers<<<dim3(4, 6, 2), 33>>>(out);
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < 48; i++)
		OK(out[i] == 1);
	CU(cudaFuncGetAttributes(&attributes, registers));
	printf("registers: right; needs clusters of %d x %d x %d\n",
		attributes.requiredClusterWidth, attributes.requiredClusterHeight,
		attributes.requiredClusterDepth);
	registers<<<dim3(3, 6, 2), 33>>>(out);
	printf("wrong grid: %s\n", cudaGetErrorName(cudaGetLastError()));

	ring<<<8, 64>>>(out);
	CU(cudaDeviceSynchronize());
	for (unsigned i = 0; i < 256; i++)
		want[i] = i / 64 * 100 + i % 64;
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < 256; i++)
			next[i] = want[(i + 64) % 256] * 3 + (i / 64 + 1) % 4;
		memcpy(want, next, sizeof want);
	}
	for (unsigned i = 0; i < 512; i++) {
		unsigned from = 3 - i / 64 % 4;

		OK(out[i] == want[from * 64 + i % 64] + from);
	}
	printf("ring: right\n");

	leave<<<10, 70>>>(out);
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < 5; i++)
		OK(out[i] == 35);
	printf("leave: right\n");
	return 0;
}
