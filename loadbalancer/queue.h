/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The queue of waiting requests: in which order they are served, which may be served now, and what
 * to tell those that wait. Pure functions over arrays of the caller, who keeps the requests; no
 * allocation, no I/O, any thread.
 *
 * Order. Higher priority first. Within a priority weighted fair share: the tenant with the least
 * usage for its weight is next with its oldest request, and each request in the order counts as
 * usage for the next. So a tenant with 100 waiting requests does not hold up one with a single one.
 *
 * Backfill. A request may be served before others if it fits and none before it fits.
 *
 * No starvation. A request that has waited longer than OBL_QUEUE_PATIENCE_MS, does not fit now, and
 * could be placed if devices became free, holds back others. There is one such request H at a time:
 * of several the one with the highest priority, then the oldest; a claim for each would leave too
 * many devices unused. obl_claim (place.h) names the devices which H waits for, those on which the
 * least must end first. While H waits:
 *
 *   - no other request of H's priority or below is put on these devices, wherever it is in the order;
 *   - requests of a higher priority may use them;
 *   - all other devices are used as without H, and H is served elsewhere if it fits there earlier.
 *
 * The claim stays the same until H is served or cancelled, a claimed device can no longer be used,
 * or a request of a higher priority becomes H. So, with no requests of a higher priority, H is
 * served at the latest when all has ended that ran on the claimed devices when H was chosen.
 */
#ifndef OBL_QUEUE_H
#define OBL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadbalancer/place.h"

#define OBL_QUEUE_MAX         1024u /* waiting requests; more are refused */
#define OBL_QUEUE_TENANTS_MAX 1024u
#define OBL_QUEUE_PATIENCE_MS 30000u /* a request that has waited longer holds back others */
#define OBL_RELEASES_MAX      64u    /* releases from which the estimate is made */

/* Priorities of requests (protocol/pool.h). */
enum obl_priority { OBL_LOW = 1, OBL_NORMAL, OBL_HIGH };

struct obl_queue_tenant {
	uint32_t weight;  /* 0: 1 */
	uint32_t devices; /* in use now */
};

struct obl_waiting {
	uint32_t priority; /* enum obl_priority */
	uint32_t tenant;   /* index */
	uint64_t since_ms; /* any clock */
	uint64_t number;   /* decides between equal times; unique */
	const struct obl_request *request;
	enum obl_policy policy;
	/* Not now for a reason other than devices (quota): it keeps its place and holds back nobody. */
	bool blocked;
};

/*
 * Writes the order: ret_order[0] is the index of the request to be served first. n at most
 * OBL_QUEUE_MAX, each tenant below n_tenants, n_tenants at most OBL_QUEUE_TENANTS_MAX.
 */
void obl_queue_order(const struct obl_waiting *waiting, uint32_t n,
	const struct obl_queue_tenant *tenants, uint32_t n_tenants, uint16_t *ret_order);

/* The request that holds back others. Kept by the caller between calls; all zero: none. */
struct obl_queue_hold {
	bool active;
	uint64_t number; /* of the request */
	uint32_t priority;
	struct obl_choice
		claim; /* devices kept for it: `kept` of every other request up to `priority` */
};

/*
 * Finds the request that may be served now. True: *ret_place is its position in the order and
 * *ret_choice where it goes; the caller makes the reservation and calls again with the new state.
 * False: none fits. A new request takes part like those that already wait, so that it does not
 * overtake them. `hold` is brought up to date in both cases. `state` as for obl_place. At most two
 * obl_place for each waiting request; requests that need at least as much as one that did not fit cost
 * nothing.
 */
bool obl_queue_next(const struct obl_waiting *waiting, const uint16_t *order, uint32_t n,
	const struct obl_server *servers, uint32_t n_servers, uint64_t now_ms,
	struct obl_queue_hold *hold, struct obl_state *state, uint32_t *ret_place,
	struct obl_choice *ret_choice);

/* ---- the estimate ---- */

/* The last releases of devices. All zero: none. Owner: the caller. */
struct obl_releases {
	uint32_t n, at; /* number of entries; where the next is written */
	struct {
		uint64_t ms;
		uint32_t devices;
	} list[OBL_RELEASES_MAX];
};

void obl_releases_add(struct obl_releases *releases, uint64_t now_ms, uint32_t devices);
/*
 * Milliseconds until position `place` is served, if devices become free at the rate of the recent
 * past: devices of all requests up to it, divided by the rate. 0: not known (fewer than two
 * releases).
 */
uint64_t obl_queue_estimate(const struct obl_waiting *waiting, const uint16_t *order,
	uint32_t place, const struct obl_releases *releases, uint64_t now_ms);

/*
 * Writes why the request at position `place` waits: "2 requests are before it; devices: 3 with too
 * little free memory (...)". Asks obl_place, with the devices of the hold kept.
 */
void obl_queue_explain(const struct obl_waiting *waiting, const uint16_t *order, uint32_t place,
	const struct obl_server *servers, uint32_t n_servers, const struct obl_queue_hold *hold,
	char *ret_text, size_t size);

#endif
