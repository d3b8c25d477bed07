/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/digest.h"

#include <openssl/sha.h>

void obt_digest_sha256(const void *data, size_t size, uint8_t ret_digest[OBT_SHA256_BYTES])
{
	/*
	 * OpenSSL's low-level one-shot function: it needs no library context, so nothing is
	 * initialised inside a program that loads our library.
	 */
	SHA256(data, size, ret_digest);
}
