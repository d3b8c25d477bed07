/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "compute/gpu/inside.h"

#define DEFAULT_PATH   "libcuda.so.1"
#define DEFAULT_SHARED (48 * 1024)

static struct obk_gpu_driver *drivers[OBK_GPU_MAX_DRIVERS];
static unsigned driver_count;
static pthread_mutex_t drivers_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *name_of(const struct obk_gpu_driver *driver, CUresult result)
{
	const char *name = NULL;

	if (!driver->error_name || driver->error_name(result, &name) || !name)
		return "an error without a name";
	return name;
}

static enum ob_err meaning(CUresult result)
{
	switch (result) {
	case CUDA_ERROR_OUT_OF_MEMORY:
		return OB_ERR_NO_MEMORY;
	case CUDA_ERROR_NO_BINARY_FOR_GPU:
	case CUDA_ERROR_INVALID_PTX:
	case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
	case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
	case CUDA_ERROR_JIT_COMPILATION_DISABLED:
		return OB_ERR_IMAGE_NO_ENTRY;
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
		return OB_ERR_CLOSED;
	default:
		return OB_ERR_DRIVER;
	}
}

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

static enum ob_err refuse(const struct obk_gpu_driver *driver, CUresult result, const char *what,
	struct obk_fault *fault)
{
	return obk_fault_set(
		fault, meaning(result), OBK_FAULT_NO_ITEM, "%s: %s", what, name_of(driver, result));
}

static enum ob_err find_calls(struct obk_gpu_driver *driver, void *library, struct obk_fault *fault)
{
	void *symbol;

#define X(member, name, arguments)                                                                \
	symbol = dlsym(library, #name);                                                           \
	if (!symbol)                                                                              \
		return obk_fault_set(fault, OB_ERR_DRIVER, OBK_FAULT_NO_ITEM,                     \
			"%s lacks %s: it is no CUDA driver, or an old one", driver->path, #name); \
	memcpy(&driver->member, &symbol, sizeof(symbol));
	OBK_GPU_CALLS(X)
#undef X
	return OB_ERR_NONE;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	/* FNV-1a, including the terminating zero byte */
	do
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	while (*text++);
	return h;
}

/*
 * NVIDIA's driver and Outboard's client library, which connects to a server, have the same file
 * name. The path of the library and the server's address distinguish them.
 */
static uint64_t link_of(const struct obk_gpu_driver *driver)
{
	const char *server = getenv("OUTBOARD_SERVER");
	Dl_info info;
	void *at;

	memcpy(&at, &driver->init, sizeof(at));
	return hash_text(
		hash_text(0xcbf29ce484222325u,
			dladdr(at, &info) && info.dli_fname ? info.dli_fname : driver->path),
		server ? server : "");
}

static enum ob_err start_driver(struct obk_gpu_driver *driver, struct obk_fault *fault)
{
	void *library = dlopen(driver->path, RTLD_NOW | RTLD_LOCAL);
	int count = 0;
	enum ob_err err;
	CUresult result;

	if (!library)
		return obk_fault_set(
			fault, OB_ERR_DRIVER, OBK_FAULT_NO_ITEM, "no CUDA driver: %s", dlerror());
	/* The library is never closed, because drivers have threads of their own. */
	err = find_calls(driver, library, fault);
	if (err)
		return err;
	result = driver->init(0);
	if (result && result != CUDA_ERROR_NO_DEVICE)
		return refuse(driver, result, "cuInit", fault);
	if (!result)
		result = driver->device_count(&count);
	if (result && result != CUDA_ERROR_NO_DEVICE)
		return refuse(driver, result, "cuDeviceGetCount", fault);
	driver->devices = count < 0           ? 0
		: count > OBK_GPU_MAX_DEVICES ? OBK_GPU_MAX_DEVICES
					      : (unsigned)count;
	driver->driver_version(&driver->version);
	driver->link = link_of(driver);
	return OB_ERR_NONE;
}

static enum ob_err open_locked(
	const char *path, const struct obk_gpu_driver **ret_driver, struct obk_fault *fault)
{
	struct obk_gpu_driver *driver;
	enum ob_err err;

	for (unsigned i = 0; i < driver_count; i++) {
		if (!strcmp(drivers[i]->path, path)) {
			*ret_driver = drivers[i];
			return OB_ERR_NONE;
		}
	}
	if (driver_count == OBK_GPU_MAX_DRIVERS)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"%d driver libraries are open, as many as may be", OBK_GPU_MAX_DRIVERS);
	driver = calloc(1, sizeof(*driver));
	if (!driver)
		return obk_fault_set(fault, OB_ERR_NO_MEMORY, OBK_FAULT_NO_ITEM,
			"no memory for a driver's table");
	strcpy(driver->path, path);
	err = start_driver(driver, fault);
	if (err) {
		free(driver);
		return err;
	}
	drivers[driver_count++] = driver;
	*ret_driver = driver;
	return OB_ERR_NONE;
}

enum ob_err obk_gpu_driver_open(
	const char *path, const struct obk_gpu_driver **ret_driver, struct obk_fault *fault)
{
	enum ob_err err;

	if (!path)
		path = DEFAULT_PATH;
	if (!path[0] || strlen(path) >= OBK_GPU_NAME_BYTES)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, OBK_FAULT_NO_ITEM,
			"the driver's path is empty or longer than %d bytes",
			OBK_GPU_NAME_BYTES - 1);
	pthread_mutex_lock(&drivers_lock);
	err = open_locked(path, ret_driver, fault);
	pthread_mutex_unlock(&drivers_lock);
	return err;
}

static unsigned attribute(
	const struct obk_gpu_driver *driver, CUdevice device, CUdevice_attribute which)
{
	int value = 0;

	return driver->device_attribute(&value, which, device) || value < 0 ? 0 : (unsigned)value;
}

static enum ob_err find_device(const struct obk_gpu_driver *driver, unsigned ordinal,
	CUdevice *ret_device, struct obk_fault *fault)
{
	CUresult result;

	if (ordinal >= driver->devices)
		return obk_fault_set(fault, OB_ERR_NOT_FOUND, OBK_FAULT_NO_ITEM,
			"there is no GPU %u: the driver %s knows %u", ordinal, driver->path,
			driver->devices);
	result = driver->device_get(ret_device, (int)ordinal);
	return result ? refuse(driver, result, "cuDeviceGet", fault) : OB_ERR_NONE;
}

enum ob_err obk_gpu_describe(const struct obk_gpu_driver *driver, unsigned ordinal,
	struct obk_gpu_info *ret_info, struct obk_fault *fault)
{
	struct obk_gpu_info info = { .ordinal = ordinal };
	CUdevice device;
	enum ob_err err = find_device(driver, ordinal, &device, fault);
	CUresult result;

	if (err)
		return err;
	result = driver->device_name(info.name, (int)sizeof(info.name) - 1, device);
	if (result)
		return refuse(driver, result, "cuDeviceGetName", fault);
	result = driver->device_memory(&info.memory, device);
	if (result)
		return refuse(driver, result, "cuDeviceTotalMem", fault);
	info.major = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	info.minor = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	info.processors = attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	info.clock_khz = attribute(driver, device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
	info.cache = attribute(driver, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
	info.shared =
		attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	if (info.shared < DEFAULT_SHARED)
		info.shared = DEFAULT_SHARED;
	if (info.processors == 0)
		info.processors = 1;
	*ret_info = info;
	return OB_ERR_NONE;
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
	err = find_device(driver, ordinal, &gpu->device, fault);
	if (!err)
		err = obk_gpu_describe(driver, ordinal, &gpu->info, fault);
	if (!err) {
		result = driver->context_retain(&gpu->context, gpu->device);
		if (result)
			err = refuse(driver, result, "cuDevicePrimaryCtxRetain", fault);
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
	if (!result)
		return OB_ERR_NONE;
	if (is_fatal(result))
		atomic_store_explicit(&gpu->lost, true, memory_order_relaxed);
	return obk_fault_set(fault, meaning(result), OBK_FAULT_NO_ITEM, "GPU %u (%s), %s: %s",
		gpu->info.ordinal, gpu->info.name, what, name_of(gpu->driver, result));
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

	if (shared_bytes > DEFAULT_SHARED) {
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
