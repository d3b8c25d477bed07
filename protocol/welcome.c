/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/welcome.h"

#include "base/check.h"
#include "base/cuda_types.h"

_Static_assert(OB_CAUSE_TEXT >= OBP_TEXT_MAX, "a refusal's text fits into a cause");

/*
 * Bounds of attributes that the client calculates with (sizes of launches, occupancy). Real devices
 * are well within them.
 */
static const struct {
	CUdevice_attribute attr;
	int32_t least, most;
} limits[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1, 1 << 16 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1, 1 << 10 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1, 1 << 16 },
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1, 1 << 20 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 1, 1 << 14 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 0, 1 << 24 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 0, 1 << 24 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0, 1 << 30 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0, 1 << 30 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0, 1 << 30 },
	{ CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0, 1 << 30 },
	{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0, INT32_MAX },
	{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0, 1 << 24 },
};

bool obp_slab_possible(const struct obp_range *slab)
{
	return slab->base && slab->size && slab->size <= OBP_SLAB_MAX &&
		slab->base % OBP_SLAB_PAGE == 0 && slab->size % OBP_SLAB_PAGE == 0 &&
		slab->size <= UINT64_MAX - slab->base;
}

static bool range_inside(const struct obp_range *range, const struct obp_range *outer)
{
	return range->base >= outer->base &&
		ob_span_inside(range->base - outer->base, range->size, outer->size);
}

static bool ranges_overlap(const struct obp_range *a, const struct obp_range *b)
{
	return a->size && b->size && a->base < b->base + b->size && b->base < a->base + a->size;
}

/*
 * The range must be one that the client offered or, when the server could take none of those, a
 * range of the server that is possible in the client's process.
 */
static const char *range_wrong(const struct obp_hello *hello, const struct obp_welcome *welcome)
{
	const struct obp_range *range = &welcome->range;
	uint64_t most = 0;

	for (uint32_t i = 0; i < hello->n_ranges; i++) {
		if (welcome->range_ok && hello->ranges[i].base == range->base &&
			hello->ranges[i].size == range->size)
			return NULL;
		most = ob_max(most, hello->ranges[i].size);
	}
	if (welcome->range_ok)
		return "it names an address range that was not offered";
	if (range->size == 0)
		return NULL; /* the server has no range: the client answers that it took none */
	if (range->base == 0 || range->base % OBP_RANGE_ALIGN || range->size > most ||
		range->base > OBP_RANGE_END - range->size)
		return "its address range cannot lie in this process";
	return NULL;
}

/* Whether the device has a first slab that the server may not make. */
static bool slab_wrong(const struct obp_welcome *welcome, const struct obp_device *device)
{
	const struct obp_range *slab = &device->range;

	return slab->size &&
		(device->grant != slab->size || slab->size > welcome->slabs ||
			!obp_slab_possible(slab));
}

static const char *devices_wrong(const struct obp_welcome *welcome)
{
	for (uint32_t i = 0; i < welcome->n_devices; i++) {
		const struct obp_device *device = &welcome->devices[i];

		for (size_t k = 0; k < ob_count(limits); k++)
			if (device->attr_known[limits[k].attr] &&
				(device->attr[limits[k].attr] < limits[k].least ||
					device->attr[limits[k].attr] > limits[k].most))
				return "an attribute of a device is one that no device has";
		if (!welcome->vmm && slab_wrong(welcome, device))
			return "the memory that it grants is not aligned, or larger than it may be";
		if (welcome->vmm && welcome->range.size == 0)
			continue;
		if (welcome->vmm &&
			(device->range.base % OBP_RANGE_ALIGN ||
				device->range.size < OBP_RANGE_ALIGN ||
				device->grant > device->range.size ||
				!range_inside(&device->range, &welcome->range)))
			return "the addresses of a device lie outside the session's range";
		for (uint32_t k = 0; k < i; k++)
			if (ranges_overlap(&device->range, &welcome->devices[k].range))
				return "two devices have the same addresses";
	}
	return NULL;
}

/* NULL: nothing. */
static const char *welcome_wrong(const struct obp_message *hello, const struct obp_message *answer)
{
	const struct obp_welcome *welcome = &answer->welcome;
	const char *wrong = NULL;

	if (answer->type != OBP_MSG_WELCOME || welcome->route == 0)
		return "its answer to the hello is neither a welcome nor a refusal";
	if (welcome->codecs & ~hello->hello.codecs)
		return "it would pack frames in a way that was not offered";
	if (answer->shm && answer->shm != hello->shm)
		return "it takes shared memory that was not offered";
	if (welcome->slabs > (hello->hello.slabs ? OBP_SLAB_MAX : 0))
		return "it would grant memory in a way that was not offered";
	if (welcome->vmm)
		wrong = range_wrong(&hello->hello, welcome);
	return wrong ? wrong : devices_wrong(welcome);
}

enum ob_err obp_welcome_check(const struct obp_message *hello, const struct obp_message *answer,
	struct ob_cause *ret_cause)
{
	const char *wrong = welcome_wrong(hello, answer);

	return wrong ? ob_cause_set(ret_cause, OB_ERR_PROTOCOL, "%s", wrong) : OB_ERR_NONE;
}
