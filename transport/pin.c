/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "transport/pin.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

#define ELEMENT_MAX (OBT_URL_MAX + 128u) /* bytes: an address, '=', a pin with colons */

bool obt_pin_parse(const char *text, uint8_t ret[OBT_PIN_BYTES])
{
	size_t n = 0;

	if (strncasecmp(text, "sha256:", 7) == 0)
		text += 7;
	for (; *text; text++) {
		unsigned digit;

		if (*text == ':')
			continue;
		if (*text >= '0' && *text <= '9')
			digit = (unsigned)(*text - '0');
		else if ((*text | 32) >= 'a' && (*text | 32) <= 'f')
			digit = (unsigned)((*text | 32) - 'a' + 10);
		else
			return false;
		if (n == 2 * OBT_PIN_BYTES)
			return false;
		ret[n / 2] = (uint8_t)(n % 2 ? ret[n / 2] | digit : digit << 4);
		n++;
	}
	return n == 2 * OBT_PIN_BYTES;
}

bool obt_pin_peer(const struct obt_url *url, char ret[OBT_PIN_PEER])
{
	if (url->scheme != OBT_TLS)
		return false;
	snprintf(ret, OBT_PIN_PEER, "%s:%s", url->host, url->port);
	return true;
}

static bool has_own(const struct obt_pins *pins, const char *peer)
{
	for (uint32_t i = 0; i < pins->n; i++)
		if (strcmp(pins->list[i].peer, peer) == 0)
			return true;
	return false;
}

/* Parses one element. */
static enum ob_err element_parse(const char *text, struct obt_pin *ret, struct ob_cause *ret_cause)
{
	const char *equals = strrchr(text, '=');
	char address[OBT_URL_MAX + 1];
	struct obt_url url;

	ret->peer[0] = '\0';
	if (equals) {
		if (equals - text > (ptrdiff_t)OBT_URL_MAX)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "an address is too long");
		snprintf(address, sizeof address, "%.*s", (int)(equals - text), text);
		if (obt_url_parse(address, &url, NULL) || !obt_pin_peer(&url, ret->peer))
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"'%.200s' is not an address such as tls://host:14800, the only "
				"kind that has a pin",
				address);
		text = equals + 1;
	}
	if (!obt_pin_parse(text, ret->pin))
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"'%.80s' is not the 64 hexadecimal digits of a SHA-256; 'outboard cert' "
			"prints them",
			text);
	return OB_ERR_NONE;
}

enum ob_err obt_pins_add(
	struct obt_pins *pins, const char *text, bool only_new, struct ob_cause *ret_cause)
{
	/* the list as it was, for has_own: several new pins of one address are added */
	const uint32_t old = pins->n;
	uint32_t n = old;
	enum ob_err err;

	while (*text) {
		size_t length = strcspn(text, ",");
		char element[ELEMENT_MAX];

		if (length >= sizeof element || n == OBT_PINS_MAX)
			return ob_cause_set(ret_cause, OB_ERR_LIMIT,
				"there are more pins than %u, or one is too long", OBT_PINS_MAX);
		snprintf(element, sizeof element, "%.*s", (int)length, text);
		err = element_parse(element, &pins->list[n], ret_cause);
		if (err)
			return err;
		if (!only_new || !has_own(pins, pins->list[n].peer))
			n++;
		text += length + (text[length] == ',');
	}
	pins->n = n;
	return OB_ERR_NONE;
}

enum ob_err obt_pins_join(const char *own, const char *more, char **ret, struct ob_cause *ret_cause)
{
	struct obt_pins mine = { .n = 0 };
	struct ob_buf text;
	enum ob_err err = own ? obt_pins_add(&mine, own, false, ret_cause) : OB_ERR_NONE;

	ob_buf_init(&text, OBT_PINS_MAX * 2 * ELEMENT_MAX);
	if (own)
		ob_buf_append(&text, own, strlen(own));
	while (!err && *more) {
		size_t length = strcspn(more, ",");
		char element[ELEMENT_MAX];
		struct obt_pin pin;

		if (length >= sizeof element)
			err = ob_cause_set(ret_cause, OB_ERR_LIMIT, "a pin is too long");
		snprintf(element, sizeof element, "%.*s", (int)length, more);
		if (!err)
			err = element_parse(element, &pin, ret_cause);
		if (!err && !has_own(&mine, pin.peer))
			ob_buf_printf(&text, "%s%s", text.size ? "," : "", element);
		more += length + (more[length] == ',');
	}
	if (!err && !ob_buf_append(&text, "", 1))
		err = ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	if (err)
		ob_buf_fini(&text);
	else
		*ret = (char *)text.data;
	return err;
}

/* The peer under which the pins of an address are found. NULL: it has none. */
static const char *applying(const struct obt_pins *pins, const char *peer)
{
	return has_own(pins, peer) ? peer : has_own(pins, "") ? "" : NULL;
}

bool obt_pins_apply(const struct obt_pins *pins, const char *peer)
{
	return applying(pins, peer) != NULL;
}

bool obt_pins_accept(
	const struct obt_pins *pins, const char *peer, const uint8_t hash[OBT_PIN_BYTES])
{
	const char *key = applying(pins, peer);
	bool found = false;

	for (uint32_t i = 0; key && i < pins->n; i++)
		if (strcmp(pins->list[i].peer, key) == 0 &&
			CRYPTO_memcmp(pins->list[i].pin, hash, OBT_PIN_BYTES) == 0)
			found = true;
	return found;
}
