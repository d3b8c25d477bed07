/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Calls that read and change the parameters of a graph's nodes. */
#include <string.h>

#include "front/graph.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

CUDA_KERNEL_NODE_PARAMS *obf_kernel_params_now(
	const CUDA_KERNEL_NODE_PARAMS_v1 *old, CUDA_KERNEL_NODE_PARAMS *ret)
{
	*ret = (CUDA_KERNEL_NODE_PARAMS){ .func = old->func,
		.gridDimX = old->gridDimX,
		.gridDimY = old->gridDimY,
		.gridDimZ = old->gridDimZ,
		.blockDimX = old->blockDimX,
		.blockDimY = old->blockDimY,
		.blockDimZ = old->blockDimZ,
		.sharedMemBytes = old->sharedMemBytes,
		.kernelParams = old->kernelParams,
		.extra = old->extra };
	return ret;
}

/* The node, if it is of this type. */
static CUresult node_get(CUgraphNode handle, CUgraphNodeType type, struct obf_node **ret)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	*ret = obf_node_find(handle);
	return *ret && (*ret)->params.type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/*
 * Programs change entries of the array that they got from a node and pass it again, twice or more. So
 * the arrays stay in place while the kernel is the same, though CUDA does not promise it.
 */
static void args_keep(struct obf_node_params *before, struct obf_node_params *now)
{
	struct obf_kernel_params *old = &before->kernel, *new = &now->kernel;
	struct obf_kernel_params swap = *new;
	struct obf_func *func;

	if (now->type != CU_GRAPH_NODE_TYPE_KERNEL || old->func != new->func ||
		old->kern != new->kern || old->bytes != new->bytes ||
		obf_params_func(now, &func) != CUDA_SUCCESS)
		return;
	memcpy(old->packed, new->packed, new->bytes);
	for (uint32_t i = 0; i < func->n_params; i++)
		old->params[i] = old->packed + func->params[i].offset;
	new->packed = old->packed;
	new->params = old->params;
	old->packed = swap.packed;
	old->params = swap.params;
}

/* Gives the node other parameters of its type, which it takes over. */
static CUresult params_put(CUgraphNode handle, CUresult made, struct obf_node_params *params)
{
	struct obf_node *node;
	CUresult result = made;

	if (result != CUDA_SUCCESS)
		return result;
	result = node_get(handle, params->type, &node);
	if (result != CUDA_SUCCESS) {
		obf_params_free(params);
		return result;
	}
	args_keep(&node->params, params);
	obf_params_free(&node->params);
	node->params = *params;
	return CUDA_SUCCESS;
}

#define SET(handle, make)              \
	struct obf_node_params params; \
	CUresult result = obf_ready(); \
                                       \
	return result == CUDA_SUCCESS ? params_put(handle, make, &params) : result

/* `node` is what the value is made of. */
#define GET(handle, type, ret, value)                                         \
	struct obf_node *node;                                                \
	CUresult result = node_get(handle, CU_GRAPH_NODE_TYPE_##type, &node); \
                                                                              \
	if (result == CUDA_SUCCESS && !(ret))                                 \
		result = CUDA_ERROR_INVALID_VALUE;                            \
	if (result == CUDA_SUCCESS)                                           \
		*(ret) = value;                                               \
	return result

/* ---- kernels ---- */

static CUDA_KERNEL_NODE_PARAMS kernel_read(const struct obf_kernel_params *kernel)
{
	return (CUDA_KERNEL_NODE_PARAMS){ .func = kernel->func,
		.gridDimX = kernel->launch.grid[0],
		.gridDimY = kernel->launch.grid[1],
		.gridDimZ = kernel->launch.grid[2],
		.blockDimX = kernel->launch.block[0],
		.blockDimY = kernel->launch.block[1],
		.blockDimZ = kernel->launch.block[2],
		.sharedMemBytes = kernel->launch.dynamic_shared,
		.kernelParams = kernel->params,
		.kern = kernel->kern,
		.ctx = kernel->ctx };
}

CUresult obf_cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *ret)
{
	GET(handle, KERNEL, ret, kernel_read(&node->params.kernel));
}

/* This version has no kernels, so a kernel is returned as a function, which all calls accept. */
CUresult obf_cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *ret)
{
	CUDA_KERNEL_NODE_PARAMS now;
	CUresult result =
		ret ? obf_cuGraphKernelNodeGetParams_v2(handle, &now) : CUDA_ERROR_INVALID_VALUE;

	if (result == CUDA_SUCCESS)
		*ret = (CUDA_KERNEL_NODE_PARAMS_v1){ now.func ? now.func
							      : (CUfunction)(void *)now.kern,
			now.gridDimX, now.gridDimY, now.gridDimZ, now.blockDimX, now.blockDimY,
			now.blockDimZ, now.sharedMemBytes, now.kernelParams, NULL };
	return result;
}

/* The attributes of the node stay. */
static CUresult kernel_set(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	struct obf_node_params params;
	struct obf_node *node;
	CUresult result = node_get(handle, CU_GRAPH_NODE_TYPE_KERNEL, &node);

	if (result == CUDA_SUCCESS)
		result = obf_params_kernel(kernel, &params);
	if (result != CUDA_SUCCESS)
		return result;
	for (unsigned i = 0; i < OBF_NODE_ATTRS && result == CUDA_SUCCESS; i++)
		if (node->params.kernel.attr_mask >> i & 1)
			result = obf_params_attr_set(
				&params, (CUkernelNodeAttrID)i, &node->params.kernel.attrs[i]);
	if (result == CUDA_SUCCESS)
		return params_put(handle, CUDA_SUCCESS, &params);
	obf_params_free(&params);
	return result;
}

CUresult obf_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	return kernel_set(node, kernel);
}

CUresult obf_cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
	CUDA_KERNEL_NODE_PARAMS now;

	return kernel_set(node, kernel ? obf_kernel_params_now(kernel, &now) : NULL);
}

CUresult obf_cuGraphKernelNodeGetAttribute(
	CUgraphNode handle, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *ret)
{
	struct obf_node *node;
	CUresult result = node_get(handle, CU_GRAPH_NODE_TYPE_KERNEL, &node);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || (unsigned)attr >= OBF_NODE_ATTRS)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = node->params.kernel.attrs ? node->params.kernel.attrs[attr]
					 : (CUkernelNodeAttrValue){ .cooperative = 0 };
	return CUDA_SUCCESS;
}

CUresult obf_cuGraphKernelNodeSetAttribute(
	CUgraphNode handle, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	struct obf_node *node;
	CUresult result = node_get(handle, CU_GRAPH_NODE_TYPE_KERNEL, &node);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value || (unsigned)attr >= OBF_NODE_ATTRS)
		return CUDA_ERROR_INVALID_VALUE;
	return obf_params_attr_set(&node->params, attr, value);
}

CUresult obf_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	struct obf_node *to, *from;
	CUresult result = node_get(dst, CU_GRAPH_NODE_TYPE_KERNEL, &to);

	if (result == CUDA_SUCCESS)
		result = node_get(src, CU_GRAPH_NODE_TYPE_KERNEL, &from);
	if (result != CUDA_SUCCESS)
		return result;
	for (unsigned i = 0; i < OBF_NODE_ATTRS && result == CUDA_SUCCESS; i++)
		if (from->params.kernel.attr_mask >> i & 1)
			result = obf_params_attr_set(
				&to->params, (CUkernelNodeAttrID)i, &from->params.kernel.attrs[i]);
	return result;
}

/* ---- the other types ---- */

CUresult obf_cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *ret)
{
	GET(handle, MEMCPY, ret, node->params.copy.raw);
}

CUresult obf_cuGraphMemcpyNodeSetParams(CUgraphNode handle, const CUDA_MEMCPY3D *copy)
{
	const struct obf_node *node = obf_node_find(handle);
	CUcontext ctx = node && node->params.type == CU_GRAPH_NODE_TYPE_MEMCPY
		? node->params.copy.ctx
		: NULL;

	SET(handle, obf_params_copy(copy, ctx, &params));
}

static CUDA_MEMSET_NODE_PARAMS fill_read(const CUDA_MEMSET_NODE_PARAMS_v2 *raw)
{
	return (CUDA_MEMSET_NODE_PARAMS){ raw->dst, raw->pitch, raw->value, raw->elementSize,
		raw->width, raw->height };
}

CUresult obf_cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *ret)
{
	GET(handle, MEMSET, ret, fill_read(&node->params.fill.raw));
}

CUresult obf_cuGraphMemsetNodeSetParams(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	const struct obf_node *node = obf_node_find(handle);
	CUcontext ctx = node && node->params.type == CU_GRAPH_NODE_TYPE_MEMSET
		? node->params.fill.raw.ctx
		: NULL;

	SET(handle, obf_params_fill(fill, ctx, &params));
}

CUresult obf_cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *ret)
{
	GET(handle, HOST, ret, node->params.host);
}

CUresult obf_cuGraphHostNodeSetParams(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS *host)
{
	SET(handle, obf_params_host(host, &params));
}

CUresult obf_cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *ret)
{
	GET(handle, GRAPH, ret, node->params.child->handle);
}

CUresult obf_cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *ret)
{
	GET(handle, EVENT_RECORD, ret, node->params.event);
}

CUresult obf_cuGraphEventRecordNodeSetEvent(CUgraphNode handle, CUevent event)
{
	SET(handle, obf_params_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &params));
}

CUresult obf_cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent *ret)
{
	GET(handle, WAIT_EVENT, ret, node->params.event);
}

CUresult obf_cuGraphEventWaitNodeSetEvent(CUgraphNode handle, CUevent event)
{
	SET(handle, obf_params_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &params));
}

static CUDA_BATCH_MEM_OP_NODE_PARAMS batch_read(const struct obf_batch_params *batch)
{
	return (CUDA_BATCH_MEM_OP_NODE_PARAMS){ batch->ctx, batch->count, batch->ops,
		batch->flags };
}

CUresult obf_cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *ret)
{
	GET(handle, BATCH_MEM_OP, ret, batch_read(&node->params.batch));
}

CUresult obf_cuGraphBatchMemOpNodeSetParams(
	CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	SET(handle, obf_params_batch(batch, &params));
}

CUresult obf_cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *ret)
{
	GET(handle, MEM_ALLOC, ret, node->params.alloc.raw);
}

CUresult obf_cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *ret)
{
	GET(handle, MEM_FREE, ret, node->params.release.raw.dptr);
}

static CUresult any_set(CUgraphNode handle, CUgraphNodeParams *any)
{
	SET(handle, obf_params_any(any, &params));
}

/* Not for memory nodes, child graphs and conditional nodes. */
CUresult obf_cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams *any)
{
	CUresult result = obf_ready();

	if (result != CUDA_SUCCESS)
		return result;
	if (!any || !obf_node_find(handle))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)any->type) {
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_GRAPH:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return CUDA_ERROR_NOT_SUPPORTED;
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_set(handle, (const void *)&any->kernel);
	default:
		return any_set(handle, any);
	}
}
