/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Managed variables of modules. The server's driver has chosen their addresses, and several
 * variables may lie in one page, together with memory that is none of the program's. So a shadow of
 * whole pages has a list of the bytes that are variables, and only these are transferred.
 */
#include <stdlib.h>
#include <string.h>

#include "client-shim/cuda/shared_inside.h"
#include "client-shim/session/inside.h"

static bool span_add(struct obc_shared *s, const struct obf_mem *mem)
{
	struct obc_span *larger = realloc(s->spans, (s->n_spans + 1) * sizeof *larger);

	if (!larger)
		return false;
	s->spans = larger;
	s->spans[s->n_spans++] = (struct obc_span){ mem->base, mem->size };
	return true;
}

/* Makes a shadow of pages that have none. The device's contents count. */
static CUresult pages_add(
	struct obc_home *home, uint64_t base, uint64_t size, const struct obf_mem *mem)
{
	struct obc_shared *s = calloc(1, sizeof *s);
	CUresult result;

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->home = home;
	result = obc_piece_place(home->ctx, base, size, &s->piece);
	if (result != CUDA_SUCCESS) {
		free(s);
		return result;
	}
	if (!obc_shadow_init(&s->shadow, base, size, s->piece.alias, &obc_shared_ops) ||
		!span_add(s, mem) || !obc_shared_add(s)) {
		obc_shadow_fini(&s->shadow);
		obc_piece_give(home->ctx, &s->piece, false);
		free(s->spans);
		free(s);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memset(s->shadow.state, OBC_SHADOW_DEVICE, s->shadow.n_blocks);
	s->shadow.n_host = 0;
	return CUDA_SUCCESS;
}

static CUresult global_add(struct obc_home *home, const struct obf_mem *mem)
{
	uint64_t at = mem->base & ~(uint64_t)(OBC_SHADOW_PAGE - 1),
		 end = ob_round_up(mem->base + mem->size, (uint64_t)OBC_SHADOW_PAGE);
	CUresult result = CUDA_SUCCESS;

	while (at < end && result == CUDA_SUCCESS) {
		size_t i = obc_shared_at(at);
		struct obc_shared *s = i < obc_shareds.n ? obc_shareds.list[i] : NULL;

		if (!s || s->shadow.base > at) {
			uint64_t next = s ? ob_min(s->shadow.base, end) : end;

			result = pages_add(home, at, next - at, mem);
			at = next;
			continue;
		}
		/* Pages of another variable: they are fetched again, with this one. */
		result = obc_shadow_give(&s->shadow, s->shadow.base, s->shadow.size, true);
		if (result == CUDA_SUCCESS && !(s->spans && span_add(s, mem)))
			result = CUDA_ERROR_OUT_OF_MEMORY;
		at = s->shadow.base + s->shadow.size;
	}
	return result;
}

static void spans_remove(struct obc_shared *s, uint64_t base)
{
	for (size_t i = 0; i < s->n_spans; i++)
		if (s->spans[i].base == base)
			s->spans[i--] = s->spans[--s->n_spans];
}

static void global_remove(const struct obf_mem *mem)
{
	size_t i = obc_shared_at(mem->base);

	while (i < obc_shareds.n && obc_shareds.list[i]->shadow.base < mem->base + mem->size) {
		struct obc_shared *s = obc_shareds.list[i];

		spans_remove(s, mem->base);
		/* Without a list it is an allocation of the program. */
		if (s->n_spans || !s->spans) {
			i++;
			continue;
		}
		obc_shared_remove(s);
		obc_shadow_fini(&s->shadow);
		obc_piece_give(s->home->ctx, &s->piece, false);
		free(s->spans);
		free(s);
	}
}

CUresult obc_shared_global(struct obf_ctx *ctx, const struct obf_mem *mem)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	struct obc_home *home;
	OBC_WAITS();

	obc_shared_lock();
	home = obc_home_of(ctx);
	if (home && obc_shared_ready())
		result = global_add(home, mem);
	if (result != CUDA_SUCCESS)
		global_remove(mem);
	obc_shared_unlock();
	return result;
}

void obc_shared_global_end(const struct obf_mem *mem)
{
	OBC_WAITS();

	obc_shared_lock();
	global_remove(mem);
	obc_shared_unlock();
}
