/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/ticket_text.h"

#include <stdio.h>
#include <string.h>

#include "transport/sign.h"

#define REMEDY "use what 'outboard run --pool' sets, unchanged"

/* -1: not a hexadecimal digit. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum ob_err hex_read(const char *text, size_t length, uint8_t ret[OBP_TICKET_MAX],
	uint32_t *ret_size, struct ob_cause *ret_cause)
{
	if (length == 0 || length % 2 || length / 2 > OBP_TICKET_MAX)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"OUTBOARD_TICKET: a ticket has 2 to %u hexadecimal digits, this one "
			"%zu; " REMEDY,
			2 * OBP_TICKET_MAX, length);
	for (size_t i = 0; i < length / 2; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"OUTBOARD_TICKET: a ticket is written in hexadecimal "
				"digits; " REMEDY);
		ret[i] = (uint8_t)(high * 16 + low);
	}
	*ret_size = (uint32_t)(length / 2);
	return OB_ERR_NONE;
}

/* The same server, however the address is written: with the port or without. */
static bool is_address(const char *text, size_t length, const struct obt_url *url)
{
	char address[OBT_URL_MAX + 1];
	struct obt_url own;

	if (length >= sizeof address)
		return false;
	snprintf(address, sizeof address, "%.*s", (int)length, text);
	return !obt_url_parse(address, &own, NULL) && own.scheme == url->scheme &&
		strcmp(own.host, url->host) == 0 && strcmp(own.port, url->port) == 0 &&
		strcmp(own.path, url->path) == 0;
}

enum ob_err obl_ticket_find(const char *list, const struct obt_url *url,
	uint8_t ret_ticket[OBP_TICKET_MAX], uint32_t *ret_size, struct ob_cause *ret_cause)
{
	while (list && *list) {
		size_t pair = strcspn(list, ","), name = strcspn(list, " ,");

		if (name == pair)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"OUTBOARD_TICKET: each ticket stands behind its server's address "
				"and a blank; " REMEDY);
		if (is_address(list, name, url))
			return hex_read(
				list + name + 1, pair - name - 1, ret_ticket, ret_size, ret_cause);
		list += pair + (list[pair] == ',');
	}
	return OB_ERR_NOT_FOUND;
}

bool obl_ticket_read(const uint8_t *ticket, size_t size, struct obp_ticket *ret)
{
	return size > OBT_SIGN_OVERHEAD &&
		!obp_ticket_decode(ticket + OBT_SIGN_OVERHEAD, size - OBT_SIGN_OVERHEAD, ret);
}
