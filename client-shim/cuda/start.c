/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/start.h"

#include <stdatomic.h>
#include <stdio.h>
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
#include "client-shim/cuda/route.h"
#include "client-shim/session/server.h"
#include "client-shim/session/pool.h"
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
#include "loadbalancer/together.h"
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

/*
 * Programs tell devices apart by PCI address and by UUID. Two servers may have a device at the same
 * address, and two servers of one machine may have the same device, or a software device that both
 * know by the machine's name. It is listed twice, because each has memory of its own.
 */
static void device_distinguish(struct obf_device *device, const struct obf_device *before, int n)
{
	uint32_t server = obc_server_number();
	int32_t *domain = &device->attr[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID];

	if (!server)
		return;
	*domain = (int32_t)obl_together_domain((uint32_t)*domain, server);
	device->attr_known[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = true;
	for (int i = 0; i < n; i++)
		if (memcmp(before[i].uuid.bytes, device->uuid.bytes, sizeof device->uuid.bytes) ==
			0) {
			obl_together_uuid((uint8_t *)device->uuid.bytes, server);
			return;
		}
}

/* The session with the current server has started. */
static CUresult server_begin(const struct obp_welcome *welcome)
{
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
	if (obc_servers_count() > 1 && !welcome->vmm) {
		ob_error("%s cannot be used together with other servers: its driver does not map "
			 "memory at addresses that the client chooses, so they could meet another "
			 "server's",
			obc_server_name());
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	obc_server_set_range(welcome->range.base, welcome->range.size);
	if (!obc_memory_start(welcome))
		return CUDA_ERROR_OUT_OF_MEMORY;
	obc_share_start(welcome);
	return CUDA_SUCCESS;
}

/* Finds the servers. After an error one line has been logged. */
static enum ob_err servers_find(struct obl_together *ret)
{
	struct ob_cause cause;
	const char *text;
	enum ob_err err = obc_pool_servers(OBC_DEFAULT_SERVER, &text);

	if (err)
		return err;
	err = obl_together_parse(text, ret, &cause);
	if (err)
		ob_error("OUTBOARD_SERVER='%.200s': %s", text, cause.text);
	return err;
}

/* The reservation of the environment has ended: starts with the servers of another one. */
static enum ob_err session_start_again(
	struct obl_together *together, const struct obp_welcome **ret_welcome)
{
	struct obl_together others;
	enum ob_err err = servers_find(&others);

	if (err)
		return err;
	obl_together_fini(together);
	*together = others;
	if (!obc_servers_change(others.n)) {
		ob_error("the pool has granted %u servers, which this program cannot use now: "
			 "start it again",
			others.n);
		return OB_ERR_REFUSED;
	}
	return obc_session_start(others.list[0], ret_welcome);
}

/* Starts the session with the current server. */
static CUresult server_start(
	struct obl_together *together, struct obf_device *ret_devices, int *count)
{
	const struct obp_welcome *welcome;
	CUresult result;
	enum ob_err err;

	obc_timeline_start();
	err = obc_session_start(together->list[obc_server_number()], &welcome);
	if (err == OB_ERR_REFUSED && obc_pool_wanted())
		err = session_start_again(together, &welcome);
	if (err)
		return ob_err_to_cuda(err);
	result = server_begin(welcome);
	if (result != CUDA_SUCCESS)
		return result;
	if ((uint32_t)*count + welcome->n_devices > OBF_DEVICE_MAX) {
		ob_error("the servers of OUTBOARD_SERVER have more than %d devices together: name "
			 "fewer servers",
			OBF_DEVICE_MAX);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		device_fill(&welcome->devices[i], &ret_devices[*count]);
		device_distinguish(&ret_devices[*count], ret_devices, *count);
		obc_devices_add(i);
		++*count;
	}
	return CUDA_SUCCESS;
}

/* Two lists may lead to one server. */
static bool server_again(void)
{
	char name[OBT_URL_MAX + 1];
	uint32_t here = obc_server_number();

	snprintf(name, sizeof name, "%s", obc_server_name());
	for (uint32_t i = 0; i < here; i++) {
		OBC_AT_SERVER(i);
		if (strcmp(obc_server_name(), name) == 0) {
			ob_error("OUTBOARD_SERVER: %s was chosen twice: a program has one session "
				 "with a server. Name the servers without lists",
				name);
			return true;
		}
	}
	return false;
}

CUresult obc_alive(void)
{
	if (ob_unlikely(atomic_load_explicit(&stopped, memory_order_relaxed)))
		return CUDA_ERROR_DEINITIALIZED;
	return obc_log_alive();
}

/* A call that concerns no context fails when all servers are lost. */
static CUresult any_alive(void)
{
	CUresult result = obc_alive();

	for (uint32_t i = 0; result != CUDA_SUCCESS && i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		if (obc_alive() == CUDA_SUCCESS)
			result = CUDA_SUCCESS;
	}
	return result;
}

static CUresult servers_start(
	struct obl_together *together, struct obf_device *ret_devices, int *ret_count)
{
	CUresult result = CUDA_SUCCESS;
	int count = 0;

	obc_log_prepare();
	if (!obc_servers_make(together->n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (together->n > 1)
		obc_route_install(any_alive);
	obc_devices_begin();
	for (uint32_t i = 0; i < together->n && result == CUDA_SUCCESS; i++) {
		OBC_AT_SERVER(i);
		result = server_start(together, ret_devices, &count);
		if (result == CUDA_SUCCESS && server_again())
			result = ob_err_to_cuda(OB_ERR_URL);
	}
	*ret_count = count;
	return result;
}

CUresult obc_start(struct obf_device *ret_devices, int *ret_count)
{
	struct obl_together together;
	CUresult result;
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
	err = servers_find(&together);
	if (err)
		return ob_err_to_cuda(err);
	obc_session_on_callback(obc_hostfunc_run);
	obc_log_on_thread_exit(obf_streams_thread_exit);
	obc_announce_start();
	result = servers_start(&together, ret_devices, ret_count);
	obl_together_fini(&together);
	if (result == CUDA_SUCCESS && ob_opt_on(OB_OPT_RELEASE))
		obc_loaded_release();
	return result;
}

static void server_stop(void)
{
	if (!obc_session_started())
		return;
	obc_timeline_server_end();
	obc_session_stop();
	obc_timeline_write();
	obc_stats_print();
}

void obc_stop(void)
{
	if (atomic_exchange(&stopped, true))
		return;
	for (uint32_t i = 0; i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		server_stop();
	}
	obc_stats_print_together();
}

void obc_forked(void)
{
	/*
	 * The sessions belong to the parent: the child sends nothing, prints no report and says no
	 * goodbye.
	 */
	obc_inside = 0;
	obc_shared_forget();
	for (uint32_t i = 0; i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		obc_timeline_forget();
		obc_timeline_server_forget();
		if (obc_session_started())
			obc_session_forget();
	}
}
