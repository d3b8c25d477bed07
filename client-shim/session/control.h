/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_control: the session's control connection and its thread, which handles pings, host
 * functions, questions for free memory, acknowledgements of replies that no call carries, and the
 * end of the session. The pings detect a dead connection: if they stay unanswered for longer than
 * the round trip and its jitter explain, both connections are resumed. Without resuming, the
 * session is lost if a thread waits for a reply. One per process.
 */
#ifndef OBC_CONTROL_H
#define OBC_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/resume.h"
#include "transport/url.h"

/*
 * timeout_ns: limit for connecting; dead_ns: silence after which the connection is always dead.
 * Call obc_resume_init before. False: the thread could not be created.
 */
bool obc_control_start(const struct obt_url *url, uint64_t timeout_ns, uint64_t dead_ns);
/* At exit. Waits for the thread, but not for a host function that takes longer than 2 s. */
void obc_control_stop(void);
/*
 * The program exits while this thread is in a call: sends the server one message and does not wait.
 */
void obc_control_give_up(void);
/* After fork, in the child. */
void obc_control_forget(void);

/*
 * fn runs host function `id`; status is that of the stream. The control thread calls it when the
 * server requests the function, and replies when fn returns. Set before start.
 */
void obc_control_on_callback(void (*fn)(uint64_t id, CUresult status));
/* The quality of the connection, measured by the pings. */
void obc_control_quality(struct obp_quality *ret);

#endif
