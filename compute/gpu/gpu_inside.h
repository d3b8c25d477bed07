/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Private state of an open device, shared by gpu.c (the device, its images) and memory.c (buffers,
 * streams, copies). The lock guards all mutable fields.
 */
#ifndef OBK_GPU_GPU_INSIDE_H
#define OBK_GPU_GPU_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "compute/gpu/gpu.h"

#define OBK_GPU_MAX_STREAMS 64 /* streams kept for later use */

struct obk_gpu_block {
	struct obk_gpu_buffer buffer;
	struct obk_gpu_block *next;
};

/*
 * Staging memory for one upload at a time: two pieces, one that is being copied and one that is
 * being filled.
 */
struct obk_gpu_stage {
	struct obk_gpu_stage *next;
	CUstream stream;
	CUevent arrived[2];
	void *room; /* pinned memory */
};

struct obk_gpu {
	const struct obk_gpu_driver *driver;
	struct obk_gpu_info info;
	CUdevice device;
	CUcontext context;
	_Atomic bool lost;
	pthread_mutex_t lock;
	unsigned images;
	struct obk_gpu_loaded {
		const struct obk_gpu_image *image;
		CUmodule module;
		CUfunction functions[OBK_GPU_MAX_KERNELS];
	} image[OBK_GPU_MAX_IMAGES];
	struct obk_gpu_block *idle, *taken;
	unsigned streams;
	CUstream stream[OBK_GPU_MAX_STREAMS];
	struct obk_gpu_stage *stages; /* kept for later uploads */
	struct obk_gpu_stats stats;
};

/* Frees all buffers and streams, including those in use. The context is current. */
void obk_gpu_memory_fini(struct obk_gpu *gpu);
/* Frees the staging memory of uploads. The context is current. */
void obk_gpu_upload_fini(struct obk_gpu *gpu);

#endif
