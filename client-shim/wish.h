/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the user asks of the session beforehand, from the environment: which of several servers
 * (OUTBOARD_SERVER=a,b,c; OUTBOARD_POLICY), how much memory at most (OUTBOARD_VRAM), which share of
 * the device (OUTBOARD_SHARE), which priority (OUTBOARD_PRIORITY). Called while the session starts.
 */
#ifndef OBC_WISH_H
#define OBC_WISH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/control.h"
#include "transport/url.h"

/*
 * Puts the wishes into the hello. A value that cannot be read is named in a warning and left out.
 */
void obc_wish_fill(struct obp_hello *hello);
/*
 * The address to connect to: the only one of the list, or the one that placement chooses. On error
 * one line has been logged.
 */
enum ob_err obc_wish_server(const char *list, uint64_t timeout_ns, char ret_url[OBT_URL_MAX + 1]);

#endif
