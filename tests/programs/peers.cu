/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Several devices that work together: a value goes round all of them, through copies between
 * devices and events; kernels read another device's memory; boxes are copied between devices.
 *
 *     peers [ROUNDS]
 */
#include "check.h"
#include <vector>

enum { LENGTH = 20000, WIDTH = 40, HEIGHT = 7, DEPTH = 3 };

__global__ void step(unsigned *data, unsigned device)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < LENGTH)
		data[i] = data[i] * 3 + device + i;
}

__global__ void gather(unsigned *to, const unsigned *from)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < LENGTH)
		to[i] += from[LENGTH - 1 - i];
}

static int count, rounds = 5, accesses;
static std::vector<unsigned *> data, spare;
static std::vector<cudaStream_t> streams;
static std::vector<cudaEvent_t> done;

static void start()
{
	CU(cudaGetDeviceCount(&count));
	data.resize(count);
	spare.resize(count);
	streams.resize(count);
	done.resize(count);
	for (int d = 0; d < count; d++) {
		CU(cudaSetDevice(d));
		CU(cudaMalloc(&data[d], LENGTH * 4));
		CU(cudaMalloc(&spare[d], LENGTH * 4));
		CU(cudaMemset(data[d], 0, LENGTH * 4));
		CU(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
		CU(cudaEventCreateWithFlags(&done[d], cudaEventDisableTiming));
		CU(cudaDeviceSynchronize());
	}
}

/* Each device changes the data and passes it on; nobody waits on the host. */
static void ring()
{
	std::vector<unsigned> got(LENGTH), want(LENGTH);
	int last = 0;

	for (int turn = 0; turn < rounds * count; turn++) {
		int d = turn % count, next = (turn + 1) % count;

		CU(cudaSetDevice(d));
		if (turn > 0)
			CU(cudaStreamWaitEvent(streams[d], done[last], 0));
		step<<<(LENGTH + 127) / 128, 128, 0, streams[d]>>>(data[d], (unsigned)d);
		CU(cudaGetLastError());
		CU(cudaMemcpyPeerAsync(data[next], next, data[d], d, LENGTH * 4, streams[d]));
		CU(cudaEventRecord(done[d], streams[d]));
		last = d;
		for (unsigned i = 0; i < LENGTH; i++)
			want[i] = want[i] * 3 + (unsigned)d + i;
	}
	CU(cudaEventSynchronize(done[last]));
	CU(cudaMemcpy(got.data(), data[rounds * count % count], LENGTH * 4, cudaMemcpyDefault));
	OK(got == want);
	printf("ring %016llx\n", (unsigned long long)checksum(got.data(), LENGTH * 4));
}

/* The kernel of one device reads the memory of another. */
static void access(int d, int other)
{
	std::vector<unsigned> mine(LENGTH), theirs(LENGTH), got(LENGTH);
	int can = 0;

	CU(cudaDeviceCanAccessPeer(&can, d, other));
	if (!can)
		return;
	accesses++;
	for (unsigned i = 0; i < LENGTH; i++) {
		mine[i] = i * 5 + (unsigned)d;
		theirs[i] = i * 7 + (unsigned)other;
	}
	CU(cudaSetDevice(d));
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(other));
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaGetLastError());
	CU(cudaDeviceEnablePeerAccess(other, 0));
	EXPECT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(other, 0));
	EXPECT(cudaErrorPeerAccessAlreadyEnabled, cudaGetLastError());
	CU(cudaMemcpy(spare[d], mine.data(), LENGTH * 4, cudaMemcpyDefault));
	CU(cudaMemcpy(spare[other], theirs.data(), LENGTH * 4, cudaMemcpyDefault));
	gather<<<(LENGTH + 255) / 256, 256>>>(spare[d], spare[other]);
	CU(cudaMemcpy(got.data(), spare[d], LENGTH * 4, cudaMemcpyDefault));
	for (unsigned i = 0; i < LENGTH; i++)
		OK(got[i] == mine[i] + theirs[LENGTH - 1 - i]);
	CU(cudaDeviceDisablePeerAccess(other));
}

/* Memory of a pool is open to those that cuMemPoolSetAccess names, without an enabled peer. */
static void pools(int d, int other)
{
	std::vector<unsigned> mine(LENGTH), theirs(LENGTH), got(LENGTH);
	struct cudaMemAccessDesc desc = {};
	enum cudaMemAccessFlags flags;
	cudaMemPool_t pool;
	unsigned *block, *own;
	int can = 0;

	CU(cudaDeviceCanAccessPeer(&can, d, other));
	CU(cudaDeviceGetDefaultMemPool(&pool, other));
	desc.location = { cudaMemLocationTypeDevice, d };
	desc.flags = cudaMemAccessFlagsProtReadWrite;
	if (!can) {
		EXPECT(cudaErrorPeerAccessUnsupported, cudaMemPoolSetAccess(pool, &desc, 1));
		EXPECT(cudaErrorPeerAccessUnsupported, cudaGetLastError());
		return;
	}
	for (unsigned i = 0; i < LENGTH; i++) {
		mine[i] = i * 3 + (unsigned)d;
		theirs[i] = i * 13 + (unsigned)other;
	}
	CU(cudaSetDevice(other));
	CU(cudaMallocAsync((void **)&block, LENGTH * 4, 0));
	CU(cudaMemcpy(block, theirs.data(), LENGTH * 4, cudaMemcpyDefault));
	CU(cudaMemPoolSetAccess(pool, &desc, 1));
	CU(cudaMemPoolGetAccess(&flags, pool, &desc.location));
	OK(flags == cudaMemAccessFlagsProtReadWrite);
	CU(cudaSetDevice(d));
	CU(cudaMallocAsync((void **)&own, LENGTH * 4, 0));
	CU(cudaMemcpy(own, mine.data(), LENGTH * 4, cudaMemcpyDefault));
	gather<<<(LENGTH + 255) / 256, 256>>>(own, block);
	CU(cudaMemcpy(got.data(), own, LENGTH * 4, cudaMemcpyDefault));
	for (unsigned i = 0; i < LENGTH; i++)
		OK(got[i] == mine[i] + theirs[LENGTH - 1 - i]);
	CU(cudaFreeAsync(own, 0));
	CU(cudaDeviceSynchronize());
	CU(cudaSetDevice(other));
	CU(cudaFreeAsync(block, 0));
	CU(cudaDeviceSynchronize());
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(d));
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaGetLastError());
}

static void boxes(int from, int to)
{
	std::vector<unsigned char> bytes(WIDTH * HEIGHT * DEPTH), got(WIDTH * HEIGHT * DEPTH);
	struct cudaMemcpy3DPeerParms box = {};

	for (unsigned i = 0; i < bytes.size(); i++)
		bytes[i] = (unsigned char)(i * 11 + (unsigned)from);
	CU(cudaMemcpy(data[from], bytes.data(), bytes.size(), cudaMemcpyDefault));
	CU(cudaSetDevice(to));
	CU(cudaMemset(data[to], 0xee, bytes.size()));
	CU(cudaDeviceSynchronize());
	box.srcDevice = from;
	box.dstDevice = to;
	box.srcPtr = make_cudaPitchedPtr(data[from], WIDTH, WIDTH, HEIGHT);
	box.dstPtr = make_cudaPitchedPtr(spare[to], WIDTH, WIDTH, HEIGHT);
	box.srcPos = make_cudaPos(8, 2, 1);
	box.dstPos = make_cudaPos(4, 1, 0);
	box.extent = make_cudaExtent(16, 3, 2);
	CU(cudaMemset(spare[to], 0, bytes.size()));
	CU(cudaDeviceSynchronize());
	CU(cudaMemcpy3DPeer(&box));
	CU(cudaMemcpy(got.data(), spare[to], got.size(), cudaMemcpyDefault));
	for (unsigned z = 0; z < DEPTH; z++)
		for (unsigned y = 0; y < HEIGHT; y++)
			for (unsigned x = 0; x < WIDTH; x++) {
				bool in = x >= 4 && x < 20 && y >= 1 && y < 4 && z < 2;
				unsigned want = in
					? bytes[(x + 4) + WIDTH * ((y + 1) + HEIGHT * (z + 1))]
					: 0;

				OK(got[x + WIDTH * (y + HEIGHT * z)] == want);
			}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	start();
	printf("%d devices\n", count);
	ring();
	for (int from = 0; from < count; from++)
		for (int to = 0; to < count; to++)
			if (from != to) {
				access(from, to);
				pools(from, to);
				boxes(from, to);
			}
	CU(cudaSetDevice(0));
	/* The driver's error for a context that is its own peer. */
	EXPECT(cudaErrorDeviceUninitialized, cudaDeviceEnablePeerAccess(0, 0));
	EXPECT(cudaErrorDeviceUninitialized, cudaGetLastError());
	EXPECT(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(count, 0));
	EXPECT(cudaErrorInvalidDevice, cudaGetLastError());
	if (count > 1)
		EXPECT(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 1));
	printf("%d pairs with access\n", accesses);
	return verdict("peers");
}
