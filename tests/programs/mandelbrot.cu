/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Mandelbrot set in fixed point (exact on every device) and in float. The program prints the
 * picture as characters.
 */
#include "check.h"
#include <vector>

enum { WIDTH = 72, HEIGHT = 28, LIMIT = 64, FRACTION = 20 };

__host__ __device__ int escape_fixed(int px, int py)
{
	long long cx = ((long long)(px * 3) << FRACTION) / WIDTH - (9ll << FRACTION) / 4;
	long long cy = ((long long)(py * 2) << FRACTION) / HEIGHT - (1ll << FRACTION);
	long long x = 0, y = 0;
	int n = 0;

	while (n < LIMIT) {
		long long xx = x * x >> FRACTION, yy = y * y >> FRACTION;
		if (xx + yy > 4ll << FRACTION)
			break;
		y = (x * y >> (FRACTION - 1)) + cy;
		x = xx - yy + cx;
		n++;
	}
	return n;
}

__global__ void fixed(unsigned char *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < WIDTH && y < HEIGHT)
		out[y * WIDTH + x] = (unsigned char)escape_fixed(x, y);
}

__global__ void floating(unsigned char *out)
{
	int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y,
	    n = 0;

	if (px >= WIDTH || py >= HEIGHT)
		return;
	float cx = (float)px * 3.0f / WIDTH - 2.25f, cy = (float)py * 2.0f / HEIGHT - 1.0f, x = 0,
	      y = 0;
	while (n < LIMIT && x * x + y * y <= 4.0f) {
		float next = x * x - y * y + cx;
		y = 2 * x * y + cy;
		x = next;
		n++;
	}
	out[py * WIDTH + px] = (unsigned char)n;
}

int main()
{
	static const char SHADE[] = " .,:;+*%#@";
	std::vector<unsigned char> exact(WIDTH * HEIGHT), rough(WIDTH * HEIGHT);
	unsigned char *device_out;
	dim3 block(16, 8), grid((WIDTH + 15) / 16, (HEIGHT + 7) / 8);
	int wrong = 0, far = 0;

	CU(cudaMalloc(&device_out, exact.size()));
	fixed<<<grid, block>>>(device_out);
	CU(cudaMemcpy(exact.data(), device_out, exact.size(), cudaMemcpyDeviceToHost));
	floating<<<grid, block>>>(device_out);
	CU(cudaMemcpy(rough.data(), device_out, rough.size(), cudaMemcpyDeviceToHost));
	for (int y = 0; y < HEIGHT; y++) {
		char line[WIDTH + 1];
		for (int x = 0; x < WIDTH; x++) {
			int n = exact[y * WIDTH + x], m = rough[y * WIDTH + x];
			wrong += n != escape_fixed(x, y);
			far += n - m > 2 || m - n > 2;
			line[x] = SHADE[n == LIMIT ? 9 : n * 9 / LIMIT];
		}
		line[WIDTH] = 0;
		puts(line);
	}
	OK(wrong == 0);
	OK(far < WIDTH * HEIGHT / 50);
	printf("checksum %016llx\n", (unsigned long long)checksum(exact.data(), exact.size()));
	return verdict("mandelbrot");
}
