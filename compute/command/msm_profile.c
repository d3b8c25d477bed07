/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/msm_profile.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "compute/command/progress.h"
#include "compute/msm/tune.h"
#include "compute/msm/tune_measure.h"
#include "tools/command.h"

static int refused(const struct obk_fault *fault)
{
	fprintf(stderr, "outboard msm: %s\n", fault->text);
	return OBX_EXIT_UNWELL;
}

int obx_msm_tune(const struct obx_devices *devices, unsigned largest, bool as_json)
{
	struct obx_progress bar;
	struct obk_fault fault;
	struct obk_pool *pool;
	char path[OBK_PROFILE_MAX_PATH];
	enum ob_err err;

	if (obk_tune_load_default(&fault) != OB_ERR_NONE)
		fprintf(stderr, "outboard msm: %s\n", fault.text);
	if (!obk_tune_path(path, sizeof path)) {
		fprintf(stderr,
			"outboard msm: there is no folder for the profile: set XDG_CACHE_HOME or "
			"HOME\n");
		return OBX_EXIT_UNWELL;
	}
	/* store the current profile first, to detect at once a folder that is not writable */
	if (obk_tune_store(path, &fault))
		return refused(&fault);
	pool = obx_devices_pool(devices);
	if (!pool)
		return OBX_EXIT_USAGE;
	obx_progress_begin(&bar, "measuring");
	err = obk_tune_measure(pool, largest, obx_progress_step, &bar, &fault);
	obx_progress_end(&bar);
	obk_pool_free(pool);
	if (!err)
		err = obk_tune_store(path, &fault);
	if (err)
		return refused(&fault);
	if (as_json) {
		obk_tune_print_json(stdout);
	} else {
		obk_tune_print(stdout);
		printf("kept in %s\n", path);
	}
	return 0;
}

static const struct {
	const char *name;
	uint32_t operation;
} operations[] = { { "msm", OUTBOARD_OP_MSM }, { "ntt", OUTBOARD_OP_NTT },
	{ "kzg", OUTBOARD_OP_KZG }, { "rqa", OUTBOARD_OP_RQA } };

/* Prints a device, and for each operation the smallest size for which it is preferred. */
static void print_text(struct outboard *context, uint32_t i, const struct outboard_device *device)
{
	printf("%-8s %s, score %.2f", device->name, device->what, device->score);
	for (size_t k = 0; k < ob_count(operations); k++) {
		uint64_t from = outboard_threshold(context, i, operations[k].operation);

		if (from == UINT64_MAX)
			printf("  %s never", operations[k].name);
		else
			printf("  %s from %llu", operations[k].name, (unsigned long long)from);
	}
	putchar('\n');
}

static void print_json(struct outboard *context, uint32_t i, const struct outboard_device *device,
	struct ob_json *json)
{
	ob_json_object(json, NULL);
	ob_json_text(json, "name", device->name);
	ob_json_text(json, "what", device->what);
	ob_json_fixed(json, "score", device->score, 2);
	for (size_t k = 0; k < ob_count(operations); k++) {
		uint64_t from = outboard_threshold(context, i, operations[k].operation);
		char key[16];

		snprintf(key, sizeof key, "%s_from", operations[k].name);
		if (from == UINT64_MAX)
			ob_json_null(json, key);
		else
			ob_json_uint(json, key, from);
	}
	ob_json_end(json);
}

static void print_devices(struct outboard *context, bool as_json)
{
	struct outboard_device device;
	struct ob_json json;

	ob_json_begin(&json, stdout, OB_JSON_SPACED);
	if (as_json) {
		ob_json_object(&json, NULL);
		ob_json_array(&json, "devices");
	}
	for (uint32_t i = 0; outboard_device_get(context, i, &device) == OUTBOARD_OK; i++) {
		if (as_json)
			print_json(context, i, &device, &json);
		else
			print_text(context, i, &device);
	}
	if (as_json) {
		ob_json_end(&json);
		ob_json_end(&json);
		putchar('\n');
	}
}

int obx_msm_calibrate(struct obx_devices *devices, double seconds, bool as_json)
{
	struct outboard_error error;
	int code = OBX_EXIT_UNWELL, status;

	if (!obx_devices_open(devices, INFINITY, &code))
		return code;
	status = outboard_calibrate(devices->context, seconds, &error);
	if (status == OUTBOARD_OK)
		print_devices(devices->context, as_json);
	else
		obx_devices_refused(devices, &error);
	obx_devices_close(devices);
	return status == OUTBOARD_OK ? 0 : OBX_EXIT_UNWELL;
}
