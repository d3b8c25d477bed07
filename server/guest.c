/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "server/refuse.h"
#include "server/supervisor.h"

#define LINGER_MS 1000            /* a refused client has this long to read why */
#define THROW_AWAY_MAX (1u << 20) /* bytes of it that are read and dropped meanwhile */

static void guest_closed(uv_handle_t *handle)
{
	struct obs_guest *guest = handle->data;
	struct obs_super *super = guest->super;

	if (--guest->closes_left > 0)
		return;
	if (guest->fd >= 0)
		close(guest->fd);
	if (guest->prev)
		guest->prev->next = guest->next;
	else
		super->guests = guest->next;
	if (guest->next)
		guest->next->prev = guest->prev;
	super->n_guests--;
	free(guest);
	obs_super_check_done(super);
}

static void guest_close(struct obs_guest *guest)
{
	if (guest->state == OBS_GUEST_CLOSING)
		return;
	if (guest->state == OBS_GUEST_WAITING)
		guest->super->n_waiting--;
	guest->state = OBS_GUEST_CLOSING;
	guest->closes_left = 2;
	uv_close((uv_handle_t *)&guest->poll, guest_closed);
	uv_close((uv_handle_t *)&guest->timer, guest_closed);
}

static void linger_over(uv_timer_t *timer)
{
	guest_close(timer->data);
}

/* Closing at once with unread bytes would reset the connection and could destroy the answer on its way: read until the client closes. */
static void throw_away(uv_poll_t *poll, int status, int events)
{
	struct obs_guest *guest = poll->data;
	char bytes[4096];
	ssize_t n;

	(void)status;
	(void)events;
	n = recv(guest->fd, bytes, sizeof bytes, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && (guest->thrown_away += (size_t)n) < THROW_AWAY_MAX)
		return;
	guest_close(guest);
}

/* What there was to say has been said: the client gets a moment to read it. */
static void guest_linger(struct obs_guest *guest)
{
	guest->state = OBS_GUEST_REFUSED;
	shutdown(guest->fd, SHUT_WR);
	uv_poll_start(&guest->poll, UV_READABLE, throw_away);
	uv_timer_start(&guest->timer, linger_over, LINGER_MS, 0);
}

static void guest_refuse(struct obs_guest *guest, enum ob_err code, const char *text)
{
	if (guest->state == OBS_GUEST_WAITING)
		guest->super->n_waiting--;
	guest->super->refused_total++;
	ob_info("a connection was refused: %s", text);
	obs_refuse_send(guest->fd, code, text);
	guest_linger(guest);
}

static void waited_too_long(uv_timer_t *timer)
{
	guest_refuse(timer->data, OB_ERR_TIMEOUT, "no worker became free in time; try again later or raise --max-sessions");
}

static void client_left(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	guest_close(poll->data);
}

static void guest_new_session(struct obs_guest *guest)
{
	struct obs_super *super = guest->super;

	if (super->draining) {
		guest_refuse(guest, OB_ERR_REFUSED, "the server is shutting down");
	} else if (super->n_busy + super->n_waiting >= super->options->max_sessions) {
		guest_refuse(guest, OB_ERR_REFUSED, "the server is full; try again later or raise --max-sessions");
	} else if (obs_pool_start_session(super, guest->fd, guest->secure)) {
		guest_close(guest);
	} else if (super->retrying) {
		guest_refuse(guest, OB_ERR_DRIVER, super->start_error);
	} else {
		guest->state = OBS_GUEST_WAITING;
		super->n_waiting++;
		uv_poll_start(&guest->poll, UV_DISCONNECT, client_left);
		uv_timer_start(&guest->timer, waited_too_long, OBS_WAIT_TIMEOUT_MS, 0);
		obs_pool_refill(super);
	}
}

static void preface_readable(uv_poll_t *poll, int status, int events);
static void preface_too_late(uv_timer_t *timer);

static void guest_await(struct obs_guest *guest)
{
	guest->asked = true;
	guest->got = 0;
	uv_poll_start(&guest->poll, UV_READABLE, preface_readable);
	uv_timer_start(&guest->timer, preface_too_late, (uint64_t)guest->super->options->hello_timeout_s * 1000, 0);
}

static void guest_introduced(struct obs_guest *guest)
{
	const struct obp_preface *p = &guest->preface;
	char text[128];

	uv_poll_stop(&guest->poll);
	uv_timer_stop(&guest->timer);
	if (p->version != OBP_VERSION) {
		snprintf(text, sizeof text, "this server speaks protocol version %u, the client version %u", OBP_VERSION, p->version);
		guest_refuse(guest, OB_ERR_VERSION, text);
	} else if (p->reserved != 0 || (p->intent == OBP_INTENT_NEW && p->route != 0)) {
		guest_refuse(guest, OB_ERR_PROTOCOL, "the preface has bits this server does not know");
	} else if (p->intent == OBP_INTENT_NEW) {
		guest_new_session(guest);
	} else if (p->intent == OBP_INTENT_JOIN) {
		if (obs_pool_join_session(guest->super, p->route, guest->fd, guest->secure))
			guest_close(guest);
		else
			guest_refuse(guest, OB_ERR_NOT_FOUND, "there is no such session");
	} else if (p->intent == OBP_INTENT_LOAD) {
		if (obs_status_answer(guest->super, guest->fd, p->route))
			guest_await(guest); /* who watches asks again on the same connection */
		else
			guest_linger(guest);
	} else {
		guest_refuse(guest, OB_ERR_PROTOCOL, "the preface asks for something this server does not know");
	}
}

static void preface_readable(uv_poll_t *poll, int status, int events)
{
	struct obs_guest *guest = poll->data;
	ssize_t n = recv(guest->fd, guest->bytes + guest->got, sizeof guest->bytes - guest->got, MSG_DONTWAIT);
	const uint32_t magic = OBP_MAGIC;

	(void)status;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		guest_close(guest);
		return;
	}
	guest->got += (size_t)n;
	/* Something else than a client of ours is told so at its first wrong byte; it need not send sixteen. */
	if (memcmp(guest->bytes, &magic, guest->got < sizeof magic ? guest->got : sizeof magic) != 0)
		guest_refuse(guest, OB_ERR_MAGIC, "this is an Outboard server; the client is not an Outboard client");
	else if (guest->got == sizeof guest->bytes)
		guest_introduced(guest);
}

static void preface_too_late(uv_timer_t *timer)
{
	struct obs_guest *guest = timer->data;

	if (guest->asked && guest->got == 0)
		guest_close(guest); /* it had its answer */
	else
		guest_refuse(guest, OB_ERR_TIMEOUT, "the client did not introduce itself in time");
}

/*
 * The house is full. Who has stood in the door longest without a word gives way: a client of ours introduces itself with its first packet, so a crowd
 * that says nothing does not keep it out. False: all of them wait for a worker, or are leaving.
 */
static bool make_room(struct obs_super *super)
{
	struct obs_guest *oldest = NULL;

	if (super->n_guests >= 2 * OBS_GUESTS_MAX)
		return false;
	for (struct obs_guest *g = super->guests; g; g = g->next)
		if (g->state == OBS_GUEST_PREFACE || g->state == OBS_GUEST_REFUSED)
			oldest = g; /* new ones are put in front */
	if (!oldest)
		return false;
	if (oldest->state == OBS_GUEST_PREFACE)
		obs_refuse_send(oldest->fd, OB_ERR_LIMIT, "too many connections at once");
	guest_close(oldest);
	return true;
}

void obs_guest_admit(struct obs_super *super, int fd, bool secure)
{
	struct obs_guest *guest;

	if ((super->n_guests >= OBS_GUESTS_MAX && !make_room(super)) || !(guest = calloc(1, sizeof *guest))) {
		obs_refuse_send(fd, OB_ERR_LIMIT, "too many connections at once");
		close(fd);
		return;
	}
	guest->super = super;
	guest->fd = fd;
	guest->secure = secure;
	guest->poll.data = guest->timer.data = guest;
	guest->next = super->guests;
	if (super->guests)
		super->guests->prev = guest;
	super->guests = guest;
	super->n_guests++;
	uv_timer_init(&super->loop, &guest->timer);
	uv_poll_init(&super->loop, &guest->poll, fd);
	uv_poll_start(&guest->poll, UV_READABLE, preface_readable);
	uv_timer_start(&guest->timer, preface_too_late, (uint64_t)super->options->hello_timeout_s * 1000, 0);
}

void obs_guest_serve_waiting(struct obs_super *super)
{
	struct obs_guest *oldest;

	do {
		oldest = NULL;
		for (struct obs_guest *g = super->guests; g; g = g->next)
			if (g->state == OBS_GUEST_WAITING)
				oldest = g; /* new ones are put in front */
		if (!oldest)
			return;
		/* Not waiting while it is served: the pool would start a worker for it. */
		oldest->state = OBS_GUEST_PREFACE;
		super->n_waiting--;
		if (!obs_pool_start_session(super, oldest->fd, oldest->secure)) {
			oldest->state = OBS_GUEST_WAITING;
			super->n_waiting++;
			return;
		}
		guest_close(oldest);
	} while (true);
}

void obs_guest_refuse_waiting(struct obs_super *super, enum ob_err code, const char *text)
{
	for (struct obs_guest *g = super->guests; g; g = g->next)
		if (g->state == OBS_GUEST_WAITING)
			guest_refuse(g, code, text);
}

void obs_guest_close_all(struct obs_super *super)
{
	for (struct obs_guest *g = super->guests; g; g = g->next)
		guest_close(g);
}
