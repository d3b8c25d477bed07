/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_backend: what executes the calls that the front end has checked. There are two, the remote
 * client (client-shim/) and the software device (softdevice/), and one in each library.
 *
 * Arguments have been checked and handles resolved when a function of the table is called. Objects
 * stay valid during the call. A function returns CUDA_SUCCESS or the error that CUDA documents for
 * the calls that use it; an error that ends a context is noted by the front end (obf_ctx_result).
 * Functions may block only where this says so. Any thread.
 */
#ifndef OBF_BACKEND_H
#define OBF_BACKEND_H

#include "front/front.h"

struct obf_event;
struct obf_stream;

/* A place in a stream, as the backend writes it down. */
struct obf_point {
	uint64_t words[6];
};

struct obf_backend {
	/* "outboard", "outboard-softdevice": for messages */
	const char *what;
	int driver_version; /* 13000 */
	/* ---- the process ---- */

	/*
	 * cuInit: called once per process; fills devices (capacity OBF_DEVICE_MAX). Anything but
	 * CUDA_SUCCESS is remembered, except after fork.
	 */
	CUresult (*start)(struct obf_device *ret_devices, int *ret_count);
	/*
	 * Once, after start: the program's device i is number ordinals[i] of those that start gave.
	 * Every device that the front end and the program name afterwards is the program's. May be NULL.
	 */
	void (*visible)(const int *ordinals, int n);
	/*
	 * Before every public call other than cuInit and pure look-ups: 0, or the process-wide
	 * error (session lost). May be NULL.
	 */
	CUresult (*alive)(void);
	/* ---- contexts ---- */

	CUresult (*ctx_create)(struct obf_ctx *ctx); /* sets ctx->backend */
	/*
	 * Also for the reset and the last release of a primary context. All its work has ended when
	 * this returns, also when it returns an error: that of unfinished work, if no call has
	 * returned it before. The front end then closes the context's streams and events, frees
	 * its memory and calls ctx_release.
	 */
	CUresult (*ctx_destroy)(struct obf_ctx *ctx);
	void (*ctx_release)(struct obf_ctx *ctx); /* the last call for the context */
	/* Waits for all work of the context. */
	CUresult (*ctx_synchronize)(struct obf_ctx *ctx);
	/*
	 * Implicit synchronisation: waits for kernels of the context that may be unfinished, if
	 * there are any, and returns their error.
	 */
	CUresult (*ctx_settle)(struct obf_ctx *ctx);
	CUresult (*ctx_limit)(struct obf_ctx *ctx, CUlimit limit, bool set, size_t *value);

	/* ---- streams and events ---- */

	size_t stream_size; /* bytes of the backend's object, which begins with an obf_stream */
	CUresult (*stream_open)(struct obf_stream *stream);
	/*
	 * No call names the stream any more. Work that is in it goes on, unless its context has
	 * ended. The backend calls obf_stream_recycle, now or when that work is done.
	 */
	void (*stream_close)(struct obf_stream *stream, bool ctx_ended);
	CUresult (*stream_query)(struct obf_stream *stream); /* CUDA_ERROR_NOT_READY: it has work */
	CUresult (*stream_wait)(struct obf_stream *stream);  /* blocks until its work is done */
	/* What comes next in the stream waits for the event's last recording. */
	CUresult (*stream_wait_event)(struct obf_stream *stream, struct obf_event *event);

	size_t event_size; /* as stream_size */
	CUresult (*event_open)(struct obf_event *event);
	/* The object is used again as soon as this returns. */
	CUresult (*event_close)(struct obf_event *event, bool ctx_ended);
	CUresult (*event_record)(struct obf_event *event, struct obf_stream *stream);
	/* The next three: of events that were recorded. */
	CUresult (*event_query)(struct obf_event *event); /* CUDA_ERROR_NOT_READY */
	CUresult (*event_wait)(struct obf_event *event);  /* blocks */
	/* Milliseconds; CUDA_ERROR_NOT_READY: one of the two is not complete. */
	CUresult (*event_elapsed)(struct obf_event *start, struct obf_event *end, float *ret_ms);

	/*
	 * ---- work in a stream ----
	 *
	 * Launches are not here: launch_calls.h.
	 *
	 * blocking: the call is not an "Async" one. Copies from pageable host memory have read it
	 * when the function returns, copies to it have written it. A blocking copy that involves
	 * host memory is complete, but for uploads of up to OBF_COPY_SMALL bytes.
	 */

	/* `size` > 0 bytes between device and host memory. */
	CUresult (*write)(struct obf_stream *stream, uint64_t dst, const void *src, size_t size,
		bool blocking);
	CUresult (*read)(
		struct obf_stream *stream, void *dst, uint64_t src, size_t size, bool blocking);
	/* Any other copy. */
	CUresult (*copy)(struct obf_stream *stream, const struct obf_copy *copy, bool blocking);
	CUresult (*fill)(struct obf_stream *stream, const struct obf_fill *fill);
	/* Sets obf_in_host_function around the call. *function is copied. */
	CUresult (*host_function)(
		struct obf_stream *stream, const struct obf_host_function *function);

	/* ---- code ---- */

	CUresult (*mod_load)(struct obf_mod *mod, const struct obf_image_ref *image);
	/* also for every module of a context before its ctx_destroy */
	void (*mod_unload)(struct obf_mod *mod);
	/* first use of a kernel in a context: set host, backend_id */
	CUresult (*func_get)(struct obf_func *func);
	/*
	 * Before a function's first launch, and again until it succeeds: can it run? May be NULL:
	 * every function can.
	 */
	CUresult (*func_load)(struct obf_func *func);
	CUresult (*func_attrs)(struct obf_func *func); /* make func->attrs exact */
	/* attrs already updated by the front end */
	CUresult (*func_set_attr)(struct obf_func *func, CUfunction_attribute attr, int value);
	CUresult (*global_get)(
		struct obf_mod *mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size);
	/*
	 * Whether this PTX would load; what is wrong goes to `log` as a string. May be NULL: cannot
	 * be told before it is loaded.
	 */
	CUresult (*code_check)(
		struct obf_ctx *ctx, const void *ptx, size_t size, char *ret_log, size_t log_size);

	/* ---- memory ---- */

	bool peers; /* each device reaches the memory of all */
	/* mem->size bytes for the context: sets mem->base and mem->backend. */
	CUresult (*mem_alloc)(struct obf_ctx *ctx, struct obf_mem *mem);
	/*
	 * in_use: work that was put in before may still use the memory; what it does must do no
	 * harm. `ctx`: the current context, or the memory's own.
	 */
	CUresult (*mem_free)(struct obf_ctx *ctx, const struct obf_mem *mem, bool in_use);
	CUresult (*mem_info)(
		struct obf_ctx *ctx, uint64_t *ret_free, uint64_t *ret_total); /* bytes */
	/* Gives memory that the backend keeps in reserve back to the device. May be NULL. */
	void (*mem_trim)(int device);

	/* Behind all work that is in the stream. The caller drops it. */
	CUresult (*point_take)(struct obf_stream *stream, struct obf_point *ret);
	/* That work is known to be complete: does not ask. */
	bool (*point_passed)(const struct obf_point *point);
	void (*point_drop)(struct obf_point *point);

	/* Pinned memory: tell the backend that a host range came or went; may be NULL. */
	void (*host_range)(const void *p, size_t size, bool added);
	/* ---- the library ---- */

	/* Tables beyond the ones the front end serves; NULL when unknown. May be NULL. */
	const void *(*export_table)(const CUuuid *id);
	/* cuGetProcAddress: the generated table of the library's own exported entry points. */
	const struct obf_proc *procs;
	size_t n_procs;
};

void obf_attach(const struct obf_backend *backend);
const struct obf_backend *obf_attached(void);

#endif
