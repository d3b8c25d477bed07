/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "client-shim/session/control.h"
#include "client-shim/session/log.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"
#include "transport/tree.h"

#define NAMING_GUESS 1e9 /* bytes/s, the assumed hashing rate before the first chunk was named */
#define BATCH_MIN    32u /* chunks */
#define BATCH_TRIPS  4
#define WORDS        (OBP_CACHE_ASK_MAX / 64)

/* Up to OBP_CACHE_ASK_MAX adjacent chunks of a copy. */
struct batch {
	uint64_t dst, stream;
	const uint8_t *src;
	size_t size, missed; /* bytes; bytes that were sent */
	uint64_t begun;      /* ns: time when sending started */
	uint32_t n;
	bool cached;          /* at least one chunk was not sent because the server has it */
	uint64_t have[WORDS]; /* the server's answer */
	uint8_t names[OBP_CACHE_ASK_MAX][OBT_SHA256_BYTES];
};

OBC_PER_SERVER uint64_t obc_cache_min_first = UINT64_MAX;

struct cache_state {
	pthread_mutex_t lock; /* held during a copy that may use the cache */
	struct obc_cache_view view;
	struct obc_cache_stats stats;
	/* the measured round trip, including the time for our own bytes and for busy processors */
	double trip_s;
	/* the error of an earlier asynchronous call, which came with a reply; the copy continues */
	CUresult earlier;
	struct batch batches[2];
	/* the next batch, and the one before it, whose lost chunks are not known yet, or NULL */
	struct batch *batch, *before;
	uint64_t timing; /* ns: when the timed bytes began */
	double trip_recalled_s;
	bool measured; /* the connection's rate, in this session */
};

static OBC_PER_SERVER struct cache_state cache_first = { .lock = PTHREAD_MUTEX_INITIALIZER };
#define cache OBC_HERE(cache_first)

void obc_cache_offered(uint64_t bytes)
{
	const char *text = getenv("OUTBOARD_CACHE");
	bool forced = text && strcmp(text, "on") == 0, off = text && strcmp(text, "off") == 0;

	if (text && *text && !forced && !off && strcmp(text, "auto") != 0)
		ob_warn("OUTBOARD_CACHE: '%.40s' is not one of auto, on, off; using auto", text);
	/* Shared memory is faster than hashing: a copy within one machine is sent without names. */
	if (off || !ob_opt_on(OB_OPT_CACHE) || (!forced && obc_log_path_local()))
		bytes = 0;
	cache.view = (struct obc_cache_view){
		.capacity = bytes, .naming = NAMING_GUESS, .forced = forced
	};
	obc_cache_min = bytes ? obc_cache_copy_min(forced) : UINT64_MAX;
}

void obc_cache_recall(const struct obt_link_memory *memory)
{
	cache.trip_recalled_s = (double)memory->round_trip / 1e9;
	if (memory->cache_naming)
		cache.view.naming = (double)memory->cache_naming;
	/* Sessions that upload less than OBC_CACHE_BLIND know only the data connection's rate. */
	cache.view.link = (double)(memory->cache_link ? memory->cache_link : memory->rate_out);
	if (cache.view.link > 0)
		cache.view.unmeasured = OBC_CACHE_STALE - OBC_CACHE_BLIND;
}

void obc_cache_learned(struct obt_link_memory *ret)
{
	if (pthread_mutex_trylock(&cache.lock) != 0)
		return; /* another thread still copies */
	if (cache.measured)
		ret->cache_link = (uint64_t)cache.view.link;
	if (cache.stats.naming_bytes)
		ret->cache_naming = (uint64_t)cache.view.naming;
	pthread_mutex_unlock(&cache.lock);
}

void obc_cache_forget(void)
{
	cache.measured = false;
	obc_cache_min = UINT64_MAX;
	pthread_mutex_init(&cache.lock, NULL);
	memset(&cache.view, 0, sizeof cache.view);
	memset(&cache.stats, 0, sizeof cache.stats);
}

/* ---- measuring ---- */

static void trip_read(struct obc_cache_view *view)
{
	struct obp_quality quality;

	obc_control_quality(&quality);
	/* the round trip without the time that our own bytes wait in queues */
	view->rtt_s = quality.samples ? (double)quality.min_ns / 1e9 : cache.trip_recalled_s;
	cache.trip_s = quality.samples ? (double)quality.rtt_ns / 1e9 : cache.trip_recalled_s;
}

/* Records that the server had received and copied `bytes` bytes after `ns`. */
static void link_measured(struct obc_cache_view *view, size_t bytes, uint64_t ns)
{
	view->link = (double)bytes / ob_max((double)ns / 1e9 - view->rtt_s, 1e-6);
	view->unmeasured = 0;
	cache.measured = true;
}

/* ---- sending ---- */

static size_t chunk_size(const struct batch *batch, uint32_t i)
{
	return ob_min((size_t)OBP_CACHE_CHUNK, batch->size - (size_t)i * OBP_CACHE_CHUNK);
}

static bool bit(const uint64_t *words, uint32_t i)
{
	return words[i / 64] >> i % 64 & 1;
}

/*
 * Sends a chunk that the server does not have. Small chunks, and chunks that exceed the capacity of
 * the cache, are sent without being stored.
 */
static CUresult chunk_send(const struct batch *batch, uint32_t i)
{
	const size_t at = (size_t)i * OBP_CACHE_CHUNK, size = chunk_size(batch, i);

	if (size < OBC_CACHE_CHUNK_MIN || !obc_cache_room(&cache.view))
		return obc_call_op_write(batch->dst + at, size, batch->stream, batch->src + at);
	cache.view.stored += size;
	cache.stats.bytes_stored += size;
	return obc_call_op_write_kept(
		batch->dst + at, size, batch->stream, batch->names[i], batch->src + at);
}

static void batch_name(struct batch *batch)
{
	uint64_t begin = ob_clock_ns(), took;

	batch->n = (uint32_t)((batch->size + OBP_CACHE_CHUNK - 1) / OBP_CACHE_CHUNK);
	for (uint32_t i = 0; i < batch->n; i++)
		obt_tree_digest(batch->src + (size_t)i * OBP_CACHE_CHUNK, chunk_size(batch, i),
			batch->names[i]);
	took = ob_clock_ns() - begin + 1;
	cache.stats.naming_bytes += batch->size;
	cache.stats.naming_ns += took;
	cache.view.unmeasured += batch->size;
	if (batch->size >= OBP_CACHE_CHUNK)
		cache.view.naming +=
			((double)batch->size * 1e9 / (double)took - cache.view.naming) / 4;
}

/*
 * A reply shows that the server has all earlier bytes. If all of the batch was sent, its time gives
 * the connection's rate. The server did more work than for a plain write, so the rate is valid only
 * for a slow connection. Otherwise a plain measurement is scheduled.
 */
static void batch_arrived(const struct batch *batch)
{
	uint64_t took = ob_clock_ns() - batch->begun;

	if (batch->cached || batch->missed < OBC_CACHE_PROBE / 2)
		return;
	if ((double)batch->missed * 1e9 < OBC_CACHE_SLOW * (double)took)
		link_measured(&cache.view, batch->missed, took);
	else if (cache.view.link <= 0)
		cache.view.unmeasured = OBC_CACHE_STALE;
}

/*
 * Sends the names of `batch`, which may be empty. Then sends the chunks of the batch `before` that
 * the server has lost, if there is such a batch.
 */
static CUresult batch_ask(struct batch *batch, const struct batch *before)
{
	uint64_t lost[WORDS] = { 0 };
	CUresult result;

	memset(batch->have, 0, sizeof batch->have);
	result = obc_call_op_cache_ask(batch->n, &batch->names[0][0], batch->have, lost);
	if (!cache.earlier)
		cache.earlier = result;
	result = obc_log_error();
	if (!before || result != CUDA_SUCCESS)
		return result;
	batch_arrived(before);
	for (uint32_t i = 0; i < before->n && result == CUDA_SUCCESS; i++)
		if (bit(lost, i)) {
			cache.stats.lost++;
			cache.stats.bytes_saved -= chunk_size(before, i);
			result = chunk_send(before, i);
		}
	return result;
}

/* Writes one record for chunks [first, first + n), which the server has. */
static CUresult run_write(struct batch *batch, uint32_t first, uint32_t n)
{
	const size_t at = (size_t)first * OBP_CACHE_CHUNK,
		     size = ob_min((size_t)n * OBP_CACHE_CHUNK, batch->size - at);

	batch->cached = true;
	cache.view.hits += size;
	cache.stats.hits += n;
	cache.stats.bytes_saved += size;
	return obc_call_op_write_cached(batch->dst + at, size, batch->stream, first);
}

static CUresult batch_write(struct batch *batch)
{
	CUresult result = CUDA_SUCCESS;
	uint32_t n;

	batch->cached = false;
	batch->missed = 0;
	batch->begun = ob_clock_ns();
	cache.stats.requested += batch->n;
	for (uint32_t i = 0; i < batch->n && result == CUDA_SUCCESS; i += n) {
		for (n = 0; i + n < batch->n && n < OBP_CHUNK_MAX / OBP_CACHE_CHUNK &&
			bit(batch->have, i + n);
			n++)
			;
		if (n) {
			result = run_write(batch, i, n);
		} else {
			batch->missed += chunk_size(batch, i);
			cache.view.misses += chunk_size(batch, i);
			result = chunk_send(batch, i);
			n = 1;
		}
	}
	return result;
}

/*
 * Bytes of the next batch. It is small, so that the client hashes one batch while the server copies
 * the previous one, but not smaller than what can be hashed in a few round trips.
 */
static size_t batch_bytes(size_t left)
{
	double chunks = BATCH_TRIPS * cache.trip_s * cache.view.naming / OBP_CACHE_CHUNK;

	return ob_min(left,
		(size_t)OBP_CACHE_CHUNK *
			(size_t)ob_max(
				(double)BATCH_MIN, ob_min(chunks, (double)OBP_CACHE_ASK_MAX)));
}

/* ---- a copy ---- */

const struct obc_cache_view *obc_cache_enter(void)
{
	pthread_mutex_lock(&cache.lock);
	trip_read(&cache.view);
	cache.earlier = CUDA_SUCCESS;
	cache.batch = &cache.batches[0];
	cache.before = NULL;
	return &cache.view;
}

void obc_cache_leave(void)
{
	pthread_mutex_unlock(&cache.lock);
}

CUresult obc_cache_carry(
	uint64_t dst, const void *src, uint64_t left, uint64_t stream, uint64_t *ret_size)
{
	struct batch *batch = cache.batch;
	CUresult result;

	*batch = (struct batch){
		.dst = dst, .src = src, .size = batch_bytes(left), .stream = stream
	};
	*ret_size = batch->size;
	batch_name(batch);
	result = batch_ask(batch, cache.before);
	if (result == CUDA_SUCCESS)
		result = batch_write(batch);
	cache.before = batch;
	cache.batch = &cache.batches[batch == &cache.batches[0]];
	return result;
}

/* An empty request: its answer shows that everything sent before has arrived. */
static CUresult ask_nothing(const struct batch *before)
{
	cache.batch->n = 0;
	return batch_ask(cache.batch, before);
}

CUresult obc_cache_timing_begin(void)
{
	CUresult result = ask_nothing(cache.before);

	cache.before = NULL;
	cache.timing = ob_clock_ns();
	return result;
}

CUresult obc_cache_timing_end(uint64_t size)
{
	CUresult result = ask_nothing(NULL);

	if (result == CUDA_SUCCESS)
		link_measured(&cache.view, size, ob_clock_ns() - cache.timing);
	return result;
}

void obc_cache_passed(uint64_t size)
{
	cache.view.unmeasured += size;
}

CUresult obc_cache_finish(CUresult result)
{
	/*
	 * The call must not return before it is known that the server still had the chunks that it
	 * reported.
	 */
	if (cache.before && cache.before->cached && result == CUDA_SUCCESS)
		result = ask_nothing(cache.before);
	return result == CUDA_SUCCESS ? cache.earlier : result;
}

void obc_cache_stats(struct obc_cache_stats *ret)
{
	*ret = cache.stats;
}
