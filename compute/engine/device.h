/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the service needs of a device, as one table of functions: implemented by the CPU
 * (device_cpu.c) and by every GPU the driver API shows (device_gpu.c); tests bring their own. A
 * backend belongs to the context it was given to, which calls `close` once, last. One thread at a
 * time calls `run`-like functions (the device's own); stats, and handles' upload and drop, may come
 * from any.
 *
 * Functions return enum outboard_status and fill the error. OUTBOARD_DEVICE means that the device
 * failed and another attempt, here or elsewhere, may succeed; OUTBOARD_NO_MEMORY and
 * OUTBOARD_UNSUPPORTED that another device might do it; OUTBOARD_CANCELLED that the work was
 * stopped; everything else is the caller's mistake and final.
 */
#ifndef OBV_DEVICE_H
#define OBV_DEVICE_H

#include <stdbool.h>

#include "compute/engine/outboard.h"
#include "compute/msm/msm.h"
#include "compute/ntt/ntt.h"

/* handles whose upload takes as long as measuring does */
#define OBV_TUNE_LAZY_POINTS  ((size_t)1 << 14)
#define OBV_TUNE_LAZY_SECONDS 0.5
#define OBV_TUNE_SECONDS      2.0 /* the most that a calibration spends on a device's weights */

struct obv_device;
struct obk_gpu;
/* Handles of points that are shared by all devices: msm.c. */
struct outboard_bases;
/*
 * How far a piece of work is; false: stop as soon as possible. A CPU asks job.stop as well, which
 * tells the same more often.
 */
typedef bool obv_progress_fn(void *arg, double done);

struct obv_msm_work {
	struct outboard_bases *bases;
	struct obk_msm_job job; /* pool and progress are the backend's to fill */
	/* the GPU on which job.scalars is a CUdeviceptr; NULL: it is host memory */
	const struct obv_device *memory;
	void *after; /* CUevent or NULL: then that memory is ready */
	/* its time is limited, or its points are for it alone: nothing is measured on the way */
	bool hurried;
	obv_progress_fn *progress;
	void *progress_arg;
};

struct obv_ntt_work {
	struct obk_ntt_job job; /* pool is the backend's to fill */
	void *data;             /* elements in Montgomery form */
	bool on_device;         /* data is a CUdeviceptr of this device */
	void *after;
};

struct obv_cells_work {
	struct outboard_bases *points; /* OBK_KZG_CELL_POINTS of the setup */
	const struct obk_fr *scalars;  /* as many of each blob */
	size_t blobs;
	/* bits of a digit of the table asked for; 0: as the device's memory allows */
	unsigned window;
	struct obk_pool *pool; /* threads that make results affine */
};

struct obv_backend_ops {
	void (*close)(void *self);
	/* ret[job.batch] is written only on success. */
	int (*msm)(void *self, const struct obv_msm_work *work, struct obk_g1_affine *ret,
		struct outboard_error *error);
	int (*ntt)(void *self, const struct obv_ntt_work *work, struct outboard_error *error);
	/* The proofs of cells, 128 a blob; ret is written only on success. NULL: cannot. */
	int (*cells)(void *self, const struct obv_cells_work *work, struct obk_g1_affine *ret,
		struct outboard_error *error);
	/*
	 * Bytes of device memory to the host, after the event if there is one. NULL: has no memory
	 * of its own.
	 */
	int (*read)(void *self, void *to, uint64_t from, size_t bytes, void *after,
		struct outboard_error *error);
	/*
	 * Calls fn with the device as the kernels know it, which stays open meanwhile; its result.
	 * NULL: not a GPU.
	 */
	int (*with_gpu)(void *self, int (*fn)(void *arg, struct obk_gpu *gpu), void *arg);
	/*
	 * Measures what the device's ways of doing products go by, for about so long, and keeps it.
	 * NULL: has no such ways.
	 */
	int (*tune)(void *self, struct outboard_bases *bases, double seconds,
		struct outboard_error *error);
	/*
	 * Seconds of an operation by that; 0: it was not measured. From any thread. NULL as above.
	 */
	double (*expect)(void *self, uint32_t operation, double size);
	/* How products of the first n points would be done. From any thread. NULL as above. */
	int (*plan)(void *self, struct outboard_bases *bases, size_t n, size_t batch,
		struct outboard_plan *ret_plan, struct outboard_error *error);
	/* Threads for work that only a CPU does; NULL: not a CPU. */
	struct obk_pool *(*pool)(void *self);
	/* Fills the fields of the memory pool. May be NULL. */
	void (*stats)(void *self, struct outboard_device *device);
	/*
	 * Before a device whose breaker was open is tried again: makes it usable, or says why not.
	 * May be NULL.
	 */
	int (*revive)(void *self, struct outboard_error *error);
};

struct obv_backend {
	const struct obv_backend_ops *ops;
	void *self;
	uint32_t kind, units;
	uint64_t memory;
	double clock, link;
	unsigned operations; /* bit enum outboard_operation: what it can do */
	bool fallback_only;
	char name[64], what[128];
};

int obv_device_cpu_open(
	unsigned threads, struct obv_backend *ret_backend, struct outboard_error *error);
/* A CPU backend of a test's or calibration's own may be told apart by this. */
extern const struct obv_backend_ops obv_device_cpu_ops;

#endif
