/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/reservations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"

struct obs_reservation *obs_reservations_find(
	const struct obs_reservations *table, const uint8_t id[OBP_RESERVATION_BYTES])
{
	struct obs_reservation *r = table->first;

	while (r && memcmp(r->id, id, OBP_RESERVATION_BYTES) != 0)
		r = r->next;
	return r;
}

uint32_t obs_reservations_count(const struct obs_reservations *table, enum obp_pool_state state)
{
	uint32_t n = 0;

	for (const struct obs_reservation *r = table->first; r; r = r->next)
		n += !r->credited && r->state == state;
	return n;
}

/* ---- entries ---- */

/* NULL: there is no room. */
static struct obs_reservation *entry_new(
	struct obs_reservations *table, const uint8_t id[OBP_RESERVATION_BYTES])
{
	struct obs_reservation *r = NULL;

	if (table->n < OBS_RESERVATIONS_MAX && table->n_reported < OBP_POOL_BEAT_MAX)
		r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	memcpy(r->id, id, sizeof r->id);
	r->page_fd = -1;
	r->next = table->first;
	r->link = &table->first;
	if (r->next)
		r->next->link = &r->next;
	table->first = r;
	table->n++;
	table->n_reported++;
	table->changed = true;
	return r;
}

static void page_drop(struct obs_reservation *r)
{
	obs_reservation_page_free(r->page);
	if (r->page_fd >= 0)
		close(r->page_fd);
	r->page = NULL;
	r->page_fd = -1;
}

static void entry_free(struct obs_reservations *table, struct obs_reservation *r)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	table->n--;
	table->n_reported -= !r->credited;
	page_drop(r);
	free(r);
}

static void entry_end(struct obs_reservations *table, struct obs_reservation *r)
{
	r->state = OBP_POOL_ENDED;
	table->changed = true;
	page_drop(r);
}

/* ---- a session begins ---- */

static enum ob_err refuse(enum obs_ticket_refusal why, enum obs_ticket_refusal *ret_why,
	struct ob_cause *ret_cause, const char *text)
{
	*ret_why = why;
	return ob_cause_set(
		ret_cause, why == OBS_TICKET_LIMIT ? OB_ERR_LIMIT : OB_ERR_REFUSED, "%s", text);
}

static enum ob_err expiry_check(const struct obp_ticket *ticket, int64_t ahead_s, uint64_t now_s,
	enum obs_ticket_refusal *ret_why, struct ob_cause *ret_cause)
{
	char text[240];

	if (ticket->expires > now_s + OBS_TICKET_LIFE_MAX_S + OBP_TICKET_SKEW_S) {
		snprintf(text, sizeof text,
			"the ticket is valid for longer than %u s, which this server does not "
			"accept",
			OBS_TICKET_LIFE_MAX_S);
		return refuse(OBS_TICKET_FORM, ret_why, ret_cause, text);
	}
	if (ticket->expires + OBP_TICKET_SKEW_S >= now_s)
		return OB_ERR_NONE;
	if (ahead_s < -(int64_t)OBP_TICKET_SKEW_S)
		snprintf(text, sizeof text,
			"the ticket expired %llu s ago by this server's clock, and the balancer's "
			"clock is %llu s behind it; set both by the network (NTP)",
			(unsigned long long)(now_s - ticket->expires),
			(unsigned long long)(0 - (uint64_t)ahead_s));
	else
		snprintf(text, sizeof text,
			"the ticket expired %llu s ago: nobody had used it in time; ask the pool "
			"again",
			(unsigned long long)(now_s - ticket->expires));
	return refuse(OBS_TICKET_EXPIRED, ret_why, ret_cause, text);
}

static bool has_device(const struct obs_reservation *r, uint8_t device)
{
	return memchr(r->devices, device, r->n_devices) != NULL;
}

/* Whether one device has room for the ticket; the reason goes to text. */
static bool device_fits(const struct obs_reservations *table, const struct obp_ticket *ticket,
	uint8_t device, char *text, size_t size)
{
	uint64_t sum = ticket->memory;
	char wanted[24], total[24];
	bool too_much = false;

	for (const struct obs_reservation *r = table->first; r; r = r->next) {
		if (r->state != OBP_POOL_CLAIMED || !has_device(r, device))
			continue;
		if (ticket->exclusive || r->exclusive) {
			snprintf(text, size,
				"device %u is reserved by another program, and one of the two "
				"wants it alone",
				device);
			return false;
		}
		too_much = too_much || ob_add_overflows(sum, r->memory, &sum);
	}
	if (!too_much && sum <= table->total[device])
		return true;
	sum = too_much ? UINT64_MAX : sum;
	ob_text_print_size(sum, wanted, sizeof wanted);
	ob_text_print_size(table->total[device], total, sizeof total);
	snprintf(text, size, "the reservations of device %u would be %s together, and it has %s",
		device, wanted, total);
	return false;
}

static enum ob_err fit_check(const struct obs_reservations *table, const struct obp_ticket *ticket,
	const uint8_t *devices, enum obs_ticket_refusal *ret_why, struct ob_cause *ret_cause)
{
	char text[240];

	for (uint32_t i = 0; i < ticket->n_devices; i++)
		if (!device_fits(table, ticket, devices[i], text, sizeof text))
			return refuse(OBS_TICKET_ROOM, ret_why, ret_cause, text);
	return OB_ERR_NONE;
}

static enum ob_err claim(struct obs_reservations *table, const struct obp_ticket *ticket,
	const uint8_t *devices, struct obs_reservation_time now, struct obs_reservation **ret,
	enum obs_ticket_refusal *ret_why, struct ob_cause *ret_cause)
{
	struct obs_reservation *r = entry_new(table, ticket->reservation);

	if (r)
		r->page = obs_reservation_page_new(&r->page_fd);
	if (!r || !r->page) {
		if (r)
			entry_free(table, r);
		return refuse(OBS_TICKET_LIMIT, ret_why, ret_cause,
			"this server has too many reservations at a time; try again later");
	}
	r->state = OBP_POOL_CLAIMED;
	r->fence = ticket->fence;
	snprintf(r->tenant, sizeof r->tenant, "%s", ticket->tenant);
	r->memory = ticket->memory;
	r->exclusive = ticket->exclusive;
	r->n_devices = ticket->n_devices;
	memcpy(r->devices, devices, r->n_devices);
	r->linger_s = ob_min(ticket->linger_s, OBP_POOL_LINGER_MAX_S);
	r->expires_s = ticket->expires + OBP_TICKET_SKEW_S;
	r->forget_ns = now.ns + OB_SECOND * (r->expires_s + OBP_TICKET_SKEW_S - now.s);
	*ret = r;
	return OB_ERR_NONE;
}

static bool same_ticket(
	const struct obs_reservation *r, const struct obp_ticket *ticket, const uint8_t *devices)
{
	return r->fence == ticket->fence && r->memory == ticket->memory &&
		r->exclusive == ticket->exclusive && r->n_devices == ticket->n_devices &&
		memcmp(r->devices, devices, r->n_devices) == 0 &&
		strcmp(r->tenant, ticket->tenant) == 0;
}

const char *obs_reservation_killed_text(const struct obs_reservation *r)
{
	return r->moved ? "the reservation has ended: its program was moved to another server"
			: "the reservation was ended by the pool's operator";
}

enum ob_err obs_reservations_enter(struct obs_reservations *table, const struct obp_ticket *ticket,
	const uint8_t *devices, int64_t ahead_s, struct obs_reservation_time now,
	const char *closed, struct obs_reservation **ret, enum obs_ticket_refusal *ret_why,
	struct ob_cause *ret_cause)
{
	struct obs_reservation *r = obs_reservations_find(table, ticket->reservation);
	enum ob_err err;

	if (r && r->ordered)
		return refuse(OBS_TICKET_ENDED, ret_why, ret_cause, obs_reservation_killed_text(r));
	if (r && r->state == OBP_POOL_VOID)
		return refuse(OBS_TICKET_VOID, ret_why, ret_cause,
			"the pool has taken the reservation back before it was "
			"used; " OBP_POOL_ASK_AGAIN);
	if (r && (r->state == OBP_POOL_ENDED || r->killed))
		return refuse(OBS_TICKET_ENDED, ret_why, ret_cause,
			"the reservation has ended; " OBP_POOL_ASK_AGAIN);
	if (r && !same_ticket(r, ticket, devices))
		return refuse(OBS_TICKET_OTHER, ret_why, ret_cause,
			"the reservation began with another ticket; " OBP_POOL_ASK_AGAIN);
	if (r) {
		r->sessions++;
		*ret = r;
		return OB_ERR_NONE;
	}
	err = expiry_check(ticket, ahead_s, now.s, ret_why, ret_cause);
	if (!err && closed)
		err = refuse(OBS_TICKET_CLOSED, ret_why, ret_cause, closed);
	if (!err)
		err = fit_check(table, ticket, devices, ret_why, ret_cause);
	if (!err)
		err = claim(table, ticket, devices, now, &r, ret_why, ret_cause);
	if (err)
		return err;
	r->sessions = 1;
	*ret = r;
	return OB_ERR_NONE;
}

/* ---- sessions end, reservations end ---- */

/* Takes back what the session was charged. Workers write the page too: never below 0. */
static void page_give_back(struct obs_reservation *r, const uint64_t *used)
{
	for (uint32_t i = 0; i < r->n_devices; i++) {
		uint64_t now = atomic_load(&r->page->used[i]), less;

		do
			less = r->sessions ? now - ob_min(now, used[i]) : 0;
		while (!atomic_compare_exchange_weak(&r->page->used[i], &now, less));
	}
}

void obs_reservations_leave(struct obs_reservations *table, struct obs_reservation *r,
	const uint64_t *used, struct obs_reservation_time now)
{
	r->sessions--;
	if (used && r->page)
		page_give_back(r, used);
	if (r->sessions > 0)
		return;
	r->idle_ns = now.ns;
	if (r->killed || (r->linger_s == 0 && now.ns >= r->keep_ns))
		entry_end(table, r);
}

void obs_reservations_kill(struct obs_reservations *table, struct obs_reservation *r)
{
	if (r->state != OBP_POOL_CLAIMED)
		return;
	r->killed = true;
	if (r->sessions == 0)
		entry_end(table, r);
}

void obs_reservations_tick(struct obs_reservations *table, struct obs_reservation_time now)
{
	struct obs_reservation *next;

	for (struct obs_reservation *r = table->first; r; r = next) {
		next = r->next;
		if (r->state == OBP_POOL_CLAIMED && r->sessions == 0 && now.ns >= r->keep_ns &&
			now.ns - r->idle_ns >= r->linger_s * OB_SECOND)
			entry_end(table, r);
		if (r->credited && now.ns >= r->forget_ns && now.s > r->expires_s)
			entry_free(table, r);
	}
}

uint32_t obs_reservations_void(struct obs_reservations *table,
	const uint8_t id[OBP_RESERVATION_BYTES], struct obs_reservation_time now)
{
	struct obs_reservation *r = obs_reservations_find(table, id);

	if (r)
		return r->state;
	r = entry_new(table, id);
	if (!r)
		return 0;
	r->state = OBP_POOL_VOID;
	/* The ticket is not known: it may be valid for as long as any. */
	r->expires_s = now.s + OBS_TICKET_LIFE_MAX_S + 2 * OBP_TICKET_SKEW_S;
	r->forget_ns = now.ns + OB_SECOND * (OBS_TICKET_LIFE_MAX_S + 2 * OBP_TICKET_SKEW_S);
	return r->state;
}

bool obs_reservations_keep(struct obs_reservations *table, const uint8_t id[OBP_RESERVATION_BYTES],
	uint64_t seconds, struct obs_reservation_time now)
{
	struct obs_reservation *r = obs_reservations_find(table, id);

	if (!r || r->state != OBP_POOL_CLAIMED || r->killed)
		return false;
	r->keep_ns = ob_max(
		r->keep_ns, now.ns + OB_SECOND * ob_min(seconds, (uint64_t)OBP_POOL_LINGER_MAX_S));
	return true;
}

bool obs_reservations_credit(
	struct obs_reservations *table, const uint8_t id[OBP_RESERVATION_BYTES])
{
	struct obs_reservation *r = obs_reservations_find(table, id);

	if (!r || r->state == OBP_POOL_CLAIMED)
		return false;
	if (!r->credited)
		table->n_reported--;
	r->credited = true;
	return true;
}

void obs_reservations_fini(struct obs_reservations *table)
{
	while (table->first)
		entry_free(table, table->first);
}
