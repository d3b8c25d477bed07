/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/text.h"
#include "loadbalancer/pool_link.h"
#include "loadbalancer/ticket_text.h"

#define CANCEL_NS (2 * OB_SECOND) /* for a balancer to confirm that a request is cancelled */
/* how late the last answer to a waiting request may be */
#define LATE_NS   (5 * OB_SECOND)

uint64_t obl_pool_timeout_ns(void)
{
	const char *text = getenv("OUTBOARD_TIMEOUT");
	uint64_t seconds;

	return text && ob_text_parse_number(text, 1, OBP_POOL_LINGER_MAX_S, &seconds)
		? seconds * OB_SECOND
		: OBL_POOL_TIMEOUT_NS;
}

enum ob_err obl_pool_check(const char *balancers, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct obl_balancers *list = calloc(1, sizeof *list);

	return list ? obl_balancers_parse(balancers, list, ret_cause)
		    : ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
}

static void clean(char *text)
{
	text[ob_text_clean(text, strlen(text))] = '\0';
}

/* ---- a request ---- */

enum ob_err obl_pool_ask_init(struct obp_pool_ask *ask, const char *program)
{
	const char *user = getenv("USER"), *base = program ? strrchr(program, '/') : NULL;

	*ask = (struct obp_pool_ask){ .gpus = 1, .pid = (uint64_t)getpid() };
	snprintf(ask->program, sizeof ask->program, "%s", base ? base + 1 : program ? program : "");
	if (gethostname(ask->host, sizeof ask->host - 1))
		ask->host[0] = '\0';
	if (user && *user)
		snprintf(ask->user, sizeof ask->user, "%s", user);
	else
		snprintf(ask->user, sizeof ask->user, "%u", (unsigned)getuid());
	return getrandom(ask->id, sizeof ask->id, 0) == sizeof ask->id ? OB_ERR_NONE : OB_ERR_IO;
}

/* The state of one request over all balancers. */
struct asking {
	const struct obl_pool *pool;
	struct obp_pool_ask *ask;
	uint64_t until;    /* the end of the wait */
	bool sent;         /* a balancer may have got the request, and has not answered it */
	bool queued;       /* a balancer has answered that the request waits */
	bool answered;     /* the same, or it was refused for now */
	bool away;         /* a balancer could not be reached, and may come back */
	bool told;         /* that none answers */
	uint64_t retry_ns; /* the longest pause that a refusal named */
	struct obp_pool_grant *ret_grant;
	struct obp_pool_refused *refused; /* the last refusal; code 0: none */
	struct ob_cause *ret_cause;
};

static bool is_cancelled(const struct obl_pool *pool)
{
	return pool->cancelled && pool->cancelled(pool->context);
}

/* Waits until something can be received. OB_ERR_TIMEOUT, _CANCELLED. */
static enum ob_err wait_for_answer(
	const struct obl_pool *pool, struct obl_pool_link *link, uint64_t deadline)
{
	for (;;) {
		uint64_t now = ob_clock_ns();

		if (is_cancelled(pool))
			return OB_ERR_CANCELLED;
		/* an error is seen by the receive */
		if (obt_stream_wait(
			    &link->stream, POLLIN, ob_min(deadline, now + OBL_POOL_LOOK_NS)) != 0)
			return OB_ERR_NONE;
		if (now >= deadline)
			return OB_ERR_TIMEOUT;
	}
}

/* Tells the balancer, and waits a little until it has confirmed or closed. */
static void cancel_on(struct obl_pool_link *link, const uint8_t id[OBP_RESERVATION_BYTES])
{
	OB_CLEANUP(ob_freep) struct obp_pool_message *message = calloc(1, sizeof *message);
	uint64_t deadline = ob_clock_ns() + CANCEL_NS;

	if (!message)
		return;
	message->type = OBP_POOL_CANCEL;
	memcpy(message->u.cancel.id, id, OBP_RESERVATION_BYTES);
	if (obl_pool_link_send(link, message, deadline, NULL))
		return;
	/* a grant or a position may be on its way */
	while (obl_pool_link_receive(link, deadline, NULL) == OB_ERR_NONE)
		if (link->message.type == OBP_POOL_REFUSED || link->message.type == OBP_POOL_DONE)
			return;
}

/* A grant must be of this reservation, and its tickets too. */
static enum ob_err grant_take(struct asking *a, struct obl_pool_link *link)
{
	struct obp_pool_grant *grant = &link->message.u.grant;
	OB_CLEANUP(ob_freep) struct obp_ticket *ticket = calloc(1, sizeof *ticket);
	bool good =
		ticket && grant->n_parts && memcmp(grant->id, a->ask->id, sizeof grant->id) == 0;

	for (uint32_t i = 0; good && i < grant->n_parts; i++) {
		struct obp_pool_part *part = &grant->parts[i];

		good = obl_ticket_read(part->ticket, part->ticket_size, ticket) &&
			memcmp(ticket->reservation, grant->id, sizeof grant->id) == 0;
		clean(part->server);
	}
	if (!good)
		return ob_cause_set(a->ret_cause, OB_ERR_PROTOCOL,
			"%.200s: its grant is not one for this request", link->balancer->text);
	clean(grant->tenant);
	*a->ret_grant = *grant;
	grant->parts = NULL;
	grant->n_parts = 0;
	return OB_ERR_NONE;
}

/* Handles one message. OB_ERR_TIMEOUT: the request waits on. */
static enum ob_err message_take(struct asking *a, struct obl_pool_link *link)
{
	struct obp_pool_message *m = &link->message;

	switch (m->type) {
	case OBP_POOL_QUEUED:
		a->queued = a->answered = true;
		clean(m->u.queued.reason);
		if (a->pool->queued)
			a->pool->queued(a->pool->context, &m->u.queued);
		return OB_ERR_TIMEOUT;
	case OBP_POOL_GRANT:
		a->sent = false;
		return grant_take(a, link);
	case OBP_POOL_REFUSED:
		a->sent = false;
		a->answered = true;
		*a->refused = m->u.refused;
		clean(a->refused->text);
		a->retry_ns = ob_max(a->retry_ns,
			ob_min(m->u.refused.retry_ms, OBL_POOL_RETRY_MAX_NS / OB_MS) * OB_MS);
		return OB_ERR_REFUSED;
	default:
		return ob_cause_set(a->ret_cause, OB_ERR_PROTOCOL,
			"%.200s: unexpected message of type %u", link->balancer->text,
			(unsigned)m->type);
	}
}

/* Waits for the answer to a request that was sent. */
static enum ob_err answer_wait(struct asking *a, struct obl_pool_link *link)
{
	uint64_t deadline = ob_clock_ns() + a->pool->timeout_ns;
	/* however often the balancer reports a position */
	const uint64_t last = ob_max(a->until, deadline) + LATE_NS;
	enum ob_err err;

	for (;;) {
		err = wait_for_answer(a->pool, link, deadline);
		if (err == OB_ERR_CANCELLED) {
			cancel_on(link, a->ask->id);
			return err;
		}
		if (err)
			return ob_cause_set(a->ret_cause, err, "%.200s: it did not answer in time",
				link->balancer->text);
		err = obl_pool_link_receive(
			link, ob_clock_ns() + a->pool->timeout_ns, a->ret_cause);
		if (err)
			return err;
		err = message_take(a, link);
		if (err != OB_ERR_TIMEOUT)
			return err;
		deadline = last;
	}
}

/* Asks one balancer. */
static enum ob_err ask_one(struct asking *a, const struct obl_balancer *balancer)
{
	OB_CLEANUP(ob_freep) struct obl_pool_link *link = calloc(1, sizeof *link);
	OB_CLEANUP(ob_freep) struct obp_pool_message *message = calloc(1, sizeof *message);
	uint64_t now = ob_clock_ns(), deadline = now + a->pool->timeout_ns;
	enum ob_err err;

	if (!link || !message)
		return ob_cause_set(a->ret_cause, OB_ERR_NO_MEMORY, "no memory");
	err = obl_pool_link_open(link, balancer, deadline, a->ret_cause);
	if (err)
		return err;
	snprintf(a->ask->token, sizeof a->ask->token, "%s", link->token);
	a->ask->wait_s =
		(uint32_t)(a->until > now ? (a->until - now + OB_SECOND - 1) / OB_SECOND : 0);
	message->type = OBP_POOL_ASK;
	message->u.ask = *a->ask;
	a->sent = true;
	err = obl_pool_link_send(link, message, deadline, a->ret_cause);
	if (!err)
		err = answer_wait(a, link);
	obl_pool_link_close(link);
	explicit_bzero(a->ask->token, sizeof a->ask->token);
	explicit_bzero(message->u.ask.token, sizeof message->u.ask.token);
	return err;
}

/* A refusal that every balancer would give. */
static bool is_final(const struct asking *a)
{
	return a->refused->code != OBP_POOL_LATER && a->refused->code != OBP_POOL_FAULT;
}

/* Asks each balancer once. True: *ret_err is the result. */
static bool pass(struct asking *a, struct obl_balancers *list, enum ob_err *ret_err)
{
	obl_balancers_shuffle(list);
	for (uint32_t i = 0; i < list->n; i++) {
		enum ob_err err = ask_one(a, &list->list[i]);

		*ret_err = err;
		a->away |= err == OB_ERR_CONNECT || err == OB_ERR_TIMEOUT || err == OB_ERR_IO ||
			err == OB_ERR_CLOSED;
		if (err == OB_ERR_NONE || err == OB_ERR_CANCELLED || err == OB_ERR_NO_MEMORY ||
			(err == OB_ERR_REFUSED && a->refused->code && is_final(a)))
			return true;
		/* the wait is over: another balancer would say the same */
		if (err == OB_ERR_REFUSED && a->refused->code && a->queued &&
			ob_clock_ns() + OB_SECOND >= a->until)
			return true;
		if (a->queued && a->pool->lost && err != OB_ERR_REFUSED)
			a->pool->lost(a->pool->context, a->ret_cause->text);
	}
	return false;
}

/* OB_ERR_CANCELLED. */
static enum ob_err pause_for(const struct obl_pool *pool, uint64_t ns)
{
	uint64_t end = ob_clock_ns() + ns, now;

	while ((now = ob_clock_ns()) < end) {
		struct timespec ts = { .tv_nsec = (long)ob_min(end - now, OBL_POOL_LOOK_NS) };

		nanosleep(&ts, NULL);
		if (is_cancelled(pool))
			return OB_ERR_CANCELLED;
	}
	return OB_ERR_NONE;
}

/* Whether another pass may have another result, after this pause. */
static bool may_go_on(struct asking *a, uint64_t pause)
{
	uint64_t now = ob_clock_ns();

	if (!(a->answered || a->away) || now + pause > a->until)
		return false;
	if (!a->answered && !a->told)
		ob_warn("no balancer of the pool answers, trying again for %llu s: %s",
			(unsigned long long)((a->until - now) / OB_SECOND), a->ret_cause->text);
	a->told = true;
	return true;
}

/* Passes until there is a result, or no time is left for another one. */
static enum ob_err passes(struct asking *a, struct obl_balancers *list)
{
	enum ob_err err = OB_ERR_CONNECT;
	bool once_more = true; /* a request without an answer may have been granted */

	for (;;) {
		uint64_t pause;

		a->retry_ns = 0;
		a->refused->code = 0;
		a->away = false;
		if (pass(a, list, &err))
			return err;
		pause = ob_max(a->retry_ns, OBL_POOL_RETRY_MIN_NS);
		if (!may_go_on(a, pause)) {
			if (!a->sent || !once_more)
				return a->refused->code ? OB_ERR_REFUSED : err;
			once_more = false;
			pause = OBL_POOL_RETRY_MIN_NS;
		}
		if (pause_for(a->pool, pause))
			return OB_ERR_CANCELLED;
	}
}

enum ob_err obl_pool_ask(const struct obl_pool *pool, struct obp_pool_ask *ask,
	struct obp_pool_grant *ret_grant, struct obp_pool_refused *ret_refused,
	struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct obl_balancers *list = calloc(1, sizeof *list);
	struct ob_cause cause = { .code = OB_ERR_NONE };
	struct obp_pool_refused refused = { .code = 0 };
	struct obp_pool_grant grant = { .n_parts = 0 };
	struct asking a = { .pool = pool,
		.ask = ask,
		.ret_grant = &grant,
		.refused = &refused,
		.ret_cause = &cause };
	enum ob_err err;

	if (!list)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	err = obl_balancers_parse(pool->balancers, list, ret_cause);
	if (err)
		return err;
	ask->wait_s = ob_min(ask->wait_s, OBP_POOL_LINGER_MAX_S);
	a.until = ob_clock_ns() + ask->wait_s * OB_SECOND;
	err = passes(&a, list);
	if (err == OB_ERR_NONE)
		*ret_grant = grant;
	else if (err == OB_ERR_REFUSED && refused.code)
		*ret_refused = refused;
	/* a server that is no balancer refuses without a code of the pool's */
	else if (err == OB_ERR_REFUSED)
		err = OB_ERR_URL;
	if (ret_cause)
		*ret_cause = cause;
	return err;
}

void obl_pool_explain(const struct obp_pool_refused *refused, uint32_t wait_s,
	char ret_text[OBL_POOL_EXPLAIN_MAX])
{
	const char *text = refused->text[0] ? refused->text : "no reason is given";

	switch (refused->code) {
	case OBP_POOL_CAPACITY:
		snprintf(ret_text, OBL_POOL_EXPLAIN_MAX,
			"no server of the pool can fulfil this request: %s. Ask for less; "
			"'outboard gpu list' shows what the pool has",
			text);
		break;
	case OBP_POOL_LATER:
		if (wait_s)
			snprintf(ret_text, OBL_POOL_EXPLAIN_MAX,
				"the pool could not fulfil this request within %u s: %s. Try again "
				"later, or wait longer",
				wait_s, text);
		else
			snprintf(ret_text, OBL_POOL_EXPLAIN_MAX,
				"the pool cannot fulfil this request now: %s. Try again later, or "
				"wait for it with --wait-for or OUTBOARD_WAIT",
				text);
		break;
	case OBP_POOL_DENIED:
		snprintf(ret_text, OBL_POOL_EXPLAIN_MAX, "the pool does not allow this request: %s",
			text);
		break;
	case OBP_POOL_INVALID:
		snprintf(ret_text, OBL_POOL_EXPLAIN_MAX, "the request is wrong: %s", text);
		break;
	default:
		snprintf(ret_text, OBL_POOL_EXPLAIN_MAX,
			"the balancer failed: %s. Tell the pool's operator", text);
		break;
	}
}
