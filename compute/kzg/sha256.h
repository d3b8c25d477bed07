/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * SHA-256 (FIPS 180-4) for the challenges of KZG proofs. The caller owns the state. Only one thread
 * may use a state at a time.
 */
#ifndef OBK_SHA256_H
#define OBK_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define OBK_SHA256_BYTES 32

struct obk_sha256 {
	uint32_t h[8];
	uint64_t length; /* bytes hashed so far */
	uint8_t block[64];
};

void obk_sha256_init(struct obk_sha256 *s);
void obk_sha256_update(struct obk_sha256 *s, const void *data, size_t n);
void obk_sha256_final(struct obk_sha256 *s, uint8_t out[OBK_SHA256_BYTES]);

#endif
