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

static struct cache {
	pthread_mutex_t lock;
	struct obc_cache_view view;
	struct obc_cache_stats stats;
	/* the measured round trip, including the time for our own bytes and for busy processors */
	double trip_s;
	/* the error of an earlier asynchronous call, which came with a reply; the copy continues */
	CUresult earlier;
	/* the batch named last, and the one before it, whose lost chunks are not known yet */
	struct batch batches[2];
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

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
		.server = bytes, .naming = NAMING_GUESS, .forced = forced
	};
}

void obc_cache_forget(void)
{
	pthread_mutex_init(&cache.lock, NULL);
	memset(&cache.view, 0, sizeof cache.view);
	memset(&cache.stats, 0, sizeof cache.stats);
}

/* ---- whether ---- */

/*
 * Whether the cache has room for more chunks of this session. Without room, the chunks kept last
 * would evict those kept first.
 */
static bool room(const struct obc_cache_view *view)
{
	return view->kept < view->server - view->server / 8;
}

enum obc_cache_way obc_cache_pays(const struct obc_cache_view *view, size_t size)
{
	if (!view->server || size < (view->forced ? OBC_CACHE_CHUNK_MIN : OBC_CACHE_COPY_MIN))
		return OBC_CACHE_PLAIN;
	if (view->forced)
		return OBC_CACHE_ASK;
	if (!room(view) && view->hits < view->misses / 3)
		return OBC_CACHE_PLAIN;
	if (view->unseen >= (view->link > 0 ? OBC_CACHE_STALE : OBC_CACHE_BLIND) &&
		size >= 2 * OBC_CACHE_PROBE)
		return OBC_CACHE_LOOK;
	if (view->link > 0 &&
		(view->link > OBC_CACHE_GAIN * view->naming ||
			(double)size / view->link < 2 * view->rtt_s))
		return OBC_CACHE_PLAIN;
	return OBC_CACHE_ASK;
}

static void trip_look(struct obc_cache_view *view)
{
	struct obp_quality quality;

	obc_control_quality(&quality);
	/* the round trip without the time that our own bytes wait in queues */
	view->rtt_s = (double)quality.min_ns / 1e9;
	cache.trip_s = (double)quality.rtt_ns / 1e9;
}

/* Records that the server had received and copied `bytes` bytes after `ns`. */
static void link_seen(struct obc_cache_view *view, size_t bytes, uint64_t ns)
{
	view->link = (double)bytes / ob_max((double)ns / 1e9 - view->rtt_s, 1e-6);
	view->unseen = 0;
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
 * the cache, are sent without being kept.
 */
static CUresult chunk_send(const struct batch *batch, uint32_t i)
{
	const size_t at = (size_t)i * OBP_CACHE_CHUNK, size = chunk_size(batch, i);

	if (size < OBC_CACHE_CHUNK_MIN || !room(&cache.view))
		return obc_call_op_write(batch->dst + at, size, batch->stream, batch->src + at);
	cache.view.kept += size;
	cache.stats.bytes_kept += size;
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
	cache.view.unseen += batch->size;
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
		link_seen(&cache.view, batch->missed, took);
	else if (cache.view.link <= 0)
		cache.view.unseen = OBC_CACHE_STALE;
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
	cache.stats.asked += batch->n;
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
 * Sends bytes without names and measures the time, between two empty requests. The first request
 * waits until everything sent before has arrived.
 */
static CUresult probe(struct batch *batch, const struct batch *before)
{
	CUresult result;
	uint64_t begin;

	batch->n = 0;
	result = batch_ask(batch, before);
	begin = ob_clock_ns();
	if (result == CUDA_SUCCESS)
		result = obc_call_op_write(batch->dst, batch->size, batch->stream, batch->src);
	if (result == CUDA_SUCCESS)
		result = batch_ask(batch, NULL);
	if (result == CUDA_SUCCESS)
		link_seen(&cache.view, batch->size, ob_clock_ns() - begin);
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

static CUresult copy(uint64_t dst, const uint8_t *src, size_t size, uint64_t stream)
{
	struct batch *before = NULL, *batch = &cache.batches[0];
	CUresult result = CUDA_SUCCESS;
	size_t n;

	cache.earlier = CUDA_SUCCESS;
	for (size_t at = 0; at < size && result == CUDA_SUCCESS; at += n) {
		enum obc_cache_way way = obc_cache_pays(&cache.view, size - at);

		n = way == OBC_CACHE_ASK        ? batch_bytes(size - at)
			: way == OBC_CACHE_LOOK ? OBC_CACHE_PROBE
						: size - at;
		*batch = (struct batch){
			.dst = dst + at, .src = src + at, .size = n, .stream = stream
		};
		if (way == OBC_CACHE_PLAIN) {
			cache.view.unseen += n;
			result = obc_call_op_write(batch->dst, n, stream, batch->src);
		} else if (way == OBC_CACHE_LOOK) {
			result = probe(batch, before);
			before = NULL;
		} else {
			batch_name(batch);
			result = batch_ask(batch, before);
			if (result == CUDA_SUCCESS)
				result = batch_write(batch);
			before = batch;
			batch = &cache.batches[batch == &cache.batches[0]];
		}
	}
	/*
	 * The call must not return before it is known that the server still had the chunks that it
	 * reported.
	 */
	batch->n = 0;
	if (before && before->cached && result == CUDA_SUCCESS)
		result = batch_ask(batch, before);
	return result == CUDA_SUCCESS ? cache.earlier : result;
}

bool obc_cache_write(uint64_t dst, const void *src, size_t size, uint64_t stream, CUresult *ret)
{
	if (ob_likely(!cache.view.server) || size < OBC_CACHE_CHUNK_MIN ||
		(!cache.view.forced && size < OBC_CACHE_COPY_MIN))
		return false;
	pthread_mutex_lock(&cache.lock);
	trip_look(&cache.view);
	if (obc_cache_pays(&cache.view, size) == OBC_CACHE_PLAIN) {
		cache.view.unseen += size;
		pthread_mutex_unlock(&cache.lock);
		return false;
	}
	*ret = copy(dst, src, size, stream);
	pthread_mutex_unlock(&cache.lock);
	return true;
}

void obc_cache_stats(struct obc_cache_stats *ret)
{
	*ret = cache.stats;
}
