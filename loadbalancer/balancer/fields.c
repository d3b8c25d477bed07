/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/uuid.h"
#include "loadbalancer/registry/registry.h"

/* ---- reading ---- */

bool obl_get_number(const json_t *object, const char *key, uint64_t max, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret = (uint64_t)json_integer_value(value);
	return *ret <= max;
}

bool obl_get_small(const json_t *object, const char *key, uint32_t max, uint32_t *ret)
{
	uint64_t value;

	if (!obl_get_number(object, key, max, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

bool obl_get_flag(const json_t *object, const char *key, bool *ret)
{
	const json_t *value = json_object_get(object, key);

	*ret = json_is_true(value);
	return json_is_boolean(value);
}

bool obl_get_text(const json_t *object, const char *key, char *ret, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text || strlen(text) >= size)
		return false;
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	memcpy(ret, text, strlen(text) + 1);
	return true;
}

bool obl_get_name(const json_t *object, const char *key, char ret[OBP_POOL_NAME_MAX])
{
	return obl_get_text(object, key, ret, OBP_POOL_NAME_MAX) && obl_name_valid(ret);
}

bool obl_get_hex(const json_t *object, const char *key, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	char text[17];

	if (!obl_get_text(object, key, text, sizeof text) || strlen(text) != 16)
		return false;
	*ret = 0;
	for (unsigned i = 0; i < 16; i++) {
		const char *digit = strchr(digits, text[i]);

		if (!digit)
			return false;
		*ret = *ret << 4 | (unsigned)(digit - digits);
	}
	return true;
}

bool obl_get_uuid(const json_t *object, const char *key, uint8_t ret[16])
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && ob_uuid_parse(text, ret);
}

bool obl_get_id(const json_t *object, const char *key, uint8_t ret[OBP_RESERVATION_BYTES])
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && obl_id_parse(text, ret);
}

const json_t *obl_get_list(const json_t *object, const char *key, uint32_t max, uint32_t *ret_n)
{
	const json_t *list = json_object_get(object, key);

	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > max)
		return NULL;
	*ret_n = (uint32_t)json_array_size(list);
	return list;
}

bool obl_read_with(const char *text, bool (*fill)(const json_t *object, void *ret), void *ret)
{
	json_t *object = strlen(text) < OBL_VALUE_MAX
		? json_loads(text, JSON_REJECT_DUPLICATES, NULL)
		: NULL;
	bool good = json_is_object(object) && fill(object, ret);

	json_decref(object);
	return good;
}

/* ---- writing ---- */

void obl_put_number(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(
		object, key, json_integer((json_int_t)ob_min(value, (uint64_t)INT64_MAX)));
}

void obl_put_flag(json_t *object, const char *key, bool value)
{
	json_object_set_new(object, key, json_boolean(value));
}

void obl_put_text(json_t *object, const char *key, const char *text)
{
	json_t *value;
	char clean[OBL_VALUE_MAX];
	size_t n = 0;

	for (; text[n] && n < sizeof clean - 1; n++)
		clean[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
	clean[n] = '\0';
	value = json_string(clean);
	for (size_t i = 0; !value && i < n; i++)
		if ((unsigned char)clean[i] >= 0x80)
			clean[i] = '?';
	json_object_set_new(object, key, value ? value : json_string(clean));
}

void obl_put_hex(json_t *object, const char *key, uint64_t value)
{
	char text[17];

	snprintf(text, sizeof text, "%016" PRIx64, value);
	json_object_set_new(object, key, json_string(text));
}

void obl_put_uuid(json_t *object, const char *key, const uint8_t uuid[16])
{
	char text[OB_UUID_TEXT];

	ob_uuid_print(uuid, text);
	json_object_set_new(object, key, json_string(text));
}

void obl_put_id(json_t *object, const char *key, const uint8_t id[OBP_RESERVATION_BYTES])
{
	char text[OBL_ID_TEXT];

	obl_id_print(id, text);
	json_object_set_new(object, key, json_string(text));
}

char *obl_object_text(json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	json_decref(object);
	if (text && strlen(text) >= OBL_VALUE_MAX) {
		free(text);
		text = NULL;
	}
	return text;
}
