/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "compute/gpu/gpu_inside.h"

static void stage_free(struct obk_gpu *gpu, struct obk_gpu_stage *stage)
{
	for (unsigned i = 0; i < 2; i++)
		if (stage->arrived[i])
			gpu->driver->event_free(stage->arrived[i]);
	if (stage->stream)
		gpu->driver->stream_free(stage->stream);
	obk_gpu_pinned_free(gpu, stage->room);
	free(stage);
}

void obk_gpu_upload_fini(struct obk_gpu *gpu)
{
	while (gpu->stages) {
		struct obk_gpu_stage *stage = gpu->stages;

		gpu->stages = stage->next;
		stage_free(gpu, stage);
	}
}

/* NULL: none could be allocated. */
static struct obk_gpu_stage *stage_take(struct obk_gpu *gpu)
{
	struct obk_gpu_stage *stage;
	enum ob_err err;

	pthread_mutex_lock(&gpu->lock);
	stage = gpu->stages;
	if (stage)
		gpu->stages = stage->next;
	pthread_mutex_unlock(&gpu->lock);
	if (stage)
		return stage;
	stage = calloc(1, sizeof(*stage));
	if (!stage)
		return NULL;
	err = obk_gpu_pinned_new(gpu, 2 * OBK_GPU_PIECE, &stage->room, NULL);
	if (!err)
		err = obk_gpu_check(gpu,
			gpu->driver->stream_new(&stage->stream, CU_STREAM_NON_BLOCKING),
			"cuStreamCreate", NULL);
	for (unsigned i = 0; i < 2 && !err; i++)
		err = obk_gpu_check(gpu,
			gpu->driver->event_new(&stage->arrived[i], CU_EVENT_DISABLE_TIMING),
			"cuEventCreate", NULL);
	if (err) {
		stage_free(gpu, stage);
		return NULL;
	}
	return stage;
}

static void stage_give(struct obk_gpu *gpu, struct obk_gpu_stage *stage)
{
	pthread_mutex_lock(&gpu->lock);
	stage->next = gpu->stages;
	gpu->stages = stage;
	pthread_mutex_unlock(&gpu->lock);
}

/*
 * Copies piece `number` to the device as soon as its half of the staging memory is free. `stream`
 * then waits for it.
 */
static enum ob_err send(struct obk_gpu *gpu, struct obk_gpu_stage *stage, unsigned number,
	CUstream stream, CUdeviceptr to, const void *from, size_t bytes, struct obk_fault *fault)
{
	const struct obk_gpu_driver *driver = gpu->driver;
	CUevent arrived = stage->arrived[number % 2];
	char *room = (char *)stage->room + number % 2 * OBK_GPU_PIECE;
	enum ob_err err = number < 2
		? OB_ERR_NONE
		: obk_gpu_check(gpu, driver->event_wait(arrived), "cuEventSynchronize", fault);

	if (err)
		return err;
	memcpy(room, from, bytes);
	err = obk_gpu_write(gpu, stage->stream, to, room, bytes, fault);
	if (!err)
		err = obk_gpu_check(
			gpu, driver->event_record(arrived, stage->stream), "cuEventRecord", fault);
	if (!err)
		err = obk_gpu_check(gpu, driver->stream_wait_event(stream, arrived, 0),
			"cuStreamWaitEvent", fault);
	return err;
}

enum ob_err obk_gpu_upload(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, const void *from,
	size_t bytes, obk_gpu_piece *piece, void *arg, struct obk_fault *fault)
{
	struct obk_gpu_stage *stage =
		bytes > OBK_GPU_PIECE && ob_opt_on(OB_OPT_STAGE) ? stage_take(gpu) : NULL;
	enum ob_err err = OB_ERR_NONE, late;
	unsigned number = 0;

	if (!stage) {
		err = obk_gpu_write(gpu, stream, to, from, bytes, fault);
		return err ? err : piece(arg, 0, bytes);
	}
	for (size_t done = 0; done < bytes && !err; number++) {
		size_t some = bytes - done < OBK_GPU_PIECE ? bytes - done : OBK_GPU_PIECE;

		err = send(gpu, stage, number, stream, to + done, (const char *)from + done, some,
			fault);
		err = err ? err : piece(arg, done, some);
		done += some;
	}
	late = obk_gpu_lost(gpu) ? OB_ERR_NONE
				 : obk_gpu_wait(gpu, stage->stream, err ? NULL : fault);
	pthread_mutex_lock(&gpu->lock);
	gpu->stats.pieces += number;
	pthread_mutex_unlock(&gpu->lock);
	/* Staging memory that may still be in use by a copy must not be overwritten. */
	if (late || obk_gpu_lost(gpu))
		stage_free(gpu, stage);
	else
		stage_give(gpu, stage);
	return err ? err : late;
}
