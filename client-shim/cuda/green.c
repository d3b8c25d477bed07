/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/cuda/green.h"

#include "client-shim/cuda/device.h"
#include "client-shim/session/log.h"
#include "front/green.h"
#include "protocol/obc_calls.h"

/* NOLINTNEXTLINE(misc-redundant-expression): constants of two headers */
_Static_assert(OBP_GREEN_GROUPS_MAX == OBF_GREEN_GROUPS, "one maximum");
/* NOLINTNEXTLINE(misc-redundant-expression): constants of two headers */
_Static_assert(OBP_GREEN_NO_SPLIT == OBF_GREEN_NO_SPLIT, "one value");

static struct obf_sms sms_of(const uint32_t words[3])
{
	return (struct obf_sms){ words[0], words[1], words[2] };
}

CUresult obc_green_split(const struct obf_split *split, struct obf_split_made *ret)
{
	uint32_t made = 0, whole[3] = { 0 }, group[3] = { 0 }, rest[3] = { 0 };
	CUresult result;

	if (obc_lines_known < OBP_LINE_green_stream)
		return obf_absent("cuDeviceGetDevResource",
			"the server is older than green contexts: update it");
	result = obc_call_op_green_split(split->base, obc_device_number(split->device),
		split->groups, split->flags, split->least, &made, whole, group, rest);
	if (result == CUDA_SUCCESS)
		*ret = (struct obf_split_made){ made, sms_of(whole), sms_of(group), sms_of(rest) };
	return result;
}

CUresult obc_green_create(struct obf_green *green, const struct obf_sm_share *share)
{
	const struct obf_split *split = &share->split;

	return obc_call_op_green_create((uint64_t)(uintptr_t)green->handle, split->base,
		obc_device_number(split->device), split->groups, split->flags, split->least,
		share->rest, share->chosen);
}

void obc_green_destroy(const struct obf_green *green)
{
	obc_call_op_green_destroy((uint64_t)(uintptr_t)green->handle);
}
