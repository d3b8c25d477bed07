/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Mapped host memory: kernels read and write pinned memory of the program ("zero copy"). The
 * program sees what a kernel has written after a synchronisation.
 */
#include "check.h"

static __global__ void scale(const float *in, float *out, int n, float by)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		out[i] = in[i] * by;
}

static __global__ void count(unsigned *counters, int n)
{
	atomicAdd(&counters[(blockIdx.x * blockDim.x + threadIdx.x) % n], 1u);
}

static float *mapped(int n, unsigned flags = cudaHostAllocMapped)
{
	float *p = NULL;

	CU(cudaHostAlloc((void **)&p, n * sizeof *p, flags));
	return p;
}

static float *device_pointer(float *host)
{
	float *device = NULL;

	CU(cudaHostGetDevicePointer((void **)&device, host, 0));
	return device;
}

static bool scaled(const float *in, const float *out, int n, float by)
{
	for (int i = 0; i < n; i++)
		if (out[i] != in[i] * by)
			return false;
	return true;
}

static void read_and_write(void)
{
	const int n = 100000;
	float *in = mapped(n), *out = mapped(n, cudaHostAllocMapped | cudaHostAllocPortable);
	float *device_in = device_pointer(in), *device_out = device_pointer(out);
	bool ok = out[0] == 0 && out[n - 1] == 0;

	for (int i = 0; i < n; i++)
		in[i] = (float)i;
	for (int round = 1; round <= 3; round++) {
		scale<<<(n + 127) / 128, 128>>>(device_in, device_out, n, (float)round);
		CU(cudaDeviceSynchronize());
		ok &= scaled(in, out, n, (float)round);
		in[7 * round] += 1;
	}
	CU(cudaFreeHost(in));
	CU(cudaFreeHost(out));
	printf("read and write: %s\n", ok ? "ok" : "WRONG");
}

static void synchronised(void)
{
	const int n = 5000;
	float *in = mapped(n), *out = mapped(n, cudaHostAllocMapped | cudaHostAllocWriteCombined);
	float *between, *device_in = device_pointer(in), *device_out = device_pointer(out);
	cudaStream_t stream;
	cudaEvent_t event;
	bool ok = true;

	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CU(cudaMalloc((void **)&between, n * sizeof *between));
	for (int i = 0; i < n; i++)
		in[i] = (float)(n - i);
	scale<<<(n + 127) / 128, 128, 0, stream>>>(device_in, between, n, 2);
	scale<<<(n + 127) / 128, 128, 0, stream>>>(between, device_out, n, 2);
	CU(cudaEventRecord(event, stream));
	CU(cudaEventSynchronize(event));
	ok &= scaled(in, out, n, 4);
	scale<<<(n + 127) / 128, 128, 0, stream>>>(device_in + 100, device_out + 50, 1000, 8);
	CU(cudaStreamSynchronize(stream));
	ok &= scaled(in, out, 50, 4) && scaled(in + 100, out + 50, 1000, 8) &&
		scaled(in + 1050, out + 1050, n - 1050, 4);
	CU(cudaFree(between));
	CU(cudaFreeHost(in));
	CU(cudaFreeHost(out));
	CU(cudaEventDestroy(event));
	CU(cudaStreamDestroy(stream));
	printf("synchronised: %s\n", ok ? "ok" : "WRONG");
}

static void atomics(void)
{
	unsigned *counters = (unsigned *)mapped(10), *device;
	bool ok = true;

	CU(cudaHostGetDevicePointer((void **)&device, counters, 0));
	for (int i = 0; i < 10; i++)
		counters[i] = (unsigned)i;
	count<<<10, 100>>>(device, 10);
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < 10; i++)
		ok &= counters[i] == 100u + (unsigned)i;
	CU(cudaFreeHost(counters));
	printf("atomics: %s\n", ok ? "ok" : "WRONG");
}

/* Copies use mapped memory like other pinned memory. */
static void copies(void)
{
	const int n = 20000;
	float *in = mapped(n), *out = mapped(n), *device;
	bool ok = true;

	CU(cudaMalloc((void **)&device, n * sizeof *device));
	for (int i = 0; i < n; i++)
		in[i] = (float)i;
	CU(cudaMemcpyAsync(device, in, n * sizeof *device, cudaMemcpyHostToDevice, 0));
	scale<<<(n + 127) / 128, 128>>>(device, device_pointer(in), n, 3);
	CU(cudaMemcpyAsync(out, device, n * sizeof *device, cudaMemcpyDeviceToHost, 0));
	CU(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		ok &= out[i] == (float)i && in[i] == 3 * (float)i;
	CU(cudaMemset(out, 0, 100));
	CU(cudaMemcpy(in + 10, out, 200, cudaMemcpyHostToHost));
	ok &= in[9] == 27 && in[10] == 0 && in[34] == 0 && in[35] == 25 && in[60] == 180;
	CU(cudaFree(device));
	CU(cudaFreeHost(in));
	CU(cudaFreeHost(out));
	printf("copies: %s\n", ok ? "ok" : "WRONG");
}

/* Memory of malloc, at any address, with other data around it. */
static void registered(void)
{
	const int n = 30001;
	float *all = (float *)malloc((n + 20) * sizeof *all), *in = all + 3, *device;
	float *out = (float *)malloc(n * sizeof *out), *device_out;
	bool ok = true;

	for (int i = 0; i < n + 20; i++)
		all[i] = (float)i;
	memset(out, 0, n * sizeof *out);
	CU(cudaHostRegister(in, n * sizeof *in, cudaHostRegisterMapped));
	CU(cudaHostRegister(out, n * sizeof *out, cudaHostRegisterDefault));
	device = device_pointer(in);
	device_out = device_pointer(out);
	for (int round = 1; round <= 3; round++) {
		scale<<<(n + 127) / 128, 128>>>(device, device_out, n, (float)round);
		in[n / 2] += 0; /* while the kernel may run */
		CU(cudaDeviceSynchronize());
		ok &= scaled(in, out, n, (float)round);
		in[round * 1000] *= 2;
	}
	/* The program and the device change different bytes of one page. */
	scale<<<1, 10>>>(device, device_out, 10, 100);
	out[20] = -1;
	CU(cudaStreamSynchronize(0));
	ok &= out[9] == 1200 && out[20] == -1 && out[21] == 3 * 24;
	scale<<<1, 1>>>(device, device_out, 1, 7);
	CU(cudaMemcpy(device, device_out + 20, sizeof(float), cudaMemcpyDeviceToDevice));
	CU(cudaDeviceSynchronize());
	ok &= in[0] == -1 && all[2] == 2 && all[n + 3] == n + 3 && out[0] == 21;
	/* Unregistering waits for kernels. */
	scale<<<1, 1>>>(device, device_out, 1, 9);
	CU(cudaHostUnregister(out));
	ok &= out[0] == -9 && out[1] == 400;
	CU(cudaHostUnregister(in));
	EXPECT(cudaErrorInvalidValue, cudaHostGetDevicePointer((void **)&device, in, 0));
	cudaGetLastError();
	free(all);
	free(out);
	printf("registered: %s\n", ok ? "ok" : "WRONG");
}

/* With unified addressing, kernels may use the address of any memory of cudaMallocHost. */
static void plain(void)
{
	const int n = 10000;
	float *in, *out;
	cudaStream_t stream;
	cudaEvent_t event;
	bool ok = true;

	CU(cudaMallocHost((void **)&in, n * sizeof *in));
	CU(cudaMallocHost((void **)&out, n * sizeof *out));
	CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CU(cudaEventCreate(&event));
	for (int i = 0; i < n; i++)
		in[i] = (float)i;
	for (int round = 1; round <= 3; round++) {
		scale<<<(n + 127) / 128, 128, 0, stream>>>(in, out, n, (float)round);
		CU(cudaEventRecord(event, stream));
		CU(cudaEventSynchronize(event));
		ok &= scaled(in, out, n, (float)round);
		in[5] += 10;
		scale<<<1, 100>>>(in + 4, out + 4, 1, 50);
		CU(cudaStreamSynchronize(0));
		ok &= out[4] == 200 && out[5] == (in[5] - 10) * (float)round;
	}
	CU(cudaFreeHost(in));
	CU(cudaFreeHost(out));
	CU(cudaEventDestroy(event));
	CU(cudaStreamDestroy(stream));
	printf("plain: %s\n", ok ? "ok" : "WRONG");
}

static void attributes(void)
{
	cudaPointerAttributes attributes;
	float *p = mapped(100);
	unsigned flags = 0;
	bool ok;

	CU(cudaPointerGetAttributes(&attributes, p + 1));
	ok = attributes.type == cudaMemoryTypeHost && attributes.hostPointer == p + 1 &&
		attributes.devicePointer == device_pointer(p) + 1;
	CU(cudaHostGetFlags(&flags, p));
	ok &= (flags & cudaHostAllocMapped) != 0;
	EXPECT(cudaErrorInvalidValue, cudaFree(p));
	cudaGetLastError();
	CU(cudaFreeHost(p));
	EXPECT(cudaErrorInvalidValue, cudaFreeHost(p));
	cudaGetLastError();
	printf("attributes: %s\n", ok ? "ok" : "WRONG");
}

int main(void)
{
	int value = 0;

	CU(cudaDeviceGetAttribute(&value, cudaDevAttrCanMapHostMemory, 0));
	printf("mapped memory: %d\n", value);
	read_and_write();
	synchronised();
	atomics();
	copies();
	registered();
	plain();
	attributes();
	return verdict("mapped_memory");
}
