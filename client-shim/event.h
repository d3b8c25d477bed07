/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_event: an event of the program, with a handle of ours that is its name on the wire. It
 * remembers the record that recorded it, so an event whose stream or context has been waited for
 * since is known to be complete without asking. Objects are reused. Any thread.
 */
#ifndef OBC_EVENT_H
#define OBC_EVENT_H

#include "front/front.h"

#define OBC_EVENT_MAX (1u << 20) /* live events of a process */

/* The context ends. */
void obc_events_end(const struct obf_ctx *ctx);

#endif
