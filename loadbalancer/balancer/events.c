/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "loadbalancer/balancer/work.h"

#define NUMBERS_MAX (UINT64_MAX / 2) /* a higher one was not written by a balancer */

static struct obl_event *nth(struct obl_events *events, uint32_t i)
{
	return &events->ring[(events->first + i) % OBL_EVENTS_WAITING_MAX];
}

void obl_event_add(
	struct obl_core *core, const char *kind, const char *subject, const char *format, ...)
{
	struct obl_events *events = &core->events;
	struct obl_event event = { .time_ms = obl_time_ms(), .count = 1 };
	va_list args;

	snprintf(event.kind, sizeof event.kind, "%s", kind);
	snprintf(event.subject, sizeof event.subject, "%s", subject);
	va_start(args, format);
	vsnprintf(event.text, sizeof event.text, format, args);
	va_end(args);
	ob_info("%s %s%s%s", event.kind, event.subject, event.text[0] ? ": " : "", event.text);
	/* Not into one that is being stored. */
	for (uint32_t i = events->storing; i < events->n; i++) {
		struct obl_event *old = nth(events, i);

		if (strcmp(old->kind, event.kind) == 0 &&
			strcmp(old->subject, event.subject) == 0) {
			event.count += old->count;
			*old = event;
			return;
		}
	}
	if (events->n == OBL_EVENTS_WAITING_MAX) {
		events->dropped++;
		return;
	}
	*nth(events, events->n++) = event;
}

static void stored(
	struct obl_core *core, void *user, enum obl_outcome outcome, const struct ob_cause *cause)
{
	struct obl_events *events = &core->events;

	(void)user;
	(void)cause;
	if (outcome == OBL_MADE) {
		events->first = (events->first + events->storing) % OBL_EVENTS_WAITING_MAX;
		events->n -= events->storing;
	}
	events->storing = 0;
}

/* The oldest events beyond what is kept; at most as many as are added. */
static void forget_old(struct obl_core *core, struct obl_plan *plan, uint32_t added)
{
	const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_EVENT);
	uint32_t n = added;

	for (const struct obl_item *i = item; i; i = obl_mirror_next(i))
		n++;
	for (uint32_t i = 0; item && n > OBL_EVENTS_KEPT && i < 2 * added; i++, n--) {
		obl_plan_delete_plainly(plan, item->key);
		item = obl_mirror_next(item);
	}
}

/*
 * The highest number so far. Who watches asks for those above the last one: an event of a balancer
 * whose clock is ahead must not hide those of the others.
 */
static uint64_t highest(const struct obl_core *core)
{
	uint64_t last = core->events.number;

	for (const struct obl_item *item = obl_mirror_first(&core->mirror, OBL_ITEM_EVENT); item;
		item = obl_mirror_next(item)) {
		uint64_t number = strtoull(item->name, NULL, 10);

		if (number > last && number < NUMBERS_MAX)
			last = number;
	}
	return last;
}

bool obl_events_start(struct obl_core *core)
{
	struct obl_events *events = &core->events;
	uint64_t now = ob_clock_ns();
	char name[24], key[OBL_KEY_MAX] = "";
	struct obl_plan *plan;

	if (events->n == 0 || now < events->stored_ns + OBL_EVENTS_EVERY_MS * OB_MS)
		return false;
	events->stored_ns = now;
	events->storing = ob_min(events->n, OBL_EVENTS_AT_ONCE);
	events->number = highest(core);
	plan = obl_work_plan(core);
	for (uint32_t i = 0; i < events->storing; i++) {
		events->number = ob_max(events->number + 1, obl_time_ms() * 1000);
		snprintf(name, sizeof name, "%020" PRIu64, events->number);
		obl_key_print(OBL_ITEM_EVENT, name, key);
		obl_plan_expect(plan, key, 0);
		obl_plan_put_plainly(plan, key, obl_event_text(nth(events, i)), false);
	}
	forget_old(core, plan, events->storing);
	if (obl_work_make(core, key, stored, NULL))
		return true;
	events->storing = 0;
	return false;
}
