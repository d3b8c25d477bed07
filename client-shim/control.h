/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_control: the session's control connection and its quiet thread: pings, host functions,
 * acknowledgements of replies that no call takes along, and the end. Its pings are the session's
 * sign of life: when they stay unanswered for longer than round trip and jitter explain, both
 * connections are made again (or, without resuming, the session is lost while somebody waits). One
 * per process.
 */
#ifndef OBC_CONTROL_H
#define OBC_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/resume.h"
#include "transport/url.h"

/*
 * timeout_ns: for connecting; dead_ns: silence that is never normal. obc_resume_init comes first.
 * False: no thread can be had.
 */
bool obc_control_start(const struct obt_url *url, uint64_t timeout_ns, uint64_t dead_ns);
/* At exit. Waits for the thread, but not for a host function that takes longer than 2 s. */
void obc_control_stop(void);
/*
 * The program ends while this thread is in a call: one word to the server, without waiting for
 * anything.
 */
void obc_control_give_up(void);
/* After fork, in the child. */
void obc_control_forget(void);

/*
 * The server asks for host function `id` with the stream's status: called on the control thread,
 * which answers when fn returns. Set before start.
 */
void obc_control_on_callback(void (*fn)(uint64_t id, CUresult status));
/* What the pings have shown. */
void obc_control_quality(struct obp_quality *ret);

#endif
