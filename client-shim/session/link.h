/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_link: what earlier sessions measured of the link to this server (transport/link_memory.h).
 * Read when the data connection exists, before the hello, and written after the goodbye, if this
 * session has measured anything. A program that ends without a goodbye (_exit, a signal, a lost
 * session) writes nothing. An error causes a message at level debug and nothing else. One per
 * process; used by the thread that starts the session and the one that ends it.
 */
#ifndef OBC_LINK_H
#define OBC_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/link_memory.h"

/* The data connection has been made: reads what is known of it. */
void obc_link_begin(const struct obt_url *url, const struct obt_stream *stream);
/* Whether this session's measurements will be kept. */
bool obc_link_kept(void);
/* What earlier sessions measured; all 0: nothing. */
const struct obt_link_memory *obc_link_recalled(void);
/* At the end. Members of `learned` that are 0 keep their earlier values. */
void obc_link_end(const struct obt_link_memory *learned);
/* In a forked child. */
void obc_link_forget(void);

#endif
