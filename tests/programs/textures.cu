/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A texture and a surface object in kernels. A dry run accepts the launches and computes nothing.
 */
#include "check.h"

#define W 64
#define H 32

__global__ void read_texture(cudaTextureObject_t texture, float *out)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * W + x] = tex2D<float>(texture, x + 0.5f, y + 0.5f);
}

__global__ void write_surface(cudaSurfaceObject_t surface)
{
	int x = threadIdx.x, y = blockIdx.x;

	surf2Dwrite<float>(3.f * x + y, surface, x * 4, y);
}

__global__ void plain(float *out)
{
	out[blockIdx.x * W + threadIdx.x] = 1;
}

static float in[H][W], out[H][W];
static bool dry;

/* Whether the kernel ran and computed. */
static bool ran()
{
	CU(cudaGetLastError());
	CU(cudaDeviceSynchronize());
	return !dry;
}

int main()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc resource = {}, got;
	cudaTextureDesc sampling = {};
	cudaTextureObject_t texture;
	cudaSurfaceObject_t surface;
	cudaDeviceProp prop;
	cudaArray_t array;
	float *device;

	CU(cudaGetDeviceProperties(&prop, 0));
	dry = strstr(prop.name, "dry run") != NULL;
	OK(prop.maxTexture2D[0] > 0 && prop.maxSurface2D[0] > 0);
	for (int i = 0; i < W * H; i++)
		in[0][i] = 0.5f * i;
	CU(cudaMalloc(&device, sizeof(out)));
	CU(cudaMallocArray(&array, &format, W, H, cudaArraySurfaceLoadStore));
	CU(cudaMemcpy2DToArray(array, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
	CU(cudaCreateTextureObject(&texture, &resource, &sampling, NULL));
	CU(cudaCreateSurfaceObject(&surface, &resource));
	CU(cudaGetTextureObjectResourceDesc(&got, texture));
	OK(got.resType == cudaResourceTypeArray && got.res.array.array == array);
	read_texture<<<H, W>>>(texture, device);
	if (ran()) {
		CU(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost));
		OK(memcmp(in, out, sizeof(out)) == 0);
	}
	write_surface<<<H, W>>>(surface);
	if (ran()) {
		CU(cudaMemcpy2DFromArray(
			out, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
		for (int i = 0; i < W * H; i++)
			OK(out[0][i] == 3.f * (i % W) + i / W);
	}
	plain<<<H, W>>>(device);
	CU(cudaGetLastError());
	CU(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost));
	OK(dry || out[H - 1][W - 1] == 1);
	CU(cudaDestroyTextureObject(texture));
	CU(cudaDestroySurfaceObject(surface));
	EXPECT(cudaErrorInvalidValue, cudaDestroyTextureObject(texture));
	EXPECT(cudaErrorInvalidValue, cudaGetLastError());
	CU(cudaFreeArray(array));
	CU(cudaFree(device));
	return verdict("textures");
}
