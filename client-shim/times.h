/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * When the last frame left and the last reply came, for `outboard bench latency`: a private table,
 * got by cuGetExportTable, turns it on here and on the server. Off, it costs one look at a flag for
 * each frame. It tells of one thread's calls while no other makes any.
 */
#ifndef OBC_TIMES_H
#define OBC_TIMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OBC_TIMES_ID "outboard-latency" /* 16 bytes */

/* The table: its size in bytes in the first word, then these. */
struct obc_times_calls {
	uint64_t size;
	/* here and on the server; CUDA_ERROR_NOT_SUPPORTED: the server cannot */
	CUresult (*on)(int on);
	/* monotonic clock; the last record sent */
	void (*last)(uint64_t *ret_sent_ns, uint64_t *ret_received_ns, uint64_t *ret_number);
	/* op times_read */
	CUresult (*server)(uint64_t first, uint32_t *ret_count, uint64_t *ret_times);
};

extern _Atomic bool obc_times_on;

void obc_times_sent(uint64_t number);
void obc_times_received(void);
/* What the welcome said. */
void obc_times_offered(bool offered);
/* For the front end: the table, or NULL for another id. */
const void *obc_times_table(const CUuuid *id);

#endif
