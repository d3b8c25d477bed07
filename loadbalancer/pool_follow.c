/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/pool_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"
#include "loadbalancer/pool_link.h"

/* All that is large, in one block of memory. */
struct following {
	const struct obl_pool *pool;
	struct obl_balancers list;
	struct obl_pool_link link;
	struct obp_pool_message message;
};

static bool is_cancelled(const struct following *f)
{
	return f->pool->cancelled(f->pool->context);
}

static void clean(char *text)
{
	text[ob_text_clean(text, strlen(text))] = '\0';
}

/* The answer, after any time. OB_ERR_PROTOCOL and the errors of the connection: ask another one. */
static enum ob_err answer_wait(
	struct following *f, struct obp_pool_moved *ret, struct ob_cause *ret_cause)
{
	struct obp_pool_message *m = &f->link.message;
	enum ob_err err;

	err = obl_pool_link_await(
		&f->link, f->pool->timeout_ns, f->pool->cancelled, f->pool->context, ret_cause);
	if (err)
		return err == OB_ERR_REFUSED ? OB_ERR_PROTOCOL : err;
	if (m->type == OBP_POOL_MOVED &&
		memcmp(m->u.moved.id, f->message.u.follow.id, sizeof m->u.moved.id) == 0) {
		*ret = m->u.moved;
		clean(ret->server);
		clean(ret->text);
		return OB_ERR_NONE;
	}
	if (m->type != OBP_POOL_REFUSED)
		return OB_ERR_PROTOCOL;
	clean(m->u.refused.text);
	ob_cause_set(ret_cause,
		m->u.refused.code == OBP_POOL_DENIED ? OB_ERR_DENIED : OB_ERR_REFUSED, "%s",
		m->u.refused.text);
	return m->u.refused.code == OBP_POOL_INVALID || m->u.refused.code == OBP_POOL_DENIED
		? OB_ERR_REFUSED
		: OB_ERR_PROTOCOL;
}

static enum ob_err follow_at(struct following *f, const struct obl_balancer *balancer,
	struct obp_pool_moved *ret, struct ob_cause *ret_cause)
{
	uint64_t deadline = ob_clock_ns() + f->pool->timeout_ns;
	char *token = f->message.u.follow.token;
	enum ob_err err = obl_pool_link_open(&f->link, balancer, deadline, ret_cause);

	if (err)
		return err;
	snprintf(token, OBP_TOKEN_MAX, "%s", f->link.token);
	err = obl_pool_link_send(&f->link, &f->message, deadline, ret_cause);
	explicit_bzero(token, OBP_TOKEN_MAX);
	if (!err)
		err = answer_wait(f, ret, ret_cause);
	obl_pool_link_close(&f->link);
	return err;
}

/* ---- the offer ---- */

/* While an offer is asked for. */
struct taking {
	const struct obl_pool *pool;
	uint64_t until; /* the place is not kept for longer */
};

static bool taking_ends(void *context)
{
	const struct taking *t = context;

	return ob_clock_ns() >= t->until || t->pool->cancelled(t->pool->context);
}

/* Asks for what was offered. OB_ERR_PROTOCOL: it cannot be had; follow on. */
static enum ob_err offer_take(const struct following *f, const struct obp_pool_moved *moved)
{
	OB_CLEANUP(ob_freep) struct obp_pool_ask *ask = calloc(1, sizeof *ask);
	struct taking taking = { f->pool, ob_clock_ns() + moved->left_s * OB_SECOND };
	const struct obl_pool pool = { .balancers = f->pool->balancers,
		.timeout_ns = f->pool->timeout_ns,
		.cancelled = taking_ends,
		.context = &taking };
	struct obp_pool_refused refused;
	struct obp_pool_grant grant;
	struct ob_cause cause;
	enum ob_err err;

	if (!ask || obl_pool_ask_init(ask, NULL))
		return OB_ERR_NO_MEMORY;
	memcpy(ask->id, moved->successor, sizeof ask->id);
	ask->offered = 1;
	err = obl_pool_ask(&pool, ask, &grant, &refused, &cause);
	if (err == OB_ERR_NONE)
		free(grant.parts);
	else if (!is_cancelled(f))
		ob_info("the place that the pool offers on %s cannot be had, the program stays: %s",
			moved->server, err == OB_ERR_REFUSED ? refused.text : cause.text);
	if (err == OB_ERR_CANCELLED && is_cancelled(f))
		return err;
	return err ? OB_ERR_PROTOCOL : OB_ERR_NONE;
}

/* ---- all balancers, again and again ---- */

static bool is_final(enum ob_err err)
{
	return err == OB_ERR_NONE || err == OB_ERR_REFUSED || err == OB_ERR_CANCELLED ||
		err == OB_ERR_NO_MEMORY;
}

/* False: cancelled. */
static bool pause_for(const struct following *f, uint64_t ns)
{
	uint64_t end = ob_clock_ns() + ns, now;

	while ((now = ob_clock_ns()) < end) {
		struct timespec ts = { .tv_nsec = (long)ob_min(end - now, OBL_POOL_LOOK_NS) };

		if (is_cancelled(f))
			return false;
		nanosleep(&ts, NULL);
	}
	return true;
}

enum ob_err obl_pool_follow(const struct obl_pool *pool, const uint8_t id[OBP_RESERVATION_BYTES],
	bool fixed, struct obp_pool_moved *ret, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct following *f = calloc(1, sizeof *f);
	uint64_t pause = OBL_POOL_RETRY_MIN_NS;
	enum ob_err err;

	if (!f)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	f->pool = pool;
	err = obl_balancers_parse(pool->balancers, &f->list, ret_cause);
	if (err)
		return err;
	f->message.type = OBP_POOL_FOLLOW;
	memcpy(f->message.u.follow.id, id, OBP_RESERVATION_BYTES);
	f->message.u.follow.fixed = fixed;
	for (;;) {
		obl_balancers_shuffle(&f->list);
		for (uint32_t i = 0; i < f->list.n && !is_cancelled(f); i++) {
			uint64_t began = ob_clock_ns();

			err = follow_at(f, &f->list.list[i], ret, ret_cause);
			if (err == OB_ERR_NONE)
				err = offer_take(f, ret);
			if (is_final(err))
				return err;
			/* a connection that held for longer than the last pause was no failure */
			if (ob_clock_ns() > began + f->pool->timeout_ns + pause)
				pause = OBL_POOL_RETRY_MIN_NS;
		}
		if (!pause_for(f, pause))
			return OB_ERR_CANCELLED;
		pause = ob_min(2 * pause, OBL_POOL_RETRY_MAX_NS);
	}
}
