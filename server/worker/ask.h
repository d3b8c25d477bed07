/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Requests of this worker to the broker in the supervisor (server/supervisor/broker.h). One per
 * process. Any thread that executes records may ask, one at a time; the loop delivers the answers.
 */
#ifndef OBS_ASK_H
#define OBS_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "server/common/handoff.h"
#include "server/common/ipc.h"

#ifndef OBS_ASK_WAIT_MS      /* a test has less */
#define OBS_ASK_WAIT_MS 5000 /* for an answer */
#endif
#define OBS_ASK_LATE_MAX 64u /* objects whose registration was answered too late */

/* Before this every request is CUDA_ERROR_NOT_SUPPORTED. */
void obs_ask_start(int channel);
/*
 * Loop: an answer of the supervisor. Takes or closes the descriptors. An object that was registered
 * after its request had timed out is taken back: the program does not have its id.
 */
void obs_ask_answered(const struct obs_handoff *message, int fds[OBS_HANDOFF_FDS]);
/*
 * Sends a request and waits for the answer, which replaces *ipc. fd: sent with it, -1; the caller
 * keeps it. *ret_fd: the descriptor of the answer, which the caller closes; -1. ret_fd may be NULL.
 * `none`: the error if there is no such object. CUDA_ERROR_OUT_OF_MEMORY: too many objects.
 * CUDA_ERROR_TIMEOUT: no answer.
 */
CUresult obs_ask(struct obs_ipc *ipc, CUresult none, int fd, int *ret_fd);
/* Takes back an object of this session. Does not wait for an answer. */
void obs_ask_drop(const uint64_t id[2]);

#endif
