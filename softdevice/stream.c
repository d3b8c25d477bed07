/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/stream.h"

#include <pthread.h>

#include "softdevice/context.h"
#include "softdevice/dry_clock.h"
#include "softdevice/sched.h"

/* ---- exit of threads: their per-thread streams are closed ---- */

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void thread_exit(void *user)
{
	(void)user;
	obf_streams_thread_exit();
}

static void exit_key_make(void)
{
	pthread_key_create(&exit_key, thread_exit);
}

CUresult obd_stream_open(struct obf_stream *base)
{
	struct obd_stream *stream = obd_stream_of(base);

	stream->ctx = base->ctx->backend;
	if (base->legacy) {
		stream->ctx->legacy = stream;
		return CUDA_SUCCESS;
	}
	/*
	 * The thread may have created its per-thread stream. Any non-NULL value makes the
	 * destructor run when the thread exits.
	 */
	pthread_once(&exit_once, exit_key_make);
	pthread_setspecific(exit_key, stream);
	return CUDA_SUCCESS;
}

void obd_stream_close(struct obf_stream *base, bool ctx_ended)
{
	(void)ctx_ended;
	if (obd_sched_close(obd_stream_of(base)))
		obf_stream_recycle(base);
}

CUresult obd_stream_enter(CUstream handle, struct obd_stream **ret)
{
	struct obf_stream *stream;
	struct obf_ctx *ctx;
	CUresult result = obf_ctx_enter(&ctx);

	if (result)
		return result;
	result = obf_stream_get(handle, ctx, &stream);
	if (!result && stream->ctx != ctx)
		result = obf_ctx_report(stream->ctx);
	if (!result)
		*ret = obd_stream_of(stream);
	return result;
}

/* ---- waiting ---- */

CUresult obd_stream_query(struct obf_stream *base)
{
	struct obd_stream *stream = obd_stream_of(base);
	struct obd_op *last;
	CUresult result;

	if (base->legacy)
		return obd_ctx_idle(stream->ctx, true) ? obd_ctx_result(stream->ctx)
						       : CUDA_ERROR_NOT_READY;
	last = obd_stream_last(stream);
	result =
		last || obd_stream_end(stream) ? CUDA_ERROR_NOT_READY : obd_ctx_result(stream->ctx);
	obd_op_unref(last);
	return result;
}

CUresult obd_stream_wait(struct obf_stream *base)
{
	struct obd_stream *stream = obd_stream_of(base);

	if (base->legacy) {
		obd_ctx_wait(stream->ctx, true);
	} else {
		struct obd_op *last = obd_stream_last(stream);

		if (last)
			obd_op_wait(last);
		else
			obd_dry_wait(obd_stream_end(stream), NULL);
		obd_op_unref(last);
	}
	obd_print_flush(&stream->ctx->print);
	return obd_ctx_result(stream->ctx);
}
