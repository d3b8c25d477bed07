/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_cache: copies to the device whose bytes the server may still have from an earlier session of
 * the same client. A copy is cut into chunks, each is named by its content (transport/tree.h), one
 * question names up to 256 of them, and only those that the server lacks are sent; it keeps them
 * for the next time.
 *
 *     cache_ask(names) ->  have      write_cached for each chunk that it has, write_kept for the
 *                                    others, in the order of the copy
 *     cache_ask(...)   ->  lost      chunks that it had but has evicted or found damaged since:
 *                                    they are sent before the program's call returns
 *
 * Naming costs time, so it is done where the link is slower than that by far: see obc_cache_pays.
 * OUTBOARD_CACHE=on does it everywhere, =off nowhere. One per process. All functions may be called
 * by any thread; copies go through here one at a time, because a question is answered for the
 * session.
 */
#ifndef OBC_CACHE_H
#define OBC_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"

/* bytes of a copy that a question is asked for; with OUTBOARD_CACHE=on OBC_CACHE_CHUNK_MIN */
#define OBC_CACHE_COPY_MIN  (1u << 20)
#define OBC_CACHE_CHUNK_MIN (64u << 10) /* smaller ones, at a copy's end, are sent as ever */
/* of the rate of naming, that the link's may be at most */
#define OBC_CACHE_GAIN      0.4
/* bytes sent as ever and timed, to see what the link does ... */
#define OBC_CACHE_PROBE     (4u << 20)
/* ... after so many that were named without its rate being known */
#define OBC_CACHE_BLIND     (64ull << 20)
#define OBC_CACHE_STALE     (2ull << 30) /* ... or so many since it was last seen */
/* bytes/s that a link is slow for, whatever else was to be done meanwhile */
#define OBC_CACHE_SLOW      250e6

/* What decides; all rates in bytes/s, 0: not known. */
struct obc_cache_view {
	uint64_t server; /* bytes it keeps; 0: nothing */
	/* bytes so far: sent to be kept, known to the server, unknown to it */
	uint64_t kept, hits, misses;
	uint64_t unseen; /* bytes since the link's rate was last seen */
	/* link: of a plain write, until the server has copied it */
	double link, naming, rtt_s;
	bool forced; /* OUTBOARD_CACHE=on */
};

/* send as ever; ask; send OBC_CACHE_PROBE bytes as ever */
enum obc_cache_way { OBC_CACHE_PLAIN, OBC_CACHE_ASK, OBC_CACHE_LOOK };
/*
 * How the next bytes of a copy of which `size` are left are best sent. Asking pays when the link is
 * slower than OBC_CACHE_GAIN of naming, when the round trip is less than half of what sending
 * takes, and when a quarter of what was asked for was there or there is still room in what the
 * server keeps.
 */
enum obc_cache_way obc_cache_pays(const struct obc_cache_view *view, size_t size);

/* From the welcome: bytes that the server keeps. */
void obc_cache_offered(uint64_t bytes);
/* The copy, or false when it is to be sent as ever: nothing has been sent then. */
bool obc_cache_write(uint64_t dst, const void *src, size_t size, uint64_t stream, CUresult *ret);
/* In a forked child. */
void obc_cache_forget(void);

struct obc_cache_stats {
	uint64_t asked, hits, lost;       /* chunks */
	uint64_t bytes_saved, bytes_kept; /* not sent; sent to be kept */
	uint64_t naming_bytes, naming_ns;
};
void obc_cache_stats(struct obc_cache_stats *ret);

#endif
