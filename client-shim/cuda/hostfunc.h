/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_hostfunc: host functions, which are functions of the program that a stream calls. Each is
 * stored under an id until the server reports that the stream has reached it. It then runs on the
 * session's control thread, in the order of the stream, while the stream waits. Any thread.
 */
#ifndef OBC_HOSTFUNC_H
#define OBC_HOSTFUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "front/stream.h"

#define OBC_HOSTFUNC_MAX (1u << 16) /* limit of functions that are launched and have not run */

/* Whether functions are launched and have not returned. */
bool obc_hostfunc_pending(void);
/* For struct obf_backend. */
CUresult obc_hostfunc_submit(struct obf_stream *stream, const struct obf_host_function *function);
CUresult obc_hostfuncs_transfer(void);
/* For obc_session_on_callback: runs the function; ignores an unknown id. */
void obc_hostfunc_run(uint64_t id, CUresult status);

#endif
