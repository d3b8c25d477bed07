/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdio.h>
#include <stdlib.h>

#include "compute/gpu/gpu_inside.h"

/* After these errors every call on the context fails. */
static bool is_fatal(CUresult result)
{
	switch (result) {
	case CUDA_ERROR_DEINITIALIZED:
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_MPS_CLIENT_TERMINATED:
		return true;
	default:
		return false;
	}
}

enum ob_err obk_gpu_open(const struct obk_gpu_driver *driver, unsigned ordinal,
	struct obk_gpu **ret_gpu, struct obk_fault *fault)
{
	struct obk_gpu *gpu = calloc(1, sizeof(*gpu));
	enum ob_err err;
	CUresult result;

	if (!gpu)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for a device's table");
	gpu->driver = driver;
	err = obk_gpu_device_find(driver, ordinal, &gpu->device, fault);
	if (!err)
		err = obk_gpu_describe(driver, ordinal, &gpu->info, fault);
	if (!err) {
		result = driver->context_retain(&gpu->context, gpu->device);
		if (result)
			err = obk_gpu_driver_refuse(
				driver, result, "cuDevicePrimaryCtxRetain", fault);
	}
	if (err) {
		free(gpu);
		return err;
	}
	pthread_mutex_init(&gpu->lock, NULL);
	*ret_gpu = gpu;
	return OB_ERR_NONE;
}

void obk_gpu_close(struct obk_gpu *gpu)
{
	bool entered;

	if (!gpu)
		return;
	entered = obk_gpu_enter(gpu, NULL) == OB_ERR_NONE;
	if (entered) {
		obk_gpu_memory_fini(gpu);
		for (unsigned i = 0; i < gpu->images; i++)
			gpu->driver->module_unload(gpu->image[i].module);
		obk_gpu_leave(gpu);
	}
	gpu->driver->context_release(gpu->device);
	pthread_mutex_destroy(&gpu->lock);
	free(gpu);
}

const struct obk_gpu_info *obk_gpu_info(const struct obk_gpu *gpu)
{
	return &gpu->info;
}

const struct obk_gpu_driver *obk_gpu_driver(const struct obk_gpu *gpu)
{
	return gpu->driver;
}

bool obk_gpu_lost(const struct obk_gpu *gpu)
{
	return atomic_load_explicit(&gpu->lost, memory_order_relaxed);
}

enum ob_err obk_gpu_enter(struct obk_gpu *gpu, struct obk_fault *fault)
{
	return obk_gpu_check(
		gpu, gpu->driver->context_push(gpu->context), "cuCtxPushCurrent", fault);
}

void obk_gpu_leave(struct obk_gpu *gpu)
{
	CUcontext context;

	gpu->driver->context_pop(&context);
}

enum ob_err obk_gpu_check(
	struct obk_gpu *gpu, CUresult result, const char *what, struct obk_fault *fault)
{
	char call[2 * OBK_GPU_NAME_BYTES];

	if (!result)
		return OB_ERR_NONE;
	if (is_fatal(result))
		atomic_store_explicit(&gpu->lost, true, memory_order_relaxed);
	snprintf(call, sizeof(call), "GPU %u (%s), %s", gpu->info.ordinal, gpu->info.name, what);
	return obk_gpu_driver_refuse(gpu->driver, result, call, fault);
}

/* A module that is not recorded in gpu is unloaded again. */
static enum ob_err load_locked(
	struct obk_gpu *gpu, const struct obk_gpu_image *image, struct obk_fault *fault)
{
	struct obk_gpu_loaded *loaded = &gpu->image[gpu->images];
	enum ob_err err;

	if (!obk_gpu_image_built(image))
		return obk_fault_set(fault, OB_ERR_UNSUPPORTED, OBK_FAULT_NO_ITEM,
			"this build has no GPU code for %s: build with NVIDIA's CUDA toolkit "
			"(nvcc), or use the CPU",
			image->name);
	if (gpu->images == OBK_GPU_MAX_IMAGES || image->kernels > OBK_GPU_MAX_KERNELS)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"more than %d images, or %d kernels in one", OBK_GPU_MAX_IMAGES,
			OBK_GPU_MAX_KERNELS);
	err = obk_gpu_check(gpu, gpu->driver->module_load(&loaded->module, image->start),
		"cuModuleLoadData", fault);
	if (err)
		return err;
	for (unsigned i = 0; i < image->kernels && !err; i++)
		err = obk_gpu_check(gpu,
			gpu->driver->module_function(
				&loaded->functions[i], loaded->module, image->names[i]),
			image->names[i], fault);
	if (err) {
		gpu->driver->module_unload(loaded->module);
		return err;
	}
	loaded->image = image;
	gpu->images++;
	return OB_ERR_NONE;
}

enum ob_err obk_gpu_load(struct obk_gpu *gpu, const struct obk_gpu_image *image,
	const CUfunction **ret_functions, struct obk_fault *fault)
{
	enum ob_err err = OB_ERR_NONE;
	unsigned i = 0;

	pthread_mutex_lock(&gpu->lock);
	while (i < gpu->images && gpu->image[i].image != image)
		i++;
	if (i == gpu->images)
		err = load_locked(gpu, image, fault);
	if (!err)
		*ret_functions = gpu->image[i].functions;
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

enum ob_err obk_gpu_launch(struct obk_gpu *gpu, CUstream stream, CUfunction function,
	unsigned blocks_x, unsigned blocks_y, unsigned threads, unsigned shared_bytes, void **args,
	struct obk_fault *fault)
{
	enum ob_err err;

	if (shared_bytes > OBK_GPU_DEFAULT_SHARED) {
		err = obk_gpu_check(gpu,
			gpu->driver->function_set_attribute(function,
				CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes),
			"cuFuncSetAttribute", fault);
		if (err)
			return err;
	}
	pthread_mutex_lock(&gpu->lock);
	gpu->stats.launches++;
	pthread_mutex_unlock(&gpu->lock);
	return obk_gpu_check(gpu,
		gpu->driver->launch(function, blocks_x, blocks_y, 1, threads, 1, 1, shared_bytes,
			stream, args, NULL),
		"cuLaunchKernel", fault);
}
