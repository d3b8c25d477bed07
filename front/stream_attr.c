/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Attributes of streams, which the program can set and read back but which have no other effect.
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
