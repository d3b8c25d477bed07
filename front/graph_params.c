/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The parameters of nodes: checks, deep copies, comparison. */
#include <stdlib.h>
#include <string.h>

#include "front/captured.h"
#include "front/copy.h"
#include "front/event.h"
#include "front/fill.h"
#include "front/graph.h"
#include "front/private.h"
#include "front/value.h"

CUresult obf_params_ctx(CUcontext handle, struct obf_ctx **ret)
{
	CUresult result = handle ? CUDA_SUCCESS : obf_ctx_enter(ret);

	if (!handle)
		return result;
	*ret = obf_ctx_from_handle(handle);
	return *ret && atomic_load(&(*ret)->active) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- kernels ---- */

static CUfunction kernel_handle(const struct obf_kernel_params *kernel)
{
	return kernel->func ? kernel->func : (CUfunction)(void *)kernel->kern;
}

CUresult obf_params_func(const struct obf_node_params *params, struct obf_func **ret)
{
	return obf_func_resolve(kernel_handle(&params->kernel), params->ctx, ret);
}

/* The places of the arguments in the packed bytes. */
static void args_point(struct obf_kernel_params *kernel, const struct obf_func *func)
{
	for (uint32_t i = 0; i < func->n_params; i++)
		kernel->params[i] = kernel->packed + func->params[i].offset;
}

static CUresult args_pack(
	struct obf_kernel_params *kernel, const struct obf_func *func, void **args, void **extra)
{
	kernel->bytes = func->param_bytes;
	kernel->packed = calloc(1, ob_max(func->param_bytes, 1u));
	kernel->params = calloc(ob_max(func->n_params, 1u), sizeof *kernel->params);
	if (!kernel->packed || !kernel->params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	args_point(kernel, func);
	return obf_launch_pack(func, args, extra, kernel->packed);
}

static CUresult kernel_make(struct obf_node_params *params, void **args, void **extra)
{
	struct obf_kernel_params *kernel = &params->kernel;
	struct obf_func *func;
	CUresult result = obf_params_func(params, &func);

	if (result == CUDA_SUCCESS)
		result = obf_launch_check(params->ctx, func, &kernel->launch);
	if (result == CUDA_SUCCESS)
		result = args_pack(kernel, func, args, extra);
	if (result == CUDA_SUCCESS)
		kernel->prints = func->mod->symbols->prints;
	else
		obf_params_free(params);
	return result;
}

CUresult obf_params_kernel(const CUDA_KERNEL_NODE_PARAMS *from, struct obf_node_params *ret)
{
	const struct obf_function *function;
	CUresult result;

	if (!from)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_KERNEL };
	ret->kernel = (struct obf_kernel_params){
		.func = from->func,
		.kern = from->func ? NULL : from->kern,
		.ctx = from->ctx,
		.launch = { .grid = { from->gridDimX, from->gridDimY, from->gridDimZ },
			.block = { from->blockDimX, from->blockDimY, from->blockDimZ },
			.dynamic_shared = from->sharedMemBytes },
	};
	if (!from->func && !from->kern)
		return CUDA_ERROR_INVALID_VALUE;
	/* A function, unlike a kernel, belongs to one context. */
	function = obf_function_find(kernel_handle(&ret->kernel));
	result = obf_params_ctx(from->ctx, &ret->ctx);
	if (result == CUDA_SUCCESS && function)
		ret->ctx = function->pub.mod->ctx;
	return result == CUDA_SUCCESS ? kernel_make(ret, from->kernelParams, from->extra) : result;
}

static CUresult attrs_room(struct obf_kernel_params *kernel)
{
	if (!kernel->attrs)
		kernel->attrs = calloc(OBF_NODE_ATTRS, sizeof *kernel->attrs);
	return kernel->attrs ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What the launch says, as attributes of the node. */
static CUresult launch_attrs(struct obf_kernel_params *kernel)
{
	const struct obf_launch *launch = &kernel->launch;
	CUkernelNodeAttrValue *attrs;

	if (!launch->cooperative && !launch->has_priority && !launch->cluster[0])
		return CUDA_SUCCESS;
	if (attrs_room(kernel) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	attrs = kernel->attrs;
	attrs[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = launch->cooperative;
	attrs[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = launch->priority;
	attrs[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim.x = launch->cluster[0];
	attrs[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim.y = launch->cluster[1];
	attrs[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim.z = launch->cluster[2];
	kernel->attr_mask = (uint32_t)launch->cooperative << CU_LAUNCH_ATTRIBUTE_COOPERATIVE |
		(uint32_t)launch->has_priority << CU_LAUNCH_ATTRIBUTE_PRIORITY |
		(uint32_t)(launch->cluster[0] != 0) << CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	return CUDA_SUCCESS;
}

CUresult obf_params_launch(struct obf_ctx *ctx, CUfunction func, const struct obf_launch *launch,
	void **args, void **extra, struct obf_node_params *ret)
{
	bool kernel = ob_id_kind((uint64_t)(uintptr_t)func) == OBF_KIND_KERNEL;
	CUresult result;

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_KERNEL, .ctx = ctx };
	ret->kernel = (struct obf_kernel_params){ .func = kernel ? NULL : func,
		.kern = kernel ? (CUkernel)(void *)func : NULL,
		.ctx = ctx->handle,
		.launch = *launch };
	result = launch_attrs(&ret->kernel);
	return result == CUDA_SUCCESS ? kernel_make(ret, args, extra) : result;
}

CUresult obf_params_attr_set(
	struct obf_node_params *params, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	struct obf_kernel_params *kernel = &params->kernel;
	struct obf_launch launch = kernel->launch;
	struct obf_func *func;
	CUresult result;

	switch ((int)attr) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		launch.cooperative = value->cooperative != 0;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		launch.priority = value->priority;
		launch.has_priority = true;
		break;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		launch.cluster[0] = value->clusterDim.x;
		launch.cluster[1] = value->clusterDim.y;
		launch.cluster[2] = value->clusterDim.z;
		break;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		break; /* hints, which are stored */
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	result = obf_params_func(params, &func);
	if (result == CUDA_SUCCESS)
		result = obf_launch_check(params->ctx, func, &launch);
	if (result == CUDA_SUCCESS)
		result = attrs_room(kernel);
	if (result != CUDA_SUCCESS)
		return result;
	kernel->launch = launch;
	kernel->attrs[attr] = *value;
	kernel->attr_mask |= 1u << attr;
	return CUDA_SUCCESS;
}

static CUresult kernel_clone(const struct obf_kernel_params *from, struct obf_node_params *to)
{
	struct obf_kernel_params *kernel = &to->kernel;
	struct obf_func *func;
	CUresult result = obf_params_func(to, &func);

	kernel->packed = NULL;
	kernel->params = NULL;
	kernel->sent = NULL;
	kernel->attrs = NULL;
	if (result != CUDA_SUCCESS || func->param_bytes != from->bytes)
		return CUDA_ERROR_INVALID_VALUE; /* its module was unloaded */
	kernel->packed = malloc(ob_max(from->bytes, 1u));
	kernel->params = calloc(ob_max(func->n_params, 1u), sizeof *kernel->params);
	if (!kernel->packed || !kernel->params ||
		(from->attrs && attrs_room(kernel) != CUDA_SUCCESS))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(kernel->packed, from->packed, from->bytes);
	args_point(kernel, func);
	if (from->attrs)
		memcpy(kernel->attrs, from->attrs, OBF_NODE_ATTRS * sizeof *from->attrs);
	return CUDA_SUCCESS;
}

/* ---- copies and fills ---- */

CUresult obf_params_copy(const CUDA_MEMCPY3D *copy, CUcontext handle, struct obf_node_params *ret)
{
	CUresult result;

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_MEMCPY };
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	ret->copy.raw = *copy;
	ret->copy.ctx = handle;
	result = obf_params_ctx(handle, &ret->ctx);
	if (result == CUDA_SUCCESS)
		result = obf_copy_from_3d(copy, &ret->copy.copy);
	ret->copy.empty = !copy->WidthInBytes || !copy->Height || !copy->Depth;
	return result;
}

/* The struct that describes a copy which a stream was given. */
CUresult obf_params_copied(
	struct obf_ctx *ctx, const struct obf_copy *c, struct obf_node_params *ret)
{
	size_t src_height = c->src_pitch ? c->src_slice / c->src_pitch : 0;
	size_t dst_height = c->dst_pitch ? c->dst_slice / c->dst_pitch : 0;

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .ctx = ctx };
	ret->copy = (struct obf_copy_params){ .ctx = ctx->handle, .copy = *c };
	ret->copy.raw = (CUDA_MEMCPY3D){
		.srcMemoryType = c->src_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.dstMemoryType = c->dst_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.srcHost = c->src_device ? NULL : (const void *)(uintptr_t)c->src,
		.dstHost = c->dst_device ? NULL : (void *)(uintptr_t)c->dst,
		.srcDevice = c->src_device ? c->src : 0,
		.dstDevice = c->dst_device ? c->dst : 0,
		.srcPitch = c->src_pitch,
		.dstPitch = c->dst_pitch,
		.srcHeight = src_height,
		.dstHeight = dst_height,
		.WidthInBytes = c->width,
		.Height = c->height,
		.Depth = c->depth,
	};
	return CUDA_SUCCESS;
}

CUresult obf_params_fill(
	const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext handle, struct obf_node_params *ret)
{
	CUresult result;

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_MEMSET };
	if (!fill || (fill->elementSize != 1 && fill->elementSize != 2 && fill->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_params_ctx(handle, &ret->ctx);
	if (result != CUDA_SUCCESS)
		return result;
	ret->fill.raw = (CUDA_MEMSET_NODE_PARAMS_v2){ fill->dst, fill->pitch, fill->value,
		fill->elementSize, fill->width, fill->height, handle };
	ret->fill.fill = (struct obf_fill){ fill->dst, fill->value, fill->elementSize, fill->pitch,
		fill->width, fill->height, false };
	ret->fill.empty = !fill->width || !fill->height;
	return obf_fill_check(&ret->fill.fill, &ret->fill.device);
}

/* ---- the others ---- */

CUresult obf_params_host(const CUDA_HOST_NODE_PARAMS *host, struct obf_node_params *ret)
{
	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_HOST };
	if (!host || !host->fn)
		return CUDA_ERROR_INVALID_VALUE;
	ret->host = *host;
	return CUDA_SUCCESS;
}

CUresult obf_params_event(CUgraphNodeType type, CUevent handle, struct obf_node_params *ret)
{
	const struct obf_event *event = obf_event_look(handle);

	*ret = (struct obf_node_params){ .type = type };
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	ret->ctx = event->ctx;
	ret->event = handle;
	return CUDA_SUCCESS;
}

CUresult obf_params_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch, struct obf_node_params *ret)
{
	struct obf_value value;
	CUresult result;

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP };
	if (!batch || !batch->paramArray || batch->count >= OBF_VALUES_MAX || batch->flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_params_ctx(batch->ctx, &ret->ctx);
	for (unsigned i = 0; result == CUDA_SUCCESS && i < batch->count; i++)
		result = obf_value_take(ret->ctx, &batch->paramArray[i], &value);
	if (result != CUDA_SUCCESS)
		return result;
	ret->batch = (struct obf_batch_params){ .ctx = batch->ctx, .count = batch->count };
	ret->batch.ops = malloc(ob_max(batch->count, 1u) * sizeof *ret->batch.ops);
	if (!ret->batch.ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(ret->batch.ops, batch->paramArray, batch->count * sizeof *ret->batch.ops);
	return CUDA_SUCCESS;
}

/* move: the graph itself becomes the child, and no clone of it. */
CUresult obf_params_child(CUgraph handle, bool move, struct obf_node_params *ret)
{
	struct obf_graph *child = obf_graph_find(handle);

	*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_GRAPH };
	if (!child || (move && (child->parent || obf_capture_has(child))))
		return CUDA_ERROR_INVALID_VALUE;
	if (child->n_conds || child->has_cond)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!move)
		return obf_graph_clone(child, &ret->child);
	ret->child = child;
	return CUDA_SUCCESS;
}

static CUresult any_child(const CUDA_CHILD_GRAPH_NODE_PARAMS *graph, struct obf_node_params *ret)
{
	bool move = graph->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	CUresult result = move || graph->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE
		? obf_params_child(graph->graph, move, ret)
		: CUDA_ERROR_INVALID_VALUE;

	if (result == CUDA_SUCCESS)
		ret->lent = move;
	return result;
}

CUresult obf_params_any(CUgraphNodeParams *params, struct obf_node_params *ret)
{
	const CUDA_MEMSET_NODE_PARAMS_v2 *set;

	if (!params || !obf_params_unused_zero(params))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return obf_params_kernel((const void *)&params->kernel, ret);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return params->memcpy.flags || params->memcpy.reserved
			? CUDA_ERROR_INVALID_VALUE
			: obf_params_copy(&params->memcpy.copyParams, params->memcpy.copyCtx, ret);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		set = &params->memset;
		return obf_params_fill(&(CUDA_MEMSET_NODE_PARAMS){ set->dst, set->pitch, set->value,
					       set->elementSize, set->width, set->height },
			set->ctx, ret);
	case CU_GRAPH_NODE_TYPE_HOST:
		return obf_params_host((const void *)&params->host, ret);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return any_child(&params->graph, ret);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		*ret = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return obf_params_event(params->type, params->eventWait.event, ret);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return obf_params_alloc((void *)&params->alloc, ret);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return obf_params_release(params->free.dptr, ret);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return obf_params_batch((const void *)&params->memOp, ret);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult obf_params_clone(const struct obf_node_params *params, struct obf_node_params *ret)
{
	CUresult result = CUDA_SUCCESS;

	*ret = *params;
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		result = kernel_clone(&params->kernel, ret);
		if (result != CUDA_SUCCESS)
			obf_params_free(ret);
		return result;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return obf_graph_clone(params->child, &ret->child);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		/* For an executable graph, which has the bodies' nodes in its list. */
		ret->cond.cond = NULL;
		ret->cond.bodies = NULL;
		ret->cond.handles = NULL;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		ret->batch.ops = malloc(ob_max(params->batch.count, 1u) * sizeof *ret->batch.ops);
		if (!ret->batch.ops)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(ret->batch.ops, params->batch.ops,
			params->batch.count * sizeof *ret->batch.ops);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		ret->alloc.raw.accessDescs = NULL;
		ret->alloc.raw.accessDescCount = 0;
		obf_graph_alloc_ref(ret->alloc.alloc);
		return CUDA_SUCCESS;
	default:
		return CUDA_SUCCESS;
	}
}

void obf_params_free(struct obf_node_params *params)
{
	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		free(params->kernel.packed);
		free(params->kernel.params);
		free(params->kernel.sent);
		free(params->kernel.attrs);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (!params->lent)
			obf_graph_free(params->child);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		free(params->batch.ops);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		obf_cond_params_free(&params->cond);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		free((void *)(uintptr_t)params->alloc.raw.accessDescs);
		obf_graph_alloc_unref(params->alloc.alloc);
		break;
	default:
		break;
	}
	*params = (struct obf_node_params){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
}

/* ---- comparison ---- */

static bool kernels_equal(const struct obf_kernel_params *a, const struct obf_kernel_params *b)
{
	const struct obf_launch *p = &a->launch, *q = &b->launch;

	return a->func == b->func && a->kern == b->kern && a->bytes == b->bytes &&
		memcmp(a->packed, b->packed, a->bytes) == 0 &&
		memcmp(p->grid, q->grid, sizeof p->grid) == 0 &&
		memcmp(p->block, q->block, sizeof p->block) == 0 &&
		memcmp(p->cluster, q->cluster, sizeof p->cluster) == 0 &&
		p->dynamic_shared == q->dynamic_shared && p->cooperative == q->cooperative &&
		p->priority == q->priority && p->has_priority == q->has_priority;
}

static bool copies_equal(const struct obf_copy *a, const struct obf_copy *b)
{
	return a->src == b->src && a->dst == b->dst && a->src_pitch == b->src_pitch &&
		a->src_slice == b->src_slice && a->dst_pitch == b->dst_pitch &&
		a->dst_slice == b->dst_slice && a->width == b->width && a->height == b->height &&
		a->depth == b->depth;
}

static bool fills_equal(const struct obf_fill *a, const struct obf_fill *b)
{
	return a->dst == b->dst && a->value == b->value && a->element == b->element &&
		a->pitch == b->pitch && a->width == b->width && a->height == b->height;
}

bool obf_params_equal(const struct obf_node_params *a, const struct obf_node_params *b)
{
	if (a->type != b->type || a->ctx != b->ctx)
		return false;
	switch ((int)a->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernels_equal(&a->kernel, &b->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return copies_equal(&a->copy.copy, &b->copy.copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fills_equal(&a->fill.fill, &b->fill.fill);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return true;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return obf_cond_params_equal(&a->cond, &b->cond);
	default:
		return false; /* set again: that costs no message */
	}
}
