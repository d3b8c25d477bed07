/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * SHA-256 of many messages of different lengths, one thread each, compared with the host and a
 * published digest.
 */
#include "check.h"
#include <vector>

enum { MESSAGES = 256, MAXIMUM = 200 };

__device__ __constant__ uint32_t device_k[64];
static uint32_t host_k[64];

static __host__ __device__ uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static __host__ __device__ void digest(
	const unsigned char *message, int length, uint32_t *state, const uint32_t *k)
{
	const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
		0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
	int blocks = (length + 9 + 63) / 64;

	for (int i = 0; i < 8; i++)
		state[i] = start[i];
	for (int block = 0; block < blocks; block++) {
		uint32_t w[64], s[8];
		for (int i = 0; i < 16; i++) {
			w[i] = 0;
			for (int b = 0; b < 4; b++) {
				int at = block * 64 + i * 4 + b;
				uint32_t byte = at < length ? message[at] : at == length ? 0x80 : 0;
				w[i] = w[i] << 8 | byte;
			}
		}
		if (block == blocks - 1)
			w[15] = (uint32_t)length * 8;
		for (int i = 16; i < 64; i++) {
			uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
			uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
			w[i] = w[i - 16] + a + w[i - 7] + b;
		}
		for (int i = 0; i < 8; i++)
			s[i] = state[i];
		for (int i = 0; i < 64; i++) {
			uint32_t one = s[7] +
				(rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
				((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
			uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
				((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
			for (int j = 7; j > 0; j--)
				s[j] = s[j - 1];
			s[4] += one;
			s[0] = one + two;
		}
		for (int i = 0; i < 8; i++)
			state[i] += s[i];
	}
}

__global__ void digests(const unsigned char *messages, const int *lengths, uint32_t (*out)[8])
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t state[8];

	digest(messages + i * MAXIMUM, lengths[i], state, device_k);
	for (int k = 0; k < 8; k++)
		out[i][k] = state[k];
}

/*
 * The round constants: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes.
 */
static void make_constants()
{
	int found = 0;

	for (unsigned n = 2; found < 64; n++) {
		bool prime = true;
		for (unsigned d = 2; d * d <= n; d++)
			prime = prime && n % d;
		if (!prime)
			continue;
		/* Finds the largest r with r^3 <= n 2^96 bit by bit; r = cube root times 2^32. */
		unsigned __int128 r = 0;
		for (int bit = 35; bit >= 0; bit--) {
			unsigned __int128 t = r | (unsigned __int128)1 << bit;
			if (t * t * t <= (unsigned __int128)n << 96)
				r = t;
		}
		host_k[found++] = (uint32_t)r;
	}
}

int main()
{
	std::vector<unsigned char> messages(MESSAGES * MAXIMUM);
	static int lengths[MESSAGES];
	static uint32_t got[MESSAGES][8];
	unsigned char *device_messages;
	int *device_lengths, wrong = 0;
	uint32_t(*out)[8], seed = 256;

	make_constants();
	for (unsigned char &byte : messages)
		byte = (unsigned char)random_next(&seed);
	for (int i = 0; i < MESSAGES; i++)
		lengths[i] = i % (MAXIMUM + 1);
	memcpy(messages.data() + 3 * MAXIMUM, "abc", 3);
	CU(cudaMemcpyToSymbol(device_k, host_k, sizeof(host_k)));
	CU(cudaMalloc(&device_messages, messages.size()));
	CU(cudaMalloc(&device_lengths, sizeof(lengths)));
	CU(cudaMalloc(&out, sizeof(got)));
	CU(cudaMemcpy(device_messages, messages.data(), messages.size(), cudaMemcpyHostToDevice));
	CU(cudaMemcpy(device_lengths, lengths, sizeof(lengths), cudaMemcpyHostToDevice));
	digests<<<MESSAGES / 64, 64>>>(device_messages, device_lengths, out);
	CU(cudaGetLastError());
	CU(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < MESSAGES; i++) {
		uint32_t want[8];
		digest(messages.data() + i * MAXIMUM, lengths[i], want, host_k);
		wrong += memcmp(want, got[i], sizeof(want)) != 0;
	}
	OK(wrong == 0);
	OK(got[3][0] == 0xba7816bf && got[3][7] == 0xf20015ad);
	printf("abc %08x%08x... all %016llx\n", got[3][0], got[3][1],
		(unsigned long long)checksum(got, sizeof(got)));
	return verdict("sha256");
}
