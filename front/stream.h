/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_stream: a stream of the program. Its handle is one of:
 *
 *   0, CU_STREAM_LEGACY    the context's legacy default stream, which lives as long as the context
 *   CU_STREAM_PER_THREAD   the calling thread's own stream in the context: an ordinary blocking
 *                          stream, created at its first use, destroyed at thread exit
 *   others                 an id that cuStreamCreate returned
 *
 * The backend's object begins with this struct; obf_backend.stream_size is its size. The front end
 * owns the objects (object.h); any thread.
 */
#ifndef OBF_STREAM_H
#define OBF_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ids.h"
#include "front/front.h"
#include "front/object.h"

#define OBF_STREAM_MAX     (1u << 20) /* live streams of a process */
#define OBF_THREAD_STREAMS 8u         /* contexts in which one thread uses its own stream at once */

struct obf_stream {
	union {
		struct obf_object object;
		struct {
			struct obf_ctx *ctx; /* NULL: unused */
			uint64_t handle;     /* the id; 0 for the legacy stream */
		};
	};
	unsigned long long id; /* cuStreamGetId; never repeats */
	unsigned flags;        /* CU_STREAM_NON_BLOCKING */
	int priority;          /* 0 (lowest) to -5 */
	bool legacy;
	bool blocking; /* waits for the legacy stream */
	/* NULL: in no green context; else the default stream of one may have further handles */
	struct obf_green *green;
	/* attributes that the program may read back */
	CUstreamAttrValue window, policy, domain_map, domain;
	/* not NULL: the stream is captured, or must not be used while another is (captured.h) */
	struct obf_capture *capture;
	struct obf_tail *tail; /* what its next node will depend on */
};

extern struct ob_ids obf_stream_ids;

/* Returns the calling thread's own stream in the context. Fails with CUDA_ERROR_OUT_OF_MEMORY. */
CUresult obf_stream_of_thread(struct obf_ctx *ctx, struct obf_stream **ret);

/*
 * Out of line: stream 0 while the context has green contexts, of which one may be current; the error
 * of a handle that names no stream.
 */
struct obf_stream *obf_stream_default(struct obf_ctx *ctx);
CUresult obf_stream_missing(uint64_t handle);

/*
 * Resolves a stream handle when `ctx` is current. The stream may belong to another context.
 * CUDA_ERROR_INVALID_HANDLE: no such stream. Hot path: an array look-up.
 */
static inline CUresult obf_stream_get(CUstream handle, struct obf_ctx *ctx, struct obf_stream **ret)
{
	if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_LEGACY)
		*ret = ob_likely(!atomic_load_explicit(&ctx->greens, memory_order_relaxed))
			? ctx->legacy
			: obf_stream_default(ctx);
	else if (handle == CU_STREAM_PER_THREAD)
		return obf_stream_of_thread(ctx, ret);
	else
		*ret = (struct obf_stream *)ob_ids_get(
			&obf_stream_ids, (uint64_t)(uintptr_t)handle);
	return ob_likely(*ret != NULL) ? CUDA_SUCCESS
				       : obf_stream_missing((uint64_t)(uintptr_t)handle);
}

/*
 * The same for kernels and host functions, which CUDA accepts only in a stream of the current
 * context.
 */
static inline CUresult obf_stream_get_current(
	CUstream handle, struct obf_ctx *ctx, struct obf_stream **ret)
{
	CUresult result = obf_stream_get(handle, ctx, ret);

	if (result == CUDA_SUCCESS && ob_unlikely((*ret)->ctx != ctx))
		return CUDA_ERROR_INVALID_HANDLE;
	return result;
}

/*
 * For the start of a call that accepts a stream of any context: makes the checks of obf_ctx_enter,
 * resolves the stream and, if the stream belongs to another context, checks that context's error.
 */
CUresult obf_stream_enter(CUstream handle, struct obf_stream **ret);

/* Calls fn for each stream of the context except the legacy stream, under the table's lock. */
void obf_streams_each(
	const struct obf_ctx *ctx, void (*fn)(void *user, struct obf_stream *), void *user);

/*
 * Opens a stream of the context, in the green context if that is not NULL, and ends one. They do not
 * check their arguments.
 */
CUresult obf_stream_new(struct obf_ctx *ctx, struct obf_green *green, unsigned flags, int priority,
	struct obf_stream **ret);
/* False: no such stream. */
bool obf_stream_end(uint64_t handle);
/* A further handle of a stream; 0: out of memory. */
uint64_t obf_stream_share(struct obf_stream *stream);

/* ---- for contexts ---- */

/* Creates the legacy stream of a context that was just created in the backend. */
CUresult obf_streams_begin(struct obf_ctx *ctx);
/* The context has ended in the backend: ends all its streams. */
void obf_streams_end(struct obf_ctx *ctx);

/* ---- for backends ---- */

/* The backend no longer needs the object of a closed stream. */
void obf_stream_recycle(struct obf_stream *stream);
/* At thread exit: ends the calling thread's own streams. */
void obf_streams_thread_exit(void);

#endif
