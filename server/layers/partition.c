/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/partition.h"

#include "protocol/load.h"
#include "protocol/obs_driver.h"

/* The part of the device's multiprocessors, and the device's. */
static enum ob_err divide(const struct obs_driver *drv, CUdevice device, uint32_t share,
	CUdevResource *ret_part, uint32_t *ret_of, struct ob_cause *ret_cause)
{
	CUdevResource whole = { 0 }, rest = { 0 };
	unsigned n = 1, least;
	CUresult result = drv->cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM);

	if (result != CUDA_SUCCESS)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"the driver has no green contexts (CUDA error %d), which CUDA 12.5 "
			"introduced",
			(int)result);
	least = (unsigned)(((uint64_t)whole.sm.smCount * share + OBP_SHARE_ALL - 1) /
		OBP_SHARE_ALL);
	result = drv->cuDevSmResourceSplitByCount(ret_part, &n, &whole, &rest, 0, least);
	if (result != CUDA_SUCCESS || n < 1)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"the driver cannot take %u of %u multiprocessors (CUDA error %d)", least,
			whole.sm.smCount, (int)result);
	if (ret_part->sm.smCount >= whole.sm.smCount)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"the driver divides %u multiprocessors into parts of %u or a multiple of "
			"%u, so %u of them would be all",
			whole.sm.smCount, whole.sm.minSmPartitionSize,
			whole.sm.smCoscheduledAlignment, least);
	*ret_of = whole.sm.smCount;
	return OB_ERR_NONE;
}

enum ob_err obs_partition_check(const struct obs_driver *drv, CUdevice device, uint32_t share,
	uint32_t *ret_units, struct ob_cause *ret_cause)
{
	CUdevResource part = { 0 };
	uint32_t of;
	enum ob_err err = divide(drv, device, share, &part, &of, ret_cause);

	if (!err && ret_units)
		*ret_units = part.sm.smCount;
	return err;
}

/* Whether a launch in the part could be measured. */
static CUresult event_try(const struct obs_driver *drv, CUcontext primary, CUstream stream)
{
	CUcontext before = NULL;
	CUevent event;
	CUresult result = drv->cuCtxGetCurrent(&before);

	if (result == CUDA_SUCCESS)
		result = drv->cuCtxSetCurrent(primary);
	if (result != CUDA_SUCCESS)
		return result;
	result = drv->cuEventCreate(&event, 0);
	if (result == CUDA_SUCCESS) {
		result = drv->cuEventRecord(event, stream);
		drv->cuEventDestroy_v2(event);
	}
	drv->cuCtxSetCurrent(before);
	return result;
}

enum ob_err obs_partition_make(const struct obs_driver *drv, CUdevice device, CUcontext primary,
	uint32_t share, struct obs_partition *ret, struct ob_cause *ret_cause)
{
	struct obs_partition made = { 0 };
	CUdevResource part = { 0 };
	CUdevResourceDesc desc;
	CUresult result;
	enum ob_err err = divide(drv, device, share, &part, &made.of, ret_cause);

	if (err)
		return err;
	result = drv->cuDevResourceGenerateDesc(&desc, &part, 1);
	if (result == CUDA_SUCCESS)
		result = drv->cuGreenCtxCreate(
			&made.green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM);
	if (result != CUDA_SUCCESS)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"the driver cannot make a green context (CUDA error %d)", (int)result);
	result = drv->cuGreenCtxStreamCreate(&made.stream, made.green, CU_STREAM_NON_BLOCKING, 0);
	if (result != CUDA_SUCCESS) {
		drv->cuGreenCtxDestroy(made.green);
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"the driver cannot make a stream in a green context (CUDA error %d)",
			(int)result);
	}
	result = event_try(drv, primary, made.stream);
	if (result != CUDA_SUCCESS) {
		obs_partition_end(drv, &made);
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"the driver records no event of the primary context in a stream of a green "
			"context (CUDA error %d)",
			(int)result);
	}
	made.units = part.sm.smCount;
	*ret = made;
	return OB_ERR_NONE;
}

void obs_partition_end(const struct obs_driver *drv, struct obs_partition *partition)
{
	if (!partition->green)
		return;
	drv->cuStreamDestroy_v2(partition->stream);
	drv->cuGreenCtxDestroy(partition->green);
	*partition = (struct obs_partition){ 0 };
}

CUresult obs_partition_stream(const struct obs_driver *drv, const struct obs_partition *partition,
	unsigned flags, int priority, CUstream *ret)
{
	if (flags & CU_STREAM_NON_BLOCKING)
		return drv->cuGreenCtxStreamCreate(
			ret, partition->green, CU_STREAM_NON_BLOCKING, priority);
	/* It waits for the default stream, and that for it: it is the same one. */
	*ret = partition->stream;
	return CUDA_SUCCESS;
}
