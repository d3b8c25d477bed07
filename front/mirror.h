/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_mirror: device memory that stands for a range of pinned host memory which kernels access:
 * memory that was registered, or allocated without DEVICEMAP. It has other addresses than the host
 * memory, so a parameter of a kernel that points to such host memory is replaced.
 *
 * Both sides are compared with the bytes that they last had in common. Before a kernel, the pages
 * that the program has changed are uploaded; after a synchronisation, the bytes that the device has
 * changed are written to the host memory. A mirror is made when a device pointer is needed, because
 * both comparisons look at every byte. One lock; any thread.
 */
#ifndef OBF_MIRROR_H
#define OBF_MIRROR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "front/front.h"

struct obf_stream;

extern _Atomic unsigned obf_mirrors; /* how many there are */
/* How many have ended: addresses that were put into parameters may be out of date. */
extern _Atomic unsigned obf_mirror_ends;

/*
 * The device address of host memory in a range of the map of kind OBF_MEM_HOST. ctx is current. The
 * mirror is made if there is none.
 */
CUresult obf_mirror_get(
	struct obf_ctx *ctx, const struct obf_mem *mem, uint64_t addr, uint64_t *ret_device);
/* The host memory that begins at base is freed or unregistered, after its context has settled. */
void obf_mirror_end(uint64_t base);

#define OBF_MIRROR_PARAM_MAX 64u /* bytes */

/*
 * Whether a parameter of this size is searched for pointers to pinned memory. Large ones are not:
 * programs fill arrays of pointers in part, and the rest holds old values of their stack.
 */
static inline bool obf_mirror_searches(uint32_t size)
{
	return size >= sizeof(uint64_t) && size <= OBF_MIRROR_PARAM_MAX;
}

/* Whether one of the words of a parameter may point to pinned memory. */
static inline bool obf_mirror_word(const void *param, uint32_t size)
{
	const uint64_t low = obf_pinned_bounds.low, span = obf_pinned_bounds.high - low;
	uint64_t word;

	for (uint32_t at = 0; at + sizeof word <= size; at += sizeof word) {
		memcpy(&word, (const uint8_t *)param + at, sizeof word);
		if (word - low < span)
			return true;
	}
	return false;
}

/*
 * Whether a launch needs obf_mirrors_launch: there are mirrors, or one of the parameters, which are not
 * packed, may point to pinned memory. Hot path of programs with pinned memory.
 */
static inline bool obf_mirrors_concern(const struct obf_func *func, void *const *params)
{
	if (ob_unlikely(atomic_load_explicit(&obf_mirrors, memory_order_relaxed) > 0 || !params))
		return true;
	for (uint32_t i = 0; i < func->n_params; i++)
		if (obf_mirror_searches(func->params[i].size) &&
			ob_unlikely(!params[i] || obf_mirror_word(params[i], func->params[i].size)))
			return true;
	return false;
}

/*
 * Replaces pointers to pinned memory in the parameters of a kernel of the context. Returns whether a
 * parameter points to a mirror then.
 */
bool obf_mirrors_replace(struct obf_ctx *ctx, const struct obf_func *func, void *packed);
/*
 * Before a kernel: replaces pointers to pinned memory in its packed parameters by device
 * addresses, and uploads what the program has changed.
 */
CUresult obf_mirrors_launch(struct obf_stream *stream, const struct obf_func *func, void *packed);
/* The same before kernels whose parameters are replaced already; used: one points to a mirror. */
CUresult obf_mirrors_launch_replaced(struct obf_stream *stream, bool used);

/*
 * Before a copy in the stream reads host memory that begins at `host`: it gets what earlier kernels
 * have written. Waits for the stream if kernels may have written there.
 */
CUresult obf_mirrors_fetch(struct obf_stream *stream, uint64_t host);

static inline CUresult obf_mirrors_copy(struct obf_stream *stream, bool src_device, uint64_t src)
{
	return ob_likely(src_device || !atomic_load_explicit(&obf_mirrors, memory_order_relaxed))
		? CUDA_SUCCESS
		: obf_mirrors_fetch(stream, src);
}

/*
 * Around a host function of a stream of the context, in its thread, if there are mirrors: it gets what
 * earlier kernels have written, and the kernels behind it get what it has written. Kernels that
 * have got a pointer from device memory are not considered.
 */
CUresult obf_mirrors_function_begins(const struct obf_ctx *ctx);
CUresult obf_mirrors_function_ends(const struct obf_ctx *ctx);

/* After a copy that does not block has been put: before a kernel looks at what it writes there. */
CUresult obf_mirrors_written(struct obf_stream *stream, uint64_t host);

static inline CUresult obf_mirrors_copied(struct obf_stream *stream, bool dst_device, uint64_t dst)
{
	return ob_likely(dst_device || !atomic_load_explicit(&obf_mirrors, memory_order_relaxed))
		? CUDA_SUCCESS
		: obf_mirrors_written(stream, dst);
}

#endif
