/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/admission/caller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "protocol/load.h"
#include "server/admission/caller_inside.h"
#include "server/common/refuse.h"
#include "transport/shm.h"
#include "transport/tls.h"

#define LINGER_NS      OB_SECOND  /* how long a refused client can read the reason */
#define THROW_AWAY_MAX (1u << 20) /* bytes read and dropped meanwhile */

/* ---- lists ---- */

static void lists_join(struct obs_caller *caller)
{
	struct obs_callers *all = caller->callers;
	struct obs_address *address = caller->address;

	caller->older = all->newest;
	*(all->newest ? &all->newest->newer : &all->oldest) = caller;
	all->newest = caller;
	all->n_callers++;
	caller->address_older = address->newest;
	*(address->newest ? &address->newest->address_newer : &address->oldest) = caller;
	address->newest = caller;
	address->n_callers++;
}

static void lists_leave(struct obs_caller *caller)
{
	struct obs_callers *all = caller->callers;
	struct obs_address *address = caller->address;

	*(caller->newer ? &caller->newer->older : &all->newest) = caller->older;
	*(caller->older ? &caller->older->newer : &all->oldest) = caller->newer;
	all->n_callers--;
	*(caller->address_newer ? &caller->address_newer->address_older : &address->newest) =
		caller->address_older;
	*(caller->address_older ? &caller->address_older->address_newer : &address->oldest) =
		caller->address_newer;
	address->n_callers--;
}

/* ---- the end ---- */

static void caller_closed(uv_handle_t *handle)
{
	struct obs_caller *caller = handle->data;

	if (caller->stream.ops)
		obt_stream_close(&caller->stream);
	else
		close(caller->fd);
	free(caller);
}

/* Erases memory that has held tokens, secrets of sessions or keys. */
static void wipe(void *data, size_t size)
{
	if (data)
		explicit_bzero(data, size);
	free(data);
}

static void caller_close(struct obs_caller *caller)
{
	if (caller->state == CALLER_CLOSING)
		return;
	caller->state = CALLER_CLOSING;
	lists_leave(caller);
	wipe(caller->bytes, sizeof *caller->bytes);
	wipe(caller->handoff, sizeof *caller->handoff);
	caller->bytes = NULL;
	caller->handoff = NULL;
	uv_close((uv_handle_t *)&caller->poll, caller_closed);
}

/*
 * Reads until the client closes: closing with unread bytes would reset the connection and could
 * destroy the answer.
 */
static void throw_away(uv_poll_t *poll, int status, int events)
{
	struct obs_caller *caller = poll->data;
	char bytes[4096];
	ssize_t n = recv(caller->fd, bytes, sizeof bytes, MSG_DONTWAIT);

	(void)status;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && (caller->thrown_away += (size_t)n) < THROW_AWAY_MAX)
		return;
	caller_close(caller);
}

static void caller_linger(struct obs_caller *caller)
{
	caller->state = CALLER_REFUSED;
	caller->deadline = ob_clock_ns() + LINGER_NS;
	shutdown(caller->fd, SHUT_WR);
	uv_poll_start(&caller->poll, UV_READABLE, throw_away);
}

/*
 * Inside TLS after a handshake; in clear before TLS has begun; during a handshake no message can be
 * sent.
 */
static void refusal_send(struct obs_caller *caller, enum ob_err code, const char *text)
{
	if (caller->stream.ops)
		obs_refuse_stream(&caller->stream, code, text);
	else
		obs_refuse_send(caller->fd, code, text);
}

void obs_caller_refuse(
	struct obs_caller *caller, enum obs_refusal kind, enum ob_err code, const char *text)
{
	obs_address_refused(caller->address, kind, text);
	refusal_send(caller, code, text);
	caller_linger(caller);
}

/* ---- handing on ---- */

static void hand_on(struct obs_caller *caller)
{
	struct obs_handoff *handoff = caller->handoff;
	int memfd = -1;

	handoff->secure = caller->secure;
	if (caller->secure &&
		(!obt_tls_export(&caller->stream, caller->preface_bytes,
			 sizeof caller->preface_bytes, handoff->psk) ||
			!obt_tls_farewell(&caller->stream))) {
		caller_close(caller);
		return;
	}
	memfd = obt_shm_steal(&caller->stream);
	if (!obs_handoff_send_up(handoff, caller->fd, memfd))
		obs_refuse_send(caller->fd, OB_ERR_LIMIT, "the server is busy; try again");
	if (memfd >= 0)
		close(memfd);
	caller_close(caller);
}

/* ---- the message ---- */

static void message_whole(struct obs_caller *caller)
{
	if (!obs_caller_prove(caller))
		return;
	caller->state = CALLER_ENDING;
	if (!caller->secure)
		hand_on(caller);
}

/* Checks the header of the first message. NULL: it is good. */
static const char *frame_wrong(const struct obp_frame *frame, enum ob_err *ret_code)
{
	const uint8_t *bytes = (const uint8_t *)frame;

	*ret_code = OB_ERR_MAGIC;
	if (frame->magic != OBP_MAGIC)
		return bytes[0] == 22 && bytes[1] == 3
			? "the client speaks TLS and this address does not: name it as tcp://"
			: "no valid frame follows the preface";
	*ret_code = OB_ERR_VERSION;
	if (frame->version != OBP_FRAME_VERSION)
		return "unsupported frame version after the preface";
	*ret_code = OB_ERR_PROTOCOL;
	if (frame->type != OBP_FRAME_CONTROL)
		return "the client's first frame is not a control message";
	if (frame->size > OBS_HANDOFF_BODY || frame->size % 8 || frame->raw_size > frame->size ||
		frame->flags || frame->reserved)
		return "the client's first message is too long, or its header is invalid";
	return NULL;
}

/* Handles a receive that returned no bytes. */
static void nothing_came(struct obs_caller *caller, ssize_t n)
{
	const struct ob_cause *cause = obt_stream_cause(&caller->stream);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* if the client speaks no TLS: answer in clear */
	if (n < 0 && cause && errno == EPROTONOSUPPORT)
		obs_refuse_send(caller->fd, OB_ERR_TLS, cause->text);
	if (n < 0 && cause) {
		obs_caller_refuse(caller, OBS_REFUSED_TLS, OB_ERR_TLS, cause->text);
		return;
	}
	if (caller->secure)
		obs_address_refused(
			caller->address, OBS_REFUSED_TLS, "the client left during the handshake");
	caller_close(caller);
}

static void message_readable(uv_poll_t *poll, int status, int events)
{
	struct obs_caller *caller = poll->data;
	struct obs_caller_message *bytes = caller->bytes;
	enum ob_err code;
	const char *wrong;

	(void)status;
	(void)events;
	while (caller->state == CALLER_MESSAGE) {
		size_t head = sizeof bytes->frame,
		       want = caller->got < head ? head : head + bytes->frame.size;
		ssize_t n = caller->stream.ops->recv(
			&caller->stream, (uint8_t *)bytes + caller->got, want - caller->got, false);

		if (n <= 0) {
			nothing_came(caller, n);
			return;
		}
		caller->got += (size_t)n;
		if (caller->got < head)
			continue;
		if (caller->got == head && (wrong = frame_wrong(&bytes->frame, &code))) {
			obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, code, wrong);
			return;
		}
		if (caller->got == head + bytes->frame.size)
			message_whole(caller);
	}
	if (caller->state == CALLER_ENDING) {
		char byte;
		ssize_t n = caller->stream.ops->recv(&caller->stream, &byte, 1, false);

		if (n == 0 && obt_tls_ended(&caller->stream))
			hand_on(caller);
		else if (n > 0)
			obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_PROTOCOL,
				"the client sends more than one message before its session has "
				"begun");
		else
			nothing_came(caller, n);
	}
}

/* ---- the preface ---- */

static void preface_readable(uv_poll_t *poll, int status, int events);

/* Limits the rate of new sessions and questions of an address. */
static bool rate_check(struct obs_caller *caller)
{
	if (!obs_caller_limited(caller))
		return true;
	if (caller->preface.intent == OBP_INTENT_NEW && !obs_caller_may_guess(caller))
		return false;
	if (obs_address_take(
		    caller->address, caller->callers->options->address_rate, ob_clock_ns()))
		return true;
	obs_caller_refuse(caller, OBS_REFUSED_RATE, OB_ERR_LIMIT,
		"too many new connections from this address; try again in a second "
		"(--address-rate)");
	return false;
}

/* Waits for the message behind the preface. */
static void message_await(struct obs_caller *caller)
{
	bool joins = caller->preface.intent == OBP_INTENT_JOIN;
	uint8_t secret[OBP_SECRET_BYTES] = { 0 }, psk[OBT_TLS_PSK_BYTES];
	enum ob_err err = OB_ERR_NONE;

	if (joins && !obs_routes_find(caller->callers->routes, caller->preface.route, secret)) {
		obs_caller_refuse(
			caller, OBS_REFUSED_SECRET, OB_ERR_NOT_FOUND, "there is no such session");
		return;
	}
	caller->bytes = malloc(sizeof *caller->bytes);
	if (!caller->secure) {
		obt_stream_adopt(&caller->stream, caller->fd);
		obt_shm_expect(&caller->stream);
	} else if (joins) {
		err = obt_tls_join_key(secret, sizeof secret, psk)
			? obt_tls_accept_join(caller->fd, psk, &caller->stream)
			: OB_ERR_NO_MEMORY;
		explicit_bzero(psk, sizeof psk);
	} else {
		err = caller->callers->tls
			? obt_tls_accept(caller->callers->tls, caller->fd, &caller->stream)
			: OB_ERR_NO_MEMORY;
	}
	explicit_bzero(secret, sizeof secret);
	if (err || !caller->bytes) {
		caller_close(caller);
		return;
	}
	caller->state = CALLER_MESSAGE;
	caller->got = 0;
	uv_poll_start(&caller->poll, UV_READABLE, message_readable);
	message_readable(&caller->poll, 0, UV_READABLE);
}

static void load_ask(struct obs_caller *caller)
{
	struct obs_handoff *message = calloc(1, sizeof *message);

	if (message) {
		message->type = OBS_HANDOFF_LOAD;
		message->route = caller->preface.route;
	}
	if (!message || !obs_handoff_send_up(message, caller->fd, -1)) {
		free(message);
		obs_caller_refuse(
			caller, OBS_REFUSED_RATE, OB_ERR_LIMIT, "the server is busy; try again");
		return;
	}
	free(message);
	/* Clients that watch the load ask again on the same connection. */
	caller->asked = true;
	caller->got = 0;
	caller->deadline = ob_clock_ns() + caller->callers->options->hello_timeout_s * OB_SECOND;
}

static void introduced(struct obs_caller *caller)
{
	const struct obp_preface *p = &caller->preface;
	char text[128];

	if (p->version != OBP_VERSION) {
		snprintf(text, sizeof text,
			"this server speaks protocol version %u, the client version %u",
			OBP_VERSION, p->version);
		obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_VERSION, text);
	} else if (p->reserved != 0 || (p->intent == OBP_INTENT_NEW && p->route != 0)) {
		obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_PROTOCOL,
			"the preface has unknown bits: client and server versions may differ");
	} else if (p->intent == OBP_INTENT_JOIN) {
		/*
		 * Joins are exempt from the address's rate: a client that shares an address with
		 * others can resume its session.
		 */
		message_await(caller);
	} else if (p->intent == OBP_INTENT_NEW) {
		if (rate_check(caller))
			message_await(caller);
	} else if (p->intent == OBP_INTENT_LOAD) {
		if (rate_check(caller))
			load_ask(caller);
	} else {
		obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_PROTOCOL,
			"unknown intent in the preface: client and server versions may differ");
	}
}

static void preface_readable(uv_poll_t *poll, int status, int events)
{
	struct obs_caller *caller = poll->data;
	ssize_t n = recv(caller->fd, caller->preface_bytes + caller->got,
		sizeof caller->preface_bytes - caller->got, MSG_DONTWAIT);
	const uint32_t magic = OBP_MAGIC;

	(void)status;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		caller_close(caller);
		return;
	}
	caller->got += (size_t)n;
	/* Any other client is refused at its first wrong byte; it need not send sixteen. */
	if (memcmp(caller->preface_bytes, &magic, ob_min(caller->got, sizeof magic)) != 0)
		obs_caller_refuse(caller, OBS_REFUSED_PROTOCOL, OB_ERR_MAGIC,
			"this is an Outboard server; the client is not an Outboard client");
	else if (caller->got == sizeof caller->preface_bytes)
		introduced(caller);
}

/* ---- coming and going ---- */

/* Evicts one connection of an address: in the earliest state, the oldest of those. */
static void evict_one(struct obs_address *address)
{
	struct obs_caller *least = NULL;

	for (struct obs_caller *c = address->oldest; c; c = c->address_newer) {
		if (!least || c->state < least->state)
			least = c;
		if (least->state <= CALLER_PREFACE)
			break;
	}
	if (!least)
		return;
	if (least->state != CALLER_REFUSED) {
		obs_address_refused(
			address, OBS_REFUSED_SILENT, "connection limit reached: evicted");
		refusal_send(least, OB_ERR_LIMIT, "too many connections at once; try again");
	}
	caller_close(least);
}

bool obs_caller_make_room(struct obs_callers *callers)
{
	struct obs_address *fullest = obs_address_fullest();

	(void)callers;
	if (fullest)
		evict_one(fullest);
	return fullest != NULL;
}

void obs_caller_admit(struct obs_callers *callers, int fd, bool secure)
{
	uint64_t now = ob_clock_ns();
	struct obs_address *address = obs_address_of(fd, now);
	struct obs_caller *caller;

	if ((!address->local || callers->options->count_local) &&
		address->n_callers >= callers->options->address_connections)
		evict_one(address);
	else if (callers->n_callers >= callers->options->connections)
		obs_caller_make_room(callers);
	caller = calloc(1, sizeof *caller);
	if (!caller || uv_poll_init(&callers->loop, &caller->poll, fd) != 0) {
		free(caller);
		close(fd);
		return;
	}
	caller->callers = callers;
	caller->address = address;
	caller->state = CALLER_PREFACE;
	caller->secure = secure;
	caller->fd = fd;
	caller->deadline = now + callers->options->hello_timeout_s * OB_SECOND;
	caller->poll.data = caller;
	lists_join(caller);
	uv_poll_start(&caller->poll, UV_READABLE, preface_readable);
	/* Clients send the preface with the first packet. */
	preface_readable(&caller->poll, 0, UV_READABLE);
}

static void too_late(struct obs_caller *caller)
{
	if (caller->state == CALLER_REFUSED ||
		(caller->asked && caller->state == CALLER_PREFACE && caller->got == 0))
		caller_close(caller); /* it has been answered, with a refusal or the load */
	else
		obs_caller_refuse(caller, OBS_REFUSED_SILENT, OB_ERR_TIMEOUT,
			"the client did not introduce itself in time");
}

void obs_caller_sweep(struct obs_callers *callers, uint64_t now)
{
	uint64_t due = callers->swept + OBS_SWEEP_MS * OB_MS;
	/* Less than a turn is ordinary. */
	uint64_t late = now > due + OBS_SWEEP_MS * OB_MS ? now - due : 0;
	struct obs_caller *newer;

	callers->swept = now;
	for (struct obs_caller *c = callers->oldest; c; c = newer) {
		newer = c->newer;
		c->deadline += late;
		if (now >= c->deadline)
			too_late(c);
	}
}
