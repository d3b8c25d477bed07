/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/digest.h"

#include <openssl/sha.h>

void obt_digest_sha256(const void *data, size_t size, uint8_t ret_digest[OBT_SHA256_BYTES])
{
	/*
	 * The one-shot form of the library's low-level interface: no library context, so nothing to
	 * initialise in a guest.
	 */
	SHA256(data, size, ret_digest);
}
