/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "protocol/obd_locals.h"
#include "softdevice/context.h"
#include "softdevice/event.h"
#include "softdevice/sched.h"

static struct ob_ids ids = OB_IDS_INIT(OBF_KIND_STREAM, OBD_STREAM_MAX);
/* Looking a handle up and taking a reference is one step, as is ending it. */
static pthread_mutex_t ids_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t next_id = 1;

static void attrs_init(struct obd_stream *stream)
{
	stream->policy.syncPolicy = CU_SYNC_POLICY_AUTO;
	stream->domain_map.memSyncDomainMap.remote = 1;
}

static struct obd_stream *stream_new(struct obd_ctx *ctx, unsigned flags, int priority)
{
	struct obd_stream *stream = calloc(1, sizeof *stream);

	if (!stream)
		return NULL;
	stream->ctx = ctx;
	stream->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	stream->flags = flags;
	attrs_init(stream);
	stream->priority = ob_max(ob_min(priority, 0), OBD_PRIORITY_GREATEST);
	atomic_init(&stream->refs, 1);
	return stream;
}

void obd_stream_init_legacy(struct obd_ctx *ctx)
{
	ctx->legacy.handle = CU_STREAM_LEGACY;
	ctx->legacy.id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	ctx->legacy.ctx = ctx;
	ctx->legacy.legacy = true;
	attrs_init(&ctx->legacy);
}

void obd_stream_ref(struct obd_stream *stream)
{
	if (!stream->legacy)
		atomic_fetch_add_explicit(&stream->refs, 1, memory_order_relaxed);
}

void obd_stream_free(struct obd_stream *stream)
{
	free(stream);
}

void obd_stream_unref(struct obd_stream *stream)
{
	if (stream && !stream->legacy &&
		atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) == 1)
		obd_stream_free(stream);
}

/* ---- per-thread default streams ---- */

struct own {
	/* never repeats: an ended context's stream is never taken for another's */
	uint64_t ctx_id;
	struct obd_stream *stream;
	struct own *next;
};

static _Thread_local struct own *owns;
static pthread_key_t owns_key;
static pthread_once_t owns_once = PTHREAD_ONCE_INIT;

static void owns_free(void *arg)
{
	for (struct own *own = arg, *next; own; own = next) {
		next = own->next;
		obd_stream_unref(own->stream);
		free(own);
	}
	owns = NULL;
}

static void owns_key_make(void)
{
	pthread_key_create(&owns_key, owns_free);
}

static struct obd_stream *own_stream(struct obd_ctx *ctx)
{
	struct own *own;

	for (own = owns; own; own = own->next)
		if (own->ctx_id == ctx->front->id)
			return own->stream;
	pthread_once(&owns_once, owns_key_make);
	own = calloc(1, sizeof *own);
	if (!own)
		return NULL;
	own->stream = stream_new(ctx, 0, 0);
	if (!own->stream) {
		free(own);
		return NULL;
	}
	own->stream->handle = CU_STREAM_PER_THREAD;
	own->stream->per_thread = true;
	own->ctx_id = ctx->front->id;
	own->next = owns;
	owns = own;
	pthread_setspecific(owns_key, owns);
	return own->stream;
}

/* ---- handles ---- */

static struct obd_stream *created_get(CUstream handle)
{
	struct obd_stream *stream;

	pthread_mutex_lock(&ids_lock);
	stream = ob_ids_get(&ids, (uint64_t)(uintptr_t)handle);
	if (stream)
		obd_stream_ref(stream);
	pthread_mutex_unlock(&ids_lock);
	return stream;
}

CUresult obd_stream_get(struct obd_ctx *ctx, CUstream handle, struct obd_stream **ret)
{
	if (handle == NULL || handle == CU_STREAM_LEGACY) {
		*ret = &ctx->legacy;
	} else if (handle == CU_STREAM_PER_THREAD) {
		*ret = own_stream(ctx);
		if (!*ret)
			return CUDA_ERROR_OUT_OF_MEMORY;
		obd_stream_ref(*ret);
	} else {
		*ret = created_get(handle);
		if (!*ret)
			return CUDA_ERROR_INVALID_HANDLE;
	}
	return CUDA_SUCCESS;
}

CUresult obd_stream_enter(
	CUstream handle, bool same, struct obd_ctx **ret_ctx, struct obd_stream **ret)
{
	CUresult result = obd_ctx_enter(ret_ctx);

	if (!result)
		result = obd_stream_get(*ret_ctx, handle, ret);
	if (!result && (*ret)->ctx != *ret_ctx) {
		result = same ? CUDA_ERROR_INVALID_HANDLE : obd_ctx_result((*ret)->ctx);
		if (result) {
			obd_stream_unref(*ret);
			*ret = NULL;
		}
	}
	return result;
}

static void unlink_locked(struct obd_stream *stream)
{
	if (stream->prev)
		stream->prev->next = stream->next;
	else
		stream->ctx->streams = stream->next;
	if (stream->next)
		stream->next->prev = stream->prev;
}

static struct obd_stream *handle_end(CUstream handle)
{
	struct obd_stream *stream;

	pthread_mutex_lock(&ids_lock);
	stream = ob_ids_remove(&ids, (uint64_t)(uintptr_t)handle);
	pthread_mutex_unlock(&ids_lock);
	return stream;
}

void obd_stream_forget(struct obd_ctx *ctx)
{
	struct obd_stream *stream;

	do {
		pthread_mutex_lock(&ctx->lock);
		stream = ctx->streams;
		if (stream)
			unlink_locked(stream);
		pthread_mutex_unlock(&ctx->lock);
		if (stream && handle_end(stream->handle))
			obd_stream_unref(stream);
	} while (stream);
}

/* ---- public calls ---- */

CUresult obd_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	struct obd_ctx *ctx;
	struct obd_stream *new;
	CUresult result = obd_ctx_enter(&ctx);

	if (result)
		return result;
	if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	new = stream_new(ctx, flags, priority);
	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->handle = (CUstream)(uintptr_t)ob_ids_add(&ids, new);
	if (!new->handle) {
		obd_stream_unref(new);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&ctx->lock);
	new->next = ctx->streams;
	if (ctx->streams)
		ctx->streams->prev = new;
	ctx->streams = new;
	pthread_mutex_unlock(&ctx->lock);
	*stream = new->handle;
	return CUDA_SUCCESS;
}

CUresult obd_cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return obd_cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult obd_cuStreamDestroy_v2(CUstream stream)
{
	struct obd_stream *gone;
	CUresult result = obd_ctx_none();

	if (result)
		return result;
	if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	gone = handle_end(stream);
	if (!gone)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&gone->ctx->lock);
	unlink_locked(gone);
	pthread_mutex_unlock(&gone->ctx->lock);
	result = obd_ctx_result(gone->ctx);
	/* Work that is still queued goes on: the scheduler holds the stream until it is done. */
	obd_stream_unref(gone);
	return result;
}

CUresult obd_cuStreamQuery(CUstream stream)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	struct obd_op *last;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result)
		return result;
	if (s->legacy)
		return obd_ctx_idle(ctx, true) ? obd_ctx_result(ctx) : CUDA_ERROR_NOT_READY;
	last = obd_stream_last(s);
	result = last ? CUDA_ERROR_NOT_READY : obd_ctx_result(s->ctx);
	obd_op_unref(last);
	return result;
}

CUresult obd_cuStreamSynchronize(CUstream stream)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result)
		return result;
	if (s->legacy) {
		obd_ctx_wait(s->ctx, true);
	} else {
		struct obd_op *last = obd_stream_last(s);

		if (last)
			obd_op_wait(last);
		obd_op_unref(last);
	}
	obd_print_flush(&s->ctx->print);
	return obd_ctx_result(s->ctx);
}

CUresult obd_cuStreamGetPriority(CUstream stream, int *priority)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result && !priority)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*priority = s->priority;
	return result;
}

CUresult obd_cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result && !flags)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*flags = s->flags;
	return result;
}

CUresult obd_cuStreamGetId(CUstream stream, unsigned long long *id)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result && !id)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*id = s->id;
	return result;
}

CUresult obd_cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *current;
	CUresult result = obd_stream_enter(stream, false, &current, &s);

	if (!result && !ctx)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*ctx = s->ctx->front->handle;
	return result;
}

CUresult obd_cuStreamGetCtx_v2(CUstream stream, CUcontext *ctx, CUgreenCtx *green)
{
	CUresult result = green ? obd_cuStreamGetCtx(stream, ctx) : CUDA_ERROR_INVALID_VALUE;

	if (!result)
		*green = NULL;
	return result;
}

/* Green contexts cannot be made, so no stream is in one. cuBLAS 13.10 asks before each product. */
CUresult obd_cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result && !green)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*green = NULL;
	return result;
}

CUresult obd_cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result && !device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*device = s->ctx->front->device;
	return result;
}

/* ---- attributes: hints that are kept for the program to read back ---- */

static CUstreamAttrValue *attr_place(struct obd_stream *stream, CUstreamAttrID attr)
{
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return &stream->window;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return &stream->policy;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return &stream->domain_map;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return &stream->domain;
	default:
		return NULL;
	}
}

CUresult obd_cuStreamGetAttribute(CUstream stream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	CUstreamAttrValue *place;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		memset(value, 0, sizeof *value);
		value->priority = s->priority;
		return CUDA_SUCCESS;
	}
	place = attr_place(s, attr);
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	*value = *place;
	return CUDA_SUCCESS;
}

CUresult obd_cuStreamSetAttribute(
	CUstream stream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	CUstreamAttrValue *place;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		return value->priority == s->priority ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	place = attr_place(s, attr);
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	*place = *value;
	return CUDA_SUCCESS;
}

CUresult obd_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *to = NULL;
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *from = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(dst, false, &ctx, &to);

	if (!result)
		result = obd_stream_enter(src, false, &ctx, &from);
	if (result)
		return result;
	to->window = from->window;
	to->policy = from->policy;
	to->domain_map = from->domain_map;
	to->domain = from->domain;
	return CUDA_SUCCESS;
}

/* ---- capture: never ---- */

CUresult obd_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	OB_CLEANUP(obd_stream_unrefp) struct obd_stream *s = NULL;
	struct obd_ctx *ctx;
	CUresult result = obd_stream_enter(stream, false, &ctx, &s);

	if (!result && !status)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return result;
}

CUresult obd_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	(void)id; /* not written when there is no capture */
	return obd_cuStreamIsCapturing(stream, status);
}

CUresult obd_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies, size_t *n_dependencies)
{
	(void)id;
	(void)graph;
	(void)dependencies;
	(void)n_dependencies;
	return obd_cuStreamIsCapturing(stream, status);
}

CUresult obd_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
	cuuint64_t *id, CUgraph *graph, const CUgraphNode **dependencies,
	const CUgraphEdgeData **edges, size_t *n_dependencies)
{
	(void)edges;
	return obd_cuStreamGetCaptureInfo_v2(
		stream, status, id, graph, dependencies, n_dependencies);
}
