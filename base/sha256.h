/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104) without a library, for code that is not linked with
 * OpenSSL. The caller owns the state. Only one thread may use a state at a time. No call blocks.
 */
#ifndef OB_SHA256_H
#define OB_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define OB_SHA256_BYTES 32
#define OB_SHA256_BLOCK 64

struct ob_sha256 {
	uint32_t h[8];
	uint64_t length; /* bytes hashed so far */
	uint8_t block[OB_SHA256_BLOCK];
};

void ob_sha256_init(struct ob_sha256 *s);
void ob_sha256_update(struct ob_sha256 *s, const void *data, size_t n);
void ob_sha256_final(struct ob_sha256 *s, uint8_t out[OB_SHA256_BYTES]);
/* The key is wiped from the function's memory. */
void ob_hmac_sha256(
	const void *key, size_t key_size, const void *data, size_t n, uint8_t out[OB_SHA256_BYTES]);

#endif
