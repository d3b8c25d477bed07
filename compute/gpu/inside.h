/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Inside an open device: what gpu.c (the device, its images) and memory.c (buffers, streams,
 * copies) share. The lock guards all that changes.
 */
#ifndef OBK_GPU_INSIDE_H
#define OBK_GPU_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "compute/gpu/gpu.h"

#define OBK_GPU_MAX_STREAMS 64 /* kept for the next taker */

struct obk_gpu_block {
	struct obk_gpu_buffer buffer;
	struct obk_gpu_block *next;
};

/* For one upload at a time: room for two pieces, one that travels and one that is filled. */
struct obk_gpu_stage {
	struct obk_gpu_stage *next;
	CUstream stream;
	CUevent arrived[2];
	void *room; /* pinned */
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
	struct obk_gpu_stage *stages; /* kept for the next upload */
	struct obk_gpu_stats stats;
};

/* Frees every buffer and stream, taken ones too. The context is current. */
void obk_gpu_memory_fini(struct obk_gpu *gpu);
/* Frees what uploads kept. The context is current. */
void obk_gpu_upload_fini(struct obk_gpu *gpu);

#endif
