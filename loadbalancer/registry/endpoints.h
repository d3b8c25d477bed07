/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The members of an etcd: which one is used, which ones failed and until when they are avoided, and
 * how many attempts may be repeated. No I/O and no clock of its own: the caller passes the time.
 * Embedded in its owner; one thread.
 */
#ifndef OBL_ENDPOINTS_H
#define OBL_ENDPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "base/clock.h"

#define OBL_ENDPOINTS_MAX    16u
#define OBL_ENDPOINT_URL_MAX 256u
#define OBL_BACKOFF_FIRST_NS (50 * OB_MS) /* doubled by each failure in a row */
#define OBL_BACKOFF_MAX_NS   OB_SECOND
/* The budget for repetitions: a fifth of the calls, and ten in each second (Finagle's default). */
#define OBL_RETRY_SHARE      0.2
#define OBL_RETRY_PER_SECOND 10.0
#define OBL_RETRY_SAVED_MAX  100.0

struct obl_endpoint {
	char url[OBL_ENDPOINT_URL_MAX + 1];
	uint32_t failures;    /* in a row */
	uint64_t avoid_until; /* ns */
};

struct obl_endpoints {
	struct obl_endpoint list[OBL_ENDPOINTS_MAX];
	uint32_t n, current;
	double budget;
	uint64_t budget_ns; /* when it was last filled */
	uint64_t seed;      /* of the jitter */
};

/*
 * "http://a:2379,http://b:2379" or the same with https. OB_ERR_URL: *ret_cause. The first endpoint is
 * chosen by the seed, so that balancers spread over the members.
 */
enum ob_err obl_endpoints_parse(
	const char *text, uint64_t seed, struct obl_endpoints *ret, struct ob_cause *ret_cause);
/* Endpoint i has answered. */
void obl_endpoints_ok(struct obl_endpoints *endpoints, uint32_t i);
/* Endpoint i has failed: it is avoided for a while, and another one becomes the current one. */
void obl_endpoints_failed(struct obl_endpoints *endpoints, uint32_t i, uint64_t now);
/* When the current endpoint may be used: `now` or later, if all of them failed lately. */
uint64_t obl_endpoints_when(const struct obl_endpoints *endpoints, uint64_t now);
/* A call is made: it adds to the budget. */
void obl_endpoints_called(struct obl_endpoints *endpoints);
/* Takes one repetition from the budget; false: it is used up. */
bool obl_endpoints_retry(struct obl_endpoints *endpoints, uint64_t now);

#endif
