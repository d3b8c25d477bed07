/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/route.h"

#include <string.h>

#include "base/log.h"
#include "client-shim/cuda/array.h"
#include "client-shim/cuda/context.h"
#include "client-shim/cuda/copy.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/event.h"
#include "client-shim/cuda/graph.h"
#include "client-shim/cuda/green.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/cuda/memory.h"
#include "client-shim/cuda/module.h"
#include "client-shim/cuda/peer.h"
#include "client-shim/cuda/share.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/cuda/value.h"
#include "client-shim/cuda/vmm.h"
#include "front/array.h"
#include "front/event.h"
#include "front/green.h"
#include "front/share.h"
#include "front/texref.h"
#include "front/texture.h"

static struct obf_backend *routed;

/* ---- servers and contexts ---- */

struct obc_visit obc_visit_begin(struct obf_ctx *ctx)
{
	struct obc_visit visit = { .visiting = false };

	if (!ctx || obc_device_server(ctx->device) == obc_server_number())
		return visit;
	visit.visiting = true;
	obf_ctx_visit(ctx, &visit.visit);
	return visit;
}

void obc_visit_end(const struct obc_visit *visit)
{
	if (visit->visiting)
		obf_ctx_visit_end(&visit->visit);
}

static bool is_apart(int device, int other)
{
	return obc_device_server(device) != obc_device_server(other);
}

uint32_t obc_route_at(uint64_t addr, uint32_t otherwise)
{
	struct obf_mem mem;
	uint32_t number;

	if (obc_server_find(addr, &number))
		return number;
	/* A variable of a module lies where the server's driver has put it. */
	return obf_mem_find(addr, &mem) && mem.kind == OBF_MEM_DEVICE
		? obc_device_server(mem.device)
		: otherwise;
}

/* The thread's current context has changed. */
static void context_changed(int device)
{
	obc_server_enter_context(device < 0 ? obc_here.home : obc_device_server(device));
}

/* The context for calls about memory, which may belong to another server than the current one. */
static struct obf_ctx *owner(struct obf_ctx *ctx, const struct obf_mem *mem)
{
	if (!is_apart(mem->device, ctx->device))
		return ctx;
	return mem->ctx && mem->ctx->backend ? mem->ctx : obf_ctx_primary(mem->device);
}

/* ---- functions with one object ---- */

/* In the context `at`: `type` route_NAME PARAMS calls FUNCTION with the other arguments. */
#define IN_CONTEXT(type, name, params, at, function, ...) \
	static type route_##name params                   \
	{                                                 \
		OBC_VISIT(at);                            \
		return function(__VA_ARGS__);             \
	}
/* The same for functions that concern no context of the thread. */
#define AT_SERVER(type, name, params, at, function, ...) \
	static type route_##name params                  \
	{                                                \
		OBC_AT_SERVER(at);                       \
		return function(__VA_ARGS__);            \
	}

IN_CONTEXT(CUresult, ctx_create, (struct obf_ctx * ctx), ctx, obc_ctx_create, ctx)
IN_CONTEXT(CUresult, ctx_destroy, (struct obf_ctx * ctx), ctx, obc_ctx_destroy, ctx)
IN_CONTEXT(void, ctx_release, (struct obf_ctx * ctx), ctx, obc_ctx_release, ctx)
IN_CONTEXT(CUresult, ctx_synchronize, (struct obf_ctx * ctx), ctx, obc_ctx_synchronize, ctx)
IN_CONTEXT(CUresult, ctx_settle, (struct obf_ctx * ctx), ctx, obc_ctx_settle, ctx)
IN_CONTEXT(CUresult, ctx_limit, (struct obf_ctx * ctx, CUlimit limit, bool set, size_t *value), ctx,
	obc_ctx_limit, ctx, limit, set, value)

IN_CONTEXT(
	CUresult, stream_open, (struct obf_stream * stream), stream->ctx, obc_stream_open, stream)
IN_CONTEXT(void, stream_close, (struct obf_stream * stream, bool ended), stream->ctx,
	obc_stream_close, stream, ended)
IN_CONTEXT(
	CUresult, stream_query, (struct obf_stream * stream), stream->ctx, obc_stream_query, stream)
IN_CONTEXT(
	CUresult, stream_wait, (struct obf_stream * stream), stream->ctx, obc_stream_wait, stream)
IN_CONTEXT(CUresult, host_function,
	(struct obf_stream * stream, const struct obf_host_function *function), stream->ctx,
	obc_hostfunc_submit, stream, function)
IN_CONTEXT(CUresult, point_take, (struct obf_stream * stream, struct obf_point *ret), stream->ctx,
	obc_point_take, stream, ret)
IN_CONTEXT(CUresult, launch,
	(struct obf_stream * stream, struct obf_func *func, const struct obf_launch *launch,
		void *packed),
	stream->ctx, obc_launch_packed, stream, func, launch, packed)

IN_CONTEXT(CUresult, event_open, (struct obf_event * event), event->ctx, obc_event_open, event)
IN_CONTEXT(CUresult, event_close, (struct obf_event * event, bool ended), event->ctx,
	obc_event_close, event, ended)
IN_CONTEXT(CUresult, event_record, (struct obf_event * event, struct obf_stream *stream),
	event->ctx, obc_event_record, event, stream)
IN_CONTEXT(CUresult, event_query, (struct obf_event * event), event->ctx, obc_event_query, event)
IN_CONTEXT(CUresult, event_wait, (struct obf_event * event), event->ctx, obc_event_wait, event)
/* The front end refuses events of two contexts. */
IN_CONTEXT(CUresult, event_elapsed, (struct obf_event * start, struct obf_event *end, float *ret),
	start->ctx, obc_event_elapsed, start, end, ret)

IN_CONTEXT(CUresult, mod_load, (struct obf_mod * mod, const struct obf_image_ref *image), mod->ctx,
	obc_mod_load, mod, image)
IN_CONTEXT(void, mod_unload, (struct obf_mod * mod), mod->ctx, obc_mod_unload, mod)
IN_CONTEXT(CUresult, func_load, (struct obf_func * func), func->mod->ctx, obc_func_load, func)
IN_CONTEXT(CUresult, func_attrs, (struct obf_func * func), func->mod->ctx, obc_func_attrs, func)
IN_CONTEXT(CUresult, func_set_attr, (struct obf_func * func, CUfunction_attribute attr, int value),
	func->mod->ctx, obc_func_set_attr, func, attr, value)
IN_CONTEXT(CUresult, global_get,
	(struct obf_mod * mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size), mod->ctx,
	obc_global_get, mod, name, ret_addr, ret_size)

IN_CONTEXT(CUresult, mem_alloc, (struct obf_ctx * ctx, struct obf_mem *mem), ctx, obc_memory_alloc,
	ctx, mem)
IN_CONTEXT(CUresult, mem_free, (struct obf_ctx * ctx, const struct obf_mem *mem, bool in_use),
	owner(ctx, mem), obc_memory_free, owner(ctx, mem), mem, in_use)
IN_CONTEXT(CUresult, mem_info, (struct obf_ctx * ctx, uint64_t *ret_free, uint64_t *ret_total), ctx,
	obc_memory_info, ctx, ret_free, ret_total)
AT_SERVER(void, mem_trim, (int device), obc_device_server(device), obc_memory_trim, device)

IN_CONTEXT(CUresult, shared_free, (struct obf_ctx * ctx, const struct obf_mem *mem, bool in_use),
	owner(ctx, mem), obc_shared_free, owner(ctx, mem), mem, in_use)
IN_CONTEXT(CUresult, shared_global, (struct obf_ctx * ctx, const struct obf_mem *mem), ctx,
	obc_shared_global, ctx, mem)
IN_CONTEXT(void, shared_global_end, (const struct obf_mem *mem), obf_ctx_primary(mem->device),
	obc_shared_global_end, mem)

IN_CONTEXT(CUresult, array_create, (struct obf_array * array), array->ctx, obc_array_create, array)
IN_CONTEXT(CUresult, array_destroy, (struct obf_array * array, bool ended), array->ctx,
	obc_array_destroy, array, ended)
IN_CONTEXT(CUresult, array_part, (struct obf_array * array), array->ctx, obc_array_part, array)
IN_CONTEXT(CUresult, texture_create, (struct obf_texture * texture), texture->ctx,
	obc_texture_create, texture)
IN_CONTEXT(CUresult, texture_destroy, (struct obf_texture * texture, bool ended), texture->ctx,
	obc_texture_destroy, texture, ended)
IN_CONTEXT(CUresult, texref_open, (const struct obf_texref *ref), ref->ctx, obc_texref_open, ref)
IN_CONTEXT(CUresult, texref_close, (const struct obf_texref *ref), ref->ctx, obc_texref_close, ref)
IN_CONTEXT(CUresult, texref_set,
	(const struct obf_texref *ref, const struct obf_texref_state *next, unsigned setting,
		unsigned dimension),
	ref->ctx, obc_texref_set, ref, next, setting, dimension)
IN_CONTEXT(CUresult, texref_param, (const struct obf_texref *ref, const struct obf_func *func),
	ref->ctx, obc_texref_param, ref, func)

AT_SERVER(CUresult, green_split, (const struct obf_split *split, struct obf_split_made *ret),
	obc_device_server(split->device), obc_green_split, split, ret)
IN_CONTEXT(CUresult, green_create, (struct obf_green * green, const struct obf_sm_share *share),
	obf_green_ctx(green), obc_green_create, green, share)
IN_CONTEXT(void, green_destroy, (const struct obf_green *green), obf_green_ctx(green),
	obc_green_destroy, green)

/* ---- between two servers ---- */

/* NCCL asks for each of its kernels when it makes a communicator. */
static void nccl_warn(const char *kernel)
{
	static _Atomic bool said;

	/* The names are those of C++. */
	if (!strstr(kernel, "ncclDevKernel") && !strstr(kernel, "ncclKernel"))
		return;
	if (!atomic_exchange(&said, true))
		ob_warn("NCCL: a collective over devices of two servers does not end. Its kernels "
			"exchange data through host memory while they run, and each server has a "
			"copy of that memory. Use communicators over the devices of one server, "
			"and cudaMemcpyPeer between servers");
}

static CUresult route_func_get(struct obf_func *func)
{
	nccl_warn(func->name);
	OBC_VISIT(func->mod->ctx);
	return obc_func_get(func);
}

static CUresult route_stream_wait_event(struct obf_stream *stream, struct obf_event *event)
{
	if (is_apart(stream->ctx->device, event->ctx->device))
		return route_event_wait(event);
	OBC_VISIT(stream->ctx);
	return obc_stream_wait_event(stream, event);
}

static CUresult route_peer_query(int device, int peer, int ret[OBF_PEER_ATTRS])
{
	if (is_apart(device, peer))
		return CUDA_SUCCESS; /* none: the caller has cleared ret */
	OBC_AT_SERVER(obc_device_server(device));
	return obc_peer_query(device, peer, ret);
}

static CUresult route_peer_access(struct obf_ctx *ctx, struct obf_ctx *peer, bool enable)
{
	if (is_apart(ctx->device, peer->device))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	OBC_VISIT(ctx);
	return obc_peer_access(ctx, peer, enable);
}

static CUresult route_stream_value(struct obf_stream *stream, const struct obf_value *value)
{
	uint32_t here = obc_device_server(stream->ctx->device);

	if (obc_route_at(value->addr, here) != here)
		return obf_absent("a stream's wait for, or write to, memory of another server",
			"the devices have no access to each other's memory: use an event");
	OBC_VISIT(stream->ctx);
	return obc_stream_value(stream, value);
}

static CUresult route_host_functions_transfer(void)
{
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; i < obc_servers_count() && result == CUDA_SUCCESS; i++) {
		OBC_AT_SERVER(i);
		result = obc_hostfuncs_transfer();
	}
	return result;
}

static void route_host_range(const void *p, size_t size, bool added)
{
	for (uint32_t i = 0; i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		obc_host_range(p, size, added);
	}
}

/* ---- managed memory: of the server of its context ---- */

static CUresult route_shared_alloc(struct obf_ctx *ctx, struct obf_mem *mem)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		ob_info("managed and mapped memory is accessible to the devices of one server: "
			"that "
			"of the context in which it is allocated");
	OBC_VISIT(ctx);
	return obc_shared_alloc(ctx, mem);
}

static CUresult route_shared_move(
	struct obf_stream *stream, uint64_t addr, uint64_t size, bool to_host)
{
	uint32_t here = obc_device_server(stream->ctx->device);

	/* Only the time of later accesses depends on it. */
	if (obc_route_at(addr, here) != here)
		return CUDA_SUCCESS;
	OBC_VISIT(stream->ctx);
	return obc_shared_move(stream, addr, size, to_host);
}

static CUresult route_shared_attach(
	struct obf_stream *stream, const struct obf_mem *mem, unsigned flags)
{
	if (is_apart(stream->ctx->device, mem->device))
		return obf_absent("managed memory that is attached to a stream of another server",
			"attach it to a stream of the device where it was allocated");
	OBC_VISIT(stream->ctx);
	return obc_shared_attach(stream, mem, flags);
}

/* ---- virtual memory: an address tells its server ---- */

static CUresult route_vmm_reserve(struct obf_reservation *r, uint64_t align, uint64_t wanted)
{
	OBC_AT_SERVER(obc_route_at(wanted, obc_server_number()));
	return obc_vmm_reserve(r, align, wanted);
}

AT_SERVER(void, vmm_unreserve, (const struct obf_reservation *r),
	obc_route_at(r->base, obc_server_number()), obc_vmm_unreserve, r)
AT_SERVER(CUresult, vmm_map,
	(uint64_t addr, uint64_t size, uint64_t offset, CUmemGenericAllocationHandle handle,
		int *ret_device),
	obc_route_at(addr, obc_server_number()), obc_vmm_map, addr, size, offset, handle,
	ret_device)
AT_SERVER(CUresult, vmm_unmap, (uint64_t addr, uint64_t size),
	obc_route_at(addr, obc_server_number()), obc_vmm_unmap, addr, size)

/* ---- graphs: all nodes are in one context, and their memory is that server's ---- */

static bool task_is_at(const struct obf_graph_task *task, uint32_t server)
{
	switch (task->kind) {
	case OBF_TASK_COPY:
		return obc_route_at(task->copy->src, server) == server &&
			obc_route_at(task->copy->dst, server) == server;
	case OBF_TASK_FILL:
		return obc_route_at(task->fill->dst, server) == server;
	default:
		return true;
	}
}

static CUresult graph_refuse(void)
{
	return obf_absent("a graph with memory of two servers",
		"a graph is executed by one server: copy between servers outside of graphs");
}

static CUresult route_graph_make(struct obf_ctx *ctx, const struct obf_graph_part *part, void **ret)
{
	/* No context: its nodes do no work. */
	uint32_t server = ctx ? obc_device_server(ctx->device) : obc_server_number();

	for (uint32_t i = 0; i < part->n; i++)
		if (!task_is_at(&part->tasks[i], server))
			return graph_refuse();
	OBC_VISIT(ctx);
	return obc_graph_make(ctx, part, ret);
}

static CUresult route_graph_set(void *made, uint32_t index, const struct obf_graph_task *task)
{
	if (!task_is_at(task, obc_graph_server(made)))
		return graph_refuse();
	OBC_AT_SERVER(obc_graph_server(made));
	return obc_graph_set(made, index, task);
}

IN_CONTEXT(CUresult, graph_condition,
	(struct obf_ctx * ctx, void **begun, unsigned start, unsigned flags,
		CUgraphConditionalHandle *ret),
	ctx, obc_graph_condition, ctx, begun, start, flags, ret)
AT_SERVER(void, graph_drop, (void *made), obc_graph_server(made), obc_graph_drop, made)

/* Only a graph whose nodes do no work can have been made on another server. */
static bool graph_is_at(const void *made, const struct obf_stream *stream)
{
	return obc_graph_server(made) == obc_device_server(stream->ctx->device);
}

static CUresult route_graph_launch(void *made, struct obf_stream *stream, bool prints)
{
	if (!graph_is_at(made, stream))
		return CUDA_SUCCESS;
	OBC_VISIT(stream->ctx);
	return obc_graph_launch(made, stream, prints);
}

static CUresult route_graph_upload(void *made, struct obf_stream *stream)
{
	if (!graph_is_at(made, stream))
		return CUDA_SUCCESS;
	OBC_VISIT(stream->ctx);
	return obc_graph_upload(made, stream);
}

AT_SERVER(CUresult, graph_enable, (void *made, uint32_t index, bool on), obc_graph_server(made),
	obc_graph_enable, made, index, on)

/* ---- sharing with other processes: by each server ---- */

static unsigned share_offers(void)
{
	unsigned offers = ~0u;

	for (uint32_t i = 0; i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		offers &= obc_sharing.offers();
	}
	return offers;
}

AT_SERVER(CUresult, vmm_retain, (uint64_t addr, CUmemGenericAllocationHandle *ret),
	obc_route_at(addr, obc_server_number()), obc_sharing.vmm_retain, addr, ret)
AT_SERVER(CUresult, range_export, (const struct obf_mem *mem, struct obf_share *ret),
	obc_device_server(mem->device), obc_sharing.range_export, mem, ret)
AT_SERVER(CUresult, range_close, (const struct obf_mem *mem), obc_device_server(mem->device),
	obc_sharing.range_close, mem)
IN_CONTEXT(CUresult, event_export, (struct obf_event * event, struct obf_share *ret), event->ctx,
	obc_sharing.event_export, event, ret)
IN_CONTEXT(CUresult, event_import, (struct obf_event * event, const struct obf_share *share),
	event->ctx, obc_sharing.event_import, event, share)
AT_SERVER(CUresult, pool_export, (int device, struct obf_share *ret), obc_device_server(device),
	obc_sharing.pool_export, device, ret)

/* Ids of exports are random: only the server that made one knows it. */
#define AT_EACH_SERVER(name, params, ...)                                                      \
	static CUresult route_##name params                                                    \
	{                                                                                      \
		CUresult result = obc_sharing.name(__VA_ARGS__);                               \
                                                                                               \
		for (uint32_t i = 0; result != CUDA_SUCCESS && i < obc_servers_count(); i++) { \
			OBC_AT_SERVER(i);                                                      \
			if (obc_sharing.name(__VA_ARGS__) == CUDA_SUCCESS)                     \
				result = CUDA_SUCCESS;                                         \
		}                                                                              \
		return result;                                                                 \
	}

AT_EACH_SERVER(vmm_import, (int fd, CUmemGenericAllocationHandle *ret), fd, ret)
AT_EACH_SERVER(range_open, (const struct obf_share *share, struct obf_mem *ret), share, ret)
AT_EACH_SERVER(pool_import, (const struct obf_share *share, int *ret_device), share, ret_device)

/* ---- the table ---- */

void obc_route_prepare(struct obf_backend *backend)
{
	routed = backend;
}

static void streams_install(struct obf_backend *b)
{
	b->ctx_create = route_ctx_create;
	b->ctx_destroy = route_ctx_destroy;
	b->ctx_release = route_ctx_release;
	b->ctx_synchronize = route_ctx_synchronize;
	b->ctx_settle = route_ctx_settle;
	b->ctx_limit = route_ctx_limit;
	b->peer_query = route_peer_query;
	b->peer_access = route_peer_access;
	b->stream_open = route_stream_open;
	b->stream_close = route_stream_close;
	b->stream_query = route_stream_query;
	b->stream_wait = route_stream_wait;
	b->stream_wait_event = route_stream_wait_event;
	b->event_open = route_event_open;
	b->event_close = route_event_close;
	b->event_record = route_event_record;
	b->event_query = route_event_query;
	b->event_wait = route_event_wait;
	b->event_elapsed = route_event_elapsed;
	b->green_split = route_green_split;
	b->green_create = route_green_create;
	b->green_destroy = route_green_destroy;
	b->point_take = route_point_take;
}

static void work_install(struct obf_backend *b)
{
	b->write = obc_route_write;
	b->read = obc_route_read;
	b->copy = obc_route_copy;
	b->array_copy = obc_route_array_copy;
	b->fill = obc_route_fill;
	b->stream_value = route_stream_value;
	b->launch = route_launch;
	b->host_function = route_host_function;
	b->host_functions_transfer = route_host_functions_transfer;
	b->host_range = route_host_range;
	b->mod_load = route_mod_load;
	b->mod_unload = route_mod_unload;
	b->func_get = route_func_get;
	b->func_load = route_func_load;
	b->func_attrs = route_func_attrs;
	b->func_set_attr = route_func_set_attr;
	b->global_get = route_global_get;
	b->graph_condition = route_graph_condition;
	b->graph_make = route_graph_make;
	b->graph_drop = route_graph_drop;
	b->graph_launch = route_graph_launch;
	b->graph_upload = route_graph_upload;
	b->graph_set = route_graph_set;
	b->graph_enable = route_graph_enable;
}

static void memory_install(struct obf_backend *b)
{
	b->mem_alloc = route_mem_alloc;
	b->mem_free = route_mem_free;
	b->mem_info = route_mem_info;
	b->mem_trim = route_mem_trim;
	b->shared_alloc = route_shared_alloc;
	b->shared_free = route_shared_free;
	b->shared_global = route_shared_global;
	b->shared_global_end = route_shared_global_end;
	b->shared_move = route_shared_move;
	b->shared_attach = route_shared_attach;
	b->vmm_reserve = route_vmm_reserve;
	b->vmm_unreserve = route_vmm_unreserve;
	b->vmm_map = route_vmm_map;
	b->vmm_unmap = route_vmm_unmap;
	b->array_create = route_array_create;
	b->array_destroy = route_array_destroy;
	b->array_part = route_array_part;
	b->texture_create = route_texture_create;
	b->texture_destroy = route_texture_destroy;
	b->texref_open = route_texref_open;
	b->texref_close = route_texref_close;
	b->texref_set = route_texref_set;
	b->texref_param = route_texref_param;
}

void obc_route_install(CUresult (*ready)(void))
{
	static const struct obf_sharing sharing = {
		.offers = share_offers,
		.vmm_import = route_vmm_import,
		.vmm_retain = route_vmm_retain,
		.range_export = route_range_export,
		.range_open = route_range_open,
		.range_close = route_range_close,
		.event_export = route_event_export,
		.event_import = route_event_import,
		.pool_export = route_pool_export,
		.pool_import = route_pool_import,
	};
	static struct obf_sharing all;

	all = sharing;
	all.vmm_export = obc_sharing.vmm_export; /* the handle tells the server */
	routed->sharing = &all;
	routed->ready = ready;
	routed->current = context_changed;
	routed->apart = is_apart;
	streams_install(routed);
	work_install(routed);
	memory_install(routed);
}
