/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/command/answer.h"

#include <assert.h>

#include "base/text.h"

void obx_answer_begin(struct obx_answer *a, bool as_json, const struct obx_devices *devices)
{
	char names[OBX_DEVICES_NAMES] = "";

	obx_devices_report(devices, names);
	a->as_json = as_json;
	if (!as_json)
		return;
	ob_json_begin(&a->json, stdout, OB_JSON_SPACED);
	ob_json_object(&a->json, NULL);
	ob_json_text(&a->json, "device", names);
	obx_devices_print_json(devices->context, &a->json);
}

void obx_answer_bytes(struct obx_answer *a, const char *name, const uint8_t *bytes, size_t n)
{
	char text[2 * OBX_ANSWER_BYTES + 1];

	assert(n <= OBX_ANSWER_BYTES);
	ob_text_hex(bytes, n, text);
	if (a->as_json)
		ob_json_textf(&a->json, name, "0x%s", text);
	else
		printf("%s%s0x%s\n", name ? name : "", name ? " " : "", text);
}

void obx_answer_array(struct obx_answer *a, const char *name)
{
	if (a->as_json)
		ob_json_array(&a->json, name);
}

void obx_answer_array_end(struct obx_answer *a)
{
	if (a->as_json)
		ob_json_end(&a->json);
}

void obx_answer_verified(struct obx_answer *a, bool verified)
{
	if (!a->as_json)
		return;
	if (verified)
		ob_json_bool(&a->json, "verified", true);
	else
		ob_json_null(&a->json, "verified");
}

void obx_answer_end(struct obx_answer *a)
{
	if (!a->as_json)
		return;
	ob_json_end(&a->json);
	putchar('\n');
}
