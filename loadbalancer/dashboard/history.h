/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The last hour of each GPU and of the pool: a ring of 120 points of 30 s for each, made of what
 * the servers report (mean utilisation, memory and power; highest temperature). In memory only,
 * 1 KB for a GPU. GPUs that have not been seen for an hour are forgotten. Owned by the HTTP server
 * (web.h); the loop's thread.
 */
#ifndef OBL_DASHBOARD_HISTORY_H
#define OBL_DASHBOARD_HISTORY_H

#include "loadbalancer/dashboard/source.h"

#define OBL_HISTORY_POINTS   120u
#define OBL_HISTORY_LOOKS    6u     /* for one point */
#define OBL_HISTORY_LOOK_MS  5000u  /* between two looks */
#define OBL_HISTORY_GPUS_MAX 16384u /* further ones have no history */
#define OBL_HISTORY_ASK_MAX  64u    /* GPUs in one document */

struct obl_track;

struct obl_history {
	struct obl_track *pool;    /* of all GPUs together */
	struct obl_track **tracks; /* by UUID, ascending */
	uint32_t n, room;
	uint32_t looks; /* since the last point */
	uint32_t look_ms;
};

/* look_ms: interval of obl_history_look; 0: OBL_HISTORY_LOOK_MS. */
void obl_history_init(struct obl_history *history, uint32_t look_ms);
void obl_history_fini(struct obl_history *history);
/* Looks at all GPUs; every OBL_HISTORY_LOOKS-th time a point is made. */
void obl_history_look(struct obl_history *history, const struct obl_source *source);
/*
 * The document: {"schema": 1, "step_s": 30, "gpus": {"GPU-...": {"utilization": [...], ...}}}, or
 * with "pool" in place of "gpus" if n is 0. Oldest point first; null: nothing was reported. GPUs
 * without history are left out. *ret_text is malloc'ed. False: no memory.
 */
bool obl_history_document(const struct obl_history *history, const uint8_t (*uuids)[16], unsigned n,
	char **ret_text, size_t *ret_size);

#endif
