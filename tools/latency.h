/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Where the time of a call goes: per class of call the whole as the program sees it, split into the
 * client library, the wire, the server's queue and the driver, by stamps that both sides take on
 * request. Beside it a bare ping-pong on the same kind of connection, in turn with the calls.
 *
 *     program      |-------------------------- whole --------------------------|
 *     client       |-client-|                                          |-client-|
 *     wire                  |--wire--|                        |--wire--|
 *     server                         |-- queue --|-- driver --|
 *
 * Two clocks are never compared: the wire is what is left of the client's waiting when the server's
 * time is taken out.
 */
#ifndef OBX_LATENCY_H
#define OBX_LATENCY_H

#include <stdbool.h>

#include "tools/latency_row.h"
#include "transport/url.h"

#define OBX_LATENCY_SAMPLES_MAX 4000u

/*
 * Measures through `library`, an open client library with a session and a current context. json:
 * rows are printed as members of an array that the caller has begun (any_row: a comma first). plot:
 * an SVG is written there; NULL: none. The exit code.
 */
int obx_latency_run(void *library, const struct obt_url *url, unsigned samples, bool json,
	bool any_row, const char *plot);

#endif
