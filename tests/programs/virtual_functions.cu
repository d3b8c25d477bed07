/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Virtual functions: objects of three classes made in one kernel, used in a second, destroyed in a
 * third.
 */
#include "check.h"

enum { COUNT = 60 };

struct shape {
	int tag;

	__device__ explicit shape(int t) : tag(t)
	{
	}
	__device__ virtual ~shape()
	{
	}
	__device__ virtual int area() const = 0;
	__device__ virtual int edges() const
	{
		return tag;
	}
};

__device__ int destroyed;

struct box : shape {
	int width, height;

	__device__ box(int w, int h) : shape(4), width(w), height(h)
	{
	}
	__device__ ~box() override
	{
		atomicAdd(&destroyed, 1);
	}
	__device__ int area() const override
	{
		return width * height;
	}
};

struct cube : box {
	__device__ explicit cube(int side) : box(side, side)
	{
	}
	__device__ ~cube() override
	{
		atomicAdd(&destroyed, 100);
	}
	__device__ int area() const override
	{
		return 6 * box::area();
	}
	__device__ int edges() const override
	{
		return 12;
	}
};

struct triangle : shape {
	int base, height;

	__device__ triangle(int b, int h) : shape(3), base(b), height(h)
	{
	}
	__device__ int area() const override
	{
		return base * height / 2;
	}
};

__global__ void make(shape **shapes)
{
	int i = threadIdx.x;

	switch (i % 3) {
	case 0:
		shapes[i] = new box(i, i + 2);
		break;
	case 1:
		shapes[i] = new cube(i);
		break;
	default:
		shapes[i] = new triangle(i, 2 * i);
	}
}

__global__ void use(shape *const *shapes, int *out)
{
	int i = threadIdx.x;

	out[i] = shapes[i]->area() * 100 + shapes[i]->edges();
}

__global__ void destroy(shape **shapes)
{
	delete shapes[threadIdx.x];
}

int main()
{
	shape **shapes;
	int got[COUNT], *out, gone = 0;

	CU(cudaMalloc(&shapes, COUNT * sizeof(shape *)));
	CU(cudaMalloc(&out, sizeof(got)));
	make<<<1, COUNT>>>(shapes);
	use<<<1, COUNT>>>(shapes, out);
	destroy<<<1, COUNT>>>(shapes);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		OK(got[i] ==
			(i % 3 == 0                  ? i * (i + 2) * 100 + 4
					: i % 3 == 1 ? 600 * i * i + 12
						     : 100 * i * i + 3));
	CU(cudaMemcpyFromSymbol(&gone, destroyed, sizeof(gone)));
	OK(gone == COUNT / 3 * 102);
	printf("%d %d %d destroyed %d\n", got[30], got[31], got[32], gone);
	return verdict("virtual_functions");
}
