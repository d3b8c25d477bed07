/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The interface between the engine and a device, as a table of functions. The CPU (device_cpu.c)
 * and all GPUs of the driver API (device_gpu.c) implement it; tests have their own implementations.
 * A backend belongs to the context it was given to, which calls `close` once, as the last function.
 * Functions that execute work are called only by the device's thread, one at a time; stats, and the
 * upload and drop of handles, may be called from any thread.
 *
 * Functions return enum outboard_status and fill the error. OUTBOARD_DEVICE: the device failed, and
 * another attempt, on this or another device, may succeed. OUTBOARD_NO_MEMORY and
 * OUTBOARD_UNSUPPORTED: another device may succeed. OUTBOARD_CANCELLED: the work was stopped. All
 * others: the caller's arguments are wrong; the piece is not repeated.
 */
#ifndef OBV_DEVICE_H
#define OBV_DEVICE_H

#include <stdbool.h>

#include "compute/engine/outboard.h"
#include "compute/msm/msm.h"
#include "compute/ntt/ntt.h"

/* fewest points in a handle for which the upload takes as long as measuring the device does */
#define OBV_TUNE_LAZY_POINTS  ((size_t)1 << 14)
#define OBV_TUNE_LAZY_SECONDS 0.5
/* most time that a calibration spends on a device's weights, in seconds */
#define OBV_TUNE_SECONDS      2.0

struct obv_device;
struct obk_gpu;
/* Handles of points; devices share them. Defined in msm.c. */
struct outboard_bases;
/*
 * Reports the progress of a piece; false: stop as soon as possible. A CPU also polls job.stop,
 * which has the same meaning and is polled more often.
 */
typedef bool obv_progress_fn(void *arg, double done);

struct obv_msm_work {
	struct outboard_bases *bases;
	struct obk_msm_job job; /* the backend sets pool and progress */
	/* the GPU on which job.scalars is a CUdeviceptr; NULL: it points to host memory */
	const struct obv_device *memory;
	void *after; /* a CUevent, after which device memory may be read; NULL: at once */
	/*
	 * the call has a time limit, or its points are used only once: do not measure the device
	 * now
	 */
	bool hurried;
	obv_progress_fn *progress;
	void *progress_arg;
};

struct obv_ntt_work {
	struct obk_ntt_job job; /* the backend sets pool */
	void *data;             /* elements in Montgomery form */
	bool on_device;         /* data is a CUdeviceptr of this device */
	void *after;
};

struct obv_cells_work {
	struct outboard_bases *points; /* OBK_KZG_CELL_POINTS of the setup */
	const struct obk_fr *scalars;  /* OBK_KZG_CELL_POINTS of them for each blob */
	size_t blobs;
	/* bits in a digit of the requested table; 0: as many as the device's memory allows */
	unsigned window;
	struct obk_pool *pool; /* threads that convert results to affine form */
};

struct obv_backend_ops {
	void (*close)(void *self);
	/* ret[job.batch] is written only on success. */
	int (*msm)(void *self, const struct obv_msm_work *work, struct obk_g1_affine *ret,
		struct outboard_error *error);
	int (*ntt)(void *self, const struct obv_ntt_work *work, struct outboard_error *error);
	/*
	 * The proofs of cells, 128 per blob; ret is written only on success. NULL: not supported.
	 */
	int (*cells)(void *self, const struct obv_cells_work *work, struct obk_g1_affine *ret,
		struct outboard_error *error);
	/*
	 * Copies device memory to the host, after the event if there is one. NULL: the device has
	 * no memory of its own.
	 */
	int (*read)(void *self, void *to, uint64_t from, size_t bytes, void *after,
		struct outboard_error *error);
	/*
	 * Calls fn with the struct obk_gpu of the device, which stays open during the call, and
	 * returns its result. NULL: not a GPU.
	 */
	int (*with_gpu)(void *self, int (*fn)(void *arg, struct obk_gpu *gpu), void *arg);
	/*
	 * Measures what the choice of MSM method on this device depends on, for about `seconds`,
	 * and keeps the result. NULL: the device has no such choice.
	 */
	int (*tune)(void *self, struct outboard_bases *bases, double seconds,
		struct outboard_error *error);
	/*
	 * The expected time of an operation in seconds, from these measurements; 0: not measured.
	 * May be called from any thread. NULL: as for tune.
	 */
	double (*expect)(void *self, uint32_t operation, double size);
	/*
	 * How products of the first n points would be computed. May be called from any thread.
	 * NULL: as for tune.
	 */
	int (*plan)(void *self, struct outboard_bases *bases, size_t n, size_t batch,
		struct outboard_plan *ret_plan, struct outboard_error *error);
	/* Threads for work that only CPUs do; NULL: not a CPU. */
	struct obk_pool *(*pool)(void *self);
	/* Fills the fields of the memory pool. May be NULL. */
	void (*stats)(void *self, struct outboard_device *device);
	/*
	 * Called before a device whose breaker was open is tried again. Makes the device usable or
	 * returns an error. May be NULL.
	 */
	int (*revive)(void *self, struct outboard_error *error);
};

struct obv_backend {
	const struct obv_backend_ops *ops;
	void *self;
	uint32_t kind, units;
	uint64_t memory;
	double clock, link;
	unsigned operations; /* bit mask of the supported enum outboard_operation */
	bool fallback_only;
	char name[64], what[128];
};

int obv_device_cpu_open(
	unsigned threads, struct obv_backend *ret_backend, struct outboard_error *error);
/*
 * Operations of CPU devices. Their address identifies a CPU backend made by a test or a
 * calibration.
 */
extern const struct obv_backend_ops obv_device_cpu_ops;

#endif
