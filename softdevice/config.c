/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/machine_uuid.h"
#include "base/text.h"
#include "base/uuid.h"

struct obd_config obd_config;

static bool number_read(const char *name, unsigned min, unsigned max, unsigned usual, unsigned *ret)
{
	const char *text = getenv(name);
	uint64_t n = usual;

	if (text && *text && !ob_text_parse_number(text, min, max, &n)) {
		ob_error("%s=%s is not a number from %u to %u", name, text, min, max);
		return false;
	}
	*ret = (unsigned)n;
	return true;
}

static bool model_read(const struct obd_model **ret)
{
	const char *text = getenv("OUTBOARD_DRYRUN");

	*ret = text && *text ? obd_model_find(text) : NULL;
	if (*ret || !text || !*text)
		return true;
	ob_error(
		"OUTBOARD_DRYRUN=%s is not a GPU that a dry run knows: %s", text, obd_model_list());
	return false;
}

/* What this machine has, or less if a control group limits its memory. */
static uint64_t machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
	unsigned long long limit;

	if (file) {
		/* "max": no limit */
		if (fscanf(file, "%llu", &limit) == 1 && limit < bytes)
			bytes = limit;
		fclose(file);
	}
	return bytes;
}

/*
 * Half of the machine's memory for all devices together, in whole GiB. Pages that no program has
 * touched take none.
 */
static uint64_t memory_usual(unsigned devices)
{
	uint64_t each = machine_memory() / 2 / devices;

	return ob_min(
		ob_max(each & ~((1ull << 30) - 1), OBD_MEMORY_USUAL_MIN), OBD_MEMORY_USUAL_MAX);
}

static bool memory_read(uint64_t usual, uint64_t *ret)
{
	const char *text = getenv("OUTBOARD_SOFT_MEMORY");

	*ret = usual;
	if (!text || !*text)
		return true;
	if (ob_text_parse_size(text, ret) && *ret >= OBD_MEMORY_MIN && *ret <= OBD_MEMORY_MAX) {
		*ret &= ~((2ull << 20) - 1);
		return true;
	}
	ob_error("OUTBOARD_SOFT_MEMORY=%s is not a size from 16M to 1024G, such as 512M or 4G",
		text);
	return false;
}

static bool cc_read(unsigned *ret)
{
	const char *text = getenv("OUTBOARD_SOFT_CC");

	*ret = OB_TEXT_CAPABILITY_MAX;
	if (!text || !*text || ob_text_parse_capability(text, ret))
		return true;
	ob_error("OUTBOARD_SOFT_CC=%s is not a compute capability from 5.0 to 13.0, such as 9.0",
		text);
	return false;
}

static bool base_read(uint64_t *ret)
{
	const char *text = getenv("OUTBOARD_SOFT_BASE");
	char *end;

	*ret = 0;
	if (!text || !*text)
		return true;
	errno = 0;
	*ret = strtoull(text, &end, 16);
	if (errno == 0 && *end == '\0' && *ret != 0 && *ret % (2u << 20) == 0 && *ret < 1ull << 47)
		return true;
	ob_error("OUTBOARD_SOFT_BASE=%s is not a hexadecimal address that is a multiple of 2 MiB",
		text);
	return false;
}

static bool uuid_read(const struct obd_model *model, uint8_t ret[16])
{
	const char *text = getenv("OUTBOARD_SOFT_UUID");

	if (!text || !*text) {
		ob_uuid_of_machine(model ? getenv("OUTBOARD_DRYRUN") : "", ret);
		return true;
	}
	if (ob_uuid_parse(text, ret))
		return true;
	ob_error("OUTBOARD_SOFT_UUID=%.100s is not a UUID such as "
		 "GPU-0012abff-0102-0304-0506-0708090a0b0c",
		text);
	return false;
}

bool obd_config_read(void)
{
	const struct obd_model *model;
	unsigned memcheck, dry_time;

	if (!model_read(&model))
		return false;
	if (!number_read("OUTBOARD_SOFT_DEVICES", 1, OBD_DEVICE_MAX, 1, &obd_config.devices) ||
		!number_read("OUTBOARD_SOFT_MEMCHECK", 0, 1, 0, &memcheck) ||
		!number_read("OUTBOARD_SOFT_SMS", 1, OBD_SM_MAX, 16, &obd_config.sms) ||
		!number_read("OUTBOARD_SOFT_THREADS", 1, OBD_THREAD_MAX, 0, &obd_config.threads) ||
		!number_read("OUTBOARD_DRYRUN_TIME", 0, 1, 1, &dry_time) ||
		!memory_read(model ? model->memory : memory_usual(obd_config.devices),
			&obd_config.memory) ||
		!cc_read(&obd_config.cc) || !base_read(&obd_config.base) ||
		!uuid_read(model, obd_config.uuid))
		return false;
	obd_config.memcheck = memcheck != 0 && !model;
	obd_config.dry_time = dry_time != 0;
	obd_config.model = model;
	if (model) {
		obd_config.cc = model->cc;
		obd_config.sms = model->sms;
	}
	return true;
}
