/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Texture and surface references. `extra` of an entry of session->texrefs:
 *
 *   63                   32 31        1   0
 *   | 1 + index of module  | 0       | S |     S: a surface reference
 *
 * The upper part is 0 for a reference of cuTexRefCreate. The driver ends the references of a module
 * with the module, and all others with their context.
 */
#include "base/check.h"
#include "server/worker/ops/array.h"
#include "server/worker/ops/box.h"
#include "server/worker/ops/ops.h"

#define IS_SURFACE 1u

static uint64_t owned_by(uint64_t module)
{
	return ((uint64_t)(uint32_t)module + 1) << 32;
}

struct forget {
	struct obs_handles *table;
	uint64_t owner;
};

static void forget_one(void *user, struct obs_handle *handle)
{
	const struct forget *forget = user;

	if ((handle->extra & ~(uint64_t)IS_SURFACE) == forget->owner)
		obs_handles_remove(forget->table,
			atomic_load_explicit(&handle->id, memory_order_relaxed), NULL);
}

void obs_texrefs_forget(struct obs_session *session, uint64_t module)
{
	struct forget forget = { .table = &session->texrefs, .owner = owned_by(module) };

	if (session->texrefs.n_live)
		obs_handles_each(&session->texrefs, forget_one, &forget);
}

/* A reference that the driver did not make is entered too: its later records are answered. */
static void ref_put(struct obs_exec *x, const struct obp_record *rec, uint64_t id,
	const struct obs_handle *handle)
{
	if (!obs_handles_put(&x->session->texrefs, id, handle))
		obs_violation(x, rec, "the texture reference's id is in use or out of range");
}

void obs_op_texref_open(struct obs_exec *x, const struct obp_record *rec,
	const struct obp_texref_open_req *req, const char *name)
{
	const struct obs_handle *module = obs_handles_find(&x->session->modules, req->mod);
	struct obs_handle handle = { .extra = owned_by(req->mod) | (req->kind ? IS_SURFACE : 0) };
	CUresult result = CUDA_ERROR_INVALID_HANDLE;
	CUsurfref surface = NULL;
	CUtexref texture = NULL;

	if (!module)
		obs_violation(x, rec, "unknown module");
	handle.context = module->context;
	if (module->driver)
		result = obs_handle_room(x);
	if (module->driver && result == CUDA_SUCCESS)
		result = req->kind ? x->drv->cuModuleGetSurfRef(&surface, module->driver, name)
				   : x->drv->cuModuleGetTexRef(&texture, module->driver, name);
	if (result == CUDA_SUCCESS)
		handle.driver = req->kind ? (void *)surface : (void *)texture;
	ref_put(x, rec, req->ref, &handle);
	if (module->driver) /* else the failed load was reported already */
		obs_async_result(x, rec, result);
}

void obs_op_texref_create(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_texref_create_req *req)
{
	struct obs_handle handle = { .context = x->context };
	CUresult result = obs_handle_room(x);
	CUtexref ref = NULL;

	if (result == CUDA_SUCCESS)
		result = x->drv->cuTexRefCreate(&ref);
	if (result == CUDA_SUCCESS)
		handle.driver = ref;
	ref_put(x, rec, req->ref, &handle);
	obs_async_result(x, rec, result);
}

void obs_op_texref_destroy(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_texref_destroy_req *req)
{
	const struct obs_handle *found = obs_handles_find(&x->session->texrefs, req->ref);
	struct obs_handle handle;
	CUresult result;

	/* Unknown: it ended with its context, and the client's record was already on its way. */
	if (!found)
		return;
	if (found->extra)
		obs_violation(x, rec, "the texture reference belongs to a module");
	obs_handles_remove(&x->session->texrefs, req->ref, &handle);
	if (!handle.driver)
		return;
	result = obs_context_enter(x, handle.context);
	if (result == CUDA_SUCCESS)
		result = x->drv->cuTexRefDestroy(handle.driver);
	obs_async_result(x, rec, result);
}

/* The driver's reference, of the current context. False: told. */
static bool ref_get(
	struct obs_exec *x, const struct obp_record *rec, uint64_t id, struct obs_handle **ret)
{
	if (!obs_handle_use(x, rec, &x->session->texrefs, id, ret))
		return false;
	if ((*ret)->context == x->context)
		return true;
	obs_async_result(x, rec, CUDA_ERROR_INVALID_VALUE);
	return false;
}

static CUresult setting_apply(
	const struct obs_driver *drv, CUtexref ref, const struct obp_texref_set_req *req)
{
	const int32_t *number = req->number;
	float real[4];

	for (int i = 0; i < 4; i++)
		real[i] = req->real[i];
	switch (req->setting) {
	case OBP_TEXREF_FORMAT:
		return drv->cuTexRefSetFormat(ref, (CUarray_format)number[0], number[1]);
	case OBP_TEXREF_ADDRESS_MODE:
		return drv->cuTexRefSetAddressMode(ref, number[0], (CUaddress_mode)number[1]);
	case OBP_TEXREF_FILTER:
		return drv->cuTexRefSetFilterMode(ref, (CUfilter_mode)number[0]);
	case OBP_TEXREF_MIP_FILTER:
		return drv->cuTexRefSetMipmapFilterMode(ref, (CUfilter_mode)number[0]);
	case OBP_TEXREF_MIP_BIAS:
		return drv->cuTexRefSetMipmapLevelBias(ref, real[0]);
	case OBP_TEXREF_MIP_CLAMP:
		return drv->cuTexRefSetMipmapLevelClamp(ref, real[0], real[1]);
	case OBP_TEXREF_ANISOTROPY:
		return drv->cuTexRefSetMaxAnisotropy(ref, (unsigned)number[0]);
	case OBP_TEXREF_BORDER:
		return drv->cuTexRefSetBorderColor(ref, real);
	case OBP_TEXREF_FLAGS:
		return drv->cuTexRefSetFlags(ref, (unsigned)number[0]);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Numbers that index something are checked here; whether a mode exists the driver knows. */
static bool is_setting(const struct obs_handle *ref, const struct obp_texref_set_req *req)
{
	if (ref->extra & IS_SURFACE)
		return false;
	return req->setting != OBP_TEXREF_ADDRESS_MODE ||
		(req->number[0] >= 0 && req->number[0] < 3);
}

void obs_op_texref_set(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_texref_set_req *req)
{
	struct obs_handle *ref;

	if (ref_get(x, rec, req->ref, &ref))
		obs_async_result(x, rec,
			is_setting(ref, req) ? setting_apply(x->drv, ref->driver, req)
					     : CUDA_ERROR_INVALID_VALUE);
}

static CUresult bind_array(struct obs_exec *x, const struct obs_handle *ref,
	const struct obs_array *array, bool mipmapped)
{
	CUtexref texture = ref->driver;

	if (array->context != x->context ||
		!(mipmapped ? (void *)array->mipmap : (void *)array->driver))
		return CUDA_ERROR_INVALID_VALUE;
	if (ref->extra & IS_SURFACE)
		return mipmapped
			? CUDA_ERROR_INVALID_VALUE
			: x->drv->cuSurfRefSetArray((CUsurfref)ref->driver, array->driver, 0);
	return mipmapped
		? x->drv->cuTexRefSetMipmappedArray(texture, array->mipmap, CU_TRSA_OVERRIDE_FORMAT)
		: x->drv->cuTexRefSetArray(texture, array->driver, CU_TRSA_OVERRIDE_FORMAT);
}

/* The client has told the program the offset, which follows from the address. */
static CUresult bind_linear(struct obs_exec *x, CUtexref ref, const struct obp_texref_bind_req *req)
{
	const struct box box = { req->addr, 0, 0, req->size, 1, 1 };
	size_t offset;

	if (req->size ? !box_inside(x, &box) : req->addr != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return x->drv->cuTexRefSetAddress_v2(&offset, ref, req->addr, req->size);
}

static CUresult bind_pitched(
	struct obs_exec *x, CUtexref ref, const struct obp_texref_bind_req *req)
{
	const CUDA_ARRAY_DESCRIPTOR desc = { .Width = req->width,
		.Height = req->height,
		.Format = (CUarray_format)req->format,
		.NumChannels = req->channels };
	uint64_t element = ob_array_element(desc.Format, req->channels);
	struct box box = { req->addr, req->pitch, 0, 0, req->height, 1 };

	if (!element || !req->height || ob_mul_overflows(req->width, element, &box.width) ||
		!box.width || !box_inside(x, &box))
		return CUDA_ERROR_INVALID_VALUE;
	return x->drv->cuTexRefSetAddress2D_v3(ref, &desc, req->addr, req->pitch);
}

void obs_op_texref_bind(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_texref_bind_req *req)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	struct obs_array *array = NULL;
	struct obs_handle *ref;

	if (!ref_get(x, rec, req->ref, &ref))
		return;
	if (req->type <= CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
		!obs_array_get(x, rec, req->array, &array))
		return;
	if (array)
		result = bind_array(x, ref, array, req->type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
	else if (!(ref->extra & IS_SURFACE) && req->type == CU_RESOURCE_TYPE_LINEAR)
		result = bind_linear(x, ref->driver, req);
	else if (!(ref->extra & IS_SURFACE) && req->type == CU_RESOURCE_TYPE_PITCH2D)
		result = bind_pitched(x, ref->driver, req);
	obs_async_result(x, rec, result);
}

void obs_op_texref_param(
	struct obs_exec *x, const struct obp_record *rec, const struct obp_texref_param_req *req)
{
	struct obs_handle *ref, *function;

	if (!obs_handle_use(x, rec, &x->session->texrefs, req->ref, &ref) ||
		!obs_handle_use(x, rec, &x->session->functions, req->func, &function))
		return;
	obs_async_result(x, rec,
		ref->extra & IS_SURFACE || ref->context != function->context
			? CUDA_ERROR_INVALID_VALUE
			: x->drv->cuParamSetTexRef(
				  function->driver, CU_PARAM_TR_DEFAULT, ref->driver));
}
