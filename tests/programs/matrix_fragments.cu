/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Matrix products of a warp with nvcuda::wmma: every shape, type and layout, from global and from
 * shared memory. The values are small integers, so that every sum is exact.
 */
#include "check.h"
#include <cuda_bf16.h>
#include <mma.h>
#include <vector>

using namespace nvcuda;
namespace sub = nvcuda::wmma::experimental;

/* D = A * B + C; every matrix is dense in memory. The accumulators are doubled as elements. */
template <typename In, typename Stored, typename Sum, int M, int N, int K, typename LA, typename LB>
__global__ void multiply(const Stored *a, const Stored *b, const Sum *c, Sum *d, bool column_major)
{
	__shared__ Sum tile[M * N];
	wmma::fragment<wmma::matrix_a, M, N, K, In, LA> fa;
	wmma::fragment<wmma::matrix_b, M, N, K, In, LB> fb;
	wmma::fragment<wmma::accumulator, M, N, K, Sum> fc;
	auto layout = column_major ? wmma::mem_col_major : wmma::mem_row_major;
	int lda = std::is_same<LA, wmma::row_major>::value ? K : M,
	    ldb = std::is_same<LB, wmma::row_major>::value ? N : K;

	for (int i = threadIdx.x; i < M * N; i += 32)
		tile[i] = c[i];
	__syncwarp();
	wmma::load_matrix_sync(fa, a, lda);
	wmma::load_matrix_sync(fb, b, ldb);
	wmma::load_matrix_sync(fc, tile, column_major ? M : N, layout);
	wmma::mma_sync(fc, fa, fb, fc);
	for (int i = 0; i < fc.num_elements; i++)
		fc.x[i] = fc.x[i] + fc.x[i];
	wmma::store_matrix_sync(d, fc, column_major ? M : N, layout);
}

static int small(int seed, int i, int most)
{
	return (int)((seed * 7919u + i * 104729u) / 13u % (unsigned)(2 * most + 1)) - most;
}

template <typename T> static double number(T v)
{
	return (double)(float)v;
}

template <> double number(double v)
{
	return v;
}

template <> double number(int v)
{
	return v;
}

template <typename In, typename Stored, typename Sum, int M, int N, int K, typename LA, typename LB>
static double product(bool column_major)
{
	bool a_row = std::is_same<LA, wmma::row_major>::value,
	     b_row = std::is_same<LB, wmma::row_major>::value;
	int low = std::is_same<Stored, unsigned char>::value ? 4 : 0;
	std::vector<Stored> a(M * K), b(K * N);
	std::vector<Sum> c(M * N), d(M * N);
	Stored *da, *db;
	Sum *dc, *dd;
	double total = 0;

	for (int i = 0; i < M * K; i++)
		a[i] = Stored((float)(small(1, i, 4) + low));
	for (int i = 0; i < K * N; i++)
		b[i] = Stored((float)(small(2, i, 4) + low));
	for (int i = 0; i < M * N; i++)
		c[i] = Sum((float)small(3, i, 50));
	CU(cudaMalloc(&da, a.size() * sizeof(Stored)));
	CU(cudaMalloc(&db, b.size() * sizeof(Stored)));
	CU(cudaMalloc(&dc, c.size() * sizeof(Sum)));
	CU(cudaMalloc(&dd, d.size() * sizeof(Sum)));
	CU(cudaMemcpy(da, a.data(), a.size() * sizeof(Stored), cudaMemcpyHostToDevice));
	CU(cudaMemcpy(db, b.data(), b.size() * sizeof(Stored), cudaMemcpyHostToDevice));
	CU(cudaMemcpy(dc, c.data(), c.size() * sizeof(Sum), cudaMemcpyHostToDevice));
	multiply<In, Stored, Sum, M, N, K, LA, LB><<<1, 32>>>(da, db, dc, dd, column_major);
	CU(cudaGetLastError());
	CU(cudaMemcpy(d.data(), dd, d.size() * sizeof(Sum), cudaMemcpyDeviceToHost));
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			int at = column_major ? j * M + i : i * N + j;
			double sum = number(c[at]);

			for (int k = 0; k < K; k++)
				sum += number(a[a_row ? i * K + k : k * M + i]) *
					number(b[b_row ? k * N + j : j * K + k]);
			OK(number(d[at]) == 2 * sum);
			total += number(d[at]) * (i + 1 + 3 * j);
		}
	CU(cudaFree(da));
	CU(cudaFree(db));
	CU(cudaFree(dc));
	CU(cudaFree(dd));
	return total;
}

template <typename In, typename Stored, typename Sum, int M, int N, int K>
static void layouts(const char *name)
{
	using row = wmma::row_major;
	using col = wmma::col_major;

	printf("%s m%dn%dk%d: %.0f %.0f %.0f %.0f\n", name, M, N, K,
		product<In, Stored, Sum, M, N, K, row, row>(false),
		product<In, Stored, Sum, M, N, K, row, col>(true),
		product<In, Stored, Sum, M, N, K, col, row>(false),
		product<In, Stored, Sum, M, N, K, col, col>(true));
}

template <typename In, typename Stored, typename Sum> static void shapes(const char *name)
{
	layouts<In, Stored, Sum, 16, 16, 16>(name);
	layouts<In, Stored, Sum, 32, 8, 16>(name);
	layouts<In, Stored, Sum, 8, 32, 16>(name);
}

/* Types of less than a byte: A by rows, B by columns, 32 bits at a time. */
template <typename T, int K> __global__ void narrow(const unsigned *a, const unsigned *b, int *d)
{
	wmma::fragment<wmma::matrix_a, 8, 8, K, T, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 8, 8, K, T, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 8, 8, K, int> fc;

	wmma::load_matrix_sync(fa, a, K);
	wmma::load_matrix_sync(fb, b, K);
	wmma::fill_fragment(fc, 5);
	wmma::mma_sync(fc, fa, fb, fc);
	wmma::store_matrix_sync(d, fc, 8, wmma::mem_row_major);
}

__global__ void bits(const unsigned *a, const unsigned *b, int *d, bool is_and)
{
	wmma::fragment<wmma::matrix_a, 8, 8, 128, sub::precision::b1, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, 8, 8, 128, sub::precision::b1, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, 8, 8, 128, int> fc;

	wmma::load_matrix_sync(fa, a, 128);
	wmma::load_matrix_sync(fb, b, 128);
	wmma::fill_fragment(fc, 5);
	if (is_and)
		wmma::bmma_sync(fc, fa, fb, fc, sub::bmmaBitOpAND);
	else
		wmma::bmma_sync(fc, fa, fb, fc, sub::bmmaBitOpXOR);
	wmma::store_matrix_sync(d, fc, 8, wmma::mem_row_major);
}

static int field(const std::vector<unsigned> &x, int row, int k, int width, bool is_signed)
{
	int at = row * 128 + k * width, v = (int)(x[at / 32] >> (at % 32)) & ((1 << width) - 1);

	return is_signed && v >> (width - 1) ? v - (1 << width) : v;
}

static void narrow_products()
{
	static const char *const names[] = { "s4", "u4", "b1 xor", "b1 and" };
	std::vector<unsigned> a(32), b(32);
	int d[64], *dd;
	unsigned *da, *db;

	for (int i = 0; i < 32; i++) {
		a[i] = i * 2654435761u ^ 0x5bd1e995u;
		b[i] = (i + 77) * 2246822519u;
	}
	CU(cudaMalloc(&da, 128));
	CU(cudaMalloc(&db, 128));
	CU(cudaMalloc(&dd, sizeof(d)));
	CU(cudaMemcpy(da, a.data(), 128, cudaMemcpyHostToDevice));
	CU(cudaMemcpy(db, b.data(), 128, cudaMemcpyHostToDevice));
	for (int t = 0; t < 4; t++) {
		int width = t < 2 ? 4 : 1, total = 0;

		if (t == 0)
			narrow<sub::precision::s4, 32><<<1, 32>>>(da, db, dd);
		else if (t == 1)
			narrow<sub::precision::u4, 32><<<1, 32>>>(da, db, dd);
		else
			bits<<<1, 32>>>(da, db, dd, t == 3);
		CU(cudaGetLastError());
		CU(cudaMemcpy(d, dd, sizeof(d), cudaMemcpyDeviceToHost));
		for (int i = 0; i < 64; i++) {
			int sum = 5;

			for (int k = 0; k < 128 / width; k++) {
				int x = field(a, i / 8, k, width, t == 0),
				    y = field(b, i % 8, k, width, t == 0);

				sum += t == 2 ? x ^ y : x * y;
			}
			OK(d[i] == sum);
			total += d[i] * (i + 1);
		}
		printf("%s: %d\n", names[t], total);
	}
	CU(cudaFree(da));
	CU(cudaFree(db));
	CU(cudaFree(dd));
}

/* The tests' values are exact in tf32, so that the conversion changes nothing. */
int main()
{
	shapes<half, half, float>("f16 to f32");
	shapes<half, half, half>("f16 to f16");
	shapes<__nv_bfloat16, __nv_bfloat16, float>("bf16");
	shapes<signed char, signed char, int>("s8");
	shapes<unsigned char, unsigned char, int>("u8");
	layouts<wmma::precision::tf32, float, float, 16, 16, 8>("tf32");
	layouts<double, double, double, 8, 8, 4>("f64");
	narrow_products();
	return verdict("matrix_fragments");
}
