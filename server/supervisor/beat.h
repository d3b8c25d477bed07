/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the server's heartbeats say: its load, whether it should get new sessions, what is reserved.
 * Loop's thread only.
 */
#ifndef OBS_BEAT_H
#define OBS_BEAT_H

#include "base/buf.h"
#include "protocol/pool.h"
#include "server/supervisor/super.h"

#define OBS_BEAT_HOT_C 90u /* a hotter device gets no new sessions */

/* Fills in a heartbeat with number 1; obp_pool_fini frees it. False: no memory. */
bool obs_beat_fill(struct obs_super *super, struct obp_pool_message *ret);
/*
 * Writes the frame of a heartbeat to an empty buffer, without the list of sessions if it were too
 * long. False: no memory, or the frame has more than `most` bytes.
 */
bool obs_beat_encode(struct obs_super *super, size_t most, struct ob_buf *frame);

#endif
