/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/route.h"

#include "client-shim/cuda/array.h"
#include "client-shim/cuda/context.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/event.h"
#include "client-shim/cuda/graph.h"
#include "client-shim/cuda/green.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/cuda/memory.h"
#include "client-shim/cuda/module.h"
#include "client-shim/cuda/route_inside.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/cuda/vmm.h"
#include "front/array.h"
#include "front/event.h"
#include "front/green.h"
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

bool obc_route_apart(int device, int other)
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
	if (!obc_route_apart(mem->device, ctx->device))
		return ctx;
	return mem->ctx && mem->ctx->backend ? mem->ctx : obf_ctx_primary(mem->device);
}

/* ---- functions with one object ---- */

OBC_IN_CONTEXT(CUresult, ctx_create, (struct obf_ctx * ctx), ctx, obc_ctx_create, ctx)
OBC_IN_CONTEXT(CUresult, ctx_destroy, (struct obf_ctx * ctx), ctx, obc_ctx_destroy, ctx)
OBC_IN_CONTEXT(void, ctx_release, (struct obf_ctx * ctx), ctx, obc_ctx_release, ctx)
OBC_IN_CONTEXT(CUresult, ctx_synchronize, (struct obf_ctx * ctx), ctx, obc_ctx_synchronize, ctx)
OBC_IN_CONTEXT(CUresult, ctx_settle, (struct obf_ctx * ctx), ctx, obc_ctx_settle, ctx)
OBC_IN_CONTEXT(CUresult, ctx_limit, (struct obf_ctx * ctx, CUlimit limit, bool set, size_t *value),
	ctx, obc_ctx_limit, ctx, limit, set, value)

OBC_IN_CONTEXT(
	CUresult, stream_open, (struct obf_stream * stream), stream->ctx, obc_stream_open, stream)
OBC_IN_CONTEXT(void, stream_close, (struct obf_stream * stream, bool ended), stream->ctx,
	obc_stream_close, stream, ended)
OBC_IN_CONTEXT(
	CUresult, stream_query, (struct obf_stream * stream), stream->ctx, obc_stream_query, stream)
OBC_IN_CONTEXT(
	CUresult, stream_wait, (struct obf_stream * stream), stream->ctx, obc_stream_wait, stream)
OBC_IN_CONTEXT(CUresult, host_function,
	(struct obf_stream * stream, const struct obf_host_function *function), stream->ctx,
	obc_hostfunc_submit, stream, function)
OBC_IN_CONTEXT(CUresult, point_take, (struct obf_stream * stream, struct obf_point *ret),
	stream->ctx, obc_point_take, stream, ret)

OBC_IN_CONTEXT(CUresult, launch,
	(struct obf_stream * stream, struct obf_func *func, const struct obf_launch *launch,
		void *packed),
	stream->ctx, obc_launch_packed, stream, func, launch, packed)

OBC_IN_CONTEXT(CUresult, event_open, (struct obf_event * event), event->ctx, obc_event_open, event)
OBC_IN_CONTEXT(CUresult, event_close, (struct obf_event * event, bool ended), event->ctx,
	obc_event_close, event, ended)
OBC_IN_CONTEXT(CUresult, event_record, (struct obf_event * event, struct obf_stream *stream),
	event->ctx, obc_event_record, event, stream)
OBC_IN_CONTEXT(
	CUresult, event_query, (struct obf_event * event), event->ctx, obc_event_query, event)
OBC_IN_CONTEXT(CUresult, event_wait, (struct obf_event * event), event->ctx, obc_event_wait, event)
/* The front end refuses events of two contexts. */
OBC_IN_CONTEXT(CUresult, event_elapsed,
	(struct obf_event * start, struct obf_event *end, float *ret), start->ctx,
	obc_event_elapsed, start, end, ret)

OBC_IN_CONTEXT(CUresult, mod_load, (struct obf_mod * mod, const struct obf_image_ref *image),
	mod->ctx, obc_mod_load, mod, image)
OBC_IN_CONTEXT(void, mod_unload, (struct obf_mod * mod), mod->ctx, obc_mod_unload, mod)
OBC_IN_CONTEXT(CUresult, func_load, (struct obf_func * func), func->mod->ctx, obc_func_load, func)
OBC_IN_CONTEXT(CUresult, func_attrs, (struct obf_func * func), func->mod->ctx, obc_func_attrs, func)
OBC_IN_CONTEXT(CUresult, func_set_attr,
	(struct obf_func * func, CUfunction_attribute attr, int value), func->mod->ctx,
	obc_func_set_attr, func, attr, value)
OBC_IN_CONTEXT(CUresult, global_get,
	(struct obf_mod * mod, const char *name, CUdeviceptr *ret_addr, size_t *ret_size), mod->ctx,
	obc_global_get, mod, name, ret_addr, ret_size)

OBC_IN_CONTEXT(CUresult, mem_alloc, (struct obf_ctx * ctx, struct obf_mem *mem), ctx,
	obc_memory_alloc, ctx, mem)
OBC_IN_CONTEXT(CUresult, mem_free, (struct obf_ctx * ctx, const struct obf_mem *mem, bool in_use),
	owner(ctx, mem), obc_memory_free, owner(ctx, mem), mem, in_use)
OBC_IN_CONTEXT(CUresult, mem_info, (struct obf_ctx * ctx, uint64_t *ret_free, uint64_t *ret_total),
	ctx, obc_memory_info, ctx, ret_free, ret_total)
OBC_ROUTE_AT(void, mem_trim, (int device), obc_device_server(device), obc_memory_trim, device)

OBC_IN_CONTEXT(CUresult, shared_free,
	(struct obf_ctx * ctx, const struct obf_mem *mem, bool in_use), owner(ctx, mem),
	obc_shared_free, owner(ctx, mem), mem, in_use)
OBC_IN_CONTEXT(CUresult, shared_global, (struct obf_ctx * ctx, const struct obf_mem *mem), ctx,
	obc_shared_global, ctx, mem)
OBC_IN_CONTEXT(void, shared_global_end, (const struct obf_mem *mem), obf_ctx_primary(mem->device),
	obc_shared_global_end, mem)

OBC_IN_CONTEXT(
	CUresult, array_create, (struct obf_array * array), array->ctx, obc_array_create, array)
OBC_IN_CONTEXT(CUresult, array_destroy, (struct obf_array * array, bool ended), array->ctx,
	obc_array_destroy, array, ended)
OBC_IN_CONTEXT(CUresult, array_part, (struct obf_array * array), array->ctx, obc_array_part, array)
OBC_IN_CONTEXT(CUresult, texture_create, (struct obf_texture * texture), texture->ctx,
	obc_texture_create, texture)
OBC_IN_CONTEXT(CUresult, texture_destroy, (struct obf_texture * texture, bool ended), texture->ctx,
	obc_texture_destroy, texture, ended)
OBC_IN_CONTEXT(
	CUresult, texref_open, (const struct obf_texref *ref), ref->ctx, obc_texref_open, ref)
OBC_IN_CONTEXT(
	CUresult, texref_close, (const struct obf_texref *ref), ref->ctx, obc_texref_close, ref)
OBC_IN_CONTEXT(CUresult, texref_set,
	(const struct obf_texref *ref, const struct obf_texref_state *next, unsigned setting,
		unsigned dimension),
	ref->ctx, obc_texref_set, ref, next, setting, dimension)
OBC_IN_CONTEXT(CUresult, texref_param, (const struct obf_texref *ref, const struct obf_func *func),
	ref->ctx, obc_texref_param, ref, func)

OBC_ROUTE_AT(CUresult, green_split, (const struct obf_split *split, struct obf_split_made *ret),
	obc_device_server(split->device), obc_green_split, split, ret)
OBC_IN_CONTEXT(CUresult, green_create, (struct obf_green * green, const struct obf_sm_share *share),
	obf_green_ctx(green), obc_green_create, green, share)
OBC_IN_CONTEXT(void, green_destroy, (const struct obf_green *green), obf_green_ctx(green),
	obc_green_destroy, green)

/* ---- virtual memory: an address tells its server ---- */

static CUresult route_vmm_reserve(struct obf_reservation *r, uint64_t align, uint64_t wanted)
{
	OBC_AT_SERVER(obc_route_at(wanted, obc_server_number()));
	return obc_vmm_reserve(r, align, wanted);
}

OBC_ROUTE_AT(void, vmm_unreserve, (const struct obf_reservation *r),
	obc_route_at(r->base, obc_server_number()), obc_vmm_unreserve, r)
OBC_ROUTE_AT(CUresult, vmm_map,
	(uint64_t addr, uint64_t size, uint64_t offset, CUmemGenericAllocationHandle handle,
		int *ret_device),
	obc_route_at(addr, obc_server_number()), obc_vmm_map, addr, size, offset, handle,
	ret_device)
OBC_ROUTE_AT(CUresult, vmm_unmap, (uint64_t addr, uint64_t size),
	obc_route_at(addr, obc_server_number()), obc_vmm_unmap, addr, size)

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
	b->stream_open = route_stream_open;
	b->stream_close = route_stream_close;
	b->stream_query = route_stream_query;
	b->stream_wait = route_stream_wait;
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

static void modules_install(struct obf_backend *b)
{
	b->host_function = route_host_function;
	b->launch = route_launch;
	b->mod_load = route_mod_load;
	b->mod_unload = route_mod_unload;
	b->func_load = route_func_load;
	b->func_attrs = route_func_attrs;
	b->func_set_attr = route_func_set_attr;
	b->global_get = route_global_get;
}

static void memory_install(struct obf_backend *b)
{
	b->mem_alloc = route_mem_alloc;
	b->mem_free = route_mem_free;
	b->mem_info = route_mem_info;
	b->mem_trim = route_mem_trim;
	b->shared_free = route_shared_free;
	b->shared_global = route_shared_global;
	b->shared_global_end = route_shared_global_end;
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
	routed->ready = ready;
	routed->current = context_changed;
	routed->apart = obc_route_apart;
	streams_install(routed);
	modules_install(routed);
	memory_install(routed);
	obc_route_between_install(routed);
	obc_route_copy_install(routed);
	obc_route_graph_install(routed);
	obc_route_share_install(routed);
}
