/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_later: a call whose reply nobody waits for. Its record is sent, the thread goes on, and the
 * reply is noted by whichever thread reads the data connection next. The memory belongs to the
 * caller until obc_later_drop. Any thread, except that look and drop of one object exclude each
 * other.
 */
#ifndef OBC_LATER_H
#define OBC_LATER_H

#include <stdbool.h>

#include "base/cuda_types.h"
#include "client-shim/session/log.h"

/* calls of this kind that may be unanswered at a time; the server ends a session with many more */
#define OBC_LATER_MAX 4096u

struct obc_later;

/*
 * Room for one more call of this kind. NULL: OBC_LATER_MAX are unanswered, or no memory. To be
 * taken before obc_log_begin.
 */
struct obc_later *obc_later_new(void);
/* Commits the record in the slot, which the sender or a waiting caller sends. No reply body. */
void obc_later_ask(struct obc_later *later, struct obc_slot *slot);
/*
 * Whether the reply has come; then *ret is the server's result. Reads what has arrived on the
 * connection, unless another thread reads it, but does not wait.
 */
bool obc_later_look(struct obc_later *later, CUresult *ret);
/* The reply is not wanted any more. NULL is allowed. */
void obc_later_drop(struct obc_later *later);

#endif
