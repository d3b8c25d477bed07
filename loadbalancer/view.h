/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a program may know of the GPUs that its session uses, or would get: asked from the server
 * without a session, kept, and asked again when it is old. Under our libnvidia-ml.so.1 and
 * `outboard smi`. The caller owns the view; one thread at a time. Every function that asks blocks
 * for at most the time-out, and the resolver's. Between two questions no descriptor is open: the
 * program may fork, or close all descriptors.
 */
#ifndef OBL_VIEW_H
#define OBL_VIEW_H

#include "base/cause.h"
#include "loadbalancer/place.h"
#include "protocol/load.h"
#include "transport/url.h"

#define OBL_VIEW_FRESH_NS 100000000ull  /* an answer of this age is not asked for again */
#define OBL_VIEW_RETRY_NS 1000000000ull /* after a failure there is no question for this time */
/* a server that refuses one question, because its host asks too often, has not failed yet */
#define OBL_VIEW_KEEP_NS  2000000000ull

struct obl_view_terms {
	const char *servers; /* one address, or a list with commas */
	enum obl_policy policy;
	uint64_t memory; /* bytes that the session asks for on each device; 0: any */
	uint64_t timeout_ns;
	/*
	 * OUTBOARD_TICKET: if it has a ticket for the server, only the ticket's devices are shown;
	 * NULL: none
	 */
	const char *tickets;
};

struct obl_view {
	struct obl_view_terms terms; /* servers, tickets: the caller's */
	char url_text[OBT_URL_MAX + 1];
	struct obt_url url;
	/* n_devices: those that are shown; which these are is in `order` */
	struct obp_load load;
	uint32_t n_only; /* devices of the ticket, by UUID; 0: all are shown */
	uint8_t only[OBP_DEVICE_MAX][16];
	uint64_t asked_ns, answered_ns;
	bool failed;                    /* the last question */
	struct ob_cause cause;          /* code OB_ERR_NONE: load is valid */
	uint32_t order[OBP_DEVICE_MAX]; /* devices by PCI address, as NVML counts them */
	/*
	 * A source that is no server: fills a load. NULL: the server is asked. Set before
	 * obl_view_open.
	 */
	enum ob_err (*local)(struct obp_load *ret, struct ob_cause *ret_cause);
};

struct obl_view_memory {
	uint64_t total, reserved, used, free;
};

/*
 * Finds the server and asks it: of several the one on which this process has a session, else the
 * one that a session would get now; it stays the same until the view is closed. Waits while the
 * server does not know its devices yet. On error *ret_cause, and nothing is to be closed.
 */
enum ob_err obl_view_open(
	struct obl_view *view, const struct obl_view_terms *terms, struct ob_cause *ret_cause);
/*
 * Asks again if the answer is older than OBL_VIEW_FRESH_NS. A failed question is an error when the
 * last good answer is older than OBL_VIEW_KEEP_NS: then view->cause says why.
 */
enum ob_err obl_view_refresh(struct obl_view *view);
void obl_view_close(struct obl_view *view);

/* A device of the view, by its place in `order`. */
const struct obp_load_device *obl_view_device(const struct obl_view *view, uint32_t place);
/*
 * The memory as a session of this process sees it: of a limited session the limit and what its
 * processes hold, else the device's.
 */
void obl_view_memory(const struct obl_view *view, uint32_t place, struct obl_view_memory *ret);
/* This process's session in the list; NULL: none. */
const struct obp_load_session *obl_view_own(const struct obl_view *view);

#endif
