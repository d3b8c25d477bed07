/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/gpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define DEFAULT_PATH "libcuda.so.1"

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

enum ob_err obk_gpu_driver_refuse(const struct obk_gpu_driver *driver, CUresult result,
	const char *what, struct obk_fault *fault)
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

/* The terminating zero byte is part of the hash. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	return ob_hash(hash, text, strlen(text) + 1);
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
		hash_text(OB_HASH_START,
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
		return obk_gpu_driver_refuse(driver, result, "cuInit", fault);
	if (!result)
		result = driver->device_count(&count);
	if (result && result != CUDA_ERROR_NO_DEVICE)
		return obk_gpu_driver_refuse(driver, result, "cuDeviceGetCount", fault);
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

enum ob_err obk_gpu_device_find(const struct obk_gpu_driver *driver, unsigned ordinal,
	CUdevice *ret_device, struct obk_fault *fault)
{
	CUresult result;

	if (ordinal >= driver->devices)
		return obk_fault_set(fault, OB_ERR_NOT_FOUND, OBK_FAULT_NO_ITEM,
			"there is no GPU %u: the driver %s knows %u", ordinal, driver->path,
			driver->devices);
	result = driver->device_get(ret_device, (int)ordinal);
	return result ? obk_gpu_driver_refuse(driver, result, "cuDeviceGet", fault) : OB_ERR_NONE;
}

enum ob_err obk_gpu_describe(const struct obk_gpu_driver *driver, unsigned ordinal,
	struct obk_gpu_info *ret_info, struct obk_fault *fault)
{
	struct obk_gpu_info info = { .ordinal = ordinal };
	CUdevice device;
	enum ob_err err = obk_gpu_device_find(driver, ordinal, &device, fault);
	CUresult result;

	if (err)
		return err;
	result = driver->device_name(info.name, (int)sizeof(info.name) - 1, device);
	if (result)
		return obk_gpu_driver_refuse(driver, result, "cuDeviceGetName", fault);
	result = driver->device_memory(&info.memory, device);
	if (result)
		return obk_gpu_driver_refuse(driver, result, "cuDeviceTotalMem", fault);
	info.major = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	info.minor = attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	info.processors = attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	info.clock_khz = attribute(driver, device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
	info.cache = attribute(driver, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
	info.shared =
		attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	if (info.shared < OBK_GPU_DEFAULT_SHARED)
		info.shared = OBK_GPU_DEFAULT_SHARED;
	if (info.processors == 0)
		info.processors = 1;
	*ret_info = info;
	return OB_ERR_NONE;
}
