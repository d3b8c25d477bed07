/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "loadbalancer/ticket_text.h"
#include "transport/connect.h"
#include "transport/pin.h"
#include "transport/url.h"

/* An address that can stand in a list: printable, and without the characters that separate. */
static bool address_valid(const char *text, struct obt_url *ret)
{
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == ',' || *p == '+' || *p == '=')
			return false;
	return obt_url_parse(text, ret, NULL) == OB_ERR_NONE;
}

static bool answers(const struct obt_url *url)
{
	struct obt_stream stream;

	if (obt_stream_connect(url, ob_clock_ns() + OBL_ACCESS_TRY_NS, &stream, NULL))
		return false;
	obt_stream_close(&stream);
	return true;
}

/*
 * Copies the address to use to ret_text. If none answers, the last valid one is taken: the session
 * then says what is wrong with it. False: none is valid.
 */
static bool address_choose(
	const struct obp_pool_part *part, char ret_text[OBP_POOL_URL_MAX], struct obt_url *ret)
{
	bool found = false;
	const char *text = part->urls;

	while (*text) {
		size_t length = strcspn(text, " ");
		char one[OBP_POOL_URL_MAX];
		struct obt_url url;

		if (length && length < sizeof one) {
			snprintf(one, sizeof one, "%.*s", (int)length, text);
			if (address_valid(one, &url)) {
				memcpy(ret_text, one, sizeof one);
				*ret = url;
				found = true;
				if (!text[length] || answers(&url))
					return true;
			}
		}
		text += length + (text[length] == ' ');
	}
	return found;
}

static enum ob_err bad_part(const struct obp_pool_part *part, struct ob_cause *ret_cause)
{
	return ob_cause_set(ret_cause, OB_ERR_PROTOCOL,
		"the pool's grant names no usable address, pin or ticket of server '%.64s'; "
		"its operator must correct what the server advertises",
		part->server);
}

struct texts {
	struct ob_buf servers, tickets, pins;
};

static enum ob_err part_add(const struct obp_pool_part *part, struct texts *texts,
	uint32_t *n_devices, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct obp_ticket *ticket = calloc(1, sizeof *ticket);
	char url_text[OBP_POOL_URL_MAX], peer[OBT_PIN_PEER], hex[2 * OBP_TICKET_MAX + 1];
	uint8_t pin[OBT_PIN_BYTES];
	struct obt_url url;
	bool ok;

	if (!ticket)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	if (!address_choose(part, url_text, &url) ||
		!obl_ticket_read(part->ticket, part->ticket_size, ticket) ||
		(part->pin[0] && !obt_pin_parse(part->pin, pin)))
		return bad_part(part, ret_cause);
	*n_devices += ticket->n_devices;
	ob_text_hex(part->ticket, part->ticket_size, hex);
	ok = ob_buf_printf(&texts->servers, "%s%s", texts->servers.size ? "+" : "", url_text) &&
		ob_buf_printf(
			&texts->tickets, "%s%s %s", texts->tickets.size ? "," : "", url_text, hex);
	if (ok && part->pin[0] && obt_pin_peer(&url, peer)) {
		ob_text_hex(pin, sizeof pin, hex);
		ok = ob_buf_printf(&texts->pins,
			strchr(url.host, ':') ? "%stls://[%s]:%s=%s" : "%stls://%s:%s=%s",
			texts->pins.size ? "," : "", url.host, url.port, hex);
	}
	return ok ? OB_ERR_NONE : ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
}

enum ob_err obl_access_make(
	const struct obp_pool_grant *grant, struct obl_access *ret, struct ob_cause *ret_cause)
{
	enum ob_err err = grant->n_parts
		? OB_ERR_NONE
		: ob_cause_set(ret_cause, OB_ERR_PROTOCOL, "the pool's grant names no server");
	uint32_t n_devices = 0;
	struct texts texts;

	ob_buf_init(&texts.servers, OBL_ACCESS_TEXT);
	ob_buf_init(&texts.tickets, OBL_ACCESS_TEXT);
	ob_buf_init(&texts.pins, OBL_ACCESS_TEXT);
	for (uint32_t i = 0; !err && i < grant->n_parts; i++)
		err = part_add(&grant->parts[i], &texts, &n_devices, ret_cause);
	if (!err &&
		(!ob_buf_append(&texts.servers, "", 1) || !ob_buf_append(&texts.tickets, "", 1) ||
			!ob_buf_append(&texts.pins, "", 1)))
		err = ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	if (err) {
		ob_buf_fini(&texts.servers);
		ob_buf_fini(&texts.tickets);
		ob_buf_fini(&texts.pins);
		return err;
	}
	*ret = (struct obl_access){ .servers = (char *)texts.servers.data,
		.tickets = (char *)texts.tickets.data,
		.pins = (char *)texts.pins.data,
		.n_devices = n_devices };
	return OB_ERR_NONE;
}

void obl_access_fini(struct obl_access *access)
{
	free(access->servers);
	free(access->tickets);
	free(access->pins);
	*access = (struct obl_access){ .n_devices = 0 };
}
