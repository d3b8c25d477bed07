/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/start.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/check.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/text.h"
#include "client-shim/session/cache.h"
#include "client-shim/cuda/announce.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/session/free_memory.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/link.h"
#include "client-shim/session/log.h"
#include "client-shim/cuda/loaded.h"
#include "client-shim/cuda/memory.h"
#include "client-shim/session/session.h"
#include "client-shim/cuda/share.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/session/stats.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/session/timeline.h"
#include "client-shim/session/timeline_server.h"
#include "client-shim/session/timeline_write.h"
#include "client-shim/session/times.h"
#include "client-shim/session/trust.h"
#include "client-shim/cuda/vmm.h"
#include "protocol/obc_calls.h"

static _Atomic bool stopped;

/* Calls that the client answers itself, with less than the server's device can do. */
static const struct {
	CUdevice_attribute attr;
	int32_t value;
} overrides[] = {
	{ CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0 },
	{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
};

_Static_assert(OBP_ATTR_MAX == OBF_DEVICE_ATTR_MAX, "one list of attributes");

/*
 * OUTBOARD_SOFT_CC in the program's environment: the compute capability that the server's software
 * device has for this program, at most its own. Code is chosen by it on this side, and the device
 * runs PTX for any capability.
 */
static void capability_lower(struct obf_device *device)
{
	int32_t *major = &device->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
	int32_t *minor = &device->attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
	const char *text = getenv("OUTBOARD_SOFT_CC");
	unsigned wanted;

	if (!device->ptx_only || !text || !*text)
		return;
	if (!ob_text_parse_capability(text, &wanted)) {
		ob_error("OUTBOARD_SOFT_CC=%s is not a compute capability from 5.0 to 13.0, such "
			 "as 9.0: the server's is used",
			text);
	} else if (wanted > (unsigned)(*major * 10 + *minor)) {
		ob_error("OUTBOARD_SOFT_CC=%s is more than the %d.%d of the server's software "
			 "device, which is used: set the variable for outboard-server",
			text, *major, *minor);
	} else {
		*major = (int32_t)(wanted / 10);
		*minor = (int32_t)(wanted % 10);
	}
}

static void device_fill(const struct obp_device *from, struct obf_device *to)
{
	memset(to, 0, sizeof *to);
	memcpy(to->name, from->name, ob_min(sizeof to->name, sizeof from->name));
	to->name[sizeof to->name - 1] = 0;
	memcpy(to->uuid.bytes, from->uuid, sizeof to->uuid.bytes);
	to->total_mem = from->total_mem;
	to->ptx_only = from->ptx_only;
	obc_device_soft |= from->ptx_only;
	memcpy(to->attr, from->attr, sizeof to->attr);
	memcpy(to->attr_known, from->attr_known, sizeof to->attr_known);
	capability_lower(to);
	for (size_t i = 0; i < ob_count(overrides); i++) {
		to->attr[overrides[i].attr] = overrides[i].value;
		to->attr_known[overrides[i].attr] = true;
	}
	to->attr[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = obc_vmm_offered() &&
		obc_lines_known >= OBP_LINE_cuMemGetAllocationPropertiesFromHandle;
	to->attr_known[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = true;
}

CUresult obc_start(struct obf_device *ret_devices, int *ret_count)
{
	const struct obp_welcome *welcome;
	enum ob_err err;
	OBC_WAITS();

	/*
	 * The environment of an unprivileged user must not choose the server of a privileged
	 * program.
	 */
	if (getauxval(AT_SECURE)) {
		ob_error("this program is set-user-ID or privileged, and its environment must not "
			 "choose a server: it cannot use a remote GPU. Run it without privileges");
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	obc_session_on_callback(obc_hostfunc_run);
	obc_log_on_thread_exit(obf_streams_thread_exit);
	obc_timeline_start();
	obc_announce_start();
	err = obc_session_start(&welcome);
	if (err)
		return ob_err_to_cuda(err);
	if (welcome->driver_version < OBC_DRIVER_VERSION)
		ob_info("the server's driver supports CUDA %d.%d; newer calls and PTX will fail",
			welcome->driver_version / 1000, welcome->driver_version % 1000 / 10);
	obc_lines_known = welcome->opcodes ? welcome->opcodes : OBP_LINES_FIRST;
	obc_times_offered(welcome->times);
	obc_timeline_server_start();
	obc_free_memory_offered(welcome);
	obc_cache_offered(welcome->cache);
	obc_cache_recall(obc_link_recalled());
	obc_trust_start(welcome);
	if (!welcome->n_devices)
		return CUDA_ERROR_NO_DEVICE;
	if (!obc_memory_start(welcome))
		return CUDA_ERROR_OUT_OF_MEMORY;
	obc_share_start(welcome);
	if (ob_opt_on(OB_OPT_RELEASE))
		obc_loaded_release();
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		device_fill(&welcome->devices[i], &ret_devices[i]);
	*ret_count = (int)welcome->n_devices;
	return CUDA_SUCCESS;
}

CUresult obc_alive(void)
{
	if (ob_unlikely(atomic_load_explicit(&stopped, memory_order_relaxed)))
		return CUDA_ERROR_DEINITIALIZED;
	return obc_log_alive();
}

void obc_stop(void)
{
	if (atomic_exchange(&stopped, true) || !obc_session_started())
		return;
	obc_timeline_server_end();
	obc_session_stop();
	obc_timeline_write();
	obc_stats_print();
}

void obc_forked(void)
{
	/*
	 * The session belongs to the parent: the child sends nothing, prints no report and says no
	 * goodbye.
	 */
	obc_inside = 0;
	obc_timeline_forget();
	obc_timeline_server_forget();
	obc_shared_forget();
	if (obc_session_started())
		obc_session_forget();
}
