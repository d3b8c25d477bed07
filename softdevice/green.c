/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/green.h"

#include <pthread.h>

#include "base/check.h"
#include "front/green.h"
#include "softdevice/core/program.h"
#include "softdevice/module.h"

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

/* Kernels may run on when their green context has ended, so the limits are never freed. */
static struct {
	pthread_mutex_t lock;
	const struct obf_green *owners[OBF_GREEN_MAX];
	struct obd_limit limits[OBF_GREEN_MAX];
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The owner's place in the table, or for NULL a free one. */
static unsigned place_of(const struct obf_green *owner)
{
	unsigned i = 0;

	while (i < OBF_GREEN_MAX - 1 && table.owners[i] != owner)
		i++;
	return i;
}

static unsigned threads_of(const struct obf_sm_share *share)
{
	unsigned all = obd_pool_threads(obd_module_pool());
	uint32_t of = (uint32_t)obf_device_at(share->split.device)
			      ->attr[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];

	return (unsigned)(((uint64_t)all * share->sms.count + of - 1) / of);
}

CUresult obd_green_create(struct obf_green *green, const struct obf_sm_share *share)
{
	unsigned i;

	green->backend = NULL;
	if (!obd_module_pool()) /* a dry run: nothing is executed */
		return CUDA_SUCCESS;
	pthread_mutex_lock(&table.lock);
	i = place_of(NULL); /* there are as many as green contexts */
	table.owners[i] = green;
	atomic_store_explicit(&table.limits[i].most, threads_of(share), memory_order_relaxed);
	pthread_mutex_unlock(&table.lock);
	green->backend = &table.limits[i];
	return CUDA_SUCCESS;
}

void obd_green_destroy(const struct obf_green *green)
{
	unsigned i;

	pthread_mutex_lock(&table.lock);
	i = place_of(green);
	if (table.owners[i] == green)
		table.owners[i] = NULL;
	pthread_mutex_unlock(&table.lock);
}
