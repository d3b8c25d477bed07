/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/stripe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/thread.h"
#include "server/common/refuse.h"
#include "server/worker/end.h"
#include "transport/message.h"

/* One connection; owned by its thread. */
struct obs_stripe {
	struct obs_session *session;
	struct obs_stripe_set *set;
	struct obt_stripe link;
};

/* ---- slots ---- */

static void queue_init(struct obs_stripe_queue *queue)
{
	queue->first = NULL;
	queue->last = &queue->first;
}

void obs_stripe_put(struct obs_stripe_queue *queue, struct obs_stripe_slot *slot)
{
	slot->next = NULL;
	*queue->last = slot;
	queue->last = &slot->next;
}

struct obs_stripe_slot *obs_stripe_get(struct obs_stripe_queue *queue)
{
	struct obs_stripe_slot *slot = queue->first;

	if (slot && !(queue->first = slot->next))
		queue->last = &queue->first;
	return slot;
}

void obs_stripes_init(struct obs_stripes *stripes)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&stripes->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&stripes->changed, &attr);
	pthread_condattr_destroy(&attr);
	queue_init(&stripes->free);
	queue_init(&stripes->full);
}

uint32_t obs_stripes_offer(const struct obs_session *session)
{
	return ob_opt_on(OB_OPT_STRIPE) ? session->options->limits.stripes : 0;
}

/* ---- breaking ---- */

void obs_stripe_break(struct obs_stripes *stripes, struct obs_stripe_set *set)
{
	if (stripes->transfer.open && stripes->transfer.set == set)
		stripes->transfer.failed = true;
	pthread_cond_broadcast(&stripes->changed);
	if (atomic_exchange(&set->gate.closed, true))
		return;
	for (uint32_t i = 0; i < set->n; i++)
		shutdown(set->members[i]->link.stream.fd, SHUT_RDWR);
}

/* Ends a stripe and with it its whole set. Last function of its thread. */
static void stripe_end(struct obs_stripe *stripe)
{
	struct obs_stripes *stripes = &stripe->session->stripes;
	struct obs_stripe_set *set = stripe->set;

	if (stripe->link.cause.code)
		obs_session_fatal(stripe->session, stripe->link.cause.code, "stripe: %s",
			stripe->link.cause.text);
	pthread_mutex_lock(&stripes->lock);
	obs_stripe_break(stripes, set);
	for (uint32_t i = 0; i < set->n; i++)
		if (set->members[i] == stripe)
			set->members[i] = set->members[--set->n];
	stripes->threads--;
	/* under the lock, so that nobody shuts down a reused descriptor */
	obt_stripe_fini(&stripe->link);
	if (set->n == 0 && stripes->set == set)
		stripes->set = NULL;
	if (set->n == 0 && !(stripes->transfer.open && stripes->transfer.set == set))
		free(set);
	pthread_mutex_unlock(&stripes->lock);
	free(stripe);
}

/* ---- parts ---- */

static bool alive(const struct obs_stripe *stripe)
{
	return !atomic_load(&stripe->set->gate.closed);
}

/*
 * Under the lock: waits until the executor has reached transfer `id`. True: it is open. No
 * time-out: the executor may be busy for as long as the program's kernels run; ends with the set or
 * the process.
 */
static bool transfer_await(struct obs_stripe *stripe, uint64_t id)
{
	struct obs_stripes *stripes = &stripe->session->stripes;
	const struct obs_transfer *t = &stripes->transfer;

	while (alive(stripe) && id > stripes->last && !(t->open && t->id == id))
		pthread_cond_wait(&stripes->changed, &stripes->lock);
	return alive(stripe) && t->open && t->id == id && t->set == stripe->set;
}

/* Receives a part into a slot for the executor, or drops it. False: the stripe ends. */
static bool part_take(struct obs_stripe *stripe, const struct obp_frame *frame)
{
	struct obs_stripes *stripes = &stripe->session->stripes;
	const struct obs_transfer *t = &stripes->transfer;
	struct ob_cause *cause = &stripe->link.cause;
	struct obs_stripe_slot *slot = NULL;
	enum ob_err err = OB_ERR_NONE;
	bool taken;

	pthread_mutex_lock(&stripes->lock);
	while (transfer_await(stripe, frame->sequence) && t->write &&
		!(slot = obs_stripe_get(&stripes->free)))
		pthread_cond_wait(&stripes->changed, &stripes->lock);
	if (t->open && t->id == frame->sequence)
		err = t->write ? obp_stripe_check(frame, stripe->link.codecs, t->size, cause)
			       : ob_cause_set(cause, OB_ERR_PROTOCOL,
					 "a part for a transfer in the other direction");
	pthread_mutex_unlock(&stripes->lock);
	taken = !err && obt_stripe_take(&stripe->link, frame, slot ? slot->data : NULL);
	if (!slot)
		return taken;
	slot->offset = frame->ack;
	slot->size = frame->count;
	pthread_mutex_lock(&stripes->lock);
	obs_stripe_put(
		taken && transfer_await(stripe, frame->sequence) ? &stripes->full : &stripes->free,
		slot);
	pthread_cond_broadcast(&stripes->changed);
	pthread_mutex_unlock(&stripes->lock);
	return taken;
}

/* Sends the parts of transfer `id`, as the executor fills them, until it is over. */
static bool give(struct obs_stripe *stripe, uint64_t id)
{
	struct obs_stripes *stripes = &stripe->session->stripes;
	struct obs_transfer *t = &stripes->transfer;
	bool sent = true;

	pthread_mutex_lock(&stripes->lock);
	while (sent && transfer_await(stripe, id)) {
		struct obs_stripe_slot *slot;

		if (t->write) {
			ob_cause_set(&stripe->link.cause, OB_ERR_PROTOCOL,
				"parts were asked for of a transfer in the other direction");
			sent = false;
			break;
		}
		slot = obs_stripe_get(&stripes->full);
		if (!slot) {
			pthread_cond_wait(&stripes->changed, &stripes->lock);
			continue;
		}
		pthread_mutex_unlock(&stripes->lock);
		sent = obt_stripe_send(&stripe->link, id, slot->offset, slot->data, slot->size);
		pthread_mutex_lock(&stripes->lock);
		if (sent && t->open && t->id == id)
			t->done += slot->size;
		obs_stripe_put(&stripes->free, slot);
		pthread_cond_broadcast(&stripes->changed);
	}
	pthread_mutex_unlock(&stripes->lock);
	return sent && alive(stripe) && obt_stripe_say(&stripe->link, OBP_FRAME_GIVEN, id);
}

static bool joined_send(struct obs_stripe *stripe)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);

	if (!message)
		return false;
	message->type = OBP_MSG_JOINED;
	return obt_message_send(&stripe->link.stream, message, NULL, 0,
		       ob_clock_ns() + OBS_STRIPE_STALL_NS) == OB_ERR_NONE;
}

static void *stripe_main(void *argument)
{
	struct obs_stripe *stripe = argument;
	struct obp_frame frame;
	bool ok = joined_send(stripe);

	while (ok && obt_stripe_next(&stripe->link, &frame)) {
		if (frame.type == OBP_FRAME_PART) {
			ok = part_take(stripe, &frame);
		} else if (frame.type == OBP_FRAME_GIVE) {
			ok = give(stripe, frame.sequence);
		} else {
			ob_cause_set(&stripe->link.cause, OB_ERR_PROTOCOL,
				"unexpected frame type on a stripe: client and server versions "
				"may differ");
			ok = false;
		}
	}
	stripe_end(stripe);
	return NULL;
}

/* ---- joining ---- */

/*
 * Under the lock: the set with this number, created if it is newer than the current one.
 * OB_ERR_LIMIT: refused, *ret_cause.
 */
static enum ob_err set_find(struct obs_session *session, uint64_t number,
	struct obs_stripe_set **ret, struct ob_cause *ret_cause)
{
	struct obs_stripes *stripes = &session->stripes;
	uint32_t most = obs_stripes_offer(session);
	struct obs_stripe_set *set = stripes->set;

	if (set && number < set->number)
		return ob_cause_set(
			ret_cause, OB_ERR_LIMIT, "this attempt to join is older than another");
	if (set && number > set->number) {
		obs_stripe_break(stripes, set);
		stripes->set = set = NULL;
	}
	/* Ending stripes still count for a while, so allow twice as many. */
	if (!most || (set && (set->n >= most || atomic_load(&set->gate.closed))) ||
		stripes->threads >= 2 * most)
		return ob_cause_set(
			ret_cause, OB_ERR_LIMIT, "limit of stripes reached (--max-stripes)");
	if (!set) {
		set = calloc(1, sizeof *set);
		if (!set)
			return ob_cause_set(ret_cause, OB_ERR_LIMIT, "no memory");
		set->number = number;
		stripes->set = set;
	}
	*ret = set;
	return OB_ERR_NONE;
}

void obs_stripe_join(struct obs_session *session, const struct obt_stream *stream, uint64_t number)
{
	struct obs_stripes *stripes = &session->stripes;
	struct obs_stripe *stripe = calloc(1, sizeof *stripe);
	struct obt_stream refused = *stream;
	struct ob_cause cause;

	ob_cause_set(&cause, OB_ERR_LIMIT, "no memory");
	pthread_mutex_lock(&stripes->lock);
	if (stripe && !set_find(session, number, &stripe->set, &cause)) {
		stripe->session = session;
		fcntl(stream->fd, F_SETFL, 0);
		obt_stripe_init(&stripe->link, &stripe->set->gate, stream, session->conn.codecs,
			session->codec_request);
		stripe->set->members[stripe->set->n++] = stripe;
		stripes->threads++;
		if (!ob_thread_start(stripe_main, stripe, 0, NULL)) {
			ob_warn("session %016llx: stripe closed: no thread can be started",
				(unsigned long long)session->id);
			stripe->set->members[--stripe->set->n] = NULL;
			stripes->threads--;
			obt_stripe_fini(&stripe->link);
			free(stripe);
		}
		pthread_mutex_unlock(&stripes->lock);
		return;
	}
	pthread_mutex_unlock(&stripes->lock);
	free(stripe);
	obs_refuse_stream(&refused, cause.code, cause.text);
	obt_stream_close(&refused);
}
