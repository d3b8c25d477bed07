/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A product of matrices for sm_90a: one warp loads tiles through tensor maps into two buffers, two
 * warpgroups multiply them (wgmma), and the tiles of the result are stored through a tensor map. In
 * the form for clusters each block loads half of B and sends it to both blocks. The sizes are not
 * multiples of the tiles. The result is compared with the CPU's.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda.h>
#include <cuda_fp16.h>

#include "check.h"

constexpr int TILE_M = 128, TILE_N = 64, TILE_K = 64, STAGES = 2, GROUPS = 2;

struct Shared {
	alignas(1024) __half a[STAGES][TILE_M * TILE_K];
	alignas(1024) __half b[STAGES][TILE_N * TILE_K];
	alignas(1024) float c[GROUPS][64 * TILE_N];
	alignas(8) uint64_t full[STAGES], empty[STAGES];
};

__device__ uint32_t address(const void *p)
{
	return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void wait(uint64_t *bar, int parity)
{
	asm volatile("{\n.reg .pred p;\nL:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
		     "@!p bra L;\n}" ::"r"(address(bar)),
		     "r"(parity)
		     : "memory");
}

/* K-major with a swizzle of 128 bytes; eight rows are 1,024 bytes. */
__device__ uint64_t descriptor(const void *p)
{
	return (address(p) & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

/* m64n64k16 */
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, "
		     "%6, %7, %8, %9, "
		     "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
		     "%25, %26, %27, "
		     "%28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
		     "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
		     "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
		     "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
		     "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
		     "+f"(d[30]), "+f"(d[31])
		     : "l"(a), "l"(b));
}

template <int CLUSTER>
__device__ void load(Shared &s, const CUtensorMap *a, const CUtensorMap *b, int k, int rank)
{
	int stage = k % STAGES;

	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
			     address(&s.full[stage])),
		     "r"(static_cast<int>(sizeof s.a[0] + sizeof s.b[0]))
		     : "memory");
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
		     "[%0], [%1, {%2, "
		     "%3}], [%4];" ::"r"(address(s.a[stage])),
		     "l"(a), "r"(k * TILE_K), "r"(static_cast<int>(blockIdx.x) * TILE_M),
		     "r"(address(&s.full[stage]))
		     : "memory");
	if (CLUSTER == 1) {
		asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx:"
			     ":bytes [%0], "
			     "[%1, {%2, %3}], [%4];" ::"r"(address(s.b[stage])),
			     "l"(b), "r"(k * TILE_K), "r"(static_cast<int>(blockIdx.y) * TILE_N),
			     "r"(address(&s.full[stage]))
			     : "memory");
		return;
	}
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes."
		     "multicast::cluster "
		     "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
			     address(s.b[stage]) + rank * TILE_N / 2 * TILE_K * 2),
		     "l"(b), "r"(k * TILE_K),
		     "r"(static_cast<int>(blockIdx.y) * TILE_N + rank * TILE_N / 2),
		     "r"(address(&s.full[stage])), "h"(static_cast<short>(3))
		     : "memory");
}

/* One thread of each warpgroup says that its reads are over, to every block that fills the memory. */
template <int CLUSTER> __device__ void release(uint64_t *bar)
{
	for (int r = 0; r < CLUSTER; r++)
		asm volatile(
			"{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
			"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(
				address(bar)),
			"r"(r)
			: "memory");
}

template <int CLUSTER>
__device__ void body(const CUtensorMap *a, const CUtensorMap *b, const CUtensorMap *c, int steps)
{
	extern __shared__ char memory[];
	Shared &s = *reinterpret_cast<Shared *>(
		(reinterpret_cast<uintptr_t>(memory) + 1023) & ~uintptr_t(1023));
	int group = threadIdx.x / 128, rank = 0;

	if (CLUSTER > 1)
		asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++) {
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
				address(&s.full[i])));
			asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
					     address(&s.empty[i])),
				"r"(GROUPS * CLUSTER));
		}
		asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::
				     : "memory");
	}
	if (CLUSTER > 1)
		asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::
				     : "memory");
	__syncthreads();
	if (group == GROUPS) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
		for (int k = 0; k < steps && threadIdx.x == GROUPS * 128; k++) {
			wait(&s.empty[k % STAGES], (k / STAGES + 1) & 1);
			load<CLUSTER>(s, a, b, k, rank);
		}
	} else {
		float d[32] = {};

		for (int k = 0; k < steps; k++) {
			int stage = k % STAGES;

			wait(&s.full[stage], k / STAGES & 1);
			asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
			for (int i = 0; i < TILE_K; i += 16)
				multiply(d, descriptor(s.a[stage] + group * 64 * TILE_K + i),
					descriptor(s.b[stage] + i));
			asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync."
				     "aligned 0;" ::
					     : "memory");
			if (threadIdx.x % 128 == 0)
				release<CLUSTER>(&s.empty[stage]);
		}
		int row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4,
		    column = threadIdx.x % 4 * 2;

		for (int i = 0; i < 32; i++)
			s.c[group][(row + i / 2 % 2 * 8) * TILE_N + i / 4 * 8 + column + i % 2] =
				d[i];
		asm volatile("fence.proxy.async.shared::cta;\nbar.sync %0, 128;" ::"r"(group + 1)
			     : "memory");
		if (threadIdx.x % 128 == 0)
			asm volatile(
				"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, "
				"%2}], [%3];\n"
				"cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(c),
				"r"(static_cast<int>(blockIdx.y) * TILE_N),
				"r"(static_cast<int>(blockIdx.x) * TILE_M + group * 64),
				"r"(address(s.c[group]))
				: "memory");
	}
	if (CLUSTER > 1)
		asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

__global__ void __launch_bounds__(384) alone(const __grid_constant__ CUtensorMap a,
	const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c, int steps)
{
	body<1>(&a, &b, &c, steps);
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384)
	paired(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
		const __grid_constant__ CUtensorMap c, int steps)
{
	body<2>(&a, &b, &c, steps);
}

/* Loads one tile with a map that no encoder wrote. */
__global__ void forged(const __grid_constant__ CUtensorMap map)
{
	extern __shared__ __align__(1024) char memory[];
	__shared__ alignas(8) uint64_t bar;

	asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&bar)));
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
		     "[%0], [%1, {0, 0}], "
		     "[%2];" ::"r"(address(memory)),
		     "l"(&map), "r"(address(&bar))
		     : "memory");
}

using Encode = CUresult(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
	const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
	CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static Encode *encode;

static CUtensorMap map_of(
	void *p, bool half, int columns, int rows, int pitch, int width, int height)
{
	CUtensorMap map;
	cuuint64_t dims[] = { cuuint64_t(columns), cuuint64_t(rows) },
		   strides[] = { cuuint64_t(pitch) * (half ? 2 : 4) };
	cuuint32_t box[] = { cuuint32_t(width), cuuint32_t(height) }, steps[] = { 1, 1 };
	CUresult r = encode(&map,
		half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, p,
		dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		half ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

	if (r != CUDA_SUCCESS) {
		printf("encode: %d\n", r);
		exit(1);
	}
	return map;
}

/* All products and sums are exact in f32. */
static std::vector<__half> numbers(int n, unsigned seed)
{
	std::vector<__half> v(n);

	for (auto &x : v) {
		seed = seed * 1664525 + 1013904223;
		x = __float2half(static_cast<float>(seed >> 24) / 16 - 8);
	}
	return v;
}

static int differences(const std::vector<__half> &a, const std::vector<__half> &b,
	const std::vector<float> &c, int m, int n, int k, int pitch)
{
	int wrong = 0;

	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			float sum = 0;

			for (int x = 0; x < k; x++)
				sum += __half2float(a[i * k + x]) * __half2float(b[j * k + x]);
			wrong += c[i * pitch + j] != sum;
		}
	return wrong;
}

int main()
{
	constexpr int M = 300, N = 100, K = 200, PITCH = 104, BYTES = sizeof(Shared) + 1024;
	auto a = numbers(M * K, 1), b = numbers(N * K, 2);
	std::vector<float> c(M * PITCH);
	__half *da, *db;
	float *dc;
	cudaDriverEntryPointQueryResult found;

	CU(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled",
		reinterpret_cast<void **>(&encode), 12000, cudaEnableDefault, &found));
	CU(cudaMalloc(&da, a.size() * 2));
	CU(cudaMalloc(&db, b.size() * 2));
	CU(cudaMalloc(&dc, c.size() * 4));
	CU(cudaMemcpy(da, a.data(), a.size() * 2, cudaMemcpyDefault));
	CU(cudaMemcpy(db, b.data(), b.size() * 2, cudaMemcpyDefault));
	CU(cudaFuncSetAttribute(alone, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
	CU(cudaFuncSetAttribute(paired, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
	CUtensorMap ma = map_of(da, true, K, M, K, TILE_K, TILE_M),
		    mb = map_of(db, true, K, N, K, TILE_K, TILE_N),
		    half_b = map_of(db, true, K, N, K, TILE_K, TILE_N / 2),
		    mc = map_of(dc, false, N, M, PITCH, TILE_N, 64);
	/* an even number of blocks for the clusters: the last ones are outside */
	dim3 grid((M + TILE_M * 2 - 1) / (TILE_M * 2) * 2, (N + TILE_N - 1) / TILE_N);

	for (int form = 0; form < 2; form++) {
		CU(cudaMemset(dc, 0xff, c.size() * 4));
		if (form)
			paired<<<grid, 384, BYTES>>>(ma, half_b, mc, (K + TILE_K - 1) / TILE_K);
		else
			alone<<<grid, 384, BYTES>>>(ma, mb, mc, (K + TILE_K - 1) / TILE_K);
		CU(cudaGetLastError());
		CU(cudaMemcpy(c.data(), dc, c.size() * 4, cudaMemcpyDefault));
		int outside = 0;

		for (int i = 0; i < M; i++)
			for (int j = N; j < PITCH; j++)
				outside += c[i * PITCH + j] == c[i * PITCH + j];
		printf("%s: %d of %d wrong, %d written outside\n",
			form ? "pairs of blocks" : "single blocks",
			differences(a, b, c, M, N, K, PITCH), M * N, outside);
	}
	CUtensorMap none = {};

	forged<<<1, 1, 65536 / 2>>>(none);
	printf("a map of zeros: %s\n",
		cudaDeviceSynchronize() == cudaSuccess ? "accepted" : "refused");
	return 0;
}
