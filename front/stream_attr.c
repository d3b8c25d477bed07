/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Attributes of streams, which the program can set and read back but which have no other effect,
 * and stream capture, which is not supported.
 */
#include <string.h>

#include "front/stream.h"
#include "protocol/obf_calls.h"

static CUstreamAttrValue *attr_place(struct obf_stream *stream, CUstreamAttrID attr)
{
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return &stream->window;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return &stream->policy;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return &stream->domain_map;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return &stream->domain;
	default:
		return NULL;
	}
}

CUresult obf_cuStreamGetAttribute(
	CUstream handle, CUstreamAttrID attr, CUstreamAttrValue *ret_value)
{
	struct obf_stream *stream;
	CUstreamAttrValue *place;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		memset(ret_value, 0, sizeof *ret_value);
		ret_value->priority = stream->priority;
		return CUDA_SUCCESS;
	}
	place = attr_place(stream, attr);
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_value = *place;
	return CUDA_SUCCESS;
}

CUresult obf_cuStreamSetAttribute(
	CUstream handle, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	struct obf_stream *stream;
	CUstreamAttrValue *place;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		stream->priority = value->priority;
		return CUDA_SUCCESS;
	}
	place = attr_place(stream, attr);
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	*place = *value;
	return CUDA_SUCCESS;
}

CUresult obf_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	struct obf_stream *to, *from;
	CUresult result = obf_stream_enter(dst, &to);

	if (result == CUDA_SUCCESS)
		result = obf_stream_enter(src, &from);
	if (result != CUDA_SUCCESS)
		return result;
	to->window = from->window;
	to->policy = from->policy;
	to->domain_map = from->domain_map;
	to->domain = from->domain;
	return CUDA_SUCCESS;
}

/* ---- capture: there is none, and that is a valid answer ---- */

CUresult obf_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *ret_status)
{
	struct obf_stream *stream;
	CUresult result = obf_stream_enter(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_status)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult obf_cuStreamGetCaptureInfo(
	CUstream handle, CUstreamCaptureStatus *ret_status, cuuint64_t *ret_id)
{
	CUresult result = obf_cuStreamIsCapturing(handle, ret_status);

	if (result == CUDA_SUCCESS && ret_id)
		*ret_id = 0;
	return result;
}

CUresult obf_cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *ret_status,
	cuuint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_dependencies, size_t *ret_n)
{
	CUresult result = obf_cuStreamGetCaptureInfo(handle, ret_status, ret_id);

	if (result != CUDA_SUCCESS)
		return result;
	if (ret_graph)
		*ret_graph = NULL;
	if (ret_dependencies)
		*ret_dependencies = NULL;
	if (ret_n)
		*ret_n = 0;
	return CUDA_SUCCESS;
}

CUresult obf_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *ret_status,
	cuuint64_t *ret_id, CUgraph *ret_graph, const CUgraphNode **ret_dependencies,
	const CUgraphEdgeData **ret_edges, size_t *ret_n)
{
	if (ret_edges)
		*ret_edges = NULL;
	return obf_cuStreamGetCaptureInfo_v2(
		handle, ret_status, ret_id, ret_graph, ret_dependencies, ret_n);
}
