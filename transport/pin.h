/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Pins: SHA-256 hashes of the certificates that a client accepts. A list as text, as in
 * OUTBOARD_TLS_PIN, has elements with commas between them:
 *
 *     PIN                     for every address that has no pin of its own
 *     tls://host:port=PIN     for this address only; several for one address: any of them
 *
 * PIN: 64 hexadecimal digits, with or without colons between them and "sha256:" before them. So a
 * server never passes for another one whose pin is in the list. Plain data, owned by the caller.
 */
#ifndef OBT_PIN_H
#define OBT_PIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "transport/url.h"

#define OBT_PIN_BYTES 32u  /* SHA-256 of a certificate's DER bytes */
#define OBT_PINS_MAX  64u  /* in one list */
#define OBT_PIN_PEER  272u /* bytes of "host:port", NUL included */

struct obt_pins {
	uint32_t n;
	struct obt_pin {
		char peer[OBT_PIN_PEER]; /* "": every address without a pin of its own */
		uint8_t pin[OBT_PIN_BYTES];
	} list[OBT_PINS_MAX];
};

/* Parses one PIN that ends with the text. False: it is none. */
bool obt_pin_parse(const char *text, uint8_t ret[OBT_PIN_BYTES]);
/* Writes "host:port", under which an address's pins are found. False: it is not tls://. */
bool obt_pin_peer(const struct obt_url *url, char ret[OBT_PIN_PEER]);
/*
 * Adds the elements of a text to a list. With `only_new`, an address that has a pin of its own
 * already is skipped: what was there first is not loosened. OB_ERR_ARGUMENT: *ret_cause names the
 * element; OB_ERR_LIMIT. After an error the list is unchanged.
 */
enum ob_err obt_pins_add(
	struct obt_pins *pins, const char *text, bool only_new, struct ob_cause *ret_cause);
/*
 * Joins two lists as text, without those of `more` whose address has a pin of its own in `own`.
 * own: NULL or "": none. *ret: malloc'ed. OB_ERR_ARGUMENT, _LIMIT: one of them is wrong, *ret_cause;
 * OB_ERR_NO_MEMORY.
 */
enum ob_err obt_pins_join(
	const char *own, const char *more, char **ret, struct ob_cause *ret_cause);
/* True if the address has pins, its own or general ones: then only a certificate of theirs will do. */
bool obt_pins_apply(const struct obt_pins *pins, const char *peer);
/* True if the certificate with this hash is accepted at the address. Constant time for each pin. */
bool obt_pins_accept(
	const struct obt_pins *pins, const char *peer, const uint8_t hash[OBT_PIN_BYTES]);

#endif
