/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_cache: the client's side of the upload cache, for copies to the device whose bytes the server
 * may still have from an earlier session of the same client. A copy is cut into upload chunks, and
 * each is named by its hash (transport/tree.h). One request names up to 256 chunks. Only the chunks
 * that the server lacks are sent, and the server stores them for later copies.
 *
 *     cache_ask(names) ->  have      write_cached for each chunk that it has, write_kept for the
 *                                    others, in the order of the copy
 *     cache_ask(...)   ->  lost      chunks that it had but has evicted or found damaged since:
 *                                    they are sent before the program's call returns
 *
 * Hashing costs time, so it is done only where the connection is much slower than hashing
 * (cache_choice.h). OUTBOARD_CACHE=on uses the cache always, =off never. One object per process.
 * Any thread. Only one copy at a time uses the cache, because the server keeps one request per
 * session.
 */
#ifndef OBC_CACHE_H
#define OBC_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "client-shim/session/cache_choice.h"
#include "client-shim/session/server.h"
#include "transport/link_memory.h"

/* Capacity of the server's cache in bytes, from the welcome. */
void obc_cache_offered(uint64_t bytes);
/*
 * Bytes; the smallest copy for which the cache is considered. UINT64_MAX: for none. Written at the
 * start of the session and in a forked child.
 */
extern uint64_t obc_cache_min_first;
#define obc_cache_min OBC_HERE(obc_cache_min_first)
/*
 * Right after obc_cache_offered: what earlier sessions measured; 0: unknown. The connection is
 * measured again as soon as if its rate were unknown.
 */
void obc_cache_recall(const struct obt_link_memory *memory);
/* At the end: sets the cache's members that this session has measured. */
void obc_cache_learned(struct obt_link_memory *ret);

/*
 * A copy, by obc_transfer: enter; carry, timing or passed for its parts in order; finish, unless
 * the whole copy has passed; leave. enter takes the lock of the cache and returns what
 * obc_cache_pays needs.
 */
const struct obc_cache_view *obc_cache_enter(void);
void obc_cache_leave(void);
/*
 * Names the next chunks of a copy that has `left` bytes left, asks the server for them, and sends
 * those that it does not have. *ret_size: bytes that were taken care of.
 */
CUresult obc_cache_carry(
	uint64_t dst, const void *src, uint64_t left, uint64_t stream, uint64_t *ret_size);
/*
 * Measures the connection's rate: between begin and end the caller sends `size` bytes without
 * names.
 */
CUresult obc_cache_timing_begin(void);
CUresult obc_cache_timing_end(uint64_t size);
/* Bytes of the copy that travel without the cache. */
void obc_cache_passed(uint64_t size);
/*
 * Sends the chunks again that the server has lost. Returns `result` if that is an error, else the
 * copy's result.
 */
CUresult obc_cache_finish(CUresult result);
/* In a forked child. */
void obc_cache_forget(void);

struct obc_cache_stats {
	uint64_t requested, hits, lost;     /* chunks */
	uint64_t bytes_saved, bytes_stored; /* not sent; sent and stored by the server */
	uint64_t naming_bytes, naming_ns;
};
void obc_cache_stats(struct obc_cache_stats *ret);

#endif
