/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Results that latency.c measures and plot.c draws. */
#ifndef OBX_LATENCY_ROW_H
#define OBX_LATENCY_ROW_H

#include <stdbool.h>

#define OBX_LATENCY_BUCKETS 24u /* powers of two from 64 ns */

enum obx_part { OBX_CLIENT, OBX_WIRE, OBX_QUEUE, OBX_DRIVER, OBX_PARTS };

struct obx_latency_row {
	const char *name, *what;
	unsigned samples;
	double p50, p90, p99, max; /* us */
	/* means of the samples around the median, us; their sum is about p50 */
	double part[OBX_PARTS];
	bool split; /* parts were measured; else all the time is the client's */
	unsigned histogram[OBX_LATENCY_BUCKETS];
};

#endif
