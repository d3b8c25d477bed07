/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_aside: runs one call on a thread of its own, because only a blocking call of the driver, or a
 * long copy over stripes, can answer it and other threads of the program must not wait. These calls
 * are rare; the thread ends with the call.
 */
#ifndef OBS_ASIDE_H
#define OBS_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/worker/session.h"

#define OBS_ASIDE_BODY 256u /* bytes; the limit of a body */

/*
 * Runs the current record on another thread. False: OBS_ASIDE_MAX calls are running, or no thread
 * can be started; the caller runs the record itself. Executor only.
 */
bool obs_aside_run(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);

#endif
