/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Signatures by Ed25519 (RFC 8032), by OpenSSL. A sealed text is
 *
 *     "OBT1"  key (8 bytes: the start of SHA-256 of the public key)  signature (64)  text
 *
 * and the signature covers the text with "outboard ticket 1\0" before it, so that a signature made
 * for something else never fits. No state; any thread.
 */
#ifndef OBT_SIGN_H
#define OBT_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"

#define OBT_SIGN_KEY_BYTES 32u /* of a public key */
#define OBT_SIGN_OVERHEAD  76u /* bytes that sealing adds */

struct obt_sign_key; /* a private key with its public key */

/*
 * Reads a private key (PEM, PKCS #8). If the file does not exist, makes a key and writes it,
 * readable by its owner only. A file that others can read is refused, except root's by a group, for a
 * process that is not root. NULL: *ret_cause says what to do.
 */
struct obt_sign_key *obt_sign_key_open(const char *path, struct ob_cause *ret_cause);
/* Makes a key that is stored nowhere. NULL: OpenSSL failed, *ret_cause. */
struct obt_sign_key *obt_sign_key_new(struct ob_cause *ret_cause);
void obt_sign_key_free(struct obt_sign_key *key);
void obt_sign_key_public(const struct obt_sign_key *key, uint8_t ret[OBT_SIGN_KEY_BYTES]);

/* Seals `text`; ret has room for size + OBT_SIGN_OVERHEAD. False: OpenSSL failed. */
bool obt_sign_seal(const struct obt_sign_key *key, const void *text, size_t size, uint8_t *ret);
/*
 * Checks a sealed text against the public keys. *ret_text points into `sealed`. OB_ERR_PROTOCOL: it
 * is not a sealed text. OB_ERR_DENIED: none of the keys has signed it; *ret_cause tells an unknown
 * key from a wrong signature.
 */
enum ob_err obt_sign_open(const uint8_t (*keys)[OBT_SIGN_KEY_BYTES], size_t n_keys,
	const uint8_t *sealed, size_t size, const uint8_t **ret_text, size_t *ret_size,
	struct ob_cause *ret_cause);

#endif
