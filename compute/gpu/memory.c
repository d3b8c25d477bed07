/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>

#include "compute/gpu/gpu_inside.h"

#define GRAIN            ((size_t)512)
/* A kept buffer serves a request if at most a quarter of it would be unused. */
#define MAX_WASTE(bytes) ((bytes) / 4)

/* There are eight size classes per power of two, so that slightly different sizes share a class. */
static size_t size_class(size_t bytes)
{
	size_t step = GRAIN;

	while (step * 16 <= bytes)
		step *= 2;
	return (bytes + step - 1) / step * step;
}

static struct obk_gpu_block *unlink_block(struct obk_gpu_block **at)
{
	struct obk_gpu_block *block = *at;

	*at = block->next;
	return block;
}

static void free_block(struct obk_gpu *gpu, struct obk_gpu_block *block)
{
	gpu->driver->mem_free(block->buffer.at);
	free(block);
}

static void trim_locked(struct obk_gpu *gpu)
{
	while (gpu->idle)
		free_block(gpu, unlink_block(&gpu->idle));
	gpu->stats.idle = 0;
}

/* The smallest kept buffer that is large enough and does not waste too much. */
static struct obk_gpu_block *take_idle(struct obk_gpu *gpu, size_t bytes)
{
	struct obk_gpu_block **best = NULL;

	for (struct obk_gpu_block **at = &gpu->idle; *at; at = &(*at)->next) {
		size_t have = (*at)->buffer.bytes;

		if (have >= bytes && have - bytes <= MAX_WASTE(have) &&
			(!best || have < (*best)->buffer.bytes))
			best = at;
	}
	if (!best)
		return NULL;
	gpu->stats.idle -= (*best)->buffer.bytes;
	gpu->stats.reused++;
	return unlink_block(best);
}

static enum ob_err take_locked(struct obk_gpu *gpu, size_t bytes, struct obk_gpu_buffer *ret_buffer,
	struct obk_fault *fault)
{
	struct obk_gpu_block *block = take_idle(gpu, bytes);
	CUresult result;

	if (!block) {
		block = malloc(sizeof(*block));
		if (!block)
			return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
				"no memory to note a buffer of the device");
		block->buffer.bytes = size_class(bytes);
		result = gpu->driver->mem_alloc(&block->buffer.at, block->buffer.bytes);
		if (result == CUDA_ERROR_OUT_OF_MEMORY && gpu->idle) {
			trim_locked(gpu);
			result = gpu->driver->mem_alloc(&block->buffer.at, block->buffer.bytes);
		}
		if (result) {
			char what[64];

			snprintf(
				what, sizeof(what), "cuMemAlloc of %zu bytes", block->buffer.bytes);
			free(block);
			return obk_gpu_check(gpu, result, what, fault);
		}
	}
	block->next = gpu->taken;
	gpu->taken = block;
	gpu->stats.taken++;
	gpu->stats.in_use += block->buffer.bytes;
	if (gpu->stats.high_water < gpu->stats.in_use)
		gpu->stats.high_water = gpu->stats.in_use;
	*ret_buffer = block->buffer;
	return OB_ERR_NONE;
}

enum ob_err obk_gpu_take(struct obk_gpu *gpu, size_t bytes, struct obk_gpu_buffer *ret_buffer,
	struct obk_fault *fault)
{
	enum ob_err err;

	if (bytes == 0) {
		*ret_buffer = (struct obk_gpu_buffer){ 0 };
		return OB_ERR_NONE;
	}
	if (bytes > SIZE_MAX / 2)
		return obk_fault_set(
			fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM, "no device has %zu bytes", bytes);
	pthread_mutex_lock(&gpu->lock);
	err = take_locked(gpu, bytes, ret_buffer, fault);
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

void obk_gpu_give(struct obk_gpu *gpu, struct obk_gpu_buffer *buffer)
{
	struct obk_gpu_block **at = &gpu->taken;

	if (buffer->at) {
		pthread_mutex_lock(&gpu->lock);
		while (*at && (*at)->buffer.at != buffer->at)
			at = &(*at)->next;
		if (*at) {
			struct obk_gpu_block *block = unlink_block(at);

			gpu->stats.in_use -= block->buffer.bytes;
			/*
			 * Other programs share the device: keep at most a quarter of its memory
			 * idle.
			 */
			if (gpu->stats.idle + block->buffer.bytes > gpu->info.memory / 4 ||
				obk_gpu_lost(gpu)) {
				free_block(gpu, block);
			} else {
				gpu->stats.idle += block->buffer.bytes;
				block->next = gpu->idle;
				gpu->idle = block;
			}
		}
		pthread_mutex_unlock(&gpu->lock);
	}
	*buffer = (struct obk_gpu_buffer){ 0 };
}

void obk_gpu_trim(struct obk_gpu *gpu)
{
	pthread_mutex_lock(&gpu->lock);
	trim_locked(gpu);
	pthread_mutex_unlock(&gpu->lock);
}

void obk_gpu_memory_fini(struct obk_gpu *gpu)
{
	trim_locked(gpu);
	while (gpu->taken)
		free_block(gpu, unlink_block(&gpu->taken));
	obk_gpu_upload_fini(gpu);
	while (gpu->streams)
		gpu->driver->stream_free(gpu->stream[--gpu->streams]);
}

void obk_gpu_stats(struct obk_gpu *gpu, struct obk_gpu_stats *ret_stats)
{
	pthread_mutex_lock(&gpu->lock);
	*ret_stats = gpu->stats;
	pthread_mutex_unlock(&gpu->lock);
}

enum ob_err obk_gpu_room(struct obk_gpu *gpu, size_t *ret_bytes, struct obk_fault *fault)
{
	size_t have = 0, total = 0;
	enum ob_err err =
		obk_gpu_check(gpu, gpu->driver->mem_info(&have, &total), "cuMemGetInfo", fault);

	if (err)
		return err;
	pthread_mutex_lock(&gpu->lock);
	*ret_bytes = have + gpu->stats.idle;
	pthread_mutex_unlock(&gpu->lock);
	return OB_ERR_NONE;
}

enum ob_err obk_gpu_pinned_new(
	struct obk_gpu *gpu, size_t bytes, void **ret_at, struct obk_fault *fault)
{
	return obk_gpu_check(gpu, gpu->driver->host_alloc(ret_at, bytes, CU_MEMHOSTALLOC_PORTABLE),
		"cuMemHostAlloc", fault);
}

void obk_gpu_pinned_free(struct obk_gpu *gpu, void *at)
{
	if (at)
		gpu->driver->host_free(at);
}

enum ob_err obk_gpu_stream_take(struct obk_gpu *gpu, CUstream *ret_stream, struct obk_fault *fault)
{
	bool have;

	pthread_mutex_lock(&gpu->lock);
	have = gpu->streams > 0;
	if (have)
		*ret_stream = gpu->stream[--gpu->streams];
	pthread_mutex_unlock(&gpu->lock);
	return have
		? OB_ERR_NONE
		: obk_gpu_check(gpu, gpu->driver->stream_new(ret_stream, CU_STREAM_NON_BLOCKING),
			  "cuStreamCreate", fault);
}

void obk_gpu_stream_give(struct obk_gpu *gpu, CUstream stream)
{
	bool full;

	if (!stream)
		return;
	pthread_mutex_lock(&gpu->lock);
	full = gpu->streams == OBK_GPU_MAX_STREAMS || obk_gpu_lost(gpu);
	if (!full)
		gpu->stream[gpu->streams++] = stream;
	pthread_mutex_unlock(&gpu->lock);
	if (full)
		gpu->driver->stream_free(stream);
}

enum ob_err obk_gpu_write(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, const void *from,
	size_t bytes, struct obk_fault *fault)
{
	if (bytes == 0)
		return OB_ERR_NONE;
	pthread_mutex_lock(&gpu->lock);
	gpu->stats.bytes_to += bytes;
	pthread_mutex_unlock(&gpu->lock);
	return obk_gpu_check(
		gpu, gpu->driver->copy_to(to, from, bytes, stream), "cuMemcpyHtoDAsync", fault);
}

enum ob_err obk_gpu_zero(
	struct obk_gpu *gpu, CUstream stream, CUdeviceptr at, size_t bytes, struct obk_fault *fault)
{
	if (bytes == 0)
		return OB_ERR_NONE;
	return obk_gpu_check(
		gpu, gpu->driver->set_bytes(at, 0, bytes, stream), "cuMemsetD8Async", fault);
}

enum ob_err obk_gpu_copy(struct obk_gpu *gpu, CUstream stream, CUdeviceptr to, CUdeviceptr from,
	size_t bytes, struct obk_fault *fault)
{
	if (bytes == 0)
		return OB_ERR_NONE;
	return obk_gpu_check(
		gpu, gpu->driver->copy_within(to, from, bytes, stream), "cuMemcpyDtoDAsync", fault);
}

enum ob_err obk_gpu_read(struct obk_gpu *gpu, CUstream stream, void *to, CUdeviceptr from,
	size_t bytes, struct obk_fault *fault)
{
	enum ob_err err = OB_ERR_NONE;

	if (bytes) {
		pthread_mutex_lock(&gpu->lock);
		gpu->stats.bytes_from += bytes;
		pthread_mutex_unlock(&gpu->lock);
		err = obk_gpu_check(gpu, gpu->driver->copy_from(to, from, bytes, stream),
			"cuMemcpyDtoHAsync", fault);
	}
	return err ? err : obk_gpu_wait(gpu, stream, fault);
}

enum ob_err obk_gpu_wait(struct obk_gpu *gpu, CUstream stream, struct obk_fault *fault)
{
	return obk_gpu_check(gpu, gpu->driver->stream_wait(stream), "the device's work", fault);
}
