/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What concerns two servers, or all of them, other than copies and graphs; and managed memory. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "client-shim/cuda/copy.h"
#include "client-shim/cuda/device.h"
#include "client-shim/cuda/event.h"
#include "client-shim/cuda/hostfunc.h"
#include "client-shim/cuda/module.h"
#include "client-shim/cuda/peer.h"
#include "client-shim/cuda/route_inside.h"
#include "client-shim/cuda/shared.h"
#include "client-shim/cuda/stream.h"
#include "client-shim/cuda/value.h"
#include "front/event.h"
#include "transport/url.h"

/* ---- kernels ---- */

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

/* Logs a warning, once, if one of the words is an address of another server than `here`. */
static void words_look(const struct obf_func *func, const void *words, size_t size, uint32_t here)
{
	char other[OBT_URL_MAX + 1];
	struct obf_mem mem;
	uint32_t number;
	uint64_t word;

	for (size_t at = 0; at + sizeof word <= size; at += sizeof word) {
		memcpy(&word, (const uint8_t *)words + at, sizeof word);
		if (ob_likely(!obc_server_find(word, &number) || number == here) ||
			!obf_mem_find(word, &mem))
			continue;
		if (!(atomic_fetch_and(&obf_launch_watched, ~OBF_WATCH_APART) & OBF_WATCH_APART))
			return;
		OBC_AT_SERVER(number);
		snprintf(other, sizeof other, "%s", obc_server_name());
		obc_server_enter(here);
		ob_warn("kernel %.200s on a device of %s gets an address of %s: if it uses it, it "
			"fails with error 700, because devices of two servers have no access to "
			"each other's memory. Copy with cudaMemcpyPeer, or use GPUs of one server "
			"('outboard run --one-server')",
			func->name, obc_server_name(), other);
		return;
	}
}

void obc_route_packed_look(const struct obf_func *func, const void *packed, uint32_t here)
{
	if (packed && atomic_load(&obf_launch_watched) & OBF_WATCH_APART)
		words_look(func, packed, func->param_bytes, here);
}

static void route_params_look(
	const struct obf_stream *stream, const struct obf_func *func, void *const *params)
{
	uint32_t here = obc_device_server(stream->ctx->device);

	for (uint32_t i = 0; params && i < func->n_params; i++)
		if (params[i])
			words_look(func, params[i], func->params[i].size, here);
}

static CUresult route_func_get(struct obf_func *func)
{
	nccl_warn(func->name);
	OBC_VISIT(func->mod->ctx);
	return obc_func_get(func);
}

static CUresult route_stream_wait_event(struct obf_stream *stream, struct obf_event *event)
{
	if (obc_route_apart(stream->ctx->device, event->ctx->device)) {
		OBC_VISIT(event->ctx);
		return obc_event_wait(event);
	}
	OBC_VISIT(stream->ctx);
	return obc_stream_wait_event(stream, event);
}

static CUresult route_peer_query(int device, int peer, int ret[OBF_PEER_ATTRS])
{
	if (obc_route_apart(device, peer))
		return CUDA_SUCCESS; /* none: the caller has cleared ret */
	OBC_AT_SERVER(obc_device_server(device));
	return obc_peer_query(device, peer, ret);
}

static CUresult route_peer_access(struct obf_ctx *ctx, struct obf_ctx *peer, bool enable)
{
	if (obc_route_apart(ctx->device, peer->device))
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
	if (obc_route_apart(stream->ctx->device, mem->device))
		return obf_absent("managed memory that is attached to a stream of another server",
			"attach it to a stream of the device where it was allocated");
	OBC_VISIT(stream->ctx);
	return obc_shared_attach(stream, mem, flags);
}

/* ---- the table ---- */

void obc_route_between_install(struct obf_backend *b)
{
	b->stream_wait_event = route_stream_wait_event;
	b->peer_query = route_peer_query;
	b->peer_access = route_peer_access;
	b->stream_value = route_stream_value;
	b->params_look = route_params_look;
	atomic_fetch_or(&obf_launch_watched, OBF_WATCH_APART);
	b->host_functions_transfer = route_host_functions_transfer;
	b->host_range = route_host_range;
	b->func_get = route_func_get;
	b->shared_alloc = route_shared_alloc;
	b->shared_move = route_shared_move;
	b->shared_attach = route_shared_attach;
}
