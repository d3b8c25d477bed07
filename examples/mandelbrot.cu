/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Draws the Mandelbrot set as a picture. Usage: mandelbrot [FILE.pgm [WIDTH HEIGHT]] */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                            \
	do {                                                                                   \
		cudaError_t status = (call);                                                   \
		if (status != cudaSuccess) {                                                   \
			fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(status)); \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

__global__ void mandelbrot(unsigned char *picture, int width, int height, int limit)
{
	int column = blockIdx.x * blockDim.x + threadIdx.x,
	    row = blockIdx.y * blockDim.y + threadIdx.y, n = 0;

	if (column >= width || row >= height)
		return;
	float cx = 3.0f * (float)column / (float)width - 2.2f,
	      cy = 2.4f * (float)row / (float)height - 1.2f;
	float x = 0, y = 0;
	while (n < limit && x * x + y * y < 4) {
		float next = x * x - y * y + cx;
		y = 2 * x * y + cy;
		x = next;
		n++;
	}
	picture[row * width + column] = (unsigned char)(n == limit ? 0 : 255 - 255 * n / limit);
}

int main(int argc, char **argv)
{
	const char *file = argc > 1 ? argv[1] : "mandelbrot.pgm";
	int width = argc > 3 ? atoi(argv[2]) : 600, height = argc > 3 ? atoi(argv[3]) : 480;
	unsigned char *device_picture;

	if (width < 1 || height < 1 || width > 20000 || height > 20000) {
		fprintf(stderr,
			"usage: mandelbrot [FILE.pgm [WIDTH HEIGHT]], at most 20000 x 20000\n");
		return 2;
	}
	std::vector<unsigned char> picture((size_t)width * height);
	CHECK(cudaMalloc(&device_picture, picture.size()));
	dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
	mandelbrot<<<grid, block>>>(device_picture, width, height, 100);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(picture.data(), device_picture, picture.size(), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(device_picture));

	FILE *out = fopen(file, "wb");
	if (!out) {
		perror(file);
		return 1;
	}
	fprintf(out, "P5\n%d %d\n255\n", width, height);
	size_t written = fwrite(picture.data(), 1, picture.size(), out);
	if (fclose(out) || written != picture.size()) {
		perror(file);
		return 1;
	}
	printf("%s: %d x %d\n", file, width, height);
	return 0;
}
