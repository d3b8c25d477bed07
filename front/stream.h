/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_stream: a stream of the program. What its handle may be:
 *
 *   0, CU_STREAM_LEGACY    the context's legacy default stream: made and ended with the context
 *   CU_STREAM_PER_THREAD   the calling thread's own stream in the context: an ordinary blocking
 *                          stream, made at its first use, ended with the thread
 *   others                 an id that cuStreamCreate gave out
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
			struct obf_ctx *ctx; /* NULL: in no use */
			uint64_t handle;     /* the id; of the legacy stream 0 */
		};
	};
	unsigned long long id; /* cuStreamGetId; never repeats */
	unsigned flags;        /* CU_STREAM_NON_BLOCKING */
	int priority;          /* 0 (lowest) to -5 */
	bool legacy;
	bool blocking; /* waits for the legacy stream */
	/* attributes that the program may read back */
	CUstreamAttrValue window, policy, domain_map, domain;
};

extern struct ob_ids obf_stream_ids;

/* The calling thread's own stream in the context. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult obf_stream_of_thread(struct obf_ctx *ctx, struct obf_stream **ret);

/*
 * The stream that a handle names when `ctx` is current. It may be of another context.
 * CUDA_ERROR_INVALID_HANDLE: there is none. Hot: an array look-up.
 */
static inline CUresult obf_stream_get(CUstream handle, struct obf_ctx *ctx, struct obf_stream **ret)
{
	if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_LEGACY)
		*ret = ctx->legacy;
	else if (handle == CU_STREAM_PER_THREAD)
		return obf_stream_of_thread(ctx, ret);
	else
		*ret = (struct obf_stream *)ob_ids_get(
			&obf_stream_ids, (uint64_t)(uintptr_t)handle);
	return ob_likely(*ret != NULL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The same for kernels and host functions, which only a stream of the current context takes. */
static inline CUresult obf_stream_get_same(
	CUstream handle, struct obf_ctx *ctx, struct obf_stream **ret)
{
	CUresult result = obf_stream_get(handle, ctx, ret);

	if (result == CUDA_SUCCESS && ob_unlikely((*ret)->ctx != ctx))
		return CUDA_ERROR_INVALID_HANDLE;
	return result;
}

/*
 * The beginning of a call that takes a stream of any context: the checks of obf_ctx_enter, the
 * stream, and the error of the stream's context when that is another one.
 */
CUresult obf_stream_enter(CUstream handle, struct obf_stream **ret);

/* Calls fn for each stream of the context but the legacy one, under the table's lock. */
void obf_streams_each(
	const struct obf_ctx *ctx, void (*fn)(void *user, struct obf_stream *), void *user);

/* ---- for contexts ---- */

/* The legacy stream of a context that has just been made in the backend. */
CUresult obf_streams_begin(struct obf_ctx *ctx);
/* The context has ended in the backend: all its streams end. */
void obf_streams_end(struct obf_ctx *ctx);

/* ---- for backends ---- */

/* The backend needs the object of a closed stream no longer. */
void obf_stream_recycle(struct obf_stream *stream);
/* The calling thread ends: so do its own streams. */
void obf_streams_thread_exit(void);

#endif
