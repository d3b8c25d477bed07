/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/admission/caller_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "protocol/control.h"
#include "server/admission/auth.h"
#include "server/admission/caller.h"
#include "server/admission/ticket.h"

bool obs_caller_limited(const struct obs_caller *caller)
{
	return !caller->address->local || caller->callers->options->count_local;
}

/*
 * After wrong tokens an address has to wait. Checked at the preface, so that such a client costs no
 * handshake, and again before its token is checked: otherwise each connection that had already
 * passed the preface would have one guess. False: the caller was refused.
 */
bool obs_caller_may_guess(struct obs_caller *caller)
{
	uint32_t seconds =
		obs_caller_limited(caller) ? obs_address_wait_s(caller->address, ob_clock_ns()) : 0;
	char text[128];

	if (!seconds)
		return true;
	snprintf(text, sizeof text,
		"too many wrong tokens came from this address; try again in %u s", seconds);
	obs_caller_refuse(caller, OBS_REFUSED_RATE, OB_ERR_LIMIT, text);
	return false;
}

/* Refuses a client for its ticket, or because it has none. */
static bool ticket_refuse(
	struct obs_caller *caller, enum obs_ticket_refusal why, const struct ob_cause *cause)
{
	static struct obs_handoff counted;

	counted.type = OBS_HANDOFF_TICKET;
	counted.count = why;
	if (!obs_handoff_send_up(&counted, -1, -1))
		ob_debug("the supervisor was not told of a refused ticket");
	/* A forged signature is a guess like a wrong token. */
	if (obs_caller_limited(caller) && (why == OBS_TICKET_SIGNATURE || why == OBS_TICKET_FORM))
		obs_address_wrong(caller->address, ob_clock_ns());
	obs_caller_refuse(caller, OBS_REFUSED_TICKET, cause->code, cause->text);
	return false;
}

/*
 * A ticket replaces the token: the balancer has checked that. If the client shows a valid token or
 * certificate too, its limits apply as well. False: the caller was refused.
 */
static bool ticket_check(struct obs_caller *caller, const struct obp_hello *hello)
{
	struct obs_handoff *handoff = caller->handoff;
	enum obs_ticket_refusal why;
	struct ob_cause cause;

	if (obs_auth_check(
		    caller->callers->options, &caller->stream, hello, &handoff->identity, &cause) ||
		!handoff->identity.proved)
		obs_auth_origin(caller->stream.fd, &handoff->identity);
	if (obs_ticket_check(caller->callers->pool, hello->ticket, hello->ticket_size,
		    (uint64_t)time(NULL), &handoff->ticket, &handoff->ahead_s, &why, &cause))
		return ticket_refuse(caller, why, &cause);
	obs_ticket_identify(&handoff->ticket, &handoff->identity);
	handoff->ticketed = true;
	return true;
}

/* Authenticates a client without a ticket. False: the caller was refused. */
static bool client_check(struct obs_caller *caller, const struct obp_hello *hello)
{
	const struct obs_pool_page *pool = caller->callers->pool;
	struct obs_identity *identity = &caller->handoff->identity;
	struct ob_cause cause;

	if (obs_auth_check(caller->callers->options, &caller->stream, hello, identity, &cause)) {
		if (obs_caller_limited(caller))
			obs_address_wrong(caller->address, ob_clock_ns());
		obs_caller_refuse(caller, OBS_REFUSED_DENIED, cause.code, cause.text);
		return false;
	}
	if (!pool->on || pool->direct || strcmp(identity->from, "unix") == 0)
		return true;
	ob_cause_set(&cause, OB_ERR_DENIED,
		"this server belongs to a pool and takes no sessions without a ticket; use "
		"'outboard run --pool URL' with the address of the pool's balancer");
	return ticket_refuse(caller, OBS_TICKET_NONE, &cause);
}

/* Authenticates a hello. False: the caller was refused. */
static bool hello_check(struct obs_caller *caller, struct obp_message *message)
{
	struct obs_handoff *handoff = caller->handoff;

	if (!obs_caller_may_guess(caller))
		return false;
	if (message->hello.ticket_size ? !ticket_check(caller, &message->hello)
				       : !client_check(caller, &message->hello))
		return false;
	if (handoff->identity.proved)
		obs_address_right(caller->address);
	memcpy(handoff->identity.address, caller->address->text, sizeof handoff->identity.address);
	handoff->type = OBS_HANDOFF_NEW;
	handoff->pid = message->hello.pid;
	memcpy(handoff->program, message->hello.program, sizeof handoff->program);
	/* for 'outboard check' */
	memcpy(handoff->text, caller->callers->sandbox, sizeof handoff->text);
	/* The worker runs the client's calls and must not learn the token or the ticket. */
	explicit_bzero(message->hello.token, sizeof message->hello.token);
	explicit_bzero(message->hello.ticket, sizeof message->hello.ticket);
	message->hello.ticket_size = 0;
	return true;
}

/* In constant time: the delay must not reveal how much of a guess was right. */
static bool secret_right(const uint8_t *a, const uint8_t *b)
{
	uint8_t wrong = 0;

	for (size_t i = 0; i < OBP_SECRET_BYTES; i++)
		wrong |= (uint8_t)(a[i] ^ b[i]);
	return wrong == 0;
}

static bool join_check(struct obs_caller *caller, struct obp_message *message)
{
	uint8_t secret[OBP_SECRET_BYTES];
	bool right;

	if (!obs_routes_find(caller->callers->routes, caller->preface.route, secret)) {
		obs_caller_refuse(
			caller, OBS_REFUSED_SECRET, OB_ERR_NOT_FOUND, "there is no such session");
		return false;
	}
	right = secret_right(secret, message->secret);
	explicit_bzero(secret, sizeof secret);
	if (!right) {
		obs_caller_refuse(caller, OBS_REFUSED_SECRET, OB_ERR_REFUSED,
			"wrong secret for this session");
		return false;
	}
	caller->handoff->type = OBS_HANDOFF_JOIN;
	caller->handoff->route = caller->preface.route;
	return true;
}

/* Encodes the message again for the worker. */
static bool body_fill(struct obs_handoff *handoff, const struct obp_message *message)
{
	struct ob_buf frame;
	const struct obp_frame *head;
	bool ok;

	ob_buf_init(&frame, sizeof(struct obp_frame) + sizeof handoff->body + 8);
	ok = obp_message_encode(message, &frame);
	head = (const struct obp_frame *)frame.data;
	if (ok && head->raw_size <= sizeof handoff->body) {
		handoff->size = head->raw_size;
		memcpy(handoff->body, head + 1, handoff->size);
	} else {
		ok = false;
	}
	if (frame.data)
		explicit_bzero(frame.data, frame.size);
	ob_buf_fini(&frame);
	return ok;
}

bool obs_caller_prove(struct obs_caller *caller)
{
	static struct obp_message message; /* large; one at a time */
	bool joins = caller->preface.intent == OBP_INTENT_JOIN, good;

	if (obp_message_decode(caller->bytes->map, caller->bytes->frame.raw_size, &message) !=
		OB_ERR_NONE) {
		explicit_bzero(message.hello.token, sizeof message.hello.token);
		obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_PROTOCOL,
			"the client's first message cannot be decoded");
		return false;
	}
	caller->handoff = calloc(1, sizeof *caller->handoff);
	if (!caller->handoff) {
		explicit_bzero(message.hello.token, sizeof message.hello.token);
		obp_message_fini(&message);
		obs_caller_refuse(caller, OBS_REFUSED_RATE, OB_ERR_LIMIT,
			"the server is out of memory; try again");
		return false;
	}
	if (message.type != (joins ? OBP_MSG_JOIN : OBP_MSG_HELLO)) {
		obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_PROTOCOL,
			joins ? "the client's first message is not a join"
			      : "the client's first message is not a hello");
		good = false;
	} else {
		good = joins ? join_check(caller, &message) : hello_check(caller, &message);
	}
	if (good && !body_fill(caller->handoff, &message)) {
		obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_PROTOCOL,
			"the client's first message is too long");
		good = false;
	}
	explicit_bzero(message.secret, sizeof message.secret);
	explicit_bzero(message.hello.token, sizeof message.hello.token);
	explicit_bzero(message.hello.ticket, sizeof message.hello.ticket);
	obp_message_fini(&message);
	return good;
}
