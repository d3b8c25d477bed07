/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Decides whether the next bytes of an upload are sent through the upload cache (cache.h), from
 * what has been measured. No state and no clock.
 */
#ifndef OBC_CACHE_CHOICE_H
#define OBC_CACHE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	uint64_t capacity; /* of the server's cache in bytes; 0: it has none */
	/*
	 * bytes so far: stored by the server after sending; named and in its cache; named and not
	 * in its cache
	 */
	uint64_t stored, hits, misses;
	uint64_t unmeasured; /* bytes since the connection's rate was last measured */
	/*
	 * link: rate of a plain write, up to the end of the server's copy; naming: rate of hashing
	 */
	double link, naming, rtt_s;
	bool forced; /* OUTBOARD_CACHE=on */
};

/* send without names; send the names first; send OBC_CACHE_PROBE bytes without names */
enum obc_cache_way { OBC_CACHE_PLAIN, OBC_CACHE_ASK, OBC_CACHE_MEASURE };
/*
 * Chooses how to send the next bytes of a copy that has `size` bytes left. The cache is used when
 * the connection is slower than OBC_CACHE_GAIN times the hashing rate, when the round trip takes
 * less than half the time of sending, and when a quarter of the bytes named so far were in the
 * cache or the cache still has room.
 */
enum obc_cache_way obc_cache_pays(const struct obc_cache_view *view, size_t size);
/* The smallest copy that uses the cache, in bytes. */
uint64_t obc_cache_copy_min(bool forced);
/*
 * Whether the cache has room for more chunks of this session. Without room, the chunks stored last
 * would evict those stored first.
 */
bool obc_cache_room(const struct obc_cache_view *view);

#endif
