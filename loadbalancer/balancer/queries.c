/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/queries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "loadbalancer/balancer/fleet_json.h"

/* The document in pieces. */
static void send_pieces(struct obl_link *link, const char *text, size_t size)
{
	static struct obp_pool_message message;
	size_t at = 0;

	message.type = OBP_POOL_ANSWER;
	do {
		size_t n = ob_min(size - at, (size_t)OBP_POOL_ANSWER_MAX);

		message.u.answer = (struct obp_pool_answer){ .more = at + n < size,
			.size = (uint32_t)n,
			.bytes = (const uint8_t *)text + at };
		if (!obl_link_send(link, &message))
			return;
		at += n;
	} while (at < size);
}

void obl_query(struct obl_core *core, struct obl_link *link, struct obp_pool_query *query)
{
	struct obl_identity identity;
	struct ob_cause cause;
	enum ob_err err = obl_auth_check(
		core->auth, link->address, query->token, OBL_RIGHT_LOOK, &identity, &cause);
	char *text = NULL;
	size_t size = 0;

	explicit_bzero(query->token, sizeof query->token);
	if (err) {
		obl_auth_refuse(link, err, &cause);
		return;
	}
	if (!obl_document_known(query->what)) {
		obl_link_refuse(link, OBP_POOL_INVALID, 0,
			"there is no such document; there are fleet, servers, gpus, sessions, "
			"queue, quota, events and info");
		return;
	}
	if (obl_document(core, query, identity.all ? NULL : identity.tenant, &text, &size))
		send_pieces(link, text, size);
	else
		obl_link_refuse(link, OBP_POOL_FAULT, 0, "the balancer has no memory");
	free(text);
}
