/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/green.h"

#include "base/check.h"
#include "front/green.h"

/* Parts that ignore which multiprocessors belong together. */
#define ALONE_LEAST 2u

/* cuda.h, "Green Contexts": the guideline for each architecture. */
static struct obf_sms rules(uint32_t major)
{
	return (struct obf_sms){ .least = major >= 9 ? 8
			: major == 8                 ? 4
						     : 2,
		.alignment = major >= 9 ? 8 : 2 };
}

CUresult obd_green_split(const struct obf_split *split, struct obf_split_made *ret)
{
	const int32_t *attr = obf_device_at(split->device)->attr;
	uint32_t major = (uint32_t)attr[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR], size;
	const struct obf_green *base =
		split->base ? obf_green_find((CUgreenCtx)(uintptr_t)split->base) : NULL;
	struct obf_split_made made = { .whole = rules(major) };

	made.whole.count =
		base ? base->sms.count : (uint32_t)attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
	if (split->least == OBF_GREEN_NO_SPLIT) {
		*ret = made;
		return CUDA_SUCCESS;
	}
	if (split->flags & CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE && major < 9)
		return CUDA_ERROR_INVALID_VALUE;
	made.group = made.rest = made.whole;
	if (split->flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING)
		made.group.least = made.group.alignment = ALONE_LEAST;
	size = ob_max(split->least, made.group.least);
	size = (uint32_t)ob_round_up(size, made.group.alignment);
	made.groups = made.whole.count / size;
	if (split->groups)
		made.groups = ob_min(made.groups, split->groups);
	if (!made.groups)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	made.group.count = size;
	made.rest.count = made.whole.count - made.groups * size;
	*ret = made;
	return CUDA_SUCCESS;
}

CUresult obd_green_create(const struct obf_green *green, const struct obf_sm_share *share)
{
	(void)green;
	(void)share;
	return CUDA_SUCCESS; /* the front end has the object */
}

void obd_green_destroy(const struct obf_green *green)
{
	(void)green;
}
