/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Sharing memory and events with other programs (front/share.h). The other program has a session of
 * its own on the same server, which passes the objects on. What a program gets contains the random
 * id that the server has given to the object. Any thread.
 */
#ifndef OBC_SHARE_H
#define OBC_SHARE_H

#include "front/share.h"
#include "protocol/control.h"

extern const struct obf_sharing obc_sharing;

/* After the welcome: what this server can share. */
void obc_share_start(const struct obp_welcome *welcome);

#endif
