/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The server's own ledger: the reservations that have come to it, and those that it must refuse
 * (docs/adr/0046-pool.md). It is the last authority on what fits into its devices.
 *
 *            enter (first session)                 the last session left, `linger` is over,
 *   unknown ───────────────────────►  CLAIMED  ──────────────────────────►  ENDED    or it was killed
 *      │                              enter, leave: further sessions           │
 *      └────────── void ─────────────────────────────────────────►  VOID      │ credit: no longer reported
 *                                                                    │         │
 *   forgotten  ◄───── credited, and its ticket has expired ──────────┴─────────┘
 *
 * An entry stays after its credit until its ticket can no longer be used, else the ticket could
 * begin the reservation anew. Owned by the supervisor, which alone may call this: one thread. No
 * clock is read here, so that tests can use it alone.
 */
#ifndef OBS_RESERVATIONS_H
#define OBS_RESERVATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "protocol/pool.h"
#include "protocol/ticket.h"
#include "server/common/pool_page.h"
#include "server/common/reservation_page.h"

#define OBS_RESERVATIONS_MAX  8192u /* entries, those that wait for their ticket's expiry included */
#define OBS_TICKET_LIFE_MAX_S 3600u /* a ticket that is valid for longer is refused */

struct obs_reservation {
	struct obs_reservation *next, **link; /* link: what points to this one */
	uint8_t id[OBP_RESERVATION_BYTES];
	uint64_t fence;
	char tenant[OBP_POOL_NAME_MAX];
	enum obp_pool_state state;
	uint32_t sessions; /* connections that wait for a worker included */
	uint64_t memory;   /* bytes on each device; 0: as much as a session may use */
	bool exclusive, killed, credited;
	bool ordered; /* ended by an order that named it: its program does not ask for another one */
	bool moved;   /* the same, because its program runs elsewhere */
	uint32_t n_devices;
	uint8_t devices[OBP_DEVICE_MAX]; /* the server's numbers */
	uint32_t linger_s;
	uint64_t idle_ns;                  /* when the last session left */
	uint64_t keep_ns;                  /* it lingers until then at least */
	uint64_t expires_s, forget_ns;     /* the entry is kept until both are over */
	struct obs_reservation_page *page; /* CLAIMED */
	int page_fd;
};

struct obs_reservations {
	struct obs_reservation *first;
	uint32_t n, n_reported; /* reported: not credited yet */
	bool changed;           /* since the last report; the owner clears it */
	uint32_t n_devices;
	uint64_t total[OBP_DEVICE_MAX]; /* bytes */
};

/* When something happens. */
struct obs_reservation_time {
	uint64_t s;  /* since 1970 */
	uint64_t ns; /* ob_clock_ns */
};

/*
 * A session with this ticket wants to begin, on these devices of the server (ticket->n_devices
 * numbers, all different). ahead_s: how much the balancer's clock is ahead. closed: why no new
 * reservation is taken; NULL: one may be. OB_ERR_NONE: *ret has one session more, and the caller
 * calls obs_reservations_leave for it. OB_ERR_REFUSED, _LIMIT: *ret_cause is for the client,
 * *ret_why for the counters.
 */
enum ob_err obs_reservations_enter(struct obs_reservations *table, const struct obp_ticket *ticket,
	const uint8_t *devices, int64_t ahead_s, struct obs_reservation_time now,
	const char *closed, struct obs_reservation **ret, enum obs_ticket_refusal *ret_why,
	struct ob_cause *ret_cause);
/*
 * The session is over. used: bytes that it was charged on each device, which are given back to the
 * reservation; NULL: it had not begun.
 */
void obs_reservations_leave(struct obs_reservations *table, struct obs_reservation *reservation,
	const uint64_t *used, struct obs_reservation_time now);
/* Ends the reservation as soon as it has no session; it takes no further one. */
void obs_reservations_kill(struct obs_reservations *table, struct obs_reservation *reservation);
/* For programs: why a reservation was killed. */
const char *obs_reservation_killed_text(const struct obs_reservation *reservation);
/* Ends what has lingered, forgets what need not be kept. Call it every second or more often. */
void obs_reservations_tick(struct obs_reservations *table, struct obs_reservation_time now);
/*
 * Refuses the ticket of this reservation from now on. Returns the state of the reservation: VOID if
 * the order was in time. 0: there is no room to remember it.
 */
uint32_t obs_reservations_void(struct obs_reservations *table,
	const uint8_t id[OBP_RESERVATION_BYTES], struct obs_reservation_time now);
/*
 * The reservation is to be used again: if nobody does, it ends after so many seconds, or its linger
 * time if that is longer. False: it has ended, or was not used yet.
 */
bool obs_reservations_keep(struct obs_reservations *table, const uint8_t id[OBP_RESERVATION_BYTES],
	uint64_t seconds, struct obs_reservation_time now);
/* The end was recorded: it is no longer reported. False: there is no such ended reservation. */
bool obs_reservations_credit(
	struct obs_reservations *table, const uint8_t id[OBP_RESERVATION_BYTES]);
/* NULL: there is none. */
struct obs_reservation *obs_reservations_find(
	const struct obs_reservations *table, const uint8_t id[OBP_RESERVATION_BYTES]);
/* How many are in this state and not credited. */
uint32_t obs_reservations_count(const struct obs_reservations *table, enum obp_pool_state state);
/* Forgets all. */
void obs_reservations_fini(struct obs_reservations *table);

#endif
