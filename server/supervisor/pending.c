/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/pending.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "server/common/refuse.h"
#include "server/supervisor/audit.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/pool.h"

#define LINGER_MS      1000       /* how long a refused client can read the reason */
#define THROW_AWAY_MAX (1u << 20) /* bytes read and dropped meanwhile */

static void pending_closed(uv_handle_t *handle)
{
	struct obs_pending *pending = handle->data;
	struct obs_super *super = pending->super;

	if (--pending->closes_left > 0)
		return;
	obs_handoff_close(pending->fds);
	obs_lease_drop(super, pending->reservation, NULL);
	if (pending->prev)
		pending->prev->next = pending->next;
	else
		super->pending = pending->next;
	if (pending->next)
		pending->next->prev = pending->prev;
	super->n_pending--;
	explicit_bzero(&pending->handoff, sizeof pending->handoff);
	free(pending);
	super->part_gone(super);
}

static void pending_close(struct obs_pending *pending)
{
	if (pending->state == OBS_PENDING_CLOSING)
		return;
	if (pending->state == OBS_PENDING_WAITING)
		pending->super->n_waiting--;
	pending->state = OBS_PENDING_CLOSING;
	pending->closes_left = 2;
	uv_close((uv_handle_t *)&pending->poll, pending_closed);
	uv_close((uv_handle_t *)&pending->timer, pending_closed);
}

static void linger_over(uv_timer_t *timer)
{
	pending_close(timer->data);
}

/*
 * Reads until the client closes: closing with unread bytes would reset the connection and could
 * destroy the answer.
 */
static void throw_away(uv_poll_t *poll, int status, int events)
{
	struct obs_pending *pending = poll->data;
	char bytes[4096];
	ssize_t n;

	(void)status;
	(void)events;
	n = recv(pending->fds[0], bytes, sizeof bytes, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && (pending->thrown_away += (size_t)n) < THROW_AWAY_MAX)
		return;
	pending_close(pending);
}

/*
 * In clear also on tls://: the TLS layer of admission is over, and the session's own begins only
 * with a worker.
 */
static void pending_refuse(struct obs_pending *pending, enum ob_err code, const char *text)
{
	if (pending->state == OBS_PENDING_WAITING)
		pending->super->n_waiting--;
	pending->super->refused_total++;
	obs_audit_refused(pending->handoff.identity.from, pending->handoff.identity.who, text, 1);
	obs_refuse_send(pending->fds[0], code, text);
	pending->state = OBS_PENDING_REFUSED;
	shutdown(pending->fds[0], SHUT_WR);
	uv_poll_start(&pending->poll, UV_READABLE, throw_away);
	uv_timer_start(&pending->timer, linger_over, LINGER_MS, 0);
}

static void waited_too_long(uv_timer_t *timer)
{
	pending_refuse(timer->data, OB_ERR_TIMEOUT,
		"no worker became free in time; try again later or raise --max-sessions");
}

static void client_left(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	pending_close(poll->data);
}

/* ---- limits ---- */

/*
 * The most sessions of one token or one address: as set, else seven eighths (all, if there are
 * fewer than eight).
 */
static uint32_t most_places(const struct obs_super *super, uint32_t set)
{
	uint32_t places = super->options->max_sessions;

	return set ? set : places - places / 8;
}

static bool same_holder(const struct obs_identity *a, const struct obs_identity *b)
{
	return a->proved && b->proved && strcmp(a->who, b->who) == 0;
}

static bool same_address(const struct obs_identity *a, const struct obs_identity *b)
{
	return strcmp(a->address, b->address) == 0;
}

/* Counts sessions, and connections that wait for one. */
static uint32_t count(const struct obs_super *super, const struct obs_identity *of,
	bool (*same)(const struct obs_identity *, const struct obs_identity *))
{
	uint32_t n = 0;

	for (const struct obs_proc *p = super->procs; p; p = p->next)
		n += p->state == OBS_PROC_BUSY && same(&p->identity, of);
	for (const struct obs_pending *c = super->pending; c; c = c->next)
		n += c->state == OBS_PENDING_WAITING && same(&c->handoff.identity, of);
	return n;
}

/* NULL: a session may begin. Else the reason. */
static const char *place_refused(
	const struct obs_super *super, const struct obs_identity *who, enum ob_err *ret_code)
{
	uint64_t own = who->allow.value[OBT_ALLOW_SESSIONS];
	uint32_t holder = most_places(super, super->options->token_sessions);

	*ret_code = OB_ERR_REFUSED;
	if (super->draining)
		return "the server is shutting down";
	if (super->n_busy + super->n_waiting >= super->options->max_sessions)
		return "the server is full; try again later or raise --max-sessions";
	*ret_code = OB_ERR_LIMIT;
	if (own)
		holder = (uint32_t)ob_min(own, (uint64_t)holder);
	if (who->proved && count(super, who, same_holder) >= holder)
		return "limit of sessions for this token or certificate reached; end one, or raise "
		       "--token-sessions or the token's own limit";
	if ((!who->local || super->options->count_local) &&
		count(super, who, same_address) >=
			most_places(super, super->options->address_sessions))
		return "limit of sessions for this address reached; end one, or raise "
		       "--address-sessions";
	return NULL;
}

/* ---- new connections ---- */

static struct obs_pending *pending_new(
	struct obs_super *super, const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS])
{
	struct obs_pending *pending =
		super->n_pending < OBS_PENDING_MAX + super->options->max_sessions
		? calloc(1, sizeof *pending)
		: NULL;

	if (!pending || uv_poll_init(&super->loop, &pending->poll, fds[0]) != 0) {
		free(pending);
		obs_refuse_send(fds[0], OB_ERR_LIMIT, "too many connections at once; try again");
		obs_handoff_close(fds);
		return NULL;
	}
	uv_timer_init(&super->loop, &pending->timer);
	pending->super = super;
	pending->state = OBS_PENDING_ARRIVED;
	pending->handoff = *handoff;
	memcpy(pending->fds, fds, sizeof pending->fds);
	pending->poll.data = pending->timer.data = pending;
	pending->next = super->pending;
	if (super->pending)
		super->pending->prev = pending;
	super->pending = pending;
	super->n_pending++;
	return pending;
}

void obs_pending_admit(
	struct obs_super *super, struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS])
{
	enum ob_err code = OB_ERR_DRIVER;
	const char *why = place_refused(super, &handoff->identity, &code);
	struct obs_reservation *reservation = NULL;
	struct obs_pending *pending;
	struct ob_cause cause;

	handoff->place = (struct obs_place){ 0 };
	if (!why && handoff->ticketed) {
		code = obs_lease_take(super, handoff, &reservation, &cause);
		why = code ? cause.text : NULL;
	}
	if (!why && obs_pool_start_session(super, handoff, reservation, fds)) {
		obs_handoff_close(fds);
		return;
	}
	if (!why && super->retrying) {
		code = OB_ERR_DRIVER;
		why = super->start_error;
	}
	pending = pending_new(super, handoff, fds);
	if (!pending) {
		obs_lease_drop(super, reservation, NULL);
		return;
	}
	pending->reservation = reservation;
	if (why) {
		pending_refuse(pending, code, why);
		return;
	}
	pending->state = OBS_PENDING_WAITING;
	super->n_waiting++;
	uv_poll_start(&pending->poll, UV_DISCONNECT, client_left);
	uv_timer_start(&pending->timer, waited_too_long, OBS_WAIT_TIMEOUT_MS, 0);
	obs_pool_refill(super);
}

void obs_pending_join(
	struct obs_super *super, const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS])
{
	enum ob_err err = obs_pool_join_session(super, handoff, fds);

	/*
	 * A join of the session's owner is answered without waiting; the client retries unless the
	 * session is gone.
	 */
	if (err)
		obs_refuse_send(fds[0], err,
			err == OB_ERR_NOT_FOUND ? "there is no such session"
						: "the session's worker is busy; try again");
	obs_handoff_close(fds);
}

void obs_pending_serve_waiting(struct obs_super *super)
{
	struct obs_pending *oldest;

	do {
		oldest = NULL;
		for (struct obs_pending *c = super->pending; c; c = c->next)
			if (c->state == OBS_PENDING_WAITING)
				oldest = c; /* new ones are at the front */
		if (!oldest)
			return;
		if (oldest->reservation && oldest->reservation->killed) {
			pending_refuse(oldest, OB_ERR_REFUSED,
				obs_reservation_killed_text(oldest->reservation));
			continue;
		}
		/* Not counted as waiting meanwhile: the pool would start a worker for it. */
		oldest->state = OBS_PENDING_ARRIVED;
		super->n_waiting--;
		if (!obs_pool_start_session(
			    super, &oldest->handoff, oldest->reservation, oldest->fds)) {
			oldest->state = OBS_PENDING_WAITING;
			super->n_waiting++;
			return;
		}
		oldest->reservation = NULL; /* the worker's now */
		pending_close(oldest);
	} while (true);
}

void obs_pending_refuse_waiting(struct obs_super *super, enum ob_err code, const char *text)
{
	for (struct obs_pending *c = super->pending; c; c = c->next)
		if (c->state == OBS_PENDING_WAITING)
			pending_refuse(c, code, text);
}

void obs_pending_refuse_killed(struct obs_super *super)
{
	for (struct obs_pending *c = super->pending; c; c = c->next)
		if (c->state == OBS_PENDING_WAITING && c->reservation && c->reservation->killed)
			pending_refuse(
				c, OB_ERR_REFUSED, obs_reservation_killed_text(c->reservation));
}

void obs_pending_close_all(struct obs_super *super)
{
	for (struct obs_pending *c = super->pending; c; c = c->next)
		pending_close(c);
}
