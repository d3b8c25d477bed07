/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Nine small kernels of common kinds, as one text for CUDA and OpenCL C: those of
 * tests/programs/nine_kernels.cu, written again because OpenCL C has other names for indices and
 * qualifiers. opencl.c gives the text of this file to the OpenCL compiler, so it includes nothing.
 */
#ifdef __CUDACC__
#define KERNEL   extern "C" __global__ void
#define FUNCTION __device__ static
#define GLOBAL
#define LOCAL       __shared__
#define ALONE       __restrict__
#define LOCAL_ID(k) ((int)(k ? threadIdx.y : threadIdx.x))
#define GROUP_ID(k) ((int)(k ? blockIdx.y : blockIdx.x))
#define GLOBAL_ID(k) \
	((int)(k ? blockIdx.y * blockDim.y + threadIdx.y : blockIdx.x * blockDim.x + threadIdx.x))
#define BARRIER()         __syncthreads()
#define INVERSE_ROOT      rsqrtf
#define EXPONENTIAL       expf
#define LOGARITHM         logf
#define ROOT              sqrtf
#define MAGNITUDE         fabsf
#define COUNT_LOCAL(at)   atomicAdd(at, 1u)
#define ADD_GLOBAL(at, n) atomicAdd(at, n)
typedef unsigned word;
typedef unsigned long long wide;
#else
#define KERNEL            __kernel void
#define FUNCTION          static
#define GLOBAL            __global
#define LOCAL             __local
#define ALONE             restrict
#define LOCAL_ID(k)       ((int)get_local_id(k))
#define GROUP_ID(k)       ((int)get_group_id(k))
#define GLOBAL_ID(k)      ((int)get_global_id(k))
#define BARRIER()         barrier(CLK_LOCAL_MEM_FENCE)
#define INVERSE_ROOT      rsqrt
#define EXPONENTIAL       exp
#define LOGARITHM         log
#define ROOT              sqrt
#define MAGNITUDE         fabs
#define COUNT_LOCAL(at)   atomic_inc(at)
#define ADD_GLOBAL(at, n) atomic_add(at, n)
typedef uint word;
typedef ulong wide;
#endif

KERNEL triad(
	GLOBAL float *ALONE out, GLOBAL const float *ALONE x, GLOBAL const float *ALONE y, int n)
{
	int i = GLOBAL_ID(0);

	if (i < n)
		out[i] = x[i] + 3.0f * y[i];
}

#define TILE 16

KERNEL matmul(
	GLOBAL float *ALONE out, GLOBAL const float *ALONE x, GLOBAL const float *ALONE y, int n)
{
	LOCAL float left[TILE][TILE];
	LOCAL float right[TILE][TILE];
	int column = LOCAL_ID(0), line = LOCAL_ID(1);
	int row = GROUP_ID(1) * TILE + line, at = GROUP_ID(0) * TILE + column;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		left[line][column] = x[row * n + k + column];
		right[line][column] = y[(k + line) * n + at];
		BARRIER();
		for (int j = 0; j < TILE; j++)
			sum += left[line][j] * right[j][column];
		BARRIER();
	}
	out[row * n + at] = sum;
}

#define BLOCK 256

KERNEL nbody(GLOBAL float4 *ALONE out, GLOBAL const float4 *ALONE bodies, int n)
{
	LOCAL float4 others[BLOCK];
	int i = GLOBAL_ID(0);
	float4 self = bodies[i], sum = self;

	sum.x = sum.y = sum.z = sum.w = 0;
	for (int first = 0; first < n; first += BLOCK) {
		others[LOCAL_ID(0)] = bodies[first + LOCAL_ID(0)];
		BARRIER();
		for (int j = 0; j < BLOCK; j++) {
			float4 other = others[j];
			float dx = other.x - self.x, dy = other.y - self.y, dz = other.z - self.z;
			float inverse = INVERSE_ROOT(dx * dx + dy * dy + dz * dz + 0.01f);
			float force = other.w * inverse * inverse * inverse;

			sum.x += dx * force;
			sum.y += dy * force;
			sum.z += dz * force;
		}
		BARRIER();
	}
	out[i] = sum;
}

/* the normal distribution function, by a polynomial of Abramowitz and Stegun (26.2.17) */
FUNCTION float normal(float d)
{
	float k = 1.0f / (1.0f + 0.2316419f * MAGNITUDE(d)), p = 1.330274429f;

	p = p * k - 1.821255978f;
	p = p * k + 1.781477937f;
	p = p * k - 0.356563782f;
	p = p * k + 0.31938153f;
	p = p * k * 0.39894228f * EXPONENTIAL(-0.5f * d * d);
	return d > 0 ? 1.0f - p : p;
}

/* the prices of a call and a put after Black and Scholes */
KERNEL options(GLOBAL float *ALONE out, GLOBAL float *ALONE put, GLOBAL const float *ALONE x,
	GLOBAL const float *ALONE y, int n)
{
	int i = GLOBAL_ID(0);

	if (i >= n)
		return;
	float price = 5 + 25 * x[i], strike = 1 + 99 * y[i], years = 0.25f + 9.75f * x[i];
	float root = 0.3f * ROOT(years);
	float d = (LOGARITHM(price / strike) + (0.02f + 0.5f * 0.3f * 0.3f) * years) / root;
	float a = normal(d), b = normal(d - root), now = strike * EXPONENTIAL(-0.02f * years);

	out[i] = price * a - now * b;
	put[i] = now * (1.0f - b) - price * (1.0f - a);
}

KERNEL reduction(GLOBAL float *ALONE out, GLOBAL const float *ALONE x, int n, int threads)
{
	LOCAL float sums[BLOCK];
	int me = LOCAL_ID(0);
	float sum = 0;

	for (int i = GLOBAL_ID(0); i < n; i += threads)
		sum += x[i];
	sums[me] = sum;
	BARRIER();
	for (int half_size = BLOCK / 2; half_size > 0; half_size >>= 1) {
		if (me < half_size)
			sums[me] += sums[me + half_size];
		BARRIER();
	}
	if (me == 0)
		out[GROUP_ID(0)] = sums[0];
}

KERNEL histogram(GLOBAL word *ALONE out, GLOBAL const word *ALONE x, int n, int threads)
{
	LOCAL word bins[BLOCK];
	int me = LOCAL_ID(0);

	bins[me] = 0;
	BARRIER();
	for (int i = GLOBAL_ID(0); i < n; i += threads) {
		word v = x[i];

		COUNT_LOCAL(&bins[v & 255]);
		COUNT_LOCAL(&bins[v >> 8 & 255]);
		COUNT_LOCAL(&bins[v >> 16 & 255]);
		COUNT_LOCAL(&bins[v >> 24]);
	}
	BARRIER();
	ADD_GLOBAL(&out[me], bins[me]);
}

KERNEL stencil(GLOBAL float *ALONE out, GLOBAL const float *ALONE x, int n)
{
	int column = GLOBAL_ID(0), row = GLOBAL_ID(1), at = row * n + column;

	if (column > 0 && row > 0 && column < n - 1 && row < n - 1)
		out[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - n] + x[at + n]);
}

KERNEL mandelbrot(GLOBAL word *ALONE out, int n, int most)
{
	int column = GLOBAL_ID(0), row = GLOBAL_ID(1), i = 0;
	float cx = -2.0f + 3.0f * column / n, cy = -1.5f + 3.0f * row / n, x = 0, y = 0;

	while (i < most && x * x + y * y < 4.0f) {
		float t = x * x - y * y + cx;

		y = 2 * x * y + cy;
		x = t;
		i++;
	}
	out[row * n + column] = i;
}

KERNEL hash(GLOBAL wide *ALONE out, GLOBAL const wide *ALONE x, int n, int rounds)
{
	int i = GLOBAL_ID(0);

	if (i >= n)
		return;
	wide h = x[i];

	for (int k = 0; k < rounds; k++) {
		h += 0x9e3779b97f4a7c15ul;
		h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ul;
		h = (h ^ h >> 27) * 0x94d049bb133111ebul;
		h ^= h >> 31;
	}
	out[i] = h;
}
