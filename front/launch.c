/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* CUDA's checks and conversions at a launch. Hot path: no lock, no allocation. */
#include <string.h>

#include "base/log.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define CLUSTER_PORTABLE 8u
#define CLUSTER_MAX      16u
#define ATTRS_MAX        64u /* in one configuration */

static bool is_one_block(const uint32_t cluster[3])
{
	return cluster[0] <= 1 && cluster[1] <= 1 && cluster[2] <= 1;
}

static __attribute__((noinline)) CUresult check_cluster(
	const struct obf_function *function, const struct obf_launch *launch)
{
	const struct obf_func_attrs *attrs = &function->pub.attrs;
	uint64_t size = 1;

	for (int i = 0; i < 3; i++) {
		/* A launch that names no cluster has the kernel's. */
		uint32_t side = launch->cluster[0] ? ob_max(launch->cluster[i], 1u)
						   : ob_max((uint32_t)attrs->cluster[i], 1u);

		if (launch->grid[i] % side != 0)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		if (attrs->cluster[i] > 0 && (uint32_t)attrs->cluster[i] != side)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		size *= side;
	}
	if (size > 1 && !obf_device_attr(function->device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return size <= (attrs->non_portable_cluster ? CLUSTER_MAX : CLUSTER_PORTABLE)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* Every block of a cooperative grid must be resident at once. */
static __attribute__((noinline)) CUresult check_cooperative(
	struct obf_function *function, const struct obf_launch *launch, uint32_t threads)
{
	uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2], resident;
	CUresult result = obf_function_exact(function);

	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_device_attr(function->device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0))
		return CUDA_ERROR_NOT_SUPPORTED;
	resident = (uint64_t)obf_occupancy_blocks(function, threads, launch->dynamic_shared) *
		(uint64_t)obf_device_attr(
			function->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
	return blocks <= resident ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

/*
 * More threads than block_max, which is 0 until the function is loaded. As in CUDA, functions are
 * loaded lazily, and load errors are returned by the first launch.
 */
static __attribute__((noinline)) CUresult block_too_large(
	struct obf_function *function, uint64_t threads)
{
	CUresult result = CUDA_SUCCESS;

	if (!atomic_load_explicit(&function->pub.block_max, memory_order_relaxed))
		result = obf_function_load(function);
	if (result == CUDA_SUCCESS &&
		threads > atomic_load_explicit(&function->pub.block_max, memory_order_relaxed))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult obf_launch_check(
	const struct obf_ctx *ctx, const struct obf_func *func, const struct obf_launch *launch)
{
	const struct obf_function *function = obf_function_of(func);
	/* the backend sets the attributes that every device has */
	const int32_t *limit = function->device->attr;
	const struct obi_kernel *kernel = function->kernel;
	uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];

	(void)ctx;
	for (int i = 0; i < 3; i++) {
		if (ob_unlikely(launch->grid[i] == 0 ||
			    launch->grid[i] >
				    (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i]))
			return CUDA_ERROR_INVALID_VALUE;
		if (ob_unlikely(launch->block[i] == 0 ||
			    launch->block[i] >
				    (uint32_t)limit[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i]))
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (ob_unlikely(threads > (uint64_t)limit[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]))
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_unlikely(threads > atomic_load_explicit(&func->block_max, memory_order_relaxed))) {
		CUresult result = block_too_large(obf_function_of(func), threads);

		if (result != CUDA_SUCCESS)
			return result;
	}
	if (ob_unlikely(kernel->reqntid[0] != 0) &&
		(kernel->reqntid[0] != launch->block[0] ||
			ob_max(kernel->reqntid[1], 1u) != launch->block[1] ||
			ob_max(kernel->reqntid[2], 1u) != launch->block[2]))
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_unlikely(launch->dynamic_shared > (uint32_t)func->attrs.max_dynamic_shared))
		return CUDA_ERROR_INVALID_VALUE;
	if (ob_unlikely(!is_one_block(launch->cluster) || func->attrs.cluster[0] > 0)) {
		CUresult result = check_cluster(function, launch);

		if (result != CUDA_SUCCESS)
			return result;
	}
	if (ob_unlikely(launch->cooperative))
		return check_cooperative(obf_function_of(func), launch, (uint32_t)threads);
	return CUDA_SUCCESS;
}

/*
 * Handles one attribute of a configuration. Hints affect only speed and are ignored. Unknown
 * attributes that would change the result are refused.
 */
static CUresult attr_apply(const CUlaunchAttribute *attr, struct obf_launch *ret)
{
	switch ((int)attr->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		ret->cooperative = attr->value.cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		ret->cluster[0] = attr->value.clusterDim.x;
		ret->cluster[1] = attr->value.clusterDim.y;
		ret->cluster[2] = attr->value.clusterDim.z;
		return ret->cluster[0] && ret->cluster[1] && ret->cluster[2]
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_CLUSTER_SIZE;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		ret->priority = attr->value.priority;
		ret->has_priority = true;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	/* allows overlap but does not require it */
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return obf_absent("cuLaunchKernelEx: PROGRAMMATIC_EVENT",
			"events that a running kernel records are not forwarded");
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return obf_absent("cuLaunchKernelEx: LAUNCH_COMPLETION_EVENT",
			"events that a running kernel records are not forwarded");
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return obf_absent("cuLaunchKernelEx: DEVICE_UPDATABLE_KERNEL_NODE",
			"kernels cannot change graphs here: change them from the host");
	default:
		ob_warn("cuLaunchKernelEx: attribute %d is not supported: the launch fails",
			(int)attr->id);
		/* As CUDA returns for an attribute that a later version has. */
		return attr->id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
			? CUDA_ERROR_INVALID_VALUE
			: CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult obf_launch_from_config(const CUlaunchConfig *config, struct obf_launch *ret)
{
	if (!config || config->numAttrs > ATTRS_MAX || (config->numAttrs > 0 && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct obf_launch){
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.dynamic_shared = config->sharedMemBytes,
		.cluster = { 1, 1, 1 },
	};
	for (unsigned i = 0; i < config->numAttrs; i++) {
		CUresult result = attr_apply(&config->attrs[i], ret);

		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

static __attribute__((noinline)) CUresult pack_extra(
	const struct obf_func *func, void **extra, void *dst)
{
	const void *buffer = NULL;
	size_t size = 0;
	bool has_size = false;

	/*
	 * Pairs of name and value: at most one pair for each of the two names, then the end mark.
	 */
	for (unsigned i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (i > 2)
			return CUDA_ERROR_INVALID_VALUE;
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
			buffer = extra[i + 1];
		} else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1]) {
			size = *(const size_t *)extra[i + 1];
			has_size = true;
		} else {
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	if (func->param_bytes == 0)
		return CUDA_SUCCESS;
	/*
	 * A buffer may be longer than the parameters (padding at the end of a struct). It may also be
	 * shorter: NCCL's kernels have 4096 bytes of parameters, of which it passes what it uses.
	 */
	if (!buffer || !has_size || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	size = ob_min(size, (size_t)func->param_bytes);
	memcpy(dst, buffer, size);
	memset((uint8_t *)dst + size, 0, func->param_bytes - size);
	return CUDA_SUCCESS;
}

CUresult obf_launch_pack(const struct obf_func *func, void **params, void **extra, void *dst)
{
	const struct obi_param *layout = func->params;
	uint8_t *out = dst;

	if (extra)
		return params ? CUDA_ERROR_INVALID_VALUE : pack_extra(func, extra, dst);
	if (func->n_params == 0)
		return CUDA_SUCCESS;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	/* Gaps are cleared, so that no old bytes of the buffer are sent to the server. */
	if (!obf_function_of(func)->dense)
		memset(out, 0, func->param_bytes);
	for (uint32_t i = 0; i < func->n_params; i++) {
		if (ob_unlikely(!params[i]))
			return CUDA_ERROR_INVALID_VALUE;
		switch (layout[i].size) {
		case 8:
			memcpy(out + layout[i].offset, params[i], 8);
			break;
		case 4:
			memcpy(out + layout[i].offset, params[i], 4);
			break;
		default:
			memcpy(out + layout[i].offset, params[i], layout[i].size);
		}
	}
	return CUDA_SUCCESS;
}

CUresult obf_launch_wait(CUstream stream)
{
	return obf_cuStreamSynchronize(stream);
}

void obf_launch_look(
	const struct obf_stream *stream, const struct obf_func *func, void *const *params)
{
	obf_process.backend->params_look(stream, func, params);
}
