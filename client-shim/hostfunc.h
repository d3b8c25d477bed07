/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_hostfunc: functions of the program that a stream calls. They are kept here under an id until
 * the server says that the stream has come to one; it then runs on the session's control thread, in
 * the stream's order, while the stream waits. Any thread.
 */
#ifndef OBC_HOSTFUNC_H
#define OBC_HOSTFUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "front/stream.h"

#define OBC_HOSTFUNC_MAX (1u << 16) /* launched and not yet run */

/* Some are launched and have not returned. */
bool obc_hostfunc_pending(void);
/* The front end's backend table (front/backend.h). */
CUresult obc_hostfunc_submit(struct obf_stream *stream, const struct obf_host_function *function);
/* For obc_session_on_callback: runs it; an unknown id is nothing. */
void obc_hostfunc_run(uint64_t id, CUresult status);

#endif
