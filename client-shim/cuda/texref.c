/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Texture and surface references on the wire: each change is a record without a reply. */
#include <string.h>

#include "client-shim/cuda/array.h"
#include "client-shim/session/log.h"
#include "protocol/obc_calls.h"

_Static_assert(OBF_TEXREF_FORMAT == OBP_TEXREF_FORMAT &&
		OBF_TEXREF_ADDRESS_MODE == OBP_TEXREF_ADDRESS_MODE &&
		OBF_TEXREF_FILTER == OBP_TEXREF_FILTER &&
		OBF_TEXREF_MIP_FILTER == OBP_TEXREF_MIP_FILTER &&
		OBF_TEXREF_MIP_BIAS == OBP_TEXREF_MIP_BIAS &&
		OBF_TEXREF_MIP_CLAMP == OBP_TEXREF_MIP_CLAMP &&
		OBF_TEXREF_ANISOTROPY == OBP_TEXREF_ANISOTROPY &&
		OBF_TEXREF_BORDER == OBP_TEXREF_BORDER && OBF_TEXREF_FLAGS == OBP_TEXREF_FLAGS &&
		OBF_TEXREF_BINDING > OBP_TEXREF_SETTING_MAX,
	"the settings have the numbers of the wire");

CUresult obc_texref_open(const struct obf_texref *ref)
{
	return ref->mod ? obc_call_op_texref_open(
				  ref->handle, ref->mod->backend_id, ref->is_surface, ref->name)
			: obc_call_op_texref_create(ref->handle);
}

CUresult obc_texref_close(const struct obf_texref *ref)
{
	return obc_call_op_texref_destroy(ref->handle);
}

static CUresult bind(const struct obf_texref *ref, const struct obf_texref_state *next)
{
	const struct obf_texref_binding *bound = &next->bound;

	return obc_call_op_texref_bind(ref->handle, bound->array, bound->addr, bound->size,
		bound->width, bound->height, bound->pitch, bound->type, next->format,
		next->channels);
}

CUresult obc_texref_set(const struct obf_texref *ref, const struct obf_texref_state *next,
	unsigned setting, unsigned dimension)
{
	int32_t number[2] = { 0 };
	float real[4] = { 0 };

	switch (setting) {
	case OBF_TEXREF_BINDING:
		return bind(ref, next);
	case OBF_TEXREF_FORMAT:
		number[0] = (int32_t)next->format;
		number[1] = (int32_t)next->channels;
		break;
	case OBF_TEXREF_ADDRESS_MODE:
		number[0] = (int32_t)dimension;
		number[1] = (int32_t)next->address[dimension];
		break;
	case OBF_TEXREF_FILTER:
		number[0] = (int32_t)next->filter;
		break;
	case OBF_TEXREF_MIP_FILTER:
		number[0] = (int32_t)next->mip_filter;
		break;
	case OBF_TEXREF_MIP_BIAS:
		real[0] = next->mip_bias;
		break;
	case OBF_TEXREF_MIP_CLAMP:
		real[0] = next->mip_min;
		real[1] = next->mip_max;
		break;
	case OBF_TEXREF_ANISOTROPY:
		number[0] = (int32_t)next->anisotropy;
		break;
	case OBF_TEXREF_BORDER:
		memcpy(real, next->border, sizeof real);
		break;
	default:
		number[0] = (int32_t)next->flags;
	}
	return obc_call_op_texref_set(ref->handle, setting, number, real);
}

CUresult obc_texref_param(const struct obf_texref *ref, const struct obf_func *func)
{
	return obc_call_op_texref_param(ref->handle, func->backend_id);
}
