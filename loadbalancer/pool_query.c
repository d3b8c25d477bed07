/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/pool_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/terminal.h"
#include "loadbalancer/pool_link.h"

#define CANCEL_NS   (2 * OB_SECOND)  /* for a balancer to confirm that it has read a message */
#define DOCUMENT_NS (60 * OB_SECOND) /* for all pieces of a document */
/* for a command, which the balancer may have to pass on to servers, with a time-out of its own */
#define COMMAND_NS  (15 * OB_SECOND)

/*
 * Connects to a balancer and sends one message with the token at `token`. The next balancer is
 * tried if that fails.
 */
static enum ob_err send_to_any(const struct obl_pool *pool, struct obp_pool_message *message,
	char token[OBP_TOKEN_MAX], struct obl_balancers *list, struct obl_pool_link *link,
	struct ob_cause *ret_cause)
{
	enum ob_err err = obl_balancers_parse(pool->balancers, list, ret_cause);

	if (err)
		return err;
	obl_balancers_shuffle(list);
	for (uint32_t i = 0; i < list->n; i++) {
		uint64_t deadline = ob_clock_ns() + pool->timeout_ns;

		err = obl_pool_link_open(link, &list->list[i], deadline, ret_cause);
		if (err)
			continue;
		if (token)
			snprintf(token, OBP_TOKEN_MAX, "%s", link->token);
		err = obl_pool_link_send(link, message, deadline, ret_cause);
		if (token)
			explicit_bzero(token, OBP_TOKEN_MAX);
		if (!err)
			return OB_ERR_NONE;
		obl_pool_link_close(link);
	}
	return err;
}

/* Everything that a question needs, in one block of memory. */
struct question {
	struct obl_balancers list;
	struct obl_pool_link link;
	struct obp_pool_message message;
};

static enum ob_err refusal_take(
	struct obl_pool_link *link, struct obp_pool_refused *ret, struct ob_cause *ret_cause)
{
	struct obp_pool_message *m = &link->message;

	if (m->type != OBP_POOL_REFUSED && m->type != OBP_POOL_DONE)
		return ob_cause_set(ret_cause, OB_ERR_PROTOCOL,
			"%.200s: unexpected message of type %u", link->balancer->text,
			(unsigned)m->type);
	*ret = m->u.refused;
	ret->text[ob_text_clean(ret->text, strlen(ret->text))] = '\0';
	if (m->type == OBP_POOL_REFUSED && !ret->code)
		ret->code = OBP_POOL_FAULT;
	return ret->code ? OB_ERR_REFUSED : OB_ERR_NONE;
}

enum ob_err obl_pool_cancel(const struct obl_pool *pool, const uint8_t id[OBP_RESERVATION_BYTES],
	bool over, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct question *q = calloc(1, sizeof *q);
	struct obp_pool_refused refused;
	enum ob_err err;

	if (!q)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	q->message.type = OBP_POOL_CANCEL;
	memcpy(q->message.u.cancel.id, id, OBP_RESERVATION_BYTES);
	q->message.u.cancel.over = over;
	err = send_to_any(
		pool, &q->message, q->message.u.cancel.token, &q->list, &q->link, ret_cause);
	if (err)
		return err;
	err = obl_pool_link_receive(&q->link, ob_clock_ns() + CANCEL_NS, ret_cause);
	if (!err && refusal_take(&q->link, &refused, ret_cause) == OB_ERR_REFUSED)
		err = ob_cause_set(ret_cause, OB_ERR_REFUSED, "%s", refused.text);
	obl_pool_link_close(&q->link);
	return err;
}

/* Adds the pieces of a document until its end. */
static enum ob_err document_receive(const struct obl_pool *pool, struct obl_pool_link *link,
	struct ob_buf *document, struct obp_pool_refused *ret_refused, struct ob_cause *ret_cause)
{
	const struct obp_pool_answer *answer = &link->message.u.answer;
	const uint64_t last = ob_clock_ns() + DOCUMENT_NS;
	enum ob_err err;

	do {
		err = obl_pool_link_receive(
			link, ob_min(ob_clock_ns() + pool->timeout_ns, last), ret_cause);
		if (err) /* a refusal without a code: it is no balancer */
			return err == OB_ERR_REFUSED ? OB_ERR_URL : err;
		if (link->message.type == OBP_POOL_REFUSED)
			return refusal_take(link, ret_refused, ret_cause);
		if (link->message.type != OBP_POOL_ANSWER || (answer->more && !answer->size))
			return ob_cause_set(ret_cause, OB_ERR_PROTOCOL,
				"%.200s: unexpected message of type %u", link->balancer->text,
				(unsigned)link->message.type);
		if (!ob_buf_append(document, answer->bytes, answer->size))
			return ob_cause_set(ret_cause, OB_ERR_LIMIT,
				"%.200s: its answer is longer than %u MiB, or there is no memory",
				link->balancer->text, OBL_POOL_DOCUMENT_MAX >> 20);
	} while (answer->more);
	return OB_ERR_NONE;
}

enum ob_err obl_pool_query(const struct obl_pool *pool, const char *what, const char *target,
	uint64_t since, char **ret_json, size_t *ret_size, struct obp_pool_refused *ret_refused,
	struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct question *q = calloc(1, sizeof *q);
	struct ob_buf document;
	enum ob_err err;

	if (!q)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	if (strlen(target) >= sizeof q->message.u.query.target)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "the name is too long");
	q->message.type = OBP_POOL_QUERY;
	snprintf(q->message.u.query.what, sizeof q->message.u.query.what, "%s", what);
	snprintf(q->message.u.query.target, sizeof q->message.u.query.target, "%s", target);
	q->message.u.query.since = since;
	err = send_to_any(
		pool, &q->message, q->message.u.query.token, &q->list, &q->link, ret_cause);
	if (err)
		return err;
	ob_buf_init(&document, OBL_POOL_DOCUMENT_MAX + 1);
	err = document_receive(pool, &q->link, &document, ret_refused, ret_cause);
	obl_pool_link_close(&q->link);
	if (!err && !ob_buf_append(&document, "", 1))
		err = ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	if (err) {
		ob_buf_fini(&document);
		return err;
	}
	*ret_json = (char *)document.data;
	*ret_size = document.size - 1;
	return OB_ERR_NONE;
}

enum ob_err obl_pool_command(const struct obl_pool *pool, const char *verb, const char *target,
	const char *argument, struct obp_pool_refused *ret_done, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct question *q = calloc(1, sizeof *q);
	struct obp_pool_command *command;
	enum ob_err err;

	if (!q)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	command = &q->message.u.command;
	if (strlen(verb) >= sizeof command->verb || strlen(target) >= sizeof command->target ||
		strlen(argument) >= sizeof command->argument)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "an argument is too long");
	q->message.type = OBP_POOL_COMMAND;
	snprintf(command->verb, sizeof command->verb, "%s", verb);
	snprintf(command->target, sizeof command->target, "%s", target);
	snprintf(command->argument, sizeof command->argument, "%s", argument);
	err = send_to_any(pool, &q->message, command->token, &q->list, &q->link, ret_cause);
	if (err)
		return err;
	err = obl_pool_link_receive(
		&q->link, ob_clock_ns() + ob_max(pool->timeout_ns, COMMAND_NS), ret_cause);
	if (!err)
		err = refusal_take(&q->link, ret_done, ret_cause);
	else if (err == OB_ERR_REFUSED)
		err = OB_ERR_URL; /* no balancer, and ret_done is not set */
	obl_pool_link_close(&q->link);
	return err;
}
