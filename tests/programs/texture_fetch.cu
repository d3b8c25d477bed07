/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Texture objects in kernels: formats, address modes, filters, layers, cubemaps, mipmaps, linear
 * and pitched memory, gathers. The values are those of the formulas of the CUDA C++ Programming
 * Guide. Where a filter is used they may differ by one step of a weight, which has 8 bits. Then
 * handles that are none, each in a process of its own.
 */
#include "check.h"
#include <cuda_fp16.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define W 13
#define H 7
#define N 64

typedef std::vector<float> floats;

/* ---- the reference ---- */

struct image {
	floats texels;
	int width, height, depth;
	cudaTextureDesc how;
	float border;

	/* The index that a coordinate beyond the edge stands for; -1: the border. */
	int wrapped(int i, int n, int dimension) const
	{
		cudaTextureAddressMode mode = how.addressMode[dimension];

		if (!how.normalizedCoords && mode != cudaAddressModeBorder)
			mode = cudaAddressModeClamp;
		if (i >= 0 && i < n)
			return i;
		if (mode == cudaAddressModeBorder)
			return -1;
		if (mode == cudaAddressModeClamp)
			return i < 0 ? 0 : n - 1;
		while (i < 0)
			i += 2 * n;
		i %= 2 * n;
		if (mode == cudaAddressModeWrap)
			return i % n;
		return i < n ? i : 2 * n - 1 - i;
	}

	float texel(int x, int y, int z) const
	{
		x = wrapped(x, width, 0);
		y = wrapped(y, height, 1);
		z = wrapped(z, depth, 2);
		return x < 0 || y < 0 || z < 0 ? border : texels[(z * height + y) * width + x];
	}

	/* tex(x, y, z) of the guide */
	double fetch(float x, float y, float z) const
	{
		double at[3] = { x, y, z }, weight[3], sum = 0;
		int i[3], extent[3] = { width, height, depth };

		for (int d = 0; d < 3; d++) {
			if (how.normalizedCoords)
				at[d] *= extent[d];
			if (how.filterMode == cudaFilterModeLinear && extent[d] > 1)
				at[d] -= 0.5;
			i[d] = (int)floor(at[d]);
			weight[d] = how.filterMode == cudaFilterModeLinear && extent[d] > 1
				? at[d] - i[d]
				: 0;
		}
		for (int c = 0; c < 8; c++) {
			double part = texel(i[0] + (c & 1), i[1] + (c >> 1 & 1), i[2] + (c >> 2));

			for (int d = 0; d < 3; d++)
				part *= c >> d & 1 ? weight[d] : 1 - weight[d];
			sum += part;
		}
		return sum;
	}
};

/* ---- kernels ---- */

enum geometry { LINE, PLANE, BODY, LINES, PLANES, CUBE, LEVEL, SLOPE };

__device__ static float one(cudaTextureObject_t t, int geometry, float3 at, int layer)
{
	switch (geometry) {
	case LINE:
		return tex1D<float>(t, at.x);
	case PLANE:
		return tex2D<float>(t, at.x, at.y);
	case BODY:
		return tex3D<float>(t, at.x, at.y, at.z);
	case LINES:
		return tex1DLayered<float>(t, at.x, layer);
	case PLANES:
		return tex2DLayered<float>(t, at.x, at.y, layer);
	case CUBE:
		return texCubemap<float>(t, at.x, at.y, at.z);
	case LEVEL:
		return tex2DLod<float>(t, at.x, at.y, at.z);
	default:
		return tex2DGrad<float>(
			t, at.x, at.y, make_float2(at.z, 0), make_float2(0, at.z / 2));
	}
}

__global__ void fetch(cudaTextureObject_t t, int geometry, const float3 *at, int layer, float *out)
{
	out[threadIdx.x] = one(t, geometry, at[threadIdx.x], layer);
}

__global__ void gather(cudaTextureObject_t t, const float3 *at, float4 *out)
{
	out[threadIdx.x] = tex2Dgather<float4>(t, at[threadIdx.x].x, at[threadIdx.x].y, 0);
}

template <class T> __global__ void element(cudaTextureObject_t t, T *out)
{
	out[threadIdx.x] = tex1Dfetch<T>(t, (int)threadIdx.x - 1);
}

template <class T> __global__ void point(cudaTextureObject_t t, T *out)
{
	out[threadIdx.x] = tex1D<T>(t, threadIdx.x + 0.5f);
}

/* ---- objects ---- */

static float3 *places;
static std::vector<float3> host_places(N);

static void places_set(const std::vector<float3> &at)
{
	host_places = at;
	host_places.resize(N, make_float3(0, 0, 1));
	CU(cudaMemcpy(places, host_places.data(), N * sizeof(float3), cudaMemcpyHostToDevice));
}

static cudaTextureDesc sampling(
	cudaTextureFilterMode filter, cudaTextureAddressMode mode, int normalized)
{
	cudaTextureDesc desc = {};

	desc.filterMode = filter;
	for (int i = 0; i < 3; i++)
		desc.addressMode[i] = mode;
	desc.normalizedCoords = normalized;
	return desc;
}

template <class T> static cudaChannelFormatDesc format_of(void)
{
	return cudaCreateChannelDesc<T>();
}
template <> cudaChannelFormatDesc format_of<__half>(void)
{
	return cudaCreateChannelDescHalf();
}

template <class T>
static cudaArray_t filled(
	const std::vector<T> &texels, int width, int height, int depth, unsigned flags)
{
	cudaChannelFormatDesc format = format_of<T>();
	cudaMemcpy3DParms copy = {};
	cudaArray_t array;
	int rows = height ? height : 1, slices = depth ? depth : 1;

	CU(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth), flags));
	copy.srcPtr = make_cudaPitchedPtr((void *)texels.data(), width * sizeof(T), width, rows);
	copy.dstArray = array;
	copy.extent = make_cudaExtent(width, rows, slices);
	copy.kind = cudaMemcpyHostToDevice;
	CU(cudaMemcpy3D(&copy));
	return array;
}

static cudaTextureObject_t of(cudaArray_t array, const cudaTextureDesc &desc)
{
	cudaResourceDesc resource = {};
	cudaTextureObject_t t;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CU(cudaCreateTextureObject(&t, &resource, &desc, NULL));
	return t;
}

static floats run(cudaTextureObject_t t, int geometry, int layer)
{
	floats got(N);
	float *out;

	CU(cudaMalloc(&out, N * sizeof(float)));
	fetch<<<1, N>>>(t, geometry, places, layer, out);
	CU(cudaMemcpy(got.data(), out, N * sizeof(float), cudaMemcpyDeviceToHost));
	CU(cudaFree(out));
	return got;
}

static floats ramp(int n)
{
	floats v(n);

	for (int i = 0; i < n; i++)
		v[i] = (float)((i * 37 % 101) - 50) / 4;
	return v;
}

/* One step of each weight: the range of the texels is 25. */
static bool close(double got, double want, bool filtered)
{
	return fabs(got - want) <= (filtered ? 3 * 25 / 256. : 1e-5);
}

/* ---- the parts ---- */

static void modes(int depth)
{
	static const cudaTextureAddressMode all[] = { cudaAddressModeWrap, cudaAddressModeClamp,
		cudaAddressModeMirror, cudaAddressModeBorder };
	image reference = { ramp(W * H * (depth ? depth : 1)), W, H, depth ? depth : 1, {}, 3 };
	cudaArray_t array = filled(reference.texels, W, H, depth, 0);
	int wrong = 0;

	for (int k = 0; k < 16; k++) {
		int normalized = k >> 1 & 1;
		cudaTextureDesc desc = sampling(k & 1 ? cudaFilterModeLinear : cudaFilterModePoint,
			all[k >> 2], normalized);
		std::vector<float3> at;
		cudaTextureObject_t t;
		floats got;

		desc.borderColor[0] = reference.border;
		reference.how = desc;
		for (int i = 0; i < N; i++) {
			float3 p = make_float3(
				i * 0.43f - 8.13f, i * 0.29f - 5.41f, i * 0.17f - 3.29f);

			at.push_back(normalized ? make_float3(p.x / W, p.y / H, p.z / 5) : p);
		}
		places_set(at);
		t = of(array, desc);
		got = run(t, depth ? BODY : PLANE, 0);
		for (int i = 0; i < N; i++)
			wrong += !close(got[i],
				reference.fetch(at[i].x, at[i].y, depth ? at[i].z : 0), k & 1);
		CU(cudaDestroyTextureObject(t));
	}
	CU(cudaFreeArray(array));
	OK(wrong == 0);
	printf("%s: 16 ways to read, %d values wrong\n", depth ? "3-D" : "2-D", wrong);
}

static void layers(void)
{
	floats texels = ramp(16 * 16 * 6);
	cudaArray_t lines = filled(texels, 16, 0, 6, cudaArrayLayered),
		    planes = filled(texels, 16, 16, 6, cudaArrayLayered),
		    cube = filled(texels, 16, 16, 6, cudaArrayCubemap);
	cudaTextureDesc desc = sampling(cudaFilterModePoint, cudaAddressModeClamp, 0);
	cudaTextureObject_t t_lines = of(lines, desc), t_planes = of(planes, desc), t_cube;
	std::vector<float3> at;
	int wrong = 0;
	floats got;

	for (int i = 0; i < N; i++)
		at.push_back(make_float3(i % 16 + 0.25f, i / 4 + 0.75f, 0));
	places_set(at);
	for (int layer = 0; layer < 6; layer++) {
		got = run(t_lines, LINES, layer);
		for (int i = 0; i < N; i++)
			wrong += got[i] != texels[layer * 16 + i % 16];
		got = run(t_planes, PLANES, layer);
		for (int i = 0; i < N; i++)
			wrong += got[i] != texels[layer * 256 + i / 4 * 16 + i % 16];
	}
	/* the centre of a texel of each face, by the guide's table of faces */
	desc.normalizedCoords = 1;
	t_cube = of(cube, desc);
	for (int face = 0; face < 6; face++) {
		for (int i = 0; i < N; i++) {
			float s = (i % 16 + 0.5f) / 8 - 1, v = (i / 4 + 0.5f) / 8 - 1;

			at[i] = face == 0   ? make_float3(1, -v, -s)
				: face == 1 ? make_float3(-1, -v, s)
				: face == 2 ? make_float3(s, 1, v)
				: face == 3 ? make_float3(s, -1, -v)
				: face == 4 ? make_float3(s, -v, 1)
					    : make_float3(-s, -v, -1);
			at[i].x *= 3, at[i].y *= 3, at[i].z *= 3;
		}
		places_set(at);
		got = run(t_cube, CUBE, 0);
		for (int i = 0; i < N; i++)
			wrong += got[i] != texels[face * 256 + i / 4 * 16 + i % 16];
	}
	for (cudaTextureObject_t t : { t_lines, t_planes, t_cube })
		CU(cudaDestroyTextureObject(t));
	for (cudaArray_t a : { lines, planes, cube })
		CU(cudaFreeArray(a));
	OK(wrong == 0);
	printf("layers and faces: %d values wrong\n", wrong);
}

static void levels(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc resource = {};
	cudaMipmappedArray_t mip;
	std::vector<float3> at;
	int wrong = 0;

	CU(cudaMallocMipmappedArray(&mip, &format, make_cudaExtent(16, 16, 0), 5, 0));
	for (int level = 0; level < 5; level++) {
		floats same((16 >> level) * (16 >> level), 10.f * level);
		cudaArray_t part;

		CU(cudaGetMipmappedArrayLevel(&part, mip, level));
		CU(cudaMemcpy2DToArray(part, 0, 0, same.data(), 4 * (16 >> level),
			4 * (16 >> level), 16 >> level, cudaMemcpyHostToDevice));
	}
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = mip;
	for (int k = 0; k < 4; k++) {
		cudaTextureDesc desc = sampling(cudaFilterModeLinear, cudaAddressModeClamp, 1);
		float bias = k >> 1 ? 0.5f : 0, least = k >> 1 ? 0.7f : 0, most = k >> 1 ? 2.6f : 9;
		cudaTextureObject_t t;
		floats got;

		desc.mipmapFilterMode = k & 1 ? cudaFilterModeLinear : cudaFilterModePoint;
		desc.mipmapLevelBias = bias;
		desc.minMipmapLevelClamp = least;
		desc.maxMipmapLevelClamp = most;
		CU(cudaCreateTextureObject(&t, &resource, &desc, NULL));
		for (int slope = 0; slope < 2; slope++) {
			at.clear();
			for (int i = 0; i < N; i++) /* no level of detail is half a level */
				at.push_back(make_float3(0.4f, 0.6f,
					slope ? exp2f(i * 0.11f - 5) / 16 : i * 0.11f - 1.02f));
			places_set(at);
			got = run(t, slope ? SLOPE : LEVEL, 0);
			for (int i = 0; i < N; i++) {
				double lod = (slope ? i * 0.11 - 5 : i * 0.11 - 1.02) + bias;

				lod = fmin(fmax(fmin(fmax(lod, least), most), 0), 4);
				lod = k & 1 ? lod : floor(lod + 0.5);
				wrong += fabs(got[i] - 10 * lod) > 10 / 128.;
			}
		}
		CU(cudaDestroyTextureObject(t));
	}
	CU(cudaFreeMipmappedArray(mip));
	OK(wrong == 0);
	printf("levels: %d values wrong\n", wrong);
}

/* Reads eight texels of a row as T. */
template <class T> static std::vector<T> row_of(cudaArray_t array, const cudaTextureDesc &desc)
{
	cudaTextureObject_t t = of(array, desc);
	std::vector<T> got(8);
	T *out;

	CU(cudaMalloc(&out, 8 * sizeof(T)));
	point<T><<<1, 8>>>(t, out);
	CU(cudaMemcpy(got.data(), out, 8 * sizeof(T), cudaMemcpyDeviceToHost));
	CU(cudaFree(out));
	CU(cudaDestroyTextureObject(t));
	CU(cudaFreeArray(array));
	return got;
}

static void formats(void)
{
	cudaTextureDesc plain = sampling(cudaFilterModePoint, cudaAddressModeClamp, 0),
			as_float = plain, srgb;
	std::vector<unsigned char> bytes = { 0, 1, 100, 127, 128, 200, 254, 255 };
	std::vector<signed char> chars = { 0, 1, 100, 127, -128, -127, -1, -50 };
	std::vector<unsigned short> words = { 0, 1, 1000, 32767, 32768, 40000, 65534, 65535 };
	std::vector<short> shorts = { 0, 1, 1000, 32767, -32768, -32767, -1, -5000 };
	std::vector<uchar4> quads(8);
	std::vector<int2> pairs(8);
	std::vector<__half> halves(8);
	int wrong = 0;

	as_float.readMode = cudaReadModeNormalizedFloat;
	srgb = as_float;
	srgb.sRGB = 1;
	for (int i = 0; i < 8; i++) {
		quads[i] = make_uchar4(i, 30 * i, 255 - i, 17 * i);
		pairs[i] = make_int2(i - 4, i << 28);
		halves[i] = __float2half(i * 0.3f);
	}
	auto u8 = row_of<float>(filled(bytes, 8, 0, 0, 0), as_float);
	auto s8 = row_of<float>(filled(chars, 8, 0, 0, 0), as_float);
	auto u16 = row_of<float>(filled(words, 8, 0, 0, 0), as_float);
	auto s16 = row_of<float>(filled(shorts, 8, 0, 0, 0), as_float);
	auto raw8 = row_of<unsigned char>(filled(bytes, 8, 0, 0, 0), plain);
	auto raw16 = row_of<short>(filled(shorts, 8, 0, 0, 0), plain);
	auto raw = row_of<int2>(filled(pairs, 8, 0, 0, 0), plain);
	auto four = row_of<float4>(filled(quads, 8, 0, 0, 0), as_float);
	auto light = row_of<float4>(filled(quads, 8, 0, 0, 0), srgb);
	auto half = row_of<float>(filled(halves, 8, 0, 0, 0), plain);

	for (int i = 0; i < 8; i++) {
		double green = quads[i].y / 255.;

		wrong += !near(u8[i], bytes[i] / 255., 1e-6);
		wrong += !near(s8[i], fmax(chars[i] / 127., -1), 1e-6);
		wrong += !near(u16[i], words[i] / 65535., 1e-6);
		wrong += !near(s16[i], fmax(shorts[i] / 32767., -1), 1e-6);
		wrong += raw8[i] != bytes[i] || raw16[i] != shorts[i];
		wrong += raw[i].x != pairs[i].x || raw[i].y != pairs[i].y;
		wrong += !near(four[i].x, quads[i].x / 255., 1e-6) || !near(four[i].y, green, 1e-6);
		wrong += !near(four[i].z, quads[i].z / 255., 1e-6);
		wrong += !near(four[i].w, quads[i].w / 255., 1e-6);
		green = green <= 0.04045 ? green / 12.92 : pow((green + 0.055) / 1.055, 2.4);
		wrong += !near(light[i].y, green, 2e-3) ||
			!near(light[i].w, quads[i].w / 255., 1e-6);
		wrong += half[i] != __half2float(halves[i]);
	}
	OK(wrong == 0);
	printf("formats: %d values wrong\n", wrong);
}

static void memory(void)
{
	cudaTextureDesc desc = sampling(cudaFilterModeLinear, cudaAddressModeClamp, 0);
	image pitched = { ramp(W * H), W, H, 1, desc, 0 };
	cudaResourceDesc resource = {};
	std::vector<float3> at;
	std::vector<int> numbers(32), fetched(N);
	cudaTextureObject_t t;
	void *rows;
	size_t pitch;
	int *line, *out, wrong = 0;
	floats got;

	for (int i = 0; i < 32; i++)
		numbers[i] = i * i - 7;
	CU(cudaMalloc(&line, 32 * sizeof(int)));
	CU(cudaMalloc(&out, N * sizeof(int)));
	CU(cudaMemcpy(line, numbers.data(), 32 * sizeof(int), cudaMemcpyHostToDevice));
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = line;
	resource.res.linear.desc = cudaCreateChannelDesc<int>();
	resource.res.linear.sizeInBytes = 32 * sizeof(int);
	desc.filterMode = cudaFilterModePoint;
	CU(cudaCreateTextureObject(&t, &resource, &desc, NULL));
	element<int><<<1, N>>>(t, out);
	CU(cudaMemcpy(fetched.data(), out, N * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) /* what lies outside is 0 */
		wrong += fetched[i] != (i >= 1 && i <= 32 ? numbers[i - 1] : 0);
	CU(cudaDestroyTextureObject(t));
	CU(cudaMallocPitch(&rows, &pitch, W * 4, H));
	CU(cudaMemcpy2D(
		rows, pitch, pitched.texels.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
	resource.resType = cudaResourceTypePitch2D;
	resource.res.pitch2D.devPtr = rows;
	resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	resource.res.pitch2D.width = W;
	resource.res.pitch2D.height = H;
	resource.res.pitch2D.pitchInBytes = pitch;
	desc.filterMode = cudaFilterModeLinear;
	CU(cudaCreateTextureObject(&t, &resource, &desc, NULL));
	for (int i = 0; i < N; i++)
		at.push_back(make_float3(i * 0.27f - 1, i * 0.13f - 0.4f, 0));
	places_set(at);
	got = run(t, PLANE, 0);
	for (int i = 0; i < N; i++)
		wrong += !close(got[i], pitched.fetch(at[i].x, at[i].y, 0), true);
	CU(cudaDestroyTextureObject(t));
	CU(cudaFree(rows));
	CU(cudaFree(line));
	CU(cudaFree(out));
	OK(wrong == 0);
	printf("linear and pitched memory: %d values wrong\n", wrong);
}

static void gathers(void)
{
	image reference = { ramp(W * H), W, H, 1,
		sampling(cudaFilterModePoint, cudaAddressModeClamp, 0), 0 };
	cudaArray_t array = filled(reference.texels, W, H, 0, cudaArrayTextureGather);
	cudaTextureObject_t t = of(array, reference.how);
	std::vector<float4> got(N);
	std::vector<float3> at;
	int wrong = 0;
	float4 *out;

	for (int i = 0; i < N; i++)
		at.push_back(make_float3(i % 15 - 0.3f, i / 7 - 0.8f, 0));
	places_set(at);
	CU(cudaMalloc(&out, N * sizeof(float4)));
	gather<<<1, N>>>(t, places, out);
	CU(cudaMemcpy(got.data(), out, N * sizeof(float4), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		int x = (int)floor(at[i].x - 0.5), y = (int)floor(at[i].y - 0.5);

		wrong += got[i].x != reference.texel(x, y + 1, 0);
		wrong += got[i].y != reference.texel(x + 1, y + 1, 0);
		wrong += got[i].z != reference.texel(x + 1, y, 0);
		wrong += got[i].w != reference.texel(x, y, 0);
	}
	CU(cudaFree(out));
	CU(cudaDestroyTextureObject(t));
	CU(cudaFreeArray(array));
	OK(wrong == 0);
	printf("gathers: %d values wrong\n", wrong);
}

/* A handle that was never one. */
static int fault(void)
{
	float *out, got;

	CU(cudaMalloc(&out, sizeof(float)));
	point<float><<<1, 1>>>(0x7fffffffffffull, out);
	CU(cudaGetLastError());
	EXPECT(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	EXPECT(cudaErrorIllegalAddress, cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
	return check_failures != 0;
}

int main()
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fault());
	OK(pid > 0 && waitpid(pid, &status, 0) == pid);
	OK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU(cudaMalloc(&places, N * sizeof(float3)));
	modes(0);
	modes(5);
	layers();
	levels();
	formats();
	memory();
	gathers();
	CU(cudaFree(places));
	return verdict("texture_fetch");
}
