/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures where the time of a call goes. For each class of calls: the whole time as the program
 * sees it, split into the client library, the wire, the server's queue and the driver. Both sides
 * take time stamps on request. A bare ping-pong on the same kind of connection alternates with the
 * calls.
 *
 *     program      |-------------------------- whole --------------------------|
 *     client       |-client-|                                          |-client-|
 *     wire                  |--wire--|                        |--wire--|
 *     server                         |-- queue --|-- driver --|
 *
 * Times of two clocks are never subtracted from each other: the wire's part is the client's waiting
 * time less the server's time.
 */
#ifndef OBX_LATENCY_H
#define OBX_LATENCY_H

#include <stdbool.h>

#include "base/json.h"
#include "tools/latency_row.h"
#include "transport/url.h"

#define OBX_LATENCY_SAMPLES_MAX 4000u

/*
 * Measures through `library`, an open client library with a session and a current context. json:
 * NULL, or the array to which the rows are added.
 * plot: path of the SVG to write, or NULL. Returns the exit code.
 */
int obx_latency_run(void *library, const struct obt_url *url, unsigned samples,
	struct ob_json *json, const char *plot);

#endif
