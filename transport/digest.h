/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* SHA-256, by OpenSSL: the name of a code image. No state; any thread. */
#ifndef OBT_DIGEST_H
#define OBT_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define OBT_SHA256_BYTES 32u

void obt_digest_sha256(const void *data, size_t size, uint8_t ret_digest[OBT_SHA256_BYTES]);

#endif
