/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the supervisor knows of its sessions, read off their stats pages: for those who ask over the wire
 * (`outboard top`, clients that choose among servers), for /metrics, and for priorities among
 * sessions. Loop's thread only. No session is asked or held up.
 */
#ifndef OBS_STATUS_H
#define OBS_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/load.h"
#include "server/supervisor/super.h"

#define OBS_STATUS_TICK_MS 50  /* while there are sessions: who works, who yields */
#define OBS_BUSY_TICKS     20u /* the time that "busy" is the mean of, in ticks */

/* ret->listed, when sessions are wanted, is malloc'ed: obp_load_fini. */
void obs_status_fill(struct obs_super *super, bool sessions, struct obp_load *ret);
void obs_status_totals(const struct obs_super *super, struct obs_totals *ret);
/*
 * Answers the preface of intent OBP_INTENT_LOAD on this connection: one message. Sessions are told
 * to clients of this host only.
 */
bool obs_status_answer(struct obs_super *super, int fd, uint64_t want);
/* A session has begun on proc, over this connection; it has ended. */
void obs_status_session_began(struct obs_proc *proc, int fd);
void obs_status_session_ended(struct obs_proc *proc);
/* A worker is ready: its devices are the server's. */
void obs_status_worker_ready(struct obs_proc *proc);

#endif
