// SPDX-License-Identifier: Apache-2.0
// Copyright The Outboard Authors
/*
 * Kernels with parameters of 1 to 4 KB, launched again and again with few words changed: two kernels
 * in turn, more streams than blocks of parameters that a session keeps, a launch that fails between
 * two others, and two threads in one stream.
 */
#include <cstdio>
#include <thread>

struct Block {
	unsigned words[1000];
};
struct Odd {
	unsigned char bytes[1029];
};

__global__ void sum_block(Block b, unsigned long long *out)
{
	unsigned long long sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += (unsigned long long)b.words[i] * (i + 1);
	atomicAdd(out, sum);
}

__global__ void sum_odd(Odd o, unsigned long long *out)
{
	unsigned long long sum = 0;
	for (int i = 0; i < 1029; i++)
		sum += (unsigned long long)o.bytes[i] * (i + 7);
	atomicAdd(out, sum);
}

static unsigned long long host_block(const Block &b)
{
	unsigned long long sum = 0;
	for (int i = 0; i < 1000; i++)
		sum += (unsigned long long)b.words[i] * (i + 1);
	return sum;
}

static unsigned long long host_odd(const Odd &o)
{
	unsigned long long sum = 0;
	for (int i = 0; i < 1029; i++)
		sum += (unsigned long long)o.bytes[i] * (i + 7);
	return sum;
}

static void check(const char *what, unsigned long long *out, unsigned long long want)
{
	unsigned long long got = 0;
	cudaDeviceSynchronize();
	cudaMemcpy(&got, out, sizeof got, cudaMemcpyDeviceToHost);
	cudaMemset(out, 0, sizeof got);
	printf("%s: %llu %s\n", what, got, got == want ? "right" : "WRONG");
}

int main()
{
	unsigned long long *out, want = 0;
	Block b = {};
	Odd o = {};
	cudaStream_t streams[70];

	cudaMalloc(&out, sizeof *out);
	cudaMemset(out, 0, sizeof *out);
	for (int i = 0; i < 100; i++) {
		b.words[(i * 37) % 1000] = i + 1;
		b.words[999] = i;
		o.bytes[1028 - i] = (unsigned char)(i * 3);
		sum_block<<<1, 1>>>(b, out);
		sum_odd<<<1, 1>>>(o, out);
		want += host_block(b) + host_odd(o);
	}
	check("two kernels in turn", out, want);

	want = 0;
	for (auto &s : streams)
		cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	for (int i = 0; i < 210; i++) {
		b.words[i] += 5;
		sum_block<<<1, 1, 0, streams[i % 70]>>>(b, out);
		want += host_block(b);
	}
	check("70 streams", out, want);

	want = 0;
	for (int i = 0; i < 20; i++) {
		b.words[500 + i] ^= 0xffff;
		sum_block<<<1, i % 3 == 1 ? 100000 : 1>>>(b, out);
		if (i % 3 == 1)
			printf("%s",
				i == 1 ? cudaGetErrorName(cudaGetLastError())
				       : (cudaGetLastError(), ""));
		else
			want += host_block(b);
	}
	check(" between others", out, want);

	want = 0;
	std::thread threads[2];
	for (int t = 0; t < 2; t++)
		threads[t] = std::thread([=] {
			Block mine = {};
			for (int i = 0; i < 200; i++) {
				mine.words[i] = i * (t + 1);
				sum_block<<<1, 1, 0, streams[0]>>>(mine, out);
			}
		});
	for (int t = 0; t < 2; t++) {
		Block mine = {};
		threads[t].join();
		for (int i = 0; i < 200; i++) {
			mine.words[i] = i * (t + 1);
			want += host_block(mine);
		}
	}
	check("two threads in one stream", out, want);
	return 0;
}
