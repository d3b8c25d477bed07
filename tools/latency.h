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
#include <stdint.h>

#include "transport/url.h"

#define OBX_LATENCY_SAMPLES_MAX 4000u
#define OBX_LATENCY_BUCKETS     24u /* powers of two from 64 ns */

enum obx_part { OBX_CLIENT, OBX_WIRE, OBX_QUEUE, OBX_DRIVER, OBX_PARTS };

struct obx_latency_row {
	const char *name, *what;
	unsigned samples;
	double p50, p90, p99, max; /* us */
	/* means of the samples around the median, us: they add up to about p50 */
	double part[OBX_PARTS];
	bool split; /* parts were measured; else all of it is the client's */
	unsigned histogram[OBX_LATENCY_BUCKETS];
};

/*
 * Measures through `library`, an open client library with a session and a current context. json:
 * rows are printed as members of an array that the caller has begun (any_row: a comma first). plot:
 * an SVG is written there; NULL: none. The exit code.
 */
int obx_latency_run(void *library, const struct obt_url *url, unsigned samples, bool json,
	bool any_row, const char *plot);

#endif
