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

struct obf_backend {
	/* "outboard", "outboard-softdevice": for messages */
	const char *what;
	int driver_version; /* 13000 */
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
	CUresult (*ctx_create)(struct obf_ctx *ctx); /* sets ctx->backend */
	/*
	 * Also primary reset and last release; all streams, events, modules, memory of it go,
	 * whatever the result: the error of work that was unfinished, if no call has told it yet.
	 */
	CUresult (*ctx_destroy)(struct obf_ctx *ctx);
	CUresult (*ctx_synchronize)(struct obf_ctx *ctx);
	/* cuStreamSynchronize: CUDA_LAUNCH_BLOCKING waits with it */
	CUresult (*stream_synchronize)(CUstream stream);
	/*
	 * Implicit synchronisation: waits for kernels of the context that may be unfinished, if
	 * there are any, and returns their error.
	 */
	CUresult (*ctx_settle)(struct obf_ctx *ctx);
	CUresult (*ctx_limit)(struct obf_ctx *ctx, CUlimit limit, bool set, size_t *value);
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
	/* Pinned memory: tell the backend that a host range came or went; may be NULL. */
	void (*host_range)(const void *p, size_t size, bool added);
	/* Tables beyond the ones the front end serves; NULL when unknown. May be NULL. */
	const void *(*export_table)(const CUuuid *id);
	/* cuGetProcAddress: the generated table of the library's own exported entry points. */
	const struct obf_proc *procs;
	size_t n_procs;
};

void obf_attach(const struct obf_backend *backend);
const struct obf_backend *obf_attached(void);

#endif
