/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The answer to the CUDA runtime's self-test: without it NVIDIA's runtime refuses to start with
 * error 103. The runtime asks, three times per instance, for HMAC-MD2 (RFC 2104 with a 16-byte
 * block, RFC 1319) over values that the library also reports through other calls. This file is the
 * whole implementation; the build option `selftest` leaves it out. docs/LEGAL.md gives the reason
 * for it.
 */
#include "front/export_selftest.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define BLOCK OBF_SELFTEST_SIZE

/* The permutation of 0..255 of RFC 1319, derived from the digits of pi. */
/* clang-format off */
static const uint8_t pi_table[256] = {
	0x29, 0x2e, 0x43, 0xc9, 0xa2, 0xd8, 0x7c, 0x01, 0x3d, 0x36, 0x54, 0xa1, 0xec, 0xf0, 0x06,
	0x13, 0x62, 0xa7, 0x05, 0xf3, 0xc0, 0xc7, 0x73, 0x8c, 0x98, 0x93, 0x2b, 0xd9, 0xbc, 0x4c,
	0x82, 0xca, 0x1e, 0x9b, 0x57, 0x3c, 0xfd, 0xd4, 0xe0, 0x16, 0x67, 0x42, 0x6f, 0x18, 0x8a,
	0x17, 0xe5, 0x12, 0xbe, 0x4e, 0xc4, 0xd6, 0xda, 0x9e, 0xde, 0x49, 0xa0, 0xfb, 0xf5, 0x8e,
	0xbb, 0x2f, 0xee, 0x7a, 0xa9, 0x68, 0x79, 0x91, 0x15, 0xb2, 0x07, 0x3f, 0x94, 0xc2, 0x10,
	0x89, 0x0b, 0x22, 0x5f, 0x21, 0x80, 0x7f, 0x5d, 0x9a, 0x5a, 0x90, 0x32, 0x27, 0x35, 0x3e,
	0xcc, 0xe7, 0xbf, 0xf7, 0x97, 0x03, 0xff, 0x19, 0x30, 0xb3, 0x48, 0xa5, 0xb5, 0xd1, 0xd7,
	0x5e, 0x92, 0x2a, 0xac, 0x56, 0xaa, 0xc6, 0x4f, 0xb8, 0x38, 0xd2, 0x96, 0xa4, 0x7d, 0xb6,
	0x76, 0xfc, 0x6b, 0xe2, 0x9c, 0x74, 0x04, 0xf1, 0x45, 0x9d, 0x70, 0x59, 0x64, 0x71, 0x87,
	0x20, 0x86, 0x5b, 0xcf, 0x65, 0xe6, 0x2d, 0xa8, 0x02, 0x1b, 0x60, 0x25, 0xad, 0xae, 0xb0,
	0xb9, 0xf6, 0x1c, 0x46, 0x61, 0x69, 0x34, 0x40, 0x7e, 0x0f, 0x55, 0x47, 0xa3, 0x23, 0xdd,
	0x51, 0xaf, 0x3a, 0xc3, 0x5c, 0xf9, 0xce, 0xba, 0xc5, 0xea, 0x26, 0x2c, 0x53, 0x0d, 0x6e,
	0x85, 0x28, 0x84, 0x09, 0xd3, 0xdf, 0xcd, 0xf4, 0x41, 0x81, 0x4d, 0x52, 0x6a, 0xdc, 0x37,
	0xc8, 0x6c, 0xc1, 0xab, 0xfa, 0x24, 0xe1, 0x7b, 0x08, 0x0c, 0xbd, 0xb1, 0x4a, 0x78, 0x88,
	0x95, 0x8b, 0xe3, 0x63, 0xe8, 0x6d, 0xe9, 0xcb, 0xd5, 0xfe, 0x3b, 0x00, 0x1d, 0x39, 0xf2,
	0xef, 0xb7, 0x0e, 0x66, 0x58, 0xd0, 0xe4, 0xa6, 0x77, 0x72, 0xf8, 0xeb, 0x75, 0x4b, 0x0a,
	0x31, 0x44, 0x50, 0xb4, 0x8f, 0xed, 0x1f, 0x1a, 0xdb, 0x99, 0x8d, 0x33, 0x9f, 0x11, 0x83,
	0x14,
};
/* clang-format on */

struct md2 {
	uint8_t state[3 * BLOCK], checksum[BLOCK], pending[BLOCK];
	uint8_t last; /* of the checksum */
	unsigned n_pending;
};

static void md2_mix(struct md2 *md2, const uint8_t block[BLOCK])
{
	unsigned t = 0;

	for (unsigned i = 0; i < BLOCK; i++) {
		md2->state[BLOCK + i] = block[i];
		md2->state[2 * BLOCK + i] = block[i] ^ md2->state[i];
	}
	for (unsigned round = 0; round < 18; round++) {
		for (unsigned i = 0; i < 3 * BLOCK; i++)
			t = md2->state[i] ^= pi_table[t];
		t = (t + round) & 0xff;
	}
}

static void md2_block(struct md2 *md2, const uint8_t block[BLOCK])
{
	for (unsigned i = 0; i < BLOCK; i++)
		md2->last = md2->checksum[i] ^= pi_table[block[i] ^ md2->last];
	md2_mix(md2, block);
}

static void md2_add(struct md2 *md2, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++) {
		md2->pending[md2->n_pending++] = bytes[i];
		if (md2->n_pending == BLOCK) {
			md2_block(md2, md2->pending);
			md2->n_pending = 0;
		}
	}
}

static void md2_end(struct md2 *md2, uint8_t ret[BLOCK])
{
	uint8_t checksum[BLOCK];
	unsigned n = BLOCK - md2->n_pending;

	/* At least one byte of padding; each byte holds the length of the padding. */
	memset(md2->pending + md2->n_pending, (int)n, n);
	md2_block(md2, md2->pending);
	memcpy(checksum, md2->checksum, BLOCK);
	md2_mix(md2, checksum);
	memcpy(ret, md2->state, BLOCK);
}

void obf_selftest_hmac(const void *data, size_t size, uint8_t ret[OBF_SELFTEST_SIZE])
{
	static const uint8_t key[BLOCK] = {
		0x14,
		0x6a,
		0xdd,
		0xae,
		0x53,
		0xa9,
		0xa7,
		0x52,
		0xaa,
		0x08,
		0x41,
		0x36,
		0x0b,
		0xf5,
		0x5a,
		0x9f,
	};
	struct md2 inner = { .n_pending = 0 }, outer = { .n_pending = 0 };
	uint8_t pad[BLOCK], digest[BLOCK];

	for (unsigned i = 0; i < BLOCK; i++)
		pad[i] = key[i] ^ 0x36;
	md2_add(&inner, pad, BLOCK);
	md2_add(&inner, data, size);
	md2_end(&inner, digest);
	for (unsigned i = 0; i < BLOCK; i++)
		pad[i] = key[i] ^ 0x5c;
	md2_add(&outer, pad, BLOCK);
	md2_add(&outer, digest, BLOCK);
	md2_end(&outer, ret);
}

/* The message: this header, then one row per device. Little-endian, no padding. */
struct header {
	uint32_t driver_version, version, pid, thread;
	uint64_t interface_table, check_table, check_entry, seconds;
};

struct row {
	uint8_t uuid[16];
	int32_t domain, bus, device;
};

_Static_assert(
	sizeof(struct header) == 48 && sizeof(struct row) == 28, "the runtime hashes these bytes");

CUresult obf_selftest_answer(const struct obf_selftest *test, uint8_t ret[OBF_SELFTEST_SIZE])
{
	static const uint8_t fixed[2][BLOCK] = {
		{ 0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33, 0xe8, 0xd1, 0x4c, 0x1f, 0xaa,
			0x83, 0xd3, 0x8e },
		{ 0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x18, 0xe8, 0xd1, 0x4c, 0x1f, 0xaa,
			0x83, 0xd3, 0x8e },
	};
	uint8_t message[sizeof(struct header) + OBF_DEVICE_MAX * sizeof(struct row)];
	struct header header = {
		.driver_version = (uint32_t)test->driver_version,
		.version = test->version,
		.pid = (uint32_t)getpid(),
		.thread = (uint32_t)(uintptr_t)pthread_self(),
		.interface_table = (uintptr_t)test->interface_table,
		.check_table = (uintptr_t)test->check_table,
		.check_entry = (uintptr_t)test->check_entry,
		.seconds = test->seconds,
	};
	size_t size = sizeof header;

	if (test->version % 10 < 2) {
		memcpy(ret, fixed[test->version % 10], BLOCK);
		return CUDA_SUCCESS;
	}
	memcpy(message, &header, sizeof header);
	for (int i = 0; i < test->n_devices; i++) {
		const struct obf_device *device = &test->devices[i];
		struct row row = { .domain = device->attr[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID],
			.bus = device->attr[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID],
			.device = device->attr[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] };

		memcpy(row.uuid, &device->uuid, sizeof row.uuid);
		memcpy(message + size, &row, sizeof row);
		size += sizeof row;
	}
	obf_selftest_hmac(message, size, ret);
	return CUDA_SUCCESS;
}
