/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/pass.h"

#include <stdlib.h>
#include <string.h>

#include "client-shim/session/pool.h"
#include "transport/path.h"

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

static enum ob_err hex_read(const char *text, size_t length, uint8_t ret[OBP_HELLO_TICKET],
	uint32_t *ret_size, struct ob_cause *ret_cause)
{
	if (length == 0 || length % 2 || length / 2 > OBP_HELLO_TICKET)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"OUTBOARD_TICKET: a ticket has 2 to %u hexadecimal digits, this one "
			"%zu; " REMEDY,
			2 * OBP_HELLO_TICKET, length);
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

enum ob_err obc_pass_find(const char *list, const char *url, uint8_t ret_ticket[OBP_HELLO_TICKET],
	uint32_t *ret_size, struct ob_cause *ret_cause)
{
	size_t length = strlen(url);

	while (list && *list) {
		size_t pair = strcspn(list, ","), name = strcspn(list, " ,");

		if (name == pair)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"OUTBOARD_TICKET: each ticket stands behind its server's address "
				"and a blank; " REMEDY);
		if (name == length && memcmp(list, url, length) == 0)
			return hex_read(
				list + name + 1, pair - name - 1, ret_ticket, ret_size, ret_cause);
		list += pair + (list[pair] == ',');
	}
	return OB_ERR_NOT_FOUND;
}

enum ob_err obc_pass_show(const struct obt_stream *stream, const char *url, struct obp_hello *hello,
	struct ob_cause *ret_cause)
{
	enum ob_err err = obc_pass_find(
		obc_pool_tickets(), url, hello->ticket, &hello->ticket_size, ret_cause);

	if (err == OB_ERR_NOT_FOUND)
		return OB_ERR_NONE;
	if (err || stream->tls || obt_path_local(stream))
		return err;
	hello->ticket_size = 0;
	return ob_cause_set(ret_cause, OB_ERR_DENIED,
		"it is another machine and not tls://: OUTBOARD_TICKET is not sent there in clear");
}
