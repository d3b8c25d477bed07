/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a program may know of the GPUs that its sessions use, or would get: asked from the server, or
 * from the servers that it uses together, without a session, kept, and asked again when it is old. Under our libnvidia-ml.so.1 and
 * `outboard smi`. The caller owns the view; one thread at a time. Every function that asks blocks
 * for at most the time-out, and the resolver's. Between two questions no descriptor is open: the
 * program may fork, or close all descriptors.
 */
#ifndef OBL_VIEW_H
#define OBL_VIEW_H

#include "base/cause.h"
#include "loadbalancer/place.h"
#include "loadbalancer/together.h"
#include "protocol/load.h"
#include "transport/url.h"

#define OBL_VIEW_FRESH_NS 100000000ull  /* an answer of this age is not asked for again */
#define OBL_VIEW_RETRY_NS 1000000000ull /* after a failure there is no question for this time */
/* a server that refuses one question, because its host asks too often, has not failed yet */
#define OBL_VIEW_KEEP_NS  2000000000ull

struct obl_view_terms {
	const char *servers; /* as OUTBOARD_SERVER (loadbalancer/together.h) */
	enum obl_policy policy;
	uint64_t memory; /* bytes that the session asks for on each device; 0: any */
	uint64_t timeout_ns;
	/*
	 * OUTBOARD_TICKET: if it has a ticket for the server, only the ticket's devices and memory
	 * are shown; NULL: none
	 */
	const char *tickets;
};

#define OBL_VIEW_DEVICES (OBL_TOGETHER_MAX * OBP_DEVICE_MAX)

struct obl_view_server {
	char url_text[OBT_URL_MAX + 1];
	struct obt_url url;
	struct obp_load load;
	/* of the server's devices; bit i: device i is shown */
	uint32_t shown;
	uint32_t n_only; /* devices of the ticket, by UUID; 0: all are shown */
	uint8_t only[OBP_DEVICE_MAX][16];
	uint64_t memory; /* of the ticket, bytes on each device; 0: no limit */
};

struct obl_view {
	struct obl_view_terms terms; /* servers, tickets: the caller's */
	struct obl_view_server servers[OBL_TOGETHER_MAX];
	uint32_t n_servers;
	uint32_t at; /* the server that was asked last, of which an error tells */
	uint32_t n_devices, n_sessions;
	uint64_t asked_ns, answered_ns;
	bool failed;           /* the last question */
	struct ob_cause cause; /* code OB_ERR_NONE: the answers are valid */
	struct obl_view_place {
		uint32_t server, device;
	} order[OBL_VIEW_DEVICES]; /* devices by PCI address, as NVML counts them */
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
 * The terms for these servers with the settings of a session: OUTBOARD_POLICY, OUTBOARD_VRAM,
 * OUTBOARD_TICKET and OUTBOARD_TIMEOUT. A wrong value is left out. Of an unknown policy this warns, in a
 * program with a session a second time; of a wrong size the session alone does. The texts are the
 * caller's and the environment's.
 */
struct obl_view_terms obl_view_terms_read(const char *servers);
/* Why a question to the view's servers has failed, and what to do, as one line. */
void obl_view_failure_print(
	const struct obl_view *view, const struct ob_cause *cause, char *ret_text, size_t size);

/*
 * Finds the server and asks it: of a list the one on which this process has a session, else the
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

/* The first server's answer, for what is not about devices. */
const struct obp_load *obl_view_load(const struct obl_view *view);
/* A device of the view, by its place in `order`. */
const struct obp_load_device *obl_view_device(const struct obl_view *view, uint32_t place);
/* Session `i`, below n_sessions; one program has a session on each server that it uses. */
const struct obp_load_session *obl_view_session(const struct obl_view *view, uint32_t i);
/* Bytes that it holds on the device; 0 also if it is another server's. */
uint64_t obl_view_used(
	const struct obl_view *view, const struct obp_load_session *session, uint32_t place);
/* What was asked: the server's address, or of several the whole list. */
const char *obl_view_name(const struct obl_view *view);
/* Whether kernels of one device can access the other's memory; atomics: with atomic operations. */
bool obl_view_peers(
	const struct obl_view *view, uint32_t place, uint32_t other, bool atomics, bool *ret_known);
/*
 * The memory as a session of this process sees it: of a limited session the limit and what its
 * processes hold, else the device's.
 */
void obl_view_memory(const struct obl_view *view, uint32_t place, struct obl_view_memory *ret);
/* This process's session on the server of the device; NULL: none. */
const struct obp_load_session *obl_view_own(const struct obl_view *view, uint32_t place);

#endif
