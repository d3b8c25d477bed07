/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Copies to the device from the cache of uploads. A client asks for many chunks at once, then
 * writes those that are cached, by their index in the question, and sends the others. The server
 * reserves nothing in between: if a chunk has been evicted by then, or is damaged, the next answer
 * says so, and the client, whose call has not returned yet, sends it.
 */
#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "server/common/stats_page.h"
#include "server/worker/ops/ops.h"
#include "transport/tree.h"

static void count(_Atomic uint64_t *counter, uint64_t more)
{
	/* the executor is the only writer */
	atomic_store_explicit(counter, obs_stats_page_read(counter) + more, memory_order_relaxed);
}

void obs_op_cache_ask(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_cache_ask_req *req, const void *names)
{
	struct obs_asked *asked = &x->session->asked;
	struct obp_cache_ask_rep rep = { 0 };
	uint64_t hits = 0;

	memcpy(rep.lost, asked->lost, sizeof rep.lost);
	memset(asked, 0, sizeof *asked);
	memcpy(asked->names, names, req->n * sizeof asked->names[0]);
	for (uint32_t i = 0; i < req->n; i++) {
		uint64_t size =
			obs_cache_find(&x->session->cache, OBS_CACHE_CHUNK, asked->names[i]);

		if (size == 0 || size > OBP_CACHE_CHUNK)
			continue;
		asked->have[i / 64] |= 1ull << i % 64;
		hits++;
	}
	memcpy(rep.have, asked->have, sizeof rep.have);
	count(&obs_stats_page->cache_hits, hits);
	count(&obs_stats_page->cache_misses, req->n - hits);
	obs_reply(x, rec, CUDA_SUCCESS, &rep, sizeof rep);
}

static bool was_there(const struct obs_asked *asked, uint64_t index)
{
	return index < OBP_CACHE_ASK_MAX && asked->have[index / 64] >> index % 64 & 1;
}

void obs_op_write_cached(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_write_cached_req *req)
{
	struct obs_asked *asked = &x->session->asked;
	CUresult result = CUDA_SUCCESS;
	/* [from, at) of the slot is filled and not yet being copied */
	uint64_t from = 0, at, n;
	struct obs_slot *slot;
	CUstream stream;

	for (at = 0; at < req->size; at += OBP_CACHE_CHUNK)
		if (!was_there(asked, req->index + at / OBP_CACHE_CHUNK))
			obs_violation(x, rec, "the chunk was not in the last answer of cache_ask");
	if (!obs_stream_get(x, rec, req->stream, &stream))
		return;
	if (!obs_memory_check(&x->session->memory, req->dst, req->size)) {
		obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	slot = obs_staging_write_slot(&x->session->staging, x->context);
	for (at = 0; at < req->size; at += n) {
		uint64_t index = req->index + at / OBP_CACHE_CHUNK;

		n = ob_min(req->size - at, (uint64_t)OBP_CACHE_CHUNK);
		if (obs_cache_read(&x->session->cache, OBS_CACHE_CHUNK, asked->names[index],
			    slot->data + at, n)) {
			count(&obs_stats_page->cache_bytes, n);
			continue;
		}
		asked->lost[index / 64] |= 1ull << index % 64;
		if (from < at && result == CUDA_SUCCESS)
			result = x->drv->cuMemcpyHtoDAsync_v2(
				req->dst + from, slot->data + from, at - from, stream);
		from = at + n;
	}
	if (from < at && result == CUDA_SUCCESS)
		result = x->drv->cuMemcpyHtoDAsync_v2(
			req->dst + from, slot->data + from, at - from, stream);
	obs_staging_write_started(&x->session->staging, slot, x->context, stream);
	obs_async_result(x, rec, result);
}

void obs_op_write_kept(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_write_kept_req *req, const void *data)
{
	const struct obp_write_req write = {
		.dst = req->dst, .size = req->size, .stream = req->stream
	};
	uint8_t name[OBT_SHA256_BYTES];

	obs_op_write(x, rec, &write, data);
	if (x->session->cache.dir < 0)
		return;
	/*
	 * The name is checked: a thread of the program may have changed the memory after the client
	 * hashed it.
	 */
	obt_tree_digest(data, req->size, name);
	if (memcmp(name, req->name, sizeof name) == 0)
		obs_cache_put(&x->session->cache, OBS_CACHE_CHUNK, name, data, req->size);
}
