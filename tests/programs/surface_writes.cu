/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Surface objects in kernels: loads and stores of each geometry and size, what happens outside the
 * surface, and a texture that reads what a kernel has written through a surface. Then a store
 * outside with the mode that traps, in a process of its own.
 */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define W 16
#define H 8
#define D 4

enum geometry { LINE, PLANE, BODY, LINES, PLANES };

template <class T> __device__ static T made(int x, int y, int z);
template <> __device__ unsigned char made(int x, int y, int z)
{
	return (unsigned char)(x + 16 * y + 3 * z);
}
template <> __device__ short made(int x, int y, int z)
{
	return (short)(1000 * z - 100 * y + x);
}
template <> __device__ float made(int x, int y, int z)
{
	return x + y / 16.f + z * 1000;
}
template <> __device__ int2 made(int x, int y, int z)
{
	return make_int2(x - y, z << 20);
}
template <> __device__ float4 made(int x, int y, int z)
{
	return make_float4(x, y, z, 0.5f);
}
template <> __device__ ushort4 made(int x, int y, int z)
{
	return make_ushort4(x, y, z, 65535);
}

template <class T> __device__ static bool same(T a, T b)
{
	const unsigned char *p = (const unsigned char *)&a, *q = (const unsigned char *)&b;

	for (int i = 0; i < (int)sizeof(T); i++)
		if (p[i] != q[i])
			return false;
	return true;
}

template <class T> __global__ void write(cudaSurfaceObject_t s, int geometry)
{
	int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y, at = x * (int)sizeof(T);
	T value = made<T>(x, y, z);

	switch (geometry) {
	case LINE:
		surf1Dwrite(value, s, at);
		break;
	case PLANE:
		surf2Dwrite(value, s, at, y);
		break;
	case BODY:
		surf3Dwrite(value, s, at, y, z);
		break;
	case LINES:
		surf1DLayeredwrite(value, s, at, z);
		break;
	default:
		surf2DLayeredwrite(value, s, at, y, z);
	}
}

template <class T> __global__ void compare(cudaSurfaceObject_t s, int geometry, unsigned *wrong)
{
	int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y, at = x * (int)sizeof(T);
	T got;

	switch (geometry) {
	case LINE:
		got = surf1Dread<T>(s, at);
		break;
	case PLANE:
		got = surf2Dread<T>(s, at, y);
		break;
	case BODY:
		got = surf3Dread<T>(s, at, y, z);
		break;
	case LINES:
		got = surf1DLayeredread<T>(s, at, z);
		break;
	default:
		got = surf2DLayeredread<T>(s, at, y, z);
	}
	if (!same(got, made<T>(x, y, z)))
		atomicAdd(wrong, 1);
}

/* Reads and writes around the surface, whose texels are 1 + x + 100 y. */
__global__ void outside(cudaSurfaceObject_t s, float *out)
{
	out[0] = surf2Dread<float>(s, -4, 0, cudaBoundaryModeZero);
	out[1] = surf2Dread<float>(s, W * 4, 3, cudaBoundaryModeZero);
	out[2] = surf2Dread<float>(s, -40, -7, cudaBoundaryModeClamp);
	out[3] = surf2Dread<float>(s, W * 4 + 400, H + 9, cudaBoundaryModeClamp);
	out[4] = surf2Dread<float>(s, 8, H, cudaBoundaryModeZero);
	out[5] = surf2Dread<float>(s, 8, H, cudaBoundaryModeClamp);
	surf2Dwrite(-1.f, s, -4, 2, cudaBoundaryModeZero);
	surf2Dwrite(-2.f, s, 0, H, cudaBoundaryModeZero);
	surf2Dwrite(-3.f, s, W * 4 + 4, 5, cudaBoundaryModeClamp);
}

__global__ void through_texture(cudaTextureObject_t t, float *out)
{
	out[blockIdx.x * W + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, blockIdx.x + 0.5f);
}

__global__ void beyond(cudaSurfaceObject_t s)
{
	surf2Dwrite(1.f, s, 0, H);
}

static cudaSurfaceObject_t surface_of(cudaArray_t array)
{
	cudaResourceDesc resource = {};
	cudaSurfaceObject_t s;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CU(cudaCreateSurfaceObject(&s, &resource));
	return s;
}

template <class T> static int geometries(unsigned *wrong)
{
	static const struct {
		int width, height, depth;
		unsigned flags;
	} shapes[] = { { W, 0, 0, 0 }, { W, H, 0, 0 }, { W, H, D, 0 },
		{ W, 0, D, cudaArrayLayered }, { W, H, D, cudaArrayLayered } };
	unsigned count;

	CU(cudaMemset(wrong, 0, sizeof(count)));
	for (int g = LINE; g <= PLANES; g++) {
		cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
		dim3 grid(shapes[g].height ? H : 1, shapes[g].depth ? D : 1);
		cudaSurfaceObject_t s;
		cudaArray_t array;

		CU(cudaMalloc3DArray(&array, &format,
			make_cudaExtent(shapes[g].width, shapes[g].height, shapes[g].depth),
			shapes[g].flags | cudaArraySurfaceLoadStore));
		s = surface_of(array);
		write<T><<<grid, W>>>(s, g);
		compare<T><<<grid, W>>>(s, g, wrong);
		CU(cudaGetLastError());
		CU(cudaDestroySurfaceObject(s));
		CU(cudaFreeArray(array));
	}
	CU(cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost));
	return (int)count;
}

static void plane(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	std::vector<float> texels(W * H), got(W * H);
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t t;
	cudaSurfaceObject_t s;
	cudaArray_t array;
	float *out;

	for (int i = 0; i < W * H; i++)
		texels[i] = 1.f + i % W + 100 * (i / W);
	CU(cudaMallocArray(&array, &format, W, H, cudaArraySurfaceLoadStore));
	CU(cudaMemcpy2DToArray(
		array, 0, 0, texels.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CU(cudaMalloc(&out, W * H * sizeof(float)));
	s = surface_of(array);
	outside<<<1, 1>>>(s, out);
	CU(cudaMemcpy(got.data(), out, 6 * sizeof(float), cudaMemcpyDeviceToHost));
	printf("outside: %g %g %g %g %g %g\n", got[0], got[1], got[2], got[3], got[4], got[5]);
	texels[5 * W + W - 1] = -3;
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CU(cudaCreateTextureObject(&t, &resource, &desc, NULL));
	through_texture<<<H, W>>>(t, out);
	CU(cudaMemcpy(got.data(), out, W * H * sizeof(float), cudaMemcpyDeviceToHost));
	OK(got == texels);
	write<float><<<H, W>>>(s, PLANE);
	through_texture<<<H, W>>>(t, out);
	CU(cudaMemcpy(got.data(), out, W * H * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * H; i++)
		OK(got[i] == i % W + i / W / 16.f);
	CU(cudaDestroyTextureObject(t));
	CU(cudaDestroySurfaceObject(s));
	CU(cudaFreeArray(array));
	CU(cudaFree(out));
}

static int fault(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaArray_t array;

	CU(cudaMallocArray(&array, &format, W, H, cudaArraySurfaceLoadStore));
	beyond<<<1, 1>>>(surface_of(array));
	CU(cudaGetLastError());
	EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	return check_failures != 0;
}

int main()
{
	unsigned *wrong;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fault());
	OK(pid > 0 && waitpid(pid, &status, 0) == pid);
	OK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU(cudaMalloc(&wrong, sizeof(*wrong)));
	OK(geometries<unsigned char>(wrong) == 0);
	OK(geometries<short>(wrong) == 0);
	OK(geometries<float>(wrong) == 0);
	OK(geometries<int2>(wrong) == 0);
	OK(geometries<ushort4>(wrong) == 0);
	OK(geometries<float4>(wrong) == 0);
	CU(cudaFree(wrong));
	plane();
	return verdict("surface_writes");
}
