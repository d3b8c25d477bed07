/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_cache: the client's side of the upload cache, for copies to the device whose bytes the server
 * may still have from an earlier session of the same client. A copy is cut into upload chunks, and
 * each is named by its hash (transport/tree.h). One request names up to 256 chunks. Only the chunks
 * that the server lacks are sent, and the server keeps them for later copies.
 *
 *     cache_ask(names) ->  have      write_cached for each chunk that it has, write_kept for the
 *                                    others, in the order of the copy
 *     cache_ask(...)   ->  lost      chunks that it had but has evicted or found damaged since:
 *                                    they are sent before the program's call returns
 *
 * Hashing costs time, so it is done only where the connection is much slower than hashing (see
 * obc_cache_pays). OUTBOARD_CACHE=on uses the cache always, =off never. One object per process. All
 * functions may be called by any thread. Only one copy at a time uses the cache, because the server
 * keeps one request per session.
 */
#ifndef OBC_CACHE_H
#define OBC_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"

/* bytes: smallest copy that uses the cache; with OUTBOARD_CACHE=on it is OBC_CACHE_CHUNK_MIN */
#define OBC_CACHE_COPY_MIN  (1u << 20)
/* bytes: a smaller last chunk of a copy is sent without a name */
#define OBC_CACHE_CHUNK_MIN (64u << 10)
/* the connection's rate must be below this part of the hashing rate */
#define OBC_CACHE_GAIN      0.4
/* bytes sent without names and timed, to measure the connection's rate ... */
#define OBC_CACHE_PROBE     (4u << 20)
/* ... after this many bytes were named while the rate was unknown */
#define OBC_CACHE_BLIND     (64ull << 20)
#define OBC_CACHE_STALE     (2ull << 30) /* ... or this many bytes after the last measurement */
/* bytes/s; below this rate the connection counts as slow, whatever else delayed the copy */
#define OBC_CACHE_SLOW      250e6

/* The inputs of the decision. All rates are in bytes/s; 0: not known. */
struct obc_cache_view {
	uint64_t server; /* capacity of its cache in bytes; 0: it has none */
	/*
	 * bytes so far: kept by the server after sending; named and in its cache; named and not in
	 * its cache
	 */
	uint64_t kept, hits, misses;
	uint64_t unseen; /* bytes since the connection's rate was last measured */
	/*
	 * link: rate of a plain write, up to the end of the server's copy; naming: rate of hashing
	 */
	double link, naming, rtt_s;
	bool forced; /* OUTBOARD_CACHE=on */
};

/* send without names; send the names first; send OBC_CACHE_PROBE bytes without names */
enum obc_cache_way { OBC_CACHE_PLAIN, OBC_CACHE_ASK, OBC_CACHE_LOOK };
/*
 * Chooses how to send the next bytes of a copy that has `size` bytes left. The cache is used when
 * the connection is slower than OBC_CACHE_GAIN times the hashing rate, when the round trip takes
 * less than half the time of sending, and when a quarter of the bytes named so far were in the
 * cache or the cache still has room.
 */
enum obc_cache_way obc_cache_pays(const struct obc_cache_view *view, size_t size);

/* Capacity of the server's cache in bytes, from the welcome. */
void obc_cache_offered(uint64_t bytes);
/* Makes the copy. False: nothing was sent; the caller sends the copy without the cache. */
bool obc_cache_write(uint64_t dst, const void *src, size_t size, uint64_t stream, CUresult *ret);
/* In a forked child. */
void obc_cache_forget(void);

struct obc_cache_stats {
	uint64_t asked, hits, lost;       /* chunks */
	uint64_t bytes_saved, bytes_kept; /* not sent; sent and kept by the server */
	uint64_t naming_bytes, naming_ns;
};
void obc_cache_stats(struct obc_cache_stats *ret);

#endif
