/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The process (attach, cuInit, fork) and the devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "protocol/obf_calls.h"
#include "front/environment.h"
#include "front/private.h"
#include "front/visible.h"

#define PCI_TEXT_MAX 32

struct obf_process obf_process;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static CUresult start_result; /* the result of cuInit if the state is FAILED; under start_lock */

static void fork_child(void)
{
	/*
	 * The child has no other threads, and locks that those held stay locked, so no state of an
	 * initialised parent can be used. If the parent had not initialised, or had failed to, the
	 * child can start afresh.
	 */
	int state = atomic_load(&obf_process.state);

	if (state == OBF_STATE_READY || state == OBF_STATE_STARTING)
		atomic_store(&obf_process.state, OBF_STATE_FORKED);
	else if (state == OBF_STATE_FAILED)
		atomic_store(&obf_process.state, OBF_STATE_NEW);
	pthread_mutex_init(&start_lock, NULL);
}

void obf_attach(const struct obf_backend *backend)
{
	if (!obf_process.backend && pthread_atfork(NULL, NULL, fork_child) != 0)
		ob_warn("cannot register a fork handler: out of memory. Forked children of this "
			"process must not call CUDA");
	obf_process.backend = backend;
	ob_log_set_listener(obf_logs_put);
}

const struct obf_backend *obf_attached(void)
{
	return obf_process.backend;
}

bool obf_initialised(void)
{
	int state = atomic_load(&obf_process.state);

	return state == OBF_STATE_READY || state == OBF_STATE_FORKED;
}

int obf_device_count(void)
{
	return atomic_load_explicit(&obf_process.state, memory_order_acquire) == OBF_STATE_READY
		? obf_process.n_devices
		: 0;
}

const struct obf_device *obf_device_at(int ordinal)
{
	return ordinal >= 0 && ordinal < obf_device_count() ? &obf_process.devices[ordinal] : NULL;
}

/* Logs that an entry ended the list: at level info, or as a warning if no device remains. */
static void explain_visible(const struct obf_visible *visible, const char *list, int n)
{
	const char *why = visible->end == OBF_VISIBLE_TWICE
		? "names a device for the second time, which hides all devices"
		: visible->end == OBF_VISIBLE_AMBIGUOUS ? "names more than one device"
							: "names no device";

	if (visible->end == OBF_VISIBLE_WHOLE || visible->end == OBF_VISIBLE_HIDDEN)
		return;
	ob_log(visible->n ? OB_LOG_INFO : OB_LOG_WARN,
		"CUDA_VISIBLE_DEVICES=%.200s: '%.*s' %s; the program sees %d of %d devices. "
		"Name a device by its number, 0 to %d, or by the beginning of its UUID, GPU-...",
		list, (int)ob_min(visible->entry_size, 100), visible->entry, why, visible->n, n,
		n - 1);
}

static void on_exit_begin(void)
{
	atomic_store(&obf_process.exiting, true);
}

static CUresult start(void)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	OB_CLEANUP(ob_freep) struct obf_device *all = NULL;
	struct obf_visible visible;
	CUresult result;
	int n = 0;

	if (!obf_process.backend)
		return CUDA_ERROR_NOT_INITIALIZED;
	obf_environment_read();
	if (obf_visible_none(list)) {
		ob_info("CUDA_VISIBLE_DEVICES=%.200s hides every device", list);
		return CUDA_ERROR_NO_DEVICE;
	}
	all = calloc(OBF_DEVICE_MAX, sizeof *all);
	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obf_process.backend->start(all, &n);
	if (result != CUDA_SUCCESS)
		return result;
	if (n <= 0 || n > (int)OBF_DEVICE_MAX)
		return CUDA_ERROR_NO_DEVICE;
	obf_visible_choose(all, n, getenv("CUDA_DEVICE_ORDER"), list, &visible);
	explain_visible(&visible, list, n);
	if (!visible.n)
		return CUDA_ERROR_NO_DEVICE;
	for (int i = 0; i < visible.n; i++) {
		obf_process.devices[i] = all[visible.ordinal[i]];
		obf_device_reduce(&obf_process.devices[i]);
	}
	obf_process.n_devices = visible.n;
	if (obf_process.backend->visible)
		obf_process.backend->visible(visible.ordinal, visible.n);
	/*
	 * Exit handlers that were registered earlier, such as those that unload the program's code,
	 * run after this one.
	 */
	if (atexit(on_exit_begin) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return obf_contexts_start(visible.n);
}

CUresult obf_cuInit(unsigned flags)
{
	CUresult result = CUDA_SUCCESS;
	int state;

	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	state = atomic_load_explicit(&obf_process.state, memory_order_acquire);
	if (state == OBF_STATE_READY)
		return obf_ready();
	if (state == OBF_STATE_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&start_lock);
	state = atomic_load(&obf_process.state);
	if (state == OBF_STATE_NEW) {
		atomic_store(&obf_process.state, OBF_STATE_STARTING);
		start_result = start();
		/* Release: a thread that sees READY sees the devices. */
		atomic_store_explicit(&obf_process.state,
			start_result == CUDA_SUCCESS ? OBF_STATE_READY : OBF_STATE_FAILED,
			memory_order_release);
	}
	result = start_result;
	pthread_mutex_unlock(&start_lock);
	return result;
}

CUresult obf_cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (!obf_process.backend)
		return CUDA_ERROR_NOT_INITIALIZED;
	*version = obf_process.backend->driver_version;
	return CUDA_SUCCESS;
}

/* The common checks of every query of one device. */
static CUresult device_enter(
	const void *ret, CUdevice ordinal, const struct obf_device **ret_device)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!obf_device_valid(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = &obf_process.devices[ordinal];
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceGetCount(int *count)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = obf_process.n_devices;
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceGet(CUdevice *device, int ordinal)
{
	const struct obf_device *d;
	CUresult result = device_enter(device, ordinal, &d);

	if (result == CUDA_SUCCESS)
		*device = ordinal;
	return result;
}

/* The queries of one value of a device. */
#define GETTER(name, type, value)                             \
	CUresult obf_cuDevice##name(type *ret, CUdevice dev)  \
	{                                                     \
		const struct obf_device *d;                   \
		CUresult result = device_enter(ret, dev, &d); \
                                                              \
		if (result == CUDA_SUCCESS)                   \
			*ret = value;                         \
		return result;                                \
	}

GETTER(GetUuid_v2, CUuuid, d->uuid)
GETTER(TotalMem_v2, size_t, d->total_mem)

CUresult obf_cuDeviceGetName(char *name, int len, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(name, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", d->name);
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceGetLuid(char *luid, unsigned *device_node_mask, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(luid, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	(void)device_node_mask;
	return CUDA_ERROR_NOT_SUPPORTED; /* only Windows has LUIDs */
}

CUresult obf_cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(value, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	if ((int)attr <= 0 || (int)attr >= OBF_DEVICE_ATTR_MAX || !d->attr_known[attr])
		return CUDA_ERROR_INVALID_VALUE;
	*value = d->attr[attr];
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(prop, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	memset(prop, 0, sizeof *prop);
	prop->maxThreadsPerBlock = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
	for (int i = 0; i < 3; i++) {
		prop->maxThreadsDim[i] = obf_device_attr(
			d, (CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i), 0);
		prop->maxGridSize[i] = obf_device_attr(
			d, (CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i), 0);
	}
	prop->sharedMemPerBlock =
		obf_device_attr(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0);
	prop->totalConstantMemory =
		obf_device_attr(d, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 0);
	prop->SIMDWidth = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
	prop->memPitch = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0);
	prop->regsPerBlock = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 0);
	prop->clockRate = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0);
	prop->textureAlign = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0);
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(major && minor ? major : NULL, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	*major = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
	*minor = obf_device_attr(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceGetPCIBusId(char *text, int len, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(text, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(text, (size_t)len, "%04x:%02x:%02x.0",
		(unsigned)obf_device_attr(d, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0),
		(unsigned)obf_device_attr(d, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0),
		(unsigned)obf_device_attr(d, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0));
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceGetByPCIBusId(CUdevice *dev, const char *text)
{
	unsigned domain = 0, bus, device, function = 0;
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!dev || !text || strnlen(text, PCI_TEXT_MAX) >= PCI_TEXT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	/* "domain:bus:device.function", "domain:bus:device" or "bus:device.function" */
	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
		domain = 0;
		if (sscanf(text, "%x:%x.%x", &bus, &device, &function) != 3)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (int i = 0; i < obf_process.n_devices; i++) {
		const struct obf_device *d = &obf_process.devices[i];

		if ((unsigned)obf_device_attr(d, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0) == domain &&
			(unsigned)obf_device_attr(d, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0) == bus &&
			(unsigned)obf_device_attr(d, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0) ==
				device &&
			function == 0) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

static size_t format_bytes(CUarray_format format)
{
	switch ((int)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

CUresult obf_cuDeviceGetTexture1DLinearMaxWidth(
	size_t *width, CUarray_format format, unsigned channels, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(width, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	if (format_bytes(format) == 0 || (channels != 1 && channels != 2 && channels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (!d->attr_known[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH])
		return CUDA_ERROR_NOT_SUPPORTED;
	*width = (size_t)d->attr[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];
	return CUDA_SUCCESS;
}

CUresult obf_cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice dev)
{
	const struct obf_device *d;
	CUresult result = device_enter(supported, dev, &d);

	if (result != CUDA_SUCCESS)
		return result;
	if ((int)type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	*supported = 0;
	return CUDA_SUCCESS;
}

CUresult obf_cuFlushGPUDirectRDMAWrites(
	CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
	CUresult result = obf_ready();

	(void)target;
	(void)scope;
	return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_SUPPORTED;
}
