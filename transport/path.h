/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the kernel knows of the way to the other end. No state; any thread. */
#ifndef OBT_PATH_H
#define OBT_PATH_H

#include <stdbool.h>

#include "transport/stream.h"

/* The other end is on this machine: a unix socket, or a TCP connection between two of its own addresses. */
bool obt_path_local(const struct obt_stream *stream);
/*
 * Bytes/s that TCP last saw delivered while it had more to send than the way would take; 0: not known, or the other end is what holds up the
 * bytes, which fewer bytes would not change. trust_reader: leave that last condition out. One system call.
 */
double obt_path_rate(const struct obt_stream *stream, bool trust_reader);

#endif
