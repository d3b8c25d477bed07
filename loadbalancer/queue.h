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
 * No starvation. Let H be the first request in the order that does not fit now, has waited longer
 * than OBL_QUEUE_PATIENCE_MS, and could be placed if devices became free. obl_claim (place.h) names
 * the devices which H waits for: those on which the least must end first. While H waits, requests
 * after it in the order are not put on these devices, others are not restricted; requests before it
 * may use them, as they may without a claim. The devices of the claim get nothing new from behind,
 * so H is served at the latest when what runs on them has ended. There is one H at a time: a claim
 * for every request would leave devices unused.
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

struct obl_queue_turn {
	uint32_t place;    /* position in the order, from 0, of the request that may be served */
	uint32_t claimant; /* position of H; n if no request holds back others */
	struct obl_choice choice; /* of `place` */
	struct obl_choice claim;  /* devices kept for H */
};

/*
 * Finds the request that may be served now; the caller makes the reservation and calls again with
 * the new state. False: none; ret->claimant and ret->claim are valid in both cases. `state` as for
 * obl_place. A new request takes part like those that already wait, so that it does not overtake them.
 * At most one obl_place for each waiting request: for n requests and d devices about
 * n * d * 2 ns.
 */
bool obl_queue_next(const struct obl_waiting *waiting, const uint16_t *order, uint32_t n,
	const struct obl_server *servers, uint32_t n_servers, uint64_t now_ms,
	struct obl_state *state, struct obl_queue_turn *ret);

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
 * Writes why the request at position `place` waits: "2 requests are before it; devices: ...".
 * `why`: its last choice, from obl_place with the claim of `turn` kept.
 */
void obl_queue_explain(const struct obl_waiting *waiting, const uint16_t *order, uint32_t place,
	const struct obl_choice *why, const struct obl_server *servers, char *ret_text,
	size_t size);

#endif
