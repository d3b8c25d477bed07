/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/transfer.h"

#include "base/check.h"
#include "base/clock.h"
#include "client-shim/session/background.h"
#include "client-shim/session/cache.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log.h"
#include "protocol/obp_calls.h"

/* A copy, or what is left of it. */
struct copy {
	enum obc_direction direction;
	uint64_t addr; /* on the device */
	uint8_t *data; /* of the program; an upload only reads it */
	uint64_t size, stream;
	obc_settle *settle; /* NULL: the call does not wait for the copy */
	void *user;
};

/* ---- the decision ---- */

static inline enum obc_carrier choose_log(
	enum obc_direction direction, uint64_t size, uint64_t byref_min)
{
	return direction == OBC_UPLOAD && size >= byref_min ? OBC_CARRY_BYREF : OBC_CARRY_INLINE;
}

static bool stripes_chosen(const struct obc_stripe_view *stripes)
{
	return stripes->forced ? stripes->ready
			       : obc_choice_next(stripes->choice, stripes->ready) == OBC_STRIPES;
}

enum obc_carrier obc_transfer_choose(const struct obc_transfer_view *view)
{
	enum obc_cache_way cache = view->cache && view->direction == OBC_UPLOAD
		? obc_cache_pays(view->cache, view->size)
		: OBC_CACHE_PLAIN;

	if (cache != OBC_CACHE_PLAIN)
		return cache == OBC_CACHE_ASK ? OBC_CARRY_CACHED : OBC_CARRY_TIMED;
	if (view->stripes && stripes_chosen(view->stripes))
		return OBC_CARRY_STRIPED;
	return choose_log(view->direction, view->size, view->byref_min);
}

/* ---- over the log ---- */

static CUresult log_send(uint16_t opcode, const void *head, uint32_t head_size, const void *data,
	uint64_t size, obc_settle *settle, void *user)
{
	/*
	 * While the server may have to hold the records back, the size of the ring limits them. So
	 * they must be copied into it.
	 */
	return choose_log(OBC_UPLOAD, size, obc_log_byref_min(settle != NULL)) == OBC_CARRY_BYREF &&
			!obc_background_pending()
		? obc_log_write_byref(opcode, head, head_size, data, size, settle, user)
		: obc_log_write_inline(opcode, head, head_size, data, size);
}

CUresult obc_transfer_send(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, uint64_t size)
{
	return log_send(opcode, head, head_size, data, size, NULL, NULL);
}

static CUresult log_write(const struct copy *c, uint64_t size)
{
	const struct obp_write_req req = { .dst = c->addr, .size = size, .stream = c->stream };

	return log_send(OBP_OP_WRITE, &req, sizeof req, c->data, size, c->settle, c->user);
}

static CUresult log_read(void *dst, uint64_t src, uint64_t size, uint64_t stream)
{
	const struct obp_read_req req = { .src = src, .size = size, .stream = stream };

	return obc_log_read(OBP_OP_READ, &req, sizeof req, dst, size);
}

static CUresult carry_log(const struct copy *c)
{
	return c->direction == OBC_UPLOAD ? log_write(c, c->size)
					  : log_read(c->data, c->addr, c->size, c->stream);
}

/* ---- over stripes ---- */

/*
 * In pieces of OBP_TRANSFER_MAX bytes. A piece that did not arrive completely is repeated over the
 * log: the same bytes go to the same place. The rest of the copy follows over the log.
 */
static CUresult carry_striped(const struct copy *c)
{
	CUresult result = CUDA_SUCCESS;
	bool complete = true;
	struct copy piece = *c;

	for (uint64_t at = 0; at < c->size && result == CUDA_SUCCESS; at += piece.size) {
		piece.addr = c->addr + at;
		piece.data = c->data + at;
		piece.size = ob_min(c->size - at, (uint64_t)OBP_TRANSFER_MAX);
		complete = complete && (at == 0 || obc_stripe_ready());
		if (complete)
			result = obc_stripe_carry(piece.direction, piece.addr, piece.data,
				piece.size, piece.stream, &complete);
		if (!complete && result == CUDA_SUCCESS)
			result = carry_log(&piece);
		obc_stripe_count(piece.direction, piece.size, complete);
	}
	return result;
}

/*
 * Holding the stripes. Both ways are timed, so that the faster one is chosen later. A read returns
 * when all bytes have arrived. So does a write that is large enough to be sent by reference.
 */
static CUresult carry_and_learn(const struct copy *c, enum obc_carrier carrier)
{
	bool striped = carrier == OBC_CARRY_STRIPED;
	uint64_t began = ob_clock_ns();
	CUresult result = striped ? carry_striped(c) : carry_log(c);

	if (result == CUDA_SUCCESS)
		obc_stripe_learn(c->direction, striped ? OBC_STRIPES : OBC_LOG, c->size,
			ob_clock_ns() - began);
	return result;
}

/* ---- through the upload cache ---- */

/* Holding the cache. */
static CUresult carry_cached(struct copy *c, struct obc_transfer_view *view)
{
	CUresult result = CUDA_SUCCESS;

	while (view->size && result == CUDA_SUCCESS) {
		enum obc_carrier carrier = obc_transfer_choose(view);
		uint64_t n = view->size;

		if (carrier == OBC_CARRY_CACHED) {
			result = obc_cache_carry(c->addr, c->data, view->size, c->stream, &n);
		} else if (carrier == OBC_CARRY_TIMED) {
			n = OBC_CACHE_PROBE;
			result = obc_cache_timing_begin();
			if (result == CUDA_SUCCESS)
				result = log_write(c, n);
			if (result == CUDA_SUCCESS)
				result = obc_cache_timing_end(n);
		} else {
			obc_cache_passed(n);
			result = log_write(c, n);
		}
		c->addr += n;
		c->data += n;
		view->size -= n;
	}
	return obc_cache_finish(result);
}

/* True: the cache carried the copy. */
static bool try_cache(struct copy *c, struct obc_transfer_view *view, CUresult *ret)
{
	enum obc_carrier carrier;
	bool used;

	view->cache = obc_cache_enter();
	carrier = obc_transfer_choose(view);
	used = carrier == OBC_CARRY_CACHED || carrier == OBC_CARRY_TIMED;
	if (used)
		*ret = carry_cached(c, view);
	else
		obc_cache_passed(c->size);
	obc_cache_leave();
	view->cache = NULL;
	return used;
}

/* ---- copies ---- */

/*
 * A copy that is large enough for the cache or the stripes. The stripes are looked at only if the
 * cache does not apply, because that may open their connections.
 */
static __attribute__((noinline)) CUresult carry_large(struct copy c)
{
	enum obc_direction direction = c.direction;
	uint64_t size = c.size;
	struct obc_transfer_view view = { .direction = direction,
		.size = size,
		.byref_min = obc_log_byref_min(c.settle != NULL) };
	struct obc_stripe_view stripes;
	CUresult result;
	OBC_WAITS();

	if (direction == OBC_UPLOAD && size >= obc_cache_min && try_cache(&c, &view, &result))
		return result;
	if (size < obc_stripe_min || !obc_stripe_enter(direction, &stripes))
		return carry_log(&c);
	view.stripes = &stripes;
	result = carry_and_learn(&c, obc_transfer_choose(&view));
	obc_stripe_leave();
	return result;
}

CUresult obc_transfer_write(uint64_t dst, const void *src, uint64_t size, uint64_t stream,
	obc_settle *settle, void *user)
{
	const struct copy c = { OBC_UPLOAD, dst, (uint8_t *)(uintptr_t)src, size, stream, settle,
		user };

	return ob_likely(size < obc_cache_min && size < obc_stripe_min) ? log_write(&c, size)
									: carry_large(c);
}

CUresult obc_transfer_read(void *dst, uint64_t src, uint64_t size, uint64_t stream)
{
	const struct copy c = {
		.direction = OBC_DOWNLOAD, .addr = src, .data = dst, .size = size, .stream = stream
	};

	return ob_likely(size < obc_stripe_min) ? log_read(dst, src, size, stream) : carry_large(c);
}
