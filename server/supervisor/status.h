/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the supervisor knows of its sessions, from their stats pages: for clients that ask over the
 * wire (`outboard top`, placement), for /metrics, and for priorities among sessions. Loop's thread
 * only. No session is asked or held up.
 */
#ifndef OBS_STATUS_H
#define OBS_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/load.h"
#include "server/supervisor/asker.h"
#include "server/supervisor/super.h"

#define OBS_STATUS_TICK_MS 50  /* between ticks, while there are sessions: who works, who yields */
#define OBS_BUSY_TICKS     20u /* ticks over which "busy" is averaged */

/*
 * want: enum obp_load_want; asker: for OBP_LOAD_WANT_OWN, may be NULL. Sessions are listed in
 * ret->listed; obp_load_fini frees it.
 */
void obs_status_fill(struct obs_super *super, unsigned want, const struct obs_asker *asker,
	struct obp_load *ret);
/* Per mille of the last second in which sessions of the reservation were executing, at most 1000. */
uint32_t obs_status_busy(const struct obs_super *super, const struct obs_reservation *reservation);
/*
 * Samples who executes at this moment, for the averages of sessions, devices and the server. Called
 * every OBS_STATUS_TICK_MS.
 */
void obs_status_sample(struct obs_super *super);
void obs_status_totals(const struct obs_super *super, struct obs_totals *ret);
/*
 * Answers a preface of intent OBP_INTENT_LOAD with one message. All sessions are listed
 * for clients on this host only, those of the asker's machine (asker.h) for every client.
 */
bool obs_status_answer(struct obs_super *super, int fd, uint64_t want);
/* A session on proc has begun, over this connection; has ended. */
void obs_status_session_began(struct obs_proc *proc, int fd);
void obs_status_session_ended(struct obs_proc *proc);
/* A worker is ready: takes over its list of devices. */
void obs_status_worker_ready(struct obs_proc *proc);

#endif
