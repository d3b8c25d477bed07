/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arrays through the runtime: every shape and format, copies in all directions with offsets, mipmap
 * levels. What comes back is compared with a model of the array in host memory. Each copy goes
 * through device memory, so that no kernel is needed.
 */
#include "check.h"
#include <thread>

static uint32_t state = 1;

static void fill(void *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((unsigned char *)p)[i] = (unsigned char)random_next(&state);
}

static size_t at_least_1(size_t extent)
{
	return extent ? extent : 1;
}

/* A whole array written, copied to another array, and read back. */
static void whole(const char *name, cudaChannelFormatDesc format, cudaExtent extent, unsigned flags)
{
	size_t element = (size_t)(format.x + format.y + format.z + format.w) / 8;
	size_t rows = at_least_1(extent.height), slices = at_least_1(extent.depth);
	size_t size = extent.width * element * rows * slices;
	cudaExtent all = make_cudaExtent(extent.width, rows, slices), found;
	unsigned char *in = (unsigned char *)malloc(size), *out = (unsigned char *)calloc(1, size);
	cudaMemcpy3DParms up = {}, across = {}, down = {};
	cudaChannelFormatDesc got;
	cudaArray_t a, b;
	unsigned got_flags;

	fill(in, size);
	CU(cudaMalloc3DArray(&a, &format, extent, flags));
	CU(cudaMalloc3DArray(&b, &format, extent, flags));
	CU(cudaArrayGetInfo(&got, &found, &got_flags, a));
	OK(got.x == format.x && got.y == format.y && got.w == format.w && got.f == format.f);
	OK(found.width == extent.width && found.height == extent.height &&
		found.depth == extent.depth && got_flags == flags);
	up.srcPtr = make_cudaPitchedPtr(in, extent.width * element, extent.width, rows);
	up.dstArray = a;
	up.extent = all;
	up.kind = cudaMemcpyHostToDevice;
	CU(cudaMemcpy3D(&up));
	across.srcArray = a;
	across.dstArray = b;
	across.extent = all;
	across.kind = cudaMemcpyDeviceToDevice;
	CU(cudaMemcpy3D(&across));
	down.srcArray = b;
	down.dstPtr = make_cudaPitchedPtr(out, extent.width * element, extent.width, rows);
	down.extent = all;
	down.kind = cudaMemcpyDeviceToHost;
	CU(cudaMemcpy3D(&down));
	OK(memcmp(in, out, size) == 0);
	printf("%s: %016llx\n", name, (unsigned long long)checksum(out, size));
	CU(cudaFreeArray(a));
	CU(cudaFreeArray(b));
	free(in);
	free(out);
}

static void shapes()
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();

	whole("1-D", f, make_cudaExtent(1000, 0, 0), 0);
	whole("2-D", f, make_cudaExtent(37, 23, 0), 0);
	whole("3-D", f, make_cudaExtent(17, 13, 7), 0);
	whole("1-D layered", f, make_cudaExtent(65, 0, 5), cudaArrayLayered);
	whole("2-D layered", f, make_cudaExtent(31, 9, 5), cudaArrayLayered);
	whole("cubemap", f, make_cudaExtent(16, 16, 6), cudaArrayCubemap);
	whole("cubemap layered", f, make_cudaExtent(8, 8, 12), cudaArrayCubemap | cudaArrayLayered);
	whole("surface", f, make_cudaExtent(64, 32, 0), cudaArraySurfaceLoadStore);
	whole("gather", f, make_cudaExtent(64, 32, 0), cudaArrayTextureGather);
	whole("wide rows", cudaCreateChannelDesc<float4>(), make_cudaExtent(65536, 2, 0), 0);
	whole("large", cudaCreateChannelDesc<float4>(), make_cudaExtent(512, 300, 3), 0);
}

static void formats()
{
	cudaExtent e = make_cudaExtent(33, 5, 0);

	whole("uchar", cudaCreateChannelDesc<unsigned char>(), e, 0);
	whole("char2", cudaCreateChannelDesc<char2>(), e, 0);
	whole("uchar4", cudaCreateChannelDesc<uchar4>(), e, 0);
	whole("ushort", cudaCreateChannelDesc<unsigned short>(), e, 0);
	whole("short2", cudaCreateChannelDesc<short2>(), e, 0);
	whole("ushort4", cudaCreateChannelDesc<ushort4>(), e, 0);
	whole("int", cudaCreateChannelDesc<int>(), e, 0);
	whole("uint2", cudaCreateChannelDesc<uint2>(), e, 0);
	whole("int4", cudaCreateChannelDesc<int4>(), e, 0);
	whole("half", cudaCreateChannelDescHalf(), e, 0);
	whole("float2", cudaCreateChannelDesc<float2>(), e, 0);
	whole("float4", cudaCreateChannelDesc<float4>(), e, 0);
}

/* Parts of a 2-D array, in all directions, against a model. */
#define W 50
#define H 20
static uint32_t model[H][W], host[H][W], pitched[H][64];

static void model_put(int x, int y, int w, int h, const uint32_t *from, int pitch)
{
	for (int i = 0; i < h; i++)
		memcpy(&model[y + i][x], from + i * pitch, w * 4);
}

static void array_equals_model(cudaArray_t array)
{
	memset(host, 0xee, sizeof(host));
	CU(cudaMemcpy2DFromArray(host, W * 4, array, 0, 0, W * 4, H, cudaMemcpyDeviceToHost));
	OK(memcmp(host, model, sizeof(host)) == 0);
}

static void parts()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
	cudaArray_t a, b;
	uint32_t *device, *pinned, copy[64];
	cudaStream_t stream;
	size_t pitch;

	CU(cudaMallocArray(&a, &format, W, H));
	CU(cudaMallocArray(&b, &format, W, H));
	CU(cudaStreamCreate(&stream));
	CU(cudaMallocPitch(&device, &pitch, 64 * 4, H));
	CU(cudaMallocHost(&pinned, sizeof(pitched)));
	fill(model, sizeof(model));
	CU(cudaMemcpy2DToArray(a, 0, 0, model, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	array_equals_model(a);
	/* host to array, with a pitch and offsets */
	fill(pitched, sizeof(pitched));
	CU(cudaMemcpy2DToArray(a, 7 * 4, 3, pitched, 256, 11 * 4, 5, cudaMemcpyHostToDevice));
	model_put(7, 3, 11, 5, pitched[0], 64);
	array_equals_model(a);
	/* device memory to array, and back */
	CU(cudaMemcpy2D(device, pitch, pitched, 256, 256, H, cudaMemcpyHostToDevice));
	CU(cudaMemcpy2DToArray(a, 20 * 4, 1, device, pitch, 30 * 4, 19, cudaMemcpyDeviceToDevice));
	model_put(20, 1, 30, 19, pitched[0], 64);
	array_equals_model(a);
	CU(cudaMemset2D(device, pitch, 0, 256, H));
	CU(cudaMemcpy2DFromArray(device, pitch, a, 5 * 4, 2, 40 * 4, 10, cudaMemcpyDeviceToDevice));
	CU(cudaMemcpy2D(pinned, 256, device, pitch, 256, H, cudaMemcpyDeviceToHost));
	for (int y = 0; y < 10; y++)
		OK(memcmp(pinned + y * 64, &model[2 + y][5], 160) == 0 && pinned[y * 64 + 40] == 0);
	/* asynchronous, pinned memory */
	fill(pinned, sizeof(pitched));
	CU(cudaMemcpy2DToArrayAsync(
		a, 0, 10, pinned, 256, W * 4, 10, cudaMemcpyHostToDevice, stream));
	model_put(0, 10, W, 10, pinned, 64);
	CU(cudaMemcpy2DFromArrayAsync(
		host, W * 4, a, 0, 0, W * 4, H, cudaMemcpyDeviceToHost, stream));
	CU(cudaStreamSynchronize(stream));
	OK(memcmp(host, model, sizeof(host)) == 0);
	/* array to array, with offsets */
	CU(cudaMemcpy2DToArray(b, 0, 0, model, W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CU(cudaMemcpy2DArrayToArray(b, 8, 4, a, 40, 1, 80, 6, cudaMemcpyDeviceToDevice));
	for (int y = 0; y < 6; y++) {
		memcpy(copy, &model[1 + y][10], 80);
		CU(cudaMemcpy2DFromArray(host, W * 4, b, 8, 4 + y, 80, 1, cudaMemcpyDeviceToHost));
		OK(memcmp(host, copy, 80) == 0);
	}
	/* a part is read into rows with gaps: the gaps stay */
	memset(pitched, 0xee, sizeof(pitched));
	CU(cudaMemcpy2DFromArray(pitched, 256, a, 4, 1, 60, 18, cudaMemcpyDeviceToHost));
	for (int y = 0; y < 18; y++)
		OK(memcmp(pitched[y], &model[1 + y][1], 60) == 0 && pitched[y][15] == 0xeeeeeeee);
	printf("parts: %016llx\n", (unsigned long long)checksum(model, sizeof(model)));
	CU(cudaFreeArray(a));
	CU(cudaFreeArray(b));
	CU(cudaFree(device));
	CU(cudaFreeHost(pinned));
	CU(cudaStreamDestroy(stream));
}

/* A box inside a 3-D array, and one layer of a layered array. */
static void boxes()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
	static unsigned char in[12][10][20], box[3][4][5], out[12][10][20];
	cudaMemcpy3DParms p = {};
	cudaArray_t array;

	for (unsigned flags = 0; flags <= cudaArrayLayered; flags += cudaArrayLayered) {
		CU(cudaMalloc3DArray(&array, &format, make_cudaExtent(20, 10, 12), flags));
		fill(in, sizeof(in));
		fill(box, sizeof(box));
		p = cudaMemcpy3DParms{};
		p.srcPtr = make_cudaPitchedPtr(in, 20, 20, 10);
		p.dstArray = array;
		p.extent = make_cudaExtent(20, 10, 12);
		p.kind = cudaMemcpyHostToDevice;
		CU(cudaMemcpy3D(&p));
		p.srcPtr = make_cudaPitchedPtr(box, 5, 5, 4);
		p.dstPos = make_cudaPos(6, 5, 8);
		p.extent = make_cudaExtent(5, 4, 3);
		CU(cudaMemcpy3D(&p));
		for (int z = 0; z < 3; z++)
			for (int y = 0; y < 4; y++)
				memcpy(&in[8 + z][5 + y][6], box[z][y], 5);
		p = cudaMemcpy3DParms{};
		p.srcArray = array;
		p.dstPtr = make_cudaPitchedPtr(out, 20, 20, 10);
		p.extent = make_cudaExtent(20, 10, 12);
		p.kind = cudaMemcpyDeviceToHost;
		CU(cudaMemcpy3D(&p));
		OK(memcmp(in, out, sizeof(in)) == 0);
		CU(cudaFreeArray(array));
	}
	printf("boxes: %016llx\n", (unsigned long long)checksum(out, sizeof(out)));
}

static void mipmaps()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<ushort2>(), got;
	static unsigned char in[64 * 48 * 4], out[64 * 48 * 4];
	cudaMipmappedArray_t mip;
	cudaArray_t level[7], again;
	cudaExtent extent;
	unsigned flags;

	CU(cudaMallocMipmappedArray(&mip, &format, make_cudaExtent(64, 48, 0), 100));
	fill(in, sizeof(in));
	for (unsigned i = 0; i < 7; i++) {
		size_t w = at_least_1(64 >> i), h = at_least_1(48 >> i);

		CU(cudaGetMipmappedArrayLevel(&level[i], mip, i));
		CU(cudaArrayGetInfo(&got, &extent, &flags, level[i]));
		OK(extent.width == w && extent.height == h && extent.depth == 0 && got.x == 16);
		CU(cudaMemcpy2DToArray(
			level[i], 0, 0, in + i, w * 4, w * 4, h, cudaMemcpyHostToDevice));
	}
	for (unsigned i = 0; i < 7; i++) {
		size_t w = at_least_1(64 >> i), h = at_least_1(48 >> i);

		memset(out, 0, sizeof(out));
		CU(cudaMemcpy2DFromArray(
			out, w * 4, level[i], 0, 0, w * 4, h, cudaMemcpyDeviceToHost));
		OK(memcmp(out, in + i, w * h * 4) == 0);
	}
	CU(cudaGetMipmappedArrayLevel(&again, mip, 3));
	OK(again == level[3]);
	EXPECT(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&again, mip, 7));
	CU(cudaFreeMipmappedArray(mip));
	printf("mipmaps: %016llx\n", (unsigned long long)checksum(in, sizeof(in)));
}

/* Memory for arrays comes back: more is allocated in turn than the device has at once. */
static void again_and_again()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
	size_t before, after, total;
	cudaArray_t array;

	CU(cudaMemGetInfo(&before, &total));
	for (int i = 0; i < 40; i++) {
		CU(cudaMallocArray(&array, &format, 1024, 1024));
		CU(cudaFreeArray(array));
	}
	CU(cudaMemGetInfo(&after, &total));
	OK(after + (64 << 20) >= before);
	/* 16 GiB by 2,048 layers: no device has so much */
	EXPECT(cudaErrorMemoryAllocation,
		cudaMalloc3DArray(
			&array, &format, make_cudaExtent(32768, 32768, 2048), cudaArrayLayered));
	EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
}

/*
 * Several threads read arrays at once, while another one creates and frees some: a read may wait for
 * its stream while calls of other threads go on.
 */
static void threads()
{
	static unsigned char in[4][1 << 20], out[4][1 << 20];
	cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
	std::thread readers[4];

	for (int t = 0; t < 4; t++) {
		fill(in[t], sizeof(in[t]));
		readers[t] = std::thread([t, format]() {
			cudaStream_t stream;
			cudaArray_t array;

			CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
			for (int i = 0; i < 10; i++) {
				CU(cudaMallocArray(&array, &format, 512, 512));
				CU(cudaMemcpy2DToArrayAsync(array, 0, 0, in[t], 2048, 2048, 512,
					cudaMemcpyHostToDevice, stream));
				memset(out[t], 0, sizeof(out[t]));
				CU(cudaMemcpy2DFromArrayAsync(out[t], 2048, array, 0, 0, 2048, 512,
					cudaMemcpyDeviceToHost, stream));
				CU(cudaStreamSynchronize(stream));
				OK(memcmp(in[t], out[t], sizeof(in[t])) == 0);
				CU(cudaFreeArray(array));
			}
			CU(cudaStreamDestroy(stream));
		});
	}
	for (int t = 0; t < 4; t++)
		readers[t].join();
	printf("threads: %016llx\n", (unsigned long long)checksum(out, sizeof(out)));
}

int main()
{
	shapes();
	formats();
	parts();
	boxes();
	mipmaps();
	again_and_again();
	threads();
	return verdict("arrays");
}
