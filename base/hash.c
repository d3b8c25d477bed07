/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/hash.h"

#include <string.h>

#define PRIME 0x100000001b3u

uint64_t ob_hash(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * PRIME;
	return hash;
}

uint64_t ob_hash_words(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	for (; size >= 8; size -= 8, at += 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		hash = (hash ^ word) * PRIME;
		hash ^= hash >> 29;
	}
	return ob_hash(hash, at, size);
}
