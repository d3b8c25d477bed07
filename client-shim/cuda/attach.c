/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Constructor and destructor of the library. They make no connection: a program that never calls
 * CUDA does not contact a server. The library is linked with -z nodelete, because threads may end,
 * and run its exit hooks, after a dlclose.
 */
#include <pthread.h>

#include "base/log.h"
#include "client-shim/cuda/array.h"
#include "client-shim/cuda/context.h"
#include "client-shim/cuda/copy.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/event.h"
#include "client-shim/cuda/green.h"
#include "client-shim/cuda/graph.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/cuda/memory.h"
#include "client-shim/cuda/module.h"
#include "client-shim/cuda/peer.h"
#include "client-shim/cuda/route.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/cuda/start.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/cuda/share.h"
#include "client-shim/cuda/value.h"
#include "client-shim/cuda/vmm.h"
#include "client-shim/session/times.h"
#include "front/backend.h"
#include "protocol/obc_locals.h"
#include "protocol/obc_procs.h"

static struct obf_backend backend = {
	.driver_version = OBC_DRIVER_VERSION,
	.start = obc_start,
	.visible = obc_devices_visible,
	.alive = obc_alive,
	.ctx_create = obc_ctx_create,
	.ctx_destroy = obc_ctx_destroy,
	.ctx_release = obc_ctx_release,
	.ctx_synchronize = obc_ctx_synchronize,
	.ctx_settle = obc_ctx_settle,
	.ctx_limit = obc_ctx_limit,
	.stream_size = sizeof(struct obc_stream),
	.stream_open = obc_stream_open,
	.stream_close = obc_stream_close,
	.stream_query = obc_stream_query,
	.stream_wait = obc_stream_wait,
	.stream_wait_event = obc_stream_wait_event,
	.peer_query = obc_peer_query,
	.peer_access = obc_peer_access,
	.green_split = obc_green_split,
	.green_create = obc_green_create,
	.green_destroy = obc_green_destroy,
	.event_open = obc_event_open,
	.event_close = obc_event_close,
	.event_record = obc_event_record,
	.event_query = obc_event_query,
	.event_wait = obc_event_wait,
	.event_elapsed = obc_event_elapsed,
	.write = obc_copy_write,
	.read = obc_copy_read,
	.copy = obc_copy_box,
	.fill = obc_copy_fill,
	.stream_value = obc_stream_value,
	.host_range = obc_host_range,
	.launch = obc_launch_packed,
	.host_function = obc_hostfunc_submit,
	.host_functions_transfer = obc_hostfuncs_transfer,
	.mem_alloc = obc_memory_alloc,
	.mem_free = obc_memory_free,
	.mem_info = obc_memory_info,
	.mem_trim = obc_memory_trim,
	.shared_alloc = obc_shared_alloc,
	.shared_free = obc_shared_free,
	.shared_global = obc_shared_global,
	.shared_global_end = obc_shared_global_end,
	.shared_move = obc_shared_move,
	.shared_attach = obc_shared_attach,
	.vmm_offered = obc_vmm_offered,
	.vmm_reserve = obc_vmm_reserve,
	.vmm_unreserve = obc_vmm_unreserve,
	.vmm_map = obc_vmm_map,
	.vmm_unmap = obc_vmm_unmap,
	.graph_all = true,
	.graph_condition = obc_graph_condition,
	.graph_make = obc_graph_make,
	.graph_drop = obc_graph_drop,
	.graph_launch = obc_graph_launch,
	.graph_upload = obc_graph_upload,
	.graph_set = obc_graph_set,
	.graph_enable = obc_graph_enable,
	.point_take = obc_point_take,
	.point_passed = obc_point_over,
	.point_drop = obc_point_drop,
	.array_create = obc_array_create,
	.array_destroy = obc_array_destroy,
	.array_part = obc_array_part,
	.array_copy = obc_array_copy,
	.texture_create = obc_texture_create,
	.texture_destroy = obc_texture_destroy,
	.texref_open = obc_texref_open,
	.texref_close = obc_texref_close,
	.texref_set = obc_texref_set,
	.texref_param = obc_texref_param,
	.mod_load = obc_mod_load,
	.mod_unload = obc_mod_unload,
	.func_get = obc_func_get,
	.func_load = obc_func_load,
	.func_attrs = obc_func_attrs,
	.func_set_attr = obc_func_set_attr,
	.global_get = obc_global_get,
	.sharing = &obc_sharing,
	.export_table = obc_times_table,
	.procs = obc_procs,
};

static __attribute__((constructor)) void attach(void)
{
	ob_log_set_name("outboard");
	backend.event_size = obc_event_size;
	backend.n_procs = obc_n_procs;
	obc_route_prepare(&backend);
	obf_attach(&backend);
	pthread_atfork(NULL, NULL, obc_forked);
}

static __attribute__((destructor)) void detach(void)
{
	obc_stop();
}
