/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Times of the last frame sent and the last reply received, for `outboard bench latency`. A private
 * table of cuGetExportTable enables the measurement here and on the server. When disabled it costs
 * one test of a flag per frame. The times are valid only while a single thread makes calls.
 */
#ifndef OBC_TIMES_H
#define OBC_TIMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBC_TIMES_ID "outboard-latency" /* 16 bytes */

/* The table. */
struct obc_times_calls {
	uint64_t size;
	/*
	 * enables it here and on the server; CUDA_ERROR_NOT_SUPPORTED: the server does not support
	 * it
	 */
	CUresult (*on)(int on);
	/* the times by the monotonic clock; the number of the last record sent */
	void (*last)(uint64_t *ret_sent_ns, uint64_t *ret_received_ns, uint64_t *ret_number);
	/* op times_read */
	CUresult (*server)(uint64_t first, uint32_t *ret_count, uint64_t *ret_times);
};

extern _Atomic bool obc_times_on; /* of all servers */

void obc_times_sent(uint64_t number);
void obc_times_received(void);
/* Whether the welcome offers the measurement. */
void obc_times_offered(bool offered);
/* For the front end: returns the table, or NULL for another id. */
const void *obc_times_table(const CUuuid *id);

#endif
