/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/digest.h"

/* The SHA256_ functions are deprecated in favour of EVP, but not removed in any 3.x release. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

/*
 * Init, Update and Final are plain code over `state`. The one-shot SHA256() is not: since OpenSSL
 * 3.0 it fetches the algorithm from a provider, which initialises the whole of libcrypto and reads
 * openssl.cnf. That would take 350 KiB of heap and about a millisecond at the start of every
 * program.
 */
void obt_digest_sha256(const void *data, size_t size, uint8_t ret_digest[OBT_SHA256_BYTES])
{
	SHA256_CTX state;

	SHA256_Init(&state);
	SHA256_Update(&state, data, size);
	SHA256_Final(ret_digest, &state);
}
