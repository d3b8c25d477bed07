/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Assigns work to devices: queues, expected times, shares, and moves of queued pieces. All
 * functions are called with the context's lock held.
 */
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "compute/engine/engine.h"

/* AUTO divides work if that is faster than the best single device by this factor */
#define SHARE_GAIN 1.2

double obv_device_seconds(
	const struct obv_device *device, uint32_t operation, double size, double times)
{
	return times * obv_curve_seconds(&device->curves.op[operation], operation, size);
}

/* Seconds until a piece that is queued now would start. */
static double backlog(const struct obv_device *device, uint64_t now)
{
	double left = 0;

	if (device->running_seconds > 0)
		left = device->running_seconds - (double)(now - device->running_since) / 1e9;
	return device->queued_seconds + (left > 0 ? left : 0);
}

double obv_device_load(const struct obv_device *device, uint64_t now)
{
	return obv_load(backlog(device, now), device->context->horizon);
}

static bool can(const struct obv_device *device, uint32_t operation, uint64_t allowed, uint64_t now)
{
	if (!(allowed >> device->index & 1) || !(device->backend.operations >> operation & 1) ||
		!obv_breaker_ready(&device->breaker, now))
		return false;
	/* One piece is enough to test whether the device works again. */
	return device->breaker.state == OUTBOARD_CLOSED ||
		(!device->head && !(device->running_seconds > 0));
}

bool obv_device_usable(const struct obv_device *device, const struct obv_piece *piece, uint64_t now)
{
	return can(device, piece->job->operation, piece->job->allowed & ~piece->tried, now);
}

int obv_piece_place(struct outboard *context, const struct obv_piece *piece, uint64_t now)
{
	int best = -1;
	double least = 0;

	for (int fallback = 0; fallback < 2 && best < 0; fallback++)
		for (unsigned i = 0; i < context->count; i++) {
			struct obv_device *d = &context->device[i];
			double end;

			if (d->backend.fallback_only != (fallback != 0) ||
				!obv_device_usable(d, piece, now))
				continue;
			end = backlog(d, now) +
				obv_device_seconds(
					d, piece->job->operation, piece->size, piece->times);
			if (best < 0 || end < least) {
				best = (int)i;
				least = end;
			}
		}
	return best;
}

void obv_piece_queue(struct obv_device *device, struct obv_piece *piece, bool front)
{
	piece->device = device->index;
	piece->seconds =
		obv_device_seconds(device, piece->job->operation, piece->size, piece->times);
	piece->next = NULL;
	if (front) {
		piece->next = device->head;
		device->head = piece;
		if (!device->tail)
			device->tail = piece;
	} else if (device->tail) {
		device->tail->next = piece;
		device->tail = piece;
	} else {
		device->head = device->tail = piece;
	}
	device->queued_seconds += piece->seconds;
	device->stats.queued++;
	pthread_cond_signal(&device->work);
}

void obv_piece_unqueue(struct obv_device *device, struct obv_piece *piece)
{
	struct obv_piece *before = NULL;

	for (struct obv_piece *p = device->head; p != piece; p = p->next)
		before = p;
	if (before)
		before->next = piece->next;
	else
		device->head = piece->next;
	if (device->tail == piece)
		device->tail = before;
	piece->next = NULL;
	device->stats.queued--;
	device->queued_seconds -= piece->seconds;
	if (!device->head || device->queued_seconds < 0)
		device->queued_seconds = 0;
}

/*
 * The last queued piece of `hot` that `cold` can run and would complete earlier than `hot`, given
 * the backlog of `hot`.
 */
static struct obv_piece *movable(struct obv_device *hot, struct obv_device *cold, uint64_t now)
{
	struct obv_piece *last = NULL;

	for (struct obv_piece *p = hot->head; p; p = p->next) {
		double there = obv_device_seconds(cold, p->job->operation, p->size, p->times);

		if (p->not_before <= now && obv_device_usable(cold, p, now) &&
			backlog(cold, now) + there < backlog(hot, now))
			last = p;
	}
	return last;
}

void obv_balance(struct outboard *context, uint64_t now)
{
	bool usable[OUTBOARD_MAX_DEVICES];
	double loads[OUTBOARD_MAX_DEVICES];
	unsigned hot, cold;

	if (context->count < 2)
		return;
	for (unsigned i = 0; i < context->count; i++)
		usable[i] = !context->device[i].backend.fallback_only &&
			context->device[i].breaker.state == OUTBOARD_CLOSED;
	for (unsigned moves = 0; moves < OBV_MOVES_MAX; moves++) {
		struct obv_piece *piece;

		for (unsigned i = 0; i < context->count; i++)
			loads[i] = obv_device_load(&context->device[i], now);
		if (!obv_hot_and_cold(context->count, loads, usable, &hot, &cold))
			return;
		piece = movable(&context->device[hot], &context->device[cold], now);
		if (!piece) {
			usable[cold] = false;
			continue;
		}
		obv_piece_unqueue(&context->device[hot], piece);
		piece->attempts = 0;
		obv_piece_queue(&context->device[cold], piece, false);
		context->device[hot].stats.moved_out++;
		context->device[cold].stats.moved_in++;
	}
}

/* ---- shares ---- */

struct choice {
	struct outboard *context;
	uint32_t operation;
	bool batch;
	double size;
	unsigned n, device[OUTBOARD_MAX_DEVICES];
	double rate[OUTBOARD_MAX_DEVICES], load[OUTBOARD_MAX_DEVICES], wait[OUTBOARD_MAX_DEVICES];
};

static double seconds(const struct choice *c, unsigned i, uint64_t count)
{
	const struct obv_device *d = &c->context->device[c->device[i]];

	if (!count)
		return 0;
	return c->batch ? obv_device_seconds(d, c->operation, c->size, (double)count)
			: obv_device_seconds(d, c->operation, (double)count, 1);
}

static void candidates(struct choice *c, uint64_t allowed, uint64_t count, uint64_t now)
{
	for (int fallback = 0; fallback < 2 && !c->n; fallback++)
		for (unsigned i = 0; i < c->context->count; i++) {
			struct obv_device *d = &c->context->device[i];

			if (d->backend.fallback_only == (fallback != 0) &&
				can(d, c->operation, allowed, now))
				c->device[c->n++] = i;
		}
	for (unsigned i = 0; i < c->n; i++) {
		double s = seconds(c, i, count);

		c->rate[i] = s > 0 ? (double)count / s : 1;
		c->load[i] = obv_device_load(&c->context->device[c->device[i]], now);
		c->wait[i] = backlog(&c->context->device[c->device[i]], now);
	}
	/* Keeps only the best ones, in the order of the list. */
	while (c->context->share_at_most && c->n > c->context->share_at_most) {
		unsigned worst = 0;

		for (unsigned i = 1; i < c->n; i++)
			worst = c->rate[i] <= c->rate[worst] ? i : worst;
		c->n--;
		for (unsigned i = worst; i < c->n; i++) {
			c->device[i] = c->device[i + 1];
			c->rate[i] = c->rate[i + 1];
			c->load[i] = c->load[i + 1];
			c->wait[i] = c->wait[i + 1];
		}
	}
}

/* Adds parts that are too small for a device to the largest part. */
static void merge_small(uint64_t *parts, unsigned n, uint64_t least)
{
	unsigned largest = 0;

	for (unsigned i = 1; i < n; i++)
		largest = parts[i] > parts[largest] ? i : largest;
	for (unsigned i = 0; i < n; i++)
		if (i != largest && parts[i] < least) {
			parts[largest] += parts[i];
			parts[i] = 0;
		}
}

static unsigned share(struct outboard *context, const struct obv_job *job, uint64_t count,
	double size, bool batch, uint64_t least, struct obv_part *ret_parts)
{
	struct choice c = {
		.context = context, .operation = job->operation, .batch = batch, .size = size
	};
	uint32_t strategy = job->call.strategy ? job->call.strategy - 1 : context->strategy;
	uint64_t parts[OUTBOARD_MAX_DEVICES] = { 0 }, at = 0;
	unsigned best = 0, n = 0;
	double alone, together = 0;

	candidates(&c, job->allowed, count, ob_clock_ns());
	if (!c.n)
		return 0;
	for (unsigned i = 1; i < c.n; i++)
		best = c.wait[i] + seconds(&c, i, count) < c.wait[best] + seconds(&c, best, count)
			? i
			: best;
	alone = c.wait[best] + seconds(&c, best, count);
	if (strategy == OUTBOARD_SINGLE || c.n == 1 || count < 2) {
		parts[best] = count;
	} else {
		obv_split(strategy == OUTBOARD_AUTO ? OUTBOARD_DYNAMIC : strategy, count, c.n,
			c.rate, c.load, parts);
		merge_small(parts, c.n, least);
		for (unsigned i = 0; i < c.n; i++)
			together = ob_max(
				together, parts[i] ? c.wait[i] + seconds(&c, i, parts[i]) : 0);
		if (strategy == OUTBOARD_AUTO && together * SHARE_GAIN > alone) {
			memset(parts, 0, sizeof(parts));
			parts[best] = count;
		}
	}
	for (unsigned i = 0; i < c.n; i++) {
		if (!parts[i])
			continue;
		ret_parts[n++] =
			(struct obv_part){ .device = c.device[i], .first = at, .count = parts[i] };
		at += parts[i];
	}
	return n;
}

unsigned obv_share(struct outboard *context, const struct obv_job *job, uint64_t count, double size,
	bool batch, uint64_t least, struct obv_part *ret_parts)
{
	unsigned n;

	pthread_mutex_lock(&context->lock);
	n = share(context, job, count, size, batch, least, ret_parts);
	pthread_mutex_unlock(&context->lock);
	return n;
}
