/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/machine_uuid.h"
#include "base/uuid.h"
#include "server/common/stats_page.h"

/*
 * The UUID of software devices, which is made of the machine's id and name, for workers, which may
 * not read the id. The ledgers of a pool name devices by UUID, so that the server's name there is part
 * of it: two servers of one machine, or of copies of one, differ.
 */
static void soft_devices_name(const struct obs_super *super)
{
	const char *dry = getenv("OUTBOARD_DRYRUN"), *name = "";
	char text[OB_UUID_TEXT];
	uint8_t uuid[16];

	if (super->options->pool)
		name = super->membership.page->server;
	else if (strcmp(super->options->driver, OBS_DRIVER_DRYRUN) == 0)
		name = dry && *dry ? dry : OBS_DRYRUN_USUAL; /* softdevice/config.c does the same */
	ob_uuid_of_machine(name, uuid);
	ob_uuid_print(uuid, text);
	setenv("OUTBOARD_SOFT_UUID", text, 0);
}

bool obs_lease_open(struct obs_super *super)
{
	struct obs_membership *m = &super->membership;
	const struct obs_options *options = super->options;

	if (m->page)
		return true;
	while (m->incarnation == 0)
		if (getrandom(&m->incarnation, sizeof m->incarnation, 0) != sizeof m->incarnation)
			return false;
	m->page = obs_pool_page_new(&m->page_fd);
	if (!m->page)
		return false;
	m->page->on = options->pool != NULL;
	m->page->direct = options->pool_direct;
	m->page->incarnation = m->incarnation;
	if (options->pool_name)
		snprintf(m->page->server, sizeof m->page->server, "%s", options->pool_name);
	else if (gethostname(m->page->server, sizeof m->page->server - 1) != 0)
		snprintf(m->page->server, sizeof m->page->server, "server");
	soft_devices_name(super);
	return true;
}

struct obs_reservation_time obs_lease_now(void)
{
	return (struct obs_reservation_time){ (uint64_t)time(NULL), ob_clock_ns() };
}

void obs_lease_changed(struct obs_super *super)
{
	struct obs_membership *m = &super->membership;

	if (m->tick && !m->stopping)
		uv_timer_start(&m->timer, m->tick, 0, OBS_MEMBERSHIP_TICK_MS);
}

void obs_lease_refused(struct obs_super *super, uint32_t why)
{
	if (why < OBS_TICKET_REFUSAL_COUNT)
		super->membership.refused[why]++;
}

/* The server's numbers of the ticket's devices. */
static enum ob_err devices_find(const struct obs_super *super, const struct obp_ticket *ticket,
	uint8_t *ret_devices, struct ob_cause *ret_cause)
{
	uint32_t seen = 0;

	if (ticket->n_devices < 1 || ticket->n_devices > OBP_DEVICE_MAX)
		return ob_cause_set(ret_cause, OB_ERR_REFUSED, "the ticket names no device");
	for (uint32_t i = 0; i < ticket->n_devices; i++) {
		uint32_t d = 0;

		while (d < super->n_devices &&
			memcmp(super->devices[d].uuid, ticket->devices[i], 16) != 0)
			d++;
		if (d == super->n_devices || (seen >> d & 1))
			return ob_cause_set(ret_cause, OB_ERR_REFUSED,
				"the ticket names a device that this server does not have, or one "
				"twice; ask the pool again");
		seen |= 1u << d;
		ret_devices[i] = (uint8_t)d;
	}
	return OB_ERR_NONE;
}

/* NULL: new reservations are taken. */
static const char *closed_why(const struct obs_membership *m)
{
	if (m->drain_ns)
		return "the server is being drained: it takes no new reservations; ask the pool "
		       "again";
	return m->cordoned ? "the server is cordoned: it takes no new reservations; ask the pool "
			     "again"
			   : NULL;
}

static void totals_note(struct obs_super *super)
{
	struct obs_reservations *table = &super->membership.reservations;

	table->n_devices = super->n_devices;
	for (uint32_t i = 0; i < super->n_devices; i++)
		table->total[i] = super->devices[i].total;
}

enum ob_err obs_lease_take(struct obs_super *super, struct obs_handoff *handoff,
	struct obs_reservation **ret, struct ob_cause *ret_cause)
{
	struct obs_membership *m = &super->membership;
	const struct obp_ticket *ticket = &handoff->ticket;
	enum obs_ticket_refusal why = OBS_TICKET_DEVICES;
	struct obs_reservation *reservation = NULL;
	uint8_t devices[OBP_DEVICE_MAX] = { 0 };
	enum ob_err err;

	totals_note(super);
	err = devices_find(super, ticket, devices, ret_cause);
	if (!err)
		err = obs_reservations_enter(&m->reservations, ticket, devices, handoff->ahead_s,
			obs_lease_now(), closed_why(m), &reservation, &why, ret_cause);
	if (err) {
		obs_lease_refused(super, why);
		return err;
	}
	handoff->place = (struct obs_place){
		.reserved = 1, .n_devices = reservation->n_devices, .memory = reservation->memory
	};
	memcpy(handoff->place.devices, reservation->devices, sizeof handoff->place.devices);
	*ret = reservation;
	obs_lease_changed(super);
	return OB_ERR_NONE;
}

void obs_lease_drop(struct obs_super *super, struct obs_reservation *reservation,
	const struct obs_stats_page *page)
{
	uint64_t used[OBP_DEVICE_MAX] = { 0 };

	if (!reservation)
		return;
	for (uint32_t i = 0; page && i < OBP_DEVICE_MAX; i++)
		used[i] = obs_stats_page_read(&page->used[i]);
	obs_reservations_leave(
		&super->membership.reservations, reservation, page ? used : NULL, obs_lease_now());
	obs_lease_changed(super);
}
