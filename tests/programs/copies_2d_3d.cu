/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * 2D and 3D copies with pitches and offsets, in all directions, synchronous and asynchronous. The
 * results are compared with a model on the host.
 */
#include "check.h"
#include <vector>

enum { WIDTH = 53, HEIGHT = 21, DEPTH = 7 };
typedef unsigned char byte;

static void rectangles()
{
	std::vector<byte> source(WIDTH * HEIGHT), result(80 * HEIGHT, 0xaa), want = result;
	byte *device, *second;
	size_t pitch = 0, second_pitch = 0;

	for (size_t i = 0; i < source.size(); i++)
		source[i] = (byte)(i * 7 + i / 50);
	CU(cudaMallocPitch(&device, &pitch, WIDTH, HEIGHT));
	CU(cudaMallocPitch(&second, &second_pitch, 2 * WIDTH, HEIGHT));
	OK(pitch >= WIDTH && second_pitch >= 2 * WIDTH && pitch % 32 == 0);
	CU(cudaMemset2D(second, second_pitch, 0x11, 2 * WIDTH, HEIGHT));
	CU(cudaMemcpy2D(
		device, pitch, source.data(), WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
	/* Columns 5..44 of rows 2..19 go to column 30, row 1. */
	CU(cudaMemcpy2D(second + second_pitch + 30, second_pitch, device + 2 * pitch + 5, pitch, 40,
		18, cudaMemcpyDeviceToDevice));
	CU(cudaMemcpy2DAsync(result.data() + 3, 80, second + 25, second_pitch, 70, HEIGHT,
		cudaMemcpyDeviceToHost, 0));
	CU(cudaDeviceSynchronize());
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < 70; x++) {
			int from = x + 25 - 30;
			want[(size_t)y * 80 + 3 + x] = from >= 0 && from < 40 && y >= 1 && y < 19
				? source[(size_t)(y + 1) * WIDTH + 5 + from]
				: 0x11;
		}
	OK(result == want);
	printf("rectangles %016llx\n", (unsigned long long)checksum(result.data(), result.size()));
	CU(cudaMemcpy2D(
		result.data(), 80, source.data(), WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToHost));
	OK(!memcmp(result.data() + 80, source.data() + WIDTH, WIDTH));
	EXPECT(cudaErrorInvalidPitchValue,
		cudaMemcpy2D(device, WIDTH - 1, source.data(), WIDTH, WIDTH, HEIGHT,
			cudaMemcpyHostToDevice));
	EXPECT(cudaErrorInvalidPitchValue, cudaGetLastError());
	CU(cudaFree(device));
	CU(cudaFree(second));
}

static void boxes()
{
	const size_t count = WIDTH * HEIGHT * DEPTH;
	std::vector<short> source(count), result(count, -1), want = result;
	cudaExtent whole = make_cudaExtent(WIDTH * sizeof(short), HEIGHT, DEPTH);
	cudaPitchedPtr box, copy;

	for (size_t i = 0; i < count; i++)
		source[i] = (short)(i * 3);
	CU(cudaMalloc3D(&box, whole));
	CU(cudaMalloc3D(&copy, whole));
	OK(box.pitch >= whole.width && box.xsize == whole.width && box.ysize == HEIGHT);
	CU(cudaMemset3D(copy, 0x7f, whole));

	cudaMemcpy3DParms in = {};
	in.srcPtr = make_cudaPitchedPtr(source.data(), WIDTH * sizeof(short), WIDTH, HEIGHT);
	in.dstPtr = box;
	in.extent = whole;
	in.kind = cudaMemcpyHostToDevice;
	CU(cudaMemcpy3D(&in));

	/* A box of 20 x 9 x 4 from (6, 5, 1) to (17, 2, 3). */
	cudaMemcpy3DParms part = {};
	part.srcPtr = box;
	part.srcPos = make_cudaPos(6 * sizeof(short), 5, 1);
	part.dstPtr = copy;
	part.dstPos = make_cudaPos(17 * sizeof(short), 2, 3);
	part.extent = make_cudaExtent(20 * sizeof(short), 9, 4);
	part.kind = cudaMemcpyDeviceToDevice;
	CU(cudaMemcpy3DAsync(&part, 0));

	cudaMemcpy3DParms out = {};
	out.srcPtr = copy;
	out.dstPtr = make_cudaPitchedPtr(result.data(), WIDTH * sizeof(short), WIDTH, HEIGHT);
	out.extent = whole;
	out.kind = cudaMemcpyDeviceToHost;
	CU(cudaMemcpy3D(&out));
	for (int z = 0; z < DEPTH; z++)
		for (int y = 0; y < HEIGHT; y++)
			for (int x = 0; x < WIDTH; x++) {
				bool inside = x >= 17 && x < 37 && y >= 2 && y < 11 && z >= 3;
				size_t from = ((size_t)(z - 2) * HEIGHT + (size_t)(y + 3)) * WIDTH +
					(size_t)(x - 11);
				want[((size_t)z * HEIGHT + y) * WIDTH + x] =
					inside ? source[from] : 0x7f7f;
			}
	OK(result == want);
	printf("boxes %016llx\n",
		(unsigned long long)checksum(result.data(), count * sizeof(short)));
	CU(cudaFree(box.ptr));
	CU(cudaFree(copy.ptr));
}

/* cudaMemcpyDefault: CUDA finds the direction from the pointers. */
static void directions()
{
	enum { COUNT = 3000 };
	std::vector<int> host(COUNT), back(COUNT);
	int *a, *b;

	for (int i = 0; i < COUNT; i++)
		host[i] = i * i;
	CU(cudaMalloc(&a, COUNT * 4));
	CU(cudaMalloc(&b, COUNT * 4));
	CU(cudaMemcpy(a, host.data(), COUNT * 4, cudaMemcpyDefault));
	CU(cudaMemcpy(b + 10, a, (COUNT - 10) * 4, cudaMemcpyDefault));
	CU(cudaMemcpy(b, a + COUNT - 10, 40, cudaMemcpyDeviceToDevice));
	CU(cudaMemcpy(back.data(), b, COUNT * 4, cudaMemcpyDefault));
	for (int i = 0; i < COUNT; i++)
		OK(back[i] == host[(i + COUNT - 10) % COUNT]);
	CU(cudaMemcpy(back.data(), host.data(), COUNT * 4, cudaMemcpyDefault));
	OK(back == host);
	/* A large copy at odd offsets. */
	std::vector<byte> large(5000001), again(large.size());
	byte *c;
	for (size_t i = 0; i < large.size(); i++)
		large[i] = (byte)(i * 31 >> 3);
	CU(cudaMalloc(&c, large.size()));
	CU(cudaMemcpy(c, large.data(), large.size(), cudaMemcpyHostToDevice));
	CU(cudaMemcpy(again.data() + 1, c + 3, large.size() - 7, cudaMemcpyDeviceToHost));
	OK(!memcmp(again.data() + 1, large.data() + 3, large.size() - 7) && again[0] == 0);
	printf("directions %016llx\n", (unsigned long long)checksum(again.data(), again.size()));
	CU(cudaFree(a));
	CU(cudaFree(b));
	CU(cudaFree(c));
}

int main()
{
	rectangles();
	boxes();
	directions();
	return verdict("copies_2d_3d");
}
