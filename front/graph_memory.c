/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory nodes. The memory of an allocation node is allocated when the node is made and belongs to
 * the graph and its executable graphs until all of them have ended; launches only count it as
 * allocated or free. So its address stays the same, and no other memory is ever there. Memory that
 * is allocated when the last of them ends is left to the program as ordinary memory.
 */
#include <stdlib.h>
#include <string.h>

#include "front/graph.h"
#include "front/memory.h"
#include "front/mempool.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

struct obf_graph_alloc {
	struct obf_graph_alloc *next;
	int refs;
	uint64_t addr, size, buffer_id;
	int device;
	bool live;     /* a launch has allocated it, and nothing has freed it */
	CUgraph owner; /* the graph of its allocation node */
	/* there are free nodes, in that graph or in others */
	bool freed_inside, freed_outside;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All under the lock. */
static struct obf_graph_alloc *allocs;
static uint64_t used[OBF_DEVICE_MAX], used_high[OBF_DEVICE_MAX]; /* bytes */

static struct obf_graph_alloc *alloc_at(uint64_t addr)
{
	struct obf_graph_alloc *alloc = allocs;

	while (alloc && alloc->addr != addr)
		alloc = alloc->next;
	return alloc;
}

/* ---- nodes ---- */

static CUresult props_check(const CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	const CUmemPoolProps *props = &alloc->poolProps;

	if (!alloc->bytesize || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
		(alloc->accessDescCount && !alloc->accessDescs) ||
		alloc->accessDescCount > OBF_DEVICE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
		props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return obf_device_valid(props->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Allocates memory and marks it in the map as that of a graph. */
static CUresult alloc_new(struct obf_ctx *ctx, size_t size, struct obf_graph_alloc **ret)
{
	struct obf_graph_alloc *alloc = calloc(1, sizeof *alloc);
	struct obf_mem mem;
	uint64_t addr;
	CUresult result =
		alloc ? obf_mempools_alloc(ctx, size, NULL, &addr) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS)
		result = obf_memory_take(addr, &mem);
	if (result == CUDA_SUCCESS) {
		mem.graph = true;
		if (!obf_mem_insert(&mem)) {
			obf_process.backend->mem_free(ctx, &mem, false);
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result != CUDA_SUCCESS) {
		free(alloc);
		return result;
	}
	*alloc = (struct obf_graph_alloc){ .refs = 1,
		.addr = addr,
		.size = size,
		.buffer_id = mem.buffer_id,
		.device = ctx->device };
	pthread_mutex_lock(&lock);
	alloc->next = allocs;
	allocs = alloc;
	used[ctx->device] += size;
	used_high[ctx->device] = ob_max(used_high[ctx->device], used[ctx->device]);
	pthread_mutex_unlock(&lock);
	*ret = alloc;
	return CUDA_SUCCESS;
}

CUresult obf_params_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *alloc, struct obf_node_params *ret)
{
	CUmemAccessDesc *access = NULL;
	struct obf_ctx *ctx;
	CUresult result = alloc ? props_check(alloc) : CUDA_ERROR_INVALID_VALUE;

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	if (result == CUDA_SUCCESS)
		result = obf_ctx_enter(&ctx);
	if (result != CUDA_SUCCESS)
		return result;
	if (ctx->device != alloc->poolProps.location.id) {
		ctx = obf_ctx_primary(alloc->poolProps.location.id);
		if (!atomic_load(&ctx->active))
			return CUDA_ERROR_INVALID_CONTEXT;
	}
	if (alloc->accessDescCount) {
		access = malloc(alloc->accessDescCount * sizeof *access);
		if (!access)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(access, alloc->accessDescs, alloc->accessDescCount * sizeof *access);
	}
	result = alloc_new(ctx, alloc->bytesize, &ret->alloc.alloc);
	if (result != CUDA_SUCCESS) {
		free(access);
		return result;
	}
	alloc->dptr = ret->alloc.alloc->addr;
	ret->alloc.raw = *alloc;
	ret->alloc.raw.accessDescs = access;
	return CUDA_SUCCESS;
}

CUresult obf_params_release(CUdeviceptr addr, struct obf_node_params *ret)
{
	struct obf_graph_alloc *alloc;

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_MEM_FREE };
	pthread_mutex_lock(&lock);
	alloc = alloc_at(addr);
	if (alloc)
		alloc->refs++;
	pthread_mutex_unlock(&lock);
	if (!alloc)
		return CUDA_ERROR_INVALID_VALUE;
	ret->release.alloc = alloc;
	ret->release.raw.dptr = addr;
	return CUDA_SUCCESS;
}

static bool has_free_node(const struct obf_graph *graph, const struct obf_graph_alloc *alloc)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i]->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
			graph->nodes[i]->params.release.alloc == alloc)
			return true;
	return false;
}

CUresult obf_graph_memory_add(const struct obf_graph *graph, const struct obf_node_params *params)
{
	CUresult result = CUDA_SUCCESS;
	struct obf_graph_alloc *alloc;

	if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		params->alloc.alloc->owner = graph->handle;
	if (params->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_SUCCESS;
	alloc = params->release.alloc;
	pthread_mutex_lock(&lock);
	if (alloc->freed_inside ||
		(alloc->freed_outside &&
			(alloc->owner == graph->handle || has_free_node(graph, alloc))))
		result = CUDA_ERROR_INVALID_VALUE;
	else if (alloc->owner == graph->handle)
		alloc->freed_inside = true;
	else
		alloc->freed_outside = true;
	pthread_mutex_unlock(&lock);
	return result;
}

void obf_graph_alloc_ref(struct obf_graph_alloc *alloc)
{
	pthread_mutex_lock(&lock);
	alloc->refs++;
	pthread_mutex_unlock(&lock);
}

/* The last graph has ended. The memory may have ended with its context. */
static void alloc_end(const struct obf_graph_alloc *alloc)
{
	struct obf_mem mem;

	if (!obf_mem_find(alloc->addr, &mem) || mem.buffer_id != alloc->buffer_id ||
		!obf_mem_remove(alloc->addr, &mem))
		return;
	mem.graph = false;
	if (!alloc->live || !obf_mem_insert(&mem))
		obf_process.backend->mem_free(mem.ctx, &mem, true);
}

void obf_graph_alloc_unref(struct obf_graph_alloc *alloc)
{
	struct obf_graph_alloc **at = &allocs;
	bool last;

	if (!alloc)
		return;
	pthread_mutex_lock(&lock);
	last = --alloc->refs == 0;
	if (last) {
		while (*at != alloc)
			at = &(*at)->next;
		*at = alloc->next;
		used[alloc->device] -= alloc->size;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	alloc_end(alloc);
	free(alloc);
}

/* ---- launches ---- */

/* Whether the allocations of other graphs that a graph frees are live is checked before it runs. */
CUresult obf_graph_memory_check(const struct obf_node_params *params, bool auto_free)
{
	CUresult result = CUDA_SUCCESS;

	if (params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (params->alloc.alloc->live && !auto_free)
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return result;
}

void obf_graph_memory_apply(const struct obf_node_params *params)
{
	pthread_mutex_lock(&lock);
	if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		params->alloc.alloc->live = true;
	else if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		params->release.alloc->live = false;
	pthread_mutex_unlock(&lock);
}

CUresult obf_graph_memory_free(uint64_t addr)
{
	struct obf_graph_alloc *alloc;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	alloc = alloc_at(addr);
	if (alloc && alloc->live) {
		alloc->live = false;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- the account of a device: all that graphs have allocated is used by them ---- */

CUresult obf_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	CUresult result = obf_ready();
	cuuint64_t bytes;

	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || (unsigned)attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	bytes = attr == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ||
			attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
		? used[device]
		: used_high[device];
	pthread_mutex_unlock(&lock);
	memcpy(value, &bytes, sizeof bytes);
	return CUDA_SUCCESS;
}

/* Only the high marks can be set, and only to 0, which means the present value. */
CUresult obf_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	CUresult result = obf_ready();
	cuuint64_t bytes;

	if (result != CUDA_SUCCESS)
		return result;
	if (!obf_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value ||
		(attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
			attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&bytes, value, sizeof bytes);
	if (bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	used_high[device] = used[device];
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* Nothing is held that no graph uses. */
CUresult obf_cuDeviceGraphMemTrim(CUdevice device)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	return obf_device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
