/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_ctx: the software device's part of a context of the front end: streams, memory, programs,
 * device output, limits.
 *
 * Any thread; each list names its lock.
 */
#ifndef OBD_CONTEXT_H
#define OBD_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "softdevice/device.h"
#include "softdevice/print.h"
#include "softdevice/core/program.h"

#define OBD_HEAP_DEFAULT  (8ull << 20) /* bytes; the default of a GPU */
#define OBD_PRINT_DEFAULT (1ull << 20)
#define OBD_STACK_DEFAULT 1024ull
#define OBD_STACK_MAX     (512ull << 10)

struct obd_alloc;
struct obd_graph;
struct obd_module;
struct obd_stream;

struct obd_ctx {
	struct obf_ctx *front;
	struct obd_device *device;
	struct obd_env env; /* passed to programs */
	/*
	 * The context was destroyed while a host function was running in it. Everything that the
	 * function may access is kept.
	 */
	bool abandoned;
	_Atomic int abort;      /* set to 1 to stop the running grids, which poll it */
	_Atomic uint64_t grids; /* id of the last grid */
	struct obd_stream *legacy;
	/* the streams other than the legacy one that have work; the scheduler's lock */
	struct obd_stream *busy;
	uint32_t pending; /* ops that are not done; the scheduler's lock */
	/*
	 * when the completed work of all streams, and of those that the legacy stream waits for,
	 * ends on the device's clock (dry.h); the scheduler's lock
	 */
	uint64_t end_ns, blocking_end_ns;
	pthread_mutex_t lock; /* guards the fields below */
	struct obd_alloc *allocs;
	struct obd_module *modules;
	struct obd_graph *graphs;
	uint64_t heap_limit, heap_used, print_limit, stack_limit; /* bytes */
	uint64_t launches_limit; /* of launches by device code that have not started */
	/* limits that are hints here: they are stored, and change nothing */
	uint64_t l2_limit, fetch_limit;
	struct obd_print print;
};

/*
 * Returns the calling thread's context, for a public call. Returns CUDA's error when there is no
 * context, when it has failed, or when the caller is a host function.
 */
CUresult obd_ctx_enter(struct obd_ctx **ret);
/* The same check for calls that take a handle and need no current context. */
CUresult obd_ctx_none(void);
/*
 * CUDA_SUCCESS, or the error with which the context has failed. The caller must return it to the
 * program: the front end notes that the program has seen it.
 */
CUresult obd_ctx_result(const struct obd_ctx *ctx);
/* The same, for internal use: the error does not count as reported. */
CUresult obd_ctx_failed(const struct obd_ctx *ctx);
/* Marks the context as failed. Only the first failure is kept. */
void obd_ctx_fail(struct obd_ctx *ctx, CUresult result);

#endif
