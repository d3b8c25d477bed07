/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_ctx: what the device keeps for one context of the front end: streams, memory, programs, device
 * output, limits.
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
#include "softdevice/program.h"

#define OBD_HEAP_DEFAULT  (8ull << 20) /* bytes, as on a GPU */
#define OBD_PRINT_DEFAULT (1ull << 20)
#define OBD_STACK_DEFAULT 1024ull
#define OBD_STACK_MAX     (512ull << 10)

struct obd_alloc;
struct obd_module;
struct obd_stream;

struct obd_ctx {
	struct obf_ctx *front;
	struct obd_device *device;
	struct obd_env env; /* for programs */
	/* destroyed while a host function of it runs: what that may touch stays */
	bool abandoned;
	_Atomic int abort;      /* running grids watch it */
	_Atomic uint64_t grids; /* grid ids */
	struct obd_stream *legacy;
	/* blocking and other streams with work; the scheduler's lock */
	struct obd_stream *busy;
	uint32_t pending;     /* ops not done; the scheduler's lock */
	pthread_mutex_t lock; /* the lists and figures below */
	struct obd_alloc *allocs;
	struct obd_module *modules;
	uint64_t heap_limit, heap_used, print_limit, stack_limit; /* bytes */
	struct obd_print print;
};

/*
 * The calling thread's context for a public call: CUDA's error when there is none, it has failed,
 * or this is a host function.
 */
CUresult obd_ctx_enter(struct obd_ctx **ret);
/* For calls that name a handle and may be made without a current context. */
CUresult obd_ctx_none(void);
/*
 * 0, or the error the context has failed with, which the caller is about to return to the program.
 */
CUresult obd_ctx_result(const struct obd_ctx *ctx);
/* The same for the device's own use. */
CUresult obd_ctx_failed(const struct obd_ctx *ctx);
/* The first failure stays. */
void obd_ctx_fail(struct obd_ctx *ctx, CUresult result);

#endif
