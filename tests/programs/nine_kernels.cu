/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Nine small kernels of common kinds, compared with the same computation on the host. With the
 * argument "times" the program prints the processor time of each kernel at a larger size instead.
 */
#include <cmath>
#include <ctime>

#include "check.h"

enum { TILE = 16, BLOCK = 256, ROUNDS = 64, ITERATIONS = 256, BINS = 256, GRID = 65536 };

__global__ void triad(float *a, const float *b, const float *c, int n)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		a[i] = b[i] + 3.0f * c[i];
}

__global__ void matmul(float *c, const float *a, const float *b, int n)
{
	__shared__ float as[TILE][TILE], bs[TILE][TILE];
	int x = (int)threadIdx.x, y = (int)threadIdx.y;
	int row = (int)blockIdx.y * TILE + y, column = (int)blockIdx.x * TILE + x;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		as[y][x] = a[row * n + k + x];
		bs[y][x] = b[(k + y) * n + column];
		__syncthreads();
		for (int j = 0; j < TILE; j++)
			sum += as[y][j] * bs[j][x];
		__syncthreads();
	}
	c[row * n + column] = sum;
}

__global__ void nbody(float4 *acceleration, const float4 *position, int n)
{
	__shared__ float4 others[BLOCK];
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
	float4 p = position[i], a = make_float4(0, 0, 0, 0);

	for (int t = 0; t < n; t += BLOCK) {
		others[threadIdx.x] = position[t + (int)threadIdx.x];
		__syncthreads();
		for (int j = 0; j < BLOCK; j++) {
			float4 q = others[j];
			float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
			float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = q.w * r * r * r;

			a.x += dx * f;
			a.y += dy * f;
			a.z += dz * f;
		}
		__syncthreads();
	}
	acceleration[i] = a;
}

__host__ __device__ static float normal(float d)
{
	float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
	float c = 0.39894228f * expf(-0.5f * d * d) *
		(k *
			(0.31938153f +
				k *
					(-0.356563782f +
						k *
							(1.781477937f +
								k *
									(-1.821255978f +
										k * 1.330274429f)))));

	return d > 0 ? 1.0f - c : c;
}

__host__ __device__ static float option(float s, float x, float t)
{
	float root = sqrtf(t), d = (logf(s / x) + (0.02f + 0.5f * 0.3f * 0.3f) * t) / (0.3f * root);

	return s * normal(d) - x * expf(-0.02f * t) * normal(d - 0.3f * root);
}

__global__ void options(float *call, const float *b, const float *c, int n)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		call[i] = option(5 + 25 * b[i], 1 + 99 * c[i], 0.25f + b[i]);
}

__global__ void reduce(float *out, const float *in, int n)
{
	__shared__ float sums[BLOCK];
	float sum = 0;

	for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += GRID)
		sum += in[i];
	sums[threadIdx.x] = sum;
	__syncthreads();
	for (unsigned o = BLOCK / 2; o > 0; o >>= 1) {
		if (threadIdx.x < o)
			sums[threadIdx.x] += sums[threadIdx.x + o];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		out[blockIdx.x] = sums[0];
}

__global__ void histogram(unsigned *out, const unsigned *in, int n)
{
	__shared__ unsigned bins[BINS];

	bins[threadIdx.x] = 0;
	__syncthreads();
	for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += GRID)
		for (unsigned byte = 0; byte < 4; byte++)
			atomicAdd(&bins[in[i] >> 8 * byte & 255], 1);
	__syncthreads();
	atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

__global__ void stencil(float *o, const float *a, int n)
{
	int x = (int)(blockIdx.x * blockDim.x + threadIdx.x),
	    y = (int)(blockIdx.y * blockDim.y + threadIdx.y);

	if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
		o[y * n + x] = 0.2f *
			(a[y * n + x] + a[y * n + x - 1] + a[y * n + x + 1] + a[(y - 1) * n + x] +
				a[(y + 1) * n + x]);
}

__host__ __device__ static unsigned escape(int x, int y, int n)
{
	float cx = -2.0f + 3.0f * (float)x / (float)n, cy = -1.5f + 3.0f * (float)y / (float)n,
	      zx = 0, zy = 0;
	unsigned i = 0;

	while (i < ITERATIONS && zx * zx + zy * zy < 4.0f) {
		float t = zx * zx - zy * zy + cx;

		zy = 2 * zx * zy + cy;
		zx = t;
		i++;
	}
	return i;
}

__global__ void mandelbrot(unsigned *o, int n)
{
	int x = (int)(blockIdx.x * blockDim.x + threadIdx.x),
	    y = (int)(blockIdx.y * blockDim.y + threadIdx.y);

	o[y * n + x] = escape(x, y, n);
}

__host__ __device__ static unsigned long long mix(unsigned long long h)
{
	for (int k = 0; k < ROUNDS; k++) {
		h += 0x9e3779b97f4a7c15ull;
		h ^= h >> 30;
		h *= 0xbf58476d1ce4e5b9ull;
		h ^= h >> 27;
		h *= 0x94d049bb133111ebull;
		h ^= h >> 31;
	}
	return h;
}

__global__ void hash(unsigned long long *o, const unsigned long long *in, int n)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		o[i] = mix(in[i]);
}

static const char *const names[] = { "triad", "matmul", "n-body", "options", "reduction",
	"histogram", "stencil", "Mandelbrot", "hash" };
/* elements, or elements of a side; in the test, and for the times */
static const int small[] = { 1 << 16, 64, 512, 1 << 14, 1 << 18, 1 << 18, 128, 64, 1 << 14 };
static const int large[] = { 1 << 24, 512, 4096, 1 << 20, 1 << 24, 1 << 22, 4096, 1024, 1 << 20 };
static float *a, *b, *c; /* of the device */

static void launch(int k, int n)
{
	unsigned blocks = (unsigned)n / BLOCK, tiles = (unsigned)n / TILE;

	switch (k) {
	case 0:
		triad<<<blocks, BLOCK>>>(a, b, c, n);
		break;
	case 1:
		matmul<<<dim3(tiles, tiles), dim3(TILE, TILE)>>>(a, b, c, n);
		break;
	case 2:
		nbody<<<blocks, BLOCK>>>((float4 *)a, (const float4 *)b, n);
		break;
	case 3:
		options<<<blocks, BLOCK>>>(a, b, c, n);
		break;
	case 4:
		reduce<<<GRID / BLOCK, BLOCK>>>(a, b, n);
		break;
	case 5:
		histogram<<<GRID / BLOCK, BLOCK>>>((unsigned *)a, (const unsigned *)b, n);
		break;
	case 6:
		stencil<<<dim3((unsigned)n / 32, (unsigned)n / 8), dim3(32, 8)>>>(a, b, n);
		break;
	case 7:
		mandelbrot<<<dim3(tiles, tiles), dim3(TILE, TILE)>>>((unsigned *)a, n);
		break;
	default:
		hash<<<blocks, BLOCK>>>((unsigned long long *)a, (const unsigned long long *)b, n);
		break;
	}
}

#define TOLERANCE 1e-3

static double matmul_at(const float *x, const float *y, int n, int i)
{
	double sum = 0;

	for (int j = 0; j < n; j++)
		sum += (double)x[i / n * n + j] * y[j * n + i % n];
	return sum;
}

static double nbody_at(const float *p, int n, int i)
{
	double sum = 0;

	for (int j = 0; j < n; j++) {
		double d[3], r = 0.01;

		for (int k = 0; k < 3; k++) {
			d[k] = (double)p[4 * j + k] - p[4 * (i / 4) + k];
			r += d[k] * d[k];
		}
		sum += i % 4 == 3 ? 0 : d[i % 4] * p[4 * j + 3] / (r * sqrt(r));
	}
	return sum;
}

/* Is element i of the result, of which there are n or n * n, right? */
static bool is_right(int k, int n, int i, const float *got, const float *x, const float *y)
{
	double sum = 0;

	switch (k) {
	case 0:
		return near(got[i], x[i] + 3.0 * y[i], TOLERANCE);
	case 1:
		return near(got[i], matmul_at(x, y, n, i), TOLERANCE);
	case 2:
		return near(got[i], nbody_at(x, n, i), TOLERANCE);
	case 3:
		return near(got[i], option(5 + 25 * x[i], 1 + 99 * y[i], 0.25f + x[i]), TOLERANCE);
	case 4:
		for (int j = i * BLOCK; j < n; j += j % BLOCK == BLOCK - 1 ? GRID - BLOCK + 1 : 1)
			sum += x[j];
		return near(got[i], sum, TOLERANCE);
	case 5:
		for (int j = 0; j < 4 * n; j++)
			sum += ((const unsigned char *)x)[j] == i;
		return ((const unsigned *)got)[i] == sum;
	case 6:
		return i / n == 0 || i / n == n - 1 || i % n == 0 || i % n == n - 1
			? got[i] == 0
			: near(got[i],
				  0.2 * ((double)x[i] + x[i - 1] + x[i + 1] + x[i - n] + x[i + n]),
				  TOLERANCE);
	case 7:
		return true; /* see main */
	default:
		return ((const unsigned long long *)got)[i] ==
			mix(((const unsigned long long *)x)[i]);
	}
}

static double now()
{
	timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void print_time(int k)
{
	double best = HUGE_VAL;

	for (int r = 0; r < 7; r++) {
		double start = now();

		launch(k, large[k]);
		CU(cudaDeviceSynchronize());
		best = fmin(best, now() - start);
	}
	printf("%-10s %8.1f ms\n", names[k], best);
}

static void test(int k, const float *x, const float *y, float *got)
{
	int n = small[k],
	    count = k == 1 || k == 6 || k == 7 ? n * n
		: k == 2                       ? 4 * n
		: k == 4 || k == 5             ? BINS
					       : n;
	size_t bytes = (size_t)count * (k == 8 ? 8 : 4);
	unsigned wrong = 0;

	CU(cudaMemset(a, 0, bytes));
	launch(k, n);
	CU(cudaMemcpy(got, a, bytes, cudaMemcpyDeviceToHost));
	/* A float that differs in the last bit changes the count near the border of the set. */
	for (int i = 0; k == 7 && i < count; i++)
		wrong += ((unsigned *)got)[i] != escape(i % n, i / n, n);
	wrong = wrong <= (unsigned)count / 100 ? 0 : wrong;
	for (int i = 0; i < count; i++)
		wrong += !is_right(k, n, i, got, x, y);
	check_failures += wrong != 0;
	printf("%s: %u wrong\n", names[k], wrong);
}

int main(int argc, char **argv)
{
	bool times = argc > 1 && strcmp(argv[1], "times") == 0;
	size_t bytes = (size_t)(times ? 64 : 4) << 20;
	unsigned state = 12345;
	float *x = (float *)malloc(bytes), *y = (float *)malloc(bytes),
	      *got = (float *)malloc(bytes);

	CU(cudaMalloc(&a, bytes));
	CU(cudaMalloc(&b, bytes));
	CU(cudaMalloc(&c, bytes));
	for (int k = 0; k < 9; k++) {
		for (size_t i = 0; i < bytes / 4; i++) {
			state = state * 1664525 + 1013904223;
			x[i] = (float)(state >> 8) / (1 << 24);
			y[i] = 1 - x[i] * x[i];
			if (k == 5 || k == 8)
				memcpy(&x[i], &state, 4);
		}
		CU(cudaMemcpy(b, x, bytes, cudaMemcpyHostToDevice));
		CU(cudaMemcpy(c, y, bytes, cudaMemcpyHostToDevice));
		if (times)
			print_time(k);
		else
			test(k, x, y, got);
	}
	free(x);
	free(y);
	free(got);
	return check_failures != 0;
}
