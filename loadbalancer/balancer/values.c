/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/values.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "loadbalancer/registry/registry.h"

/* ---- names and numbers ---- */

bool obl_name_valid(const char *name)
{
	size_t n = strspn(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return n > 0 && n < OBP_POOL_NAME_MAX && !name[n] && name[0] != '.';
}

void obl_id_print(const uint8_t id[OBP_RESERVATION_BYTES], char ret_text[OBL_ID_TEXT])
{
	ob_text_hex(id, OBP_RESERVATION_BYTES, ret_text);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool obl_id_parse(const char *text, uint8_t ret_id[OBP_RESERVATION_BYTES])
{
	for (unsigned i = 0; i < OBP_RESERVATION_BYTES; i++) {
		int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		ret_id[i] = (uint8_t)(high << 4 | low);
	}
	return !text[OBL_ID_TEXT - 1];
}

/* ---- reading ----
 * Each function returns false for a field that is missing, has another type or is out of bounds. */

static bool get_number(const json_t *object, const char *key, uint64_t max, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret = (uint64_t)json_integer_value(value);
	return *ret <= max;
}

static bool get_small(const json_t *object, const char *key, uint32_t max, uint32_t *ret)
{
	uint64_t value;

	if (!get_number(object, key, max, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

static bool get_flag(const json_t *object, const char *key, bool *ret)
{
	const json_t *value = json_object_get(object, key);

	*ret = json_is_true(value);
	return json_is_boolean(value);
}

/* Control characters are refused: the texts are printed. */
static bool get_text(const json_t *object, const char *key, char *ret, size_t size)
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

static bool get_name(const json_t *object, const char *key, char ret[OBP_POOL_NAME_MAX])
{
	return get_text(object, key, ret, OBP_POOL_NAME_MAX) && obl_name_valid(ret);
}

static bool get_hex(const json_t *object, const char *key, uint64_t *ret)
{
	char text[17];

	if (!get_text(object, key, text, sizeof text) || strlen(text) != 16)
		return false;
	*ret = 0;
	for (unsigned i = 0; i < 16; i++) {
		int value = digit(text[i]);

		if (value < 0)
			return false;
		*ret = *ret << 4 | (unsigned)value;
	}
	return true;
}

static bool get_uuid(const json_t *object, const char *key, uint8_t ret[16])
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && ob_uuid_parse(text, ret);
}

static bool get_id(const json_t *object, const char *key, uint8_t ret[OBP_RESERVATION_BYTES])
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && obl_id_parse(text, ret);
}

/* An array of 1 to `max` values. */
static const json_t *get_list(const json_t *object, const char *key, uint32_t max, uint32_t *ret_n)
{
	const json_t *list = json_object_get(object, key);

	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > max)
		return NULL;
	*ret_n = (uint32_t)json_array_size(list);
	return list;
}

/* Parses a text and passes its object to `fill`. */
static bool read_with(
	const char *text, bool (*fill)(const json_t *object, void *ret), void *ret)
{
	json_t *object = strlen(text) < OBL_VALUE_MAX
		? json_loads(text, JSON_REJECT_DUPLICATES, NULL)
		: NULL;
	bool good = json_is_object(object) && fill(object, ret);

	json_decref(object);
	return good;
}

/* ---- writing ---- */

static void put_number(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)(value & INT64_MAX)));
}

static void put_flag(json_t *object, const char *key, bool value)
{
	json_object_set_new(object, key, json_boolean(value));
}

/* Bytes that are not UTF-8, and control characters, are replaced. */
static void put_text(json_t *object, const char *key, const char *text)
{
	json_t *value;
	char clean[OBL_URLS_TEXT];
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

static void put_hex(json_t *object, const char *key, uint64_t value)
{
	char text[17];

	snprintf(text, sizeof text, "%016" PRIx64, value);
	json_object_set_new(object, key, json_string(text));
}

static void put_uuid(json_t *object, const char *key, const uint8_t uuid[16])
{
	char text[OB_UUID_TEXT];

	ob_uuid_print(uuid, text);
	json_object_set_new(object, key, json_string(text));
}

static void put_id(json_t *object, const char *key, const uint8_t id[OBP_RESERVATION_BYTES])
{
	char text[OBL_ID_TEXT];

	obl_id_print(id, text);
	json_object_set_new(object, key, json_string(text));
}

/* The object's text; drops the object. */
static char *text_of(json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	json_decref(object);
	if (text && strlen(text) >= OBL_VALUE_MAX) {
		free(text);
		text = NULL;
	}
	return text;
}

/* ---- servers ---- */

static bool known_device_fill(const json_t *o, struct obl_known_device *ret)
{
	return get_uuid(o, "uuid", ret->uuid) && get_text(o, "name", ret->name, sizeof ret->name) &&
		get_number(o, "total", OBL_MEMORY_MAX, &ret->total) &&
		get_small(o, "units", OBL_COUNT_MAX, &ret->units) &&
		get_small(o, "clock_khz", UINT32_MAX, &ret->clock_khz) &&
		get_small(o, "capability", 1000, &ret->capability) &&
		get_flag(o, "soft", &ret->soft);
}

static bool known_server_fill(const json_t *o, void *out)
{
	struct obl_known_server *ret = out;
	const json_t *list;

	if (!get_hex(o, "incarnation", &ret->incarnation) || !ret->incarnation ||
		!get_text(o, "version", ret->version, sizeof ret->version) ||
		!get_text(o, "urls", ret->urls, sizeof ret->urls) ||
		!get_text(o, "pin", ret->pin, sizeof ret->pin) ||
		!get_text(o, "labels", ret->labels, sizeof ret->labels) ||
		!get_small(o, "cuda", 1000000, &ret->cuda) ||
		!(list = get_list(o, "devices", OBP_DEVICE_MAX, &ret->n_devices)))
		return false;
	for (uint32_t i = 0; i < ret->n_devices; i++)
		if (!known_device_fill(json_array_get(list, i), &ret->devices[i]))
			return false;
	return true;
}

bool obl_known_server_read(const char *text, struct obl_known_server *ret)
{
	return read_with(text, known_server_fill, ret);
}

char *obl_known_server_write(const struct obl_known_server *server)
{
	json_t *o = json_object(), *list = json_array();

	put_hex(o, "incarnation", server->incarnation);
	put_text(o, "version", server->version);
	put_text(o, "urls", server->urls);
	put_text(o, "pin", server->pin);
	put_text(o, "labels", server->labels);
	put_number(o, "cuda", server->cuda);
	for (uint32_t i = 0; i < server->n_devices; i++) {
		const struct obl_known_device *d = &server->devices[i];
		json_t *device = json_object();

		put_uuid(device, "uuid", d->uuid);
		put_text(device, "name", d->name);
		put_number(device, "total", d->total);
		put_number(device, "units", d->units);
		put_number(device, "clock_khz", d->clock_khz);
		put_number(device, "capability", d->capability);
		put_flag(device, "soft", d->soft);
		json_array_append_new(list, device);
	}
	json_object_set_new(o, "devices", list);
	return text_of(o);
}

/* ---- ledgers ---- */

static bool ledger_device_fill(const json_t *o, struct obl_ledger_device *ret)
{
	return get_uuid(o, "uuid", ret->uuid) &&
		get_number(o, "total", OBL_MEMORY_MAX, &ret->total) &&
		get_number(o, "reserved", OBL_MEMORY_MAX, &ret->reserved) &&
		get_number(o, "share", UINT32_MAX, &ret->share) &&
		get_small(o, "sharers", OBL_COUNT_MAX, &ret->sharers) &&
		get_flag(o, "exclusive", &ret->exclusive);
}

static bool ledger_fill(const json_t *o, void *out)
{
	struct obl_ledger *ret = out;
	const json_t *list;

	if (!get_hex(o, "incarnation", &ret->incarnation) ||
		!get_number(o, "fence", INT64_MAX, &ret->fence) ||
		!(list = get_list(o, "devices", OBP_DEVICE_MAX, &ret->n_devices)))
		return false;
	for (uint32_t i = 0; i < ret->n_devices; i++)
		if (!ledger_device_fill(json_array_get(list, i), &ret->devices[i]))
			return false;
	return true;
}

bool obl_ledger_read(const char *text, struct obl_ledger *ret)
{
	return read_with(text, ledger_fill, ret);
}

char *obl_ledger_write(const struct obl_ledger *ledger)
{
	json_t *o = json_object(), *list = json_array();

	put_hex(o, "incarnation", ledger->incarnation);
	put_number(o, "fence", ledger->fence);
	for (uint32_t i = 0; i < ledger->n_devices; i++) {
		const struct obl_ledger_device *d = &ledger->devices[i];
		json_t *device = json_object();

		put_uuid(device, "uuid", d->uuid);
		put_number(device, "total", d->total);
		put_number(device, "reserved", d->reserved);
		put_number(device, "share", d->share);
		put_number(device, "sharers", d->sharers);
		put_flag(device, "exclusive", d->exclusive);
		json_array_append_new(list, device);
	}
	json_object_set_new(o, "devices", list);
	return text_of(o);
}

/* ---- reservations ---- */

static bool holding_fill(const json_t *o, struct obl_holding *ret)
{
	const json_t *list;

	if (!get_name(o, "server", ret->server) || !get_hex(o, "incarnation", &ret->incarnation) ||
		!get_number(o, "fence", INT64_MAX, &ret->fence) ||
		!get_number(o, "memory", OBL_MEMORY_MAX, &ret->memory) ||
		!(list = get_list(o, "devices", OBP_DEVICE_MAX, &ret->n_devices)))
		return false;
	for (uint32_t i = 0; i < ret->n_devices; i++) {
		const char *uuid = json_string_value(json_array_get(list, i));

		if (!uuid || !ob_uuid_parse(uuid, ret->devices[i]))
			return false;
	}
	return true;
}

static bool reservation_fill(const json_t *o, void *out)
{
	struct obl_reservation *ret = out;
	const json_t *list;

	if (!get_id(o, "id", ret->id) || !get_name(o, "tenant", ret->tenant) ||
		!get_text(o, "program", ret->program, sizeof ret->program) ||
		!get_text(o, "host", ret->host, sizeof ret->host) ||
		!get_text(o, "user", ret->user, sizeof ret->user) ||
		!get_text(o, "apart", ret->apart, sizeof ret->apart) ||
		!get_number(o, "pid", INT64_MAX, &ret->pid) ||
		!get_number(o, "issued", INT64_MAX, &ret->issued) ||
		!get_number(o, "expires", INT64_MAX, &ret->expires) ||
		!get_small(o, "share", OBP_SHARE_ALL, &ret->share) ||
		!get_small(o, "priority", 3, &ret->priority) || ret->priority == 0 ||
		!get_small(o, "linger", OBP_POOL_LINGER_MAX_S, &ret->linger_s) ||
		!get_flag(o, "exclusive", &ret->exclusive) ||
		!get_flag(o, "restartable", &ret->restartable) ||
		!get_small(o, "granted", OBP_POOL_PARTS_MAX, &ret->granted) ||
		!(list = get_list(o, "parts", OBP_POOL_PARTS_MAX, &ret->n_parts)) ||
		ret->granted < ret->n_parts)
		return false;
	for (uint32_t i = 0; i < ret->n_parts; i++)
		if (!holding_fill(json_array_get(list, i), &ret->parts[i]))
			return false;
	return true;
}

bool obl_reservation_read(const char *text, struct obl_reservation *ret)
{
	return read_with(text, reservation_fill, ret);
}

static json_t *holding_write(const struct obl_holding *part)
{
	json_t *o = json_object(), *list = json_array();
	char uuid[OB_UUID_TEXT];

	put_text(o, "server", part->server);
	put_hex(o, "incarnation", part->incarnation);
	put_number(o, "fence", part->fence);
	put_number(o, "memory", part->memory);
	for (uint32_t i = 0; i < part->n_devices; i++) {
		ob_uuid_print(part->devices[i], uuid);
		json_array_append_new(list, json_string(uuid));
	}
	json_object_set_new(o, "devices", list);
	return o;
}

char *obl_reservation_write(const struct obl_reservation *r)
{
	json_t *o = json_object(), *list = json_array();

	put_id(o, "id", r->id);
	put_text(o, "tenant", r->tenant);
	put_text(o, "program", r->program);
	put_text(o, "host", r->host);
	put_text(o, "user", r->user);
	put_text(o, "apart", r->apart);
	put_number(o, "pid", r->pid);
	put_number(o, "issued", r->issued);
	put_number(o, "expires", r->expires);
	put_number(o, "share", r->share);
	put_number(o, "priority", r->priority);
	put_number(o, "linger", r->linger_s);
	put_flag(o, "exclusive", r->exclusive);
	put_flag(o, "restartable", r->restartable);
	put_number(o, "granted", r->granted);
	for (uint32_t i = 0; i < r->n_parts; i++)
		json_array_append_new(list, holding_write(&r->parts[i]));
	json_object_set_new(o, "parts", list);
	return text_of(o);
}

/* ---- the queue ---- */

static bool queued_fill(const json_t *o, void *out)
{
	struct obl_queued *ret = out;
	struct obp_pool_ask *ask = &ret->ask;

	*ret = (struct obl_queued){ .since = 0 };
	return get_name(o, "balancer", ret->balancer) && get_name(o, "tenant", ret->tenant) &&
		get_number(o, "since", INT64_MAX, &ret->since) &&
		get_number(o, "until", INT64_MAX, &ret->until) && get_id(o, "id", ask->id) &&
		get_small(o, "gpus", OBP_POOL_GPUS_MAX, &ask->gpus) && ask->gpus > 0 &&
		get_number(o, "memory", OBL_MEMORY_MAX, &ask->memory) &&
		get_small(o, "share", OBP_SHARE_ALL, &ask->share) &&
		get_small(o, "priority", 3, &ask->priority) && ask->priority > 0 &&
		get_small(o, "exclusive", 1, &ask->exclusive) &&
		get_small(o, "one_server", 1, &ask->one_server) &&
		get_small(o, "policy", OBL_POLICY_COUNT, &ask->policy) &&
		get_small(o, "cuda", 1000000, &ask->cuda) &&
		get_small(o, "restartable", 1, &ask->restartable) &&
		get_text(o, "where", ask->where, sizeof ask->where) &&
		get_text(o, "apart", ask->apart, sizeof ask->apart) &&
		get_text(o, "program", ask->program, sizeof ask->program) &&
		get_text(o, "host", ask->host, sizeof ask->host) &&
		get_text(o, "user", ask->user, sizeof ask->user);
}

bool obl_queued_read(const char *text, struct obl_queued *ret)
{
	return read_with(text, queued_fill, ret);
}

char *obl_queued_write(const struct obl_queued *queued)
{
	const struct obp_pool_ask *ask = &queued->ask;
	json_t *o = json_object();

	put_text(o, "balancer", queued->balancer);
	put_text(o, "tenant", queued->tenant);
	put_number(o, "since", queued->since);
	put_number(o, "until", queued->until);
	put_id(o, "id", ask->id);
	put_number(o, "gpus", ask->gpus);
	put_number(o, "memory", ask->memory);
	put_number(o, "share", ask->share);
	put_number(o, "priority", ask->priority);
	put_number(o, "exclusive", ask->exclusive);
	put_number(o, "one_server", ask->one_server);
	put_number(o, "policy", ask->policy);
	put_number(o, "cuda", ask->cuda);
	put_number(o, "restartable", ask->restartable);
	put_text(o, "where", ask->where);
	put_text(o, "apart", ask->apart);
	put_text(o, "program", ask->program);
	put_text(o, "host", ask->host);
	put_text(o, "user", ask->user);
	return text_of(o);
}

/* ---- tenants, operators, events ---- */

static bool usage_fill(const json_t *o, void *out)
{
	struct obl_usage *ret = out;

	return get_small(o, "gpus", UINT32_MAX, &ret->gpus) &&
		get_small(o, "reservations", UINT32_MAX, &ret->sessions) &&
		get_number(o, "memory", INT64_MAX, &ret->memory) &&
		get_number(o, "share", INT64_MAX, &ret->share);
}

bool obl_usage_read(const char *text, struct obl_usage *ret)
{
	return read_with(text, usage_fill, ret);
}

char *obl_usage_write(const struct obl_usage *usage)
{
	json_t *o = json_object();

	put_number(o, "gpus", usage->gpus);
	put_number(o, "reservations", usage->sessions);
	put_number(o, "memory", usage->memory);
	put_number(o, "share", usage->share);
	return text_of(o);
}

static bool limits_fill(const json_t *o, void *out)
{
	char text[OBL_QUOTA_TEXT_MAX];

	return get_text(o, "limits", text, sizeof text) && !obl_quota_parse(text, out, NULL);
}

bool obl_limits_read(const char *text, struct obl_quota *ret)
{
	return read_with(text, limits_fill, ret);
}

char *obl_limits_write(const struct obl_quota *limits)
{
	char text[OBL_QUOTA_TEXT_MAX];
	json_t *o = json_object();

	obl_quota_print(limits, text, sizeof text);
	put_text(o, "limits", text);
	return text_of(o);
}

static bool operator_fill(const json_t *o, void *out)
{
	struct obl_operator *ret = out;

	return get_flag(o, "cordoned", &ret->cordoned) && get_flag(o, "draining", &ret->draining) &&
		get_number(o, "since", INT64_MAX, &ret->since) &&
		get_number(o, "grace_ms", OBP_POOL_LINGER_MAX_S * UINT64_C(1000), &ret->grace_ms) &&
		get_text(o, "by", ret->by, sizeof ret->by);
}

bool obl_operator_read(const char *text, struct obl_operator *ret)
{
	return read_with(text, operator_fill, ret);
}

char *obl_operator_write(const struct obl_operator *state)
{
	json_t *o = json_object();

	put_flag(o, "cordoned", state->cordoned);
	put_flag(o, "draining", state->draining);
	put_number(o, "since", state->since);
	put_number(o, "grace_ms", state->grace_ms);
	put_text(o, "by", state->by);
	return text_of(o);
}

static bool alive_fill(const json_t *o, void *out)
{
	return get_hex(o, "incarnation", out);
}

bool obl_alive_read(const char *text, uint64_t *ret_incarnation)
{
	return read_with(text, alive_fill, ret_incarnation);
}

char *obl_alive_write(uint64_t incarnation)
{
	json_t *o = json_object();

	put_hex(o, "incarnation", incarnation);
	return text_of(o);
}

static bool event_fill(const json_t *o, void *out)
{
	struct obl_event *ret = out;

	return get_number(o, "time_ms", INT64_MAX, &ret->time_ms) &&
		get_text(o, "kind", ret->kind, sizeof ret->kind) &&
		get_text(o, "subject", ret->subject, sizeof ret->subject) &&
		get_text(o, "text", ret->text, sizeof ret->text) &&
		get_small(o, "count", UINT32_MAX, &ret->count);
}

bool obl_event_read(const char *text, struct obl_event *ret)
{
	return read_with(text, event_fill, ret);
}

char *obl_event_write(const struct obl_event *event)
{
	json_t *o = json_object();

	put_number(o, "time_ms", event->time_ms);
	put_text(o, "kind", event->kind);
	put_text(o, "subject", event->subject);
	put_text(o, "text", event->text);
	put_number(o, "count", event->count);
	return text_of(o);
}
