/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Makes the software device a libcuda.so.1: it registers as the backend of the front end when the
 * library is loaded, and starts its parts when the program calls cuInit.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "front/backend.h"
#include "front/share.h"
#include "front/trace.h"
#include "protocol/obd_locals.h"
#include "protocol/obd_procs.h"
#include "softdevice/array.h"
#include "softdevice/config.h"
#include "softdevice/context.h"
#include "softdevice/context_life.h"
#include "softdevice/copy.h"
#include "softdevice/core/heap.h"
#include "softdevice/device.h"
#include "softdevice/event.h"
#include "softdevice/event_share.h"
#include "softdevice/graph.h"
#include "softdevice/green.h"
#include "softdevice/launch.h"
#include "softdevice/memory.h"
#include "softdevice/module.h"
#include "softdevice/peer.h"
#include "softdevice/sched.h"
#include "softdevice/stream.h"
#include "softdevice/texture.h"
#include "softdevice/vmm.h"
#include "softdevice/vmm_share.h"
#include "softdevice/window.h"

static CUresult start(struct obf_device *ret_devices, int *ret_count)
{
	obf_trace_open();
	if (!obd_config_read())
		return CUDA_ERROR_INVALID_VALUE;
	if (!obd_window_start(obd_config.base))
		return CUDA_ERROR_OUT_OF_MEMORY;
	obf_mem_window(obd_window.base, obd_window.size);
	obd_device_start(ret_devices, ret_count);
	if (!obd_sched_start())
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

/* ---- the export table of the software device for a server: words of 8 bytes ---- */

static int ptx_only(void)
{
	return obd_config.model == NULL;
}

/* Writes the reason why a function cannot run; an empty text if it can. */
static void refusal_get(CUfunction handle, char *ret, size_t size)
{
	struct obf_func *func;
	struct obf_ctx *ctx;
	const char *text = NULL;

	if (obf_ctx_enter(&ctx) == CUDA_SUCCESS &&
		obf_func_resolve(handle, ctx, &func) == CUDA_SUCCESS)
		text = obd_module_refusal(func);
	snprintf(ret, size, "%s", text ? text : "");
}

static const void *const table[6] = {
	(const void *)sizeof table, /* size of the table */
	(const void *)ptx_only,     /* int (void): 1 if only PTX images can run, 0 in a dry run */
	/* void (charge, discharge): sets the callbacks that count the compiler's memory */
	(const void *)obd_heap_count,
	(const void *)refusal_get, /* void (CUfunction, char *ret, size_t size) */
	/* int (const CUipcEventHandle *), void (CUipcEventHandle *, int): see event_share.h */
	(const void *)obd_shared_event_fd,
	(const void *)obd_shared_event_set_fd,
};

static const void *export_table(const CUuuid *id)
{
	if (memcmp(id->bytes, "outboard-softdev", sizeof id->bytes) != 0)
		return NULL;
	atomic_store_explicit(&obf_served, true, memory_order_relaxed);
	return table;
}

CUresult obd_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice device)
{
	CUresult result = obd_ctx_none();

	if (!result && (!capabilities || !operations))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result && (device < 0 || device >= obf_device_count()))
		result = CUDA_ERROR_INVALID_DEVICE;
	for (unsigned i = 0; i < count && !result; i++)
		result = (unsigned)operations[i] < CU_ATOMIC_OPERATION_MAX
			? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_VALUE;
	/* Kernels cannot access host memory, so no atomic operation is supported. */
	for (unsigned i = 0; i < count && !result; i++)
		capabilities[i] = 0;
	return result;
}

/* ---- */

static unsigned shares(void)
{
	return OBF_SHARES_EVENTS | (obd_config.memcheck ? 0 : OBF_SHARES_VMM);
}

/*
 * Memory of cuMemAlloc is private to the process: only a server, whose sessions have memory of
 * cuMemCreate, can share it.
 */
static const struct obf_sharing sharing = {
	.offers = shares,
	.vmm_export = obd_vmm_export,
	.vmm_import = obd_vmm_import,
	.vmm_retain = obd_vmm_retain,
	.event_export = obd_event_export,
	.event_import = obd_event_import,
};

static struct obf_backend backend = {
	.driver_version = 13000,
	.start = start,
	.ctx_create = obd_ctx_create,
	.ctx_destroy = obd_ctx_destroy,
	.ctx_release = obd_ctx_release,
	.ctx_synchronize = obd_ctx_synchronize,
	.ctx_settle = obd_ctx_synchronize,
	.ctx_limit = obd_ctx_limit,
	.stream_size = sizeof(struct obd_stream),
	.stream_open = obd_stream_open,
	.stream_close = obd_stream_close,
	.stream_query = obd_stream_query,
	.stream_wait = obd_stream_wait,
	.stream_wait_event = obd_stream_wait_event,
	.peer_query = obd_peer_query,
	.peer_access = obd_peer_access,
	.green_split = obd_green_split,
	.green_create = obd_green_create,
	.green_destroy = obd_green_destroy,
	.event_open = obd_event_open,
	.event_close = obd_event_close,
	.event_record = obd_event_record,
	.event_query = obd_event_query,
	.event_wait = obd_event_wait,
	.event_elapsed = obd_event_elapsed,
	.write = obd_copy_write,
	.read = obd_copy_read,
	.copy = obd_copy_box,
	.fill = obd_fill,
	.stream_value = obd_stream_value,
	.launch = obd_launch_packed,
	.host_function = obd_host_function,
	.graph_condition = obd_graph_condition,
	.graph_make = obd_graph_make,
	.graph_drop = obd_graph_drop,
	.graph_launch = obd_graph_launch,
	.graph_upload = obd_graph_upload,
	.graph_set = obd_graph_set,
	.graph_enable = obd_graph_enable,
	.peers = true,
	.mem_alloc = obd_memory_alloc,
	.mem_free = obd_memory_release,
	.mem_info = obd_memory_info,
	.shared_alloc = obd_memory_share,
	.shared_global = obd_memory_share_global,
	.vmm_reserve = obd_vmm_reserve,
	.vmm_unreserve = obd_vmm_unreserve,
	.vmm_map = obd_vmm_map,
	.vmm_unmap = obd_vmm_unmap,
	.point_take = obd_point_take,
	.point_passed = obd_point_passed,
	.point_drop = obd_point_drop,
	.array_create = obd_array_create,
	.array_destroy = obd_array_destroy,
	.array_part = obd_array_part,
	.array_copy = obd_array_copy,
	.texture_create = obd_texture_create,
	.texture_destroy = obd_texture_destroy,
	.texref_set = obd_texref_set,
	.mod_load = obd_module_load,
	.mod_unload = obd_module_unload,
	.func_get = obd_module_func_get,
	.func_load = obd_module_func_load,
	.func_attrs = obd_module_func_attrs,
	.global_get = obd_module_global_get,
	.code_check = obd_module_check,
	.sharing = &sharing,
	.export_table = export_table,
};

__attribute__((constructor)) static void attach(void)
{
	ob_log_set_name("outboard-softdevice");
	backend.event_size = obd_event_size;
	backend.procs = obd_procs;
	backend.n_procs = obd_n_procs;
	obf_attach(&backend);
}

__attribute__((destructor)) static void detach(void)
{
	obd_sched_stop();
}
