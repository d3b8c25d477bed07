/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/load.h"

#include <stdlib.h>

#include "base/check.h"
#include "protocol/load_map.h"

/*
 * Lists of the numbers of each structure, used for encoding and decoding: X(key, field, maximum).
 */
/* clang-format off */
#define LOAD_NUMBERS(X)                                                                                            \
	X("draining", draining, 1) X("sessions", sessions, UINT32_MAX) X("max_sessions", max_sessions, UINT32_MAX)  \
	X("warm", warm, UINT32_MAX) X("starting", starting, UINT32_MAX) X("busy", busy, 1000)                       \
	X("uptime", uptime_ns, UINT64_MAX) X("sessions_total", sessions_total, UINT64_MAX)                          \
	X("refused_total", refused_total, UINT64_MAX) X("deaths_total", deaths_total, UINT64_MAX)    \
	X("cuda", cuda_version, UINT32_MAX) X("memory_limit", memory_limit, UINT64_MAX)
/* clang-format on */
/* clang-format off */
#define DEVICE_NUMBERS(X)                                                                                          \
	X("total", total, UINT64_MAX) X("used", used, UINT64_MAX) X("units", units, UINT32_MAX)                      \
	X("clock", clock_khz, UINT32_MAX) X("capability", capability, UINT32_MAX) X("sharers", sharers, UINT32_MAX)  \
	X("ptx_only", ptx_only, 1) X("share_by", share_by, (2u << OBP_SHARE_BY_MAX) - 1)
/* clang-format on */
/* clang-format off */
#define SESSION_NUMBERS(X)                                                                                         \
	X("id", id, UINT64_MAX) X("pid", pid, UINT64_MAX) X("age", age_ns, UINT64_MAX)                         \
	X("idle", idle_ns, UINT64_MAX) X("memory", memory, UINT64_MAX) X("limit", memory_limit, UINT64_MAX)          \
	X("calls", calls, UINT64_MAX) X("replies", replies, UINT64_MAX) X("in", bytes_in, UINT64_MAX)                \
	X("out", bytes_out, UINT64_MAX) X("device", device_ns, UINT64_MAX) X("throttled", throttled_ns, UINT64_MAX)  \
	X("refusals", refusals, UINT64_MAX) X("share", share, OBP_SHARE_ALL) X("priority", priority, 2)              \
	X("conduct", throttle, OBP_THROTTLE_COUNT - 1) X("share_by", share_by, OBP_SHARE_BY_MAX)
/* clang-format on */

#define COUNT_ONE(key, field, max) +1
#define PUT_ONE(key, field, max)   obp_put_number(p, key, from->field);
#define GET_ONE(key_text, field, max)                      \
	if (obp_key_is(key, key_text)) {                   \
		if (!obp_get_number(value, max, &number))  \
			return false;                      \
		to->field = (__typeof__(to->field))number; \
		return true;                               \
	}

static void put_facts(msgpack_packer *p, const struct obp_facts *from)
{
	msgpack_pack_map(p, (uint32_t)__builtin_popcountll(from->known));
	for (unsigned i = 0; i < OBP_FACT_COUNT; i++)
		if (from->known >> i & 1)
			obp_put_number(p, obp_fact_name(i), from->value[i]);
}

static void put_device(msgpack_packer *p, const struct obp_load_device *from)
{
	msgpack_pack_map(p, 2 + (from->facts.known != 0) DEVICE_NUMBERS(COUNT_ONE));
	obp_put_text(p, "name", from->name);
	obp_put_bytes(p, "uuid", from->uuid, sizeof from->uuid);
	DEVICE_NUMBERS(PUT_ONE)
	if (!from->facts.known)
		return;
	obp_put_string(p, "facts");
	put_facts(p, &from->facts);
}

/* Trailing devices without memory are left out. */
static void put_used(msgpack_packer *p, const uint64_t used[OBP_DEVICE_MAX])
{
	uint32_t n = OBP_DEVICE_MAX;

	while (n && !used[n - 1])
		n--;
	msgpack_pack_array(p, n);
	for (uint32_t i = 0; i < n; i++)
		msgpack_pack_uint64(p, used[i]);
}

static void put_session(msgpack_packer *p, const struct obp_load_session *from)
{
	msgpack_pack_map(p, 3 SESSION_NUMBERS(COUNT_ONE));
	obp_put_text(p, "program", from->program);
	obp_put_text(p, "client", from->client);
	SESSION_NUMBERS(PUT_ONE)
	obp_put_string(p, "used");
	put_used(p, from->used);
}

void obp_load_put(msgpack_packer *p, const struct obp_load *from)
{
	msgpack_pack_map(p, 6 LOAD_NUMBERS(COUNT_ONE));
	obp_put_number(p, "type", OBP_LOAD_TYPE);
	obp_put_text(p, "version", from->version);
	obp_put_text(p, "driver", from->driver);
	obp_put_text(p, "nvidia", from->nvidia_version);
	LOAD_NUMBERS(PUT_ONE)
	obp_put_string(p, "devices");
	msgpack_pack_array(p, from->n_devices);
	for (uint32_t i = 0; i < from->n_devices; i++)
		put_device(p, &from->devices[i]);
	obp_put_string(p, "listed");
	msgpack_pack_array(p, from->n_sessions);
	for (uint32_t i = 0; i < from->n_sessions; i++)
		put_session(p, &from->listed[i]);
}

bool obp_load_encode(const struct obp_load *load, struct ob_buf *frame)
{
	msgpack_packer packer;
	size_t start;

	if (!obp_map_begin(frame, &start))
		return false;
	msgpack_packer_init(&packer, frame, obp_map_write);
	obp_load_put(&packer, load);
	return obp_map_end(frame, start);
}

/* A fact that this version does not know is skipped; one outside its bounds is an error. */
static bool get_facts(const msgpack_object *o, struct obp_facts *to)
{
	uint64_t number;

	if (o->type != MSGPACK_OBJECT_MAP)
		return false;
	for (uint32_t k = 0; k < o->via.map.size; k++)
		for (unsigned i = 0; i < OBP_FACT_COUNT; i++) {
			if (!obp_key_is(&o->via.map.ptr[k].key, obp_fact_name(i)))
				continue;
			if (!obp_get_number(&o->via.map.ptr[k].val, obp_fact_max(i), &number))
				return false;
			obp_fact_set(to, i, number);
			break;
		}
	return true;
}

static bool get_used(const msgpack_object *o, uint64_t used[OBP_DEVICE_MAX])
{
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > OBP_DEVICE_MAX)
		return false;
	for (uint32_t i = 0; i < o->via.array.size; i++)
		if (!obp_get_number(&o->via.array.ptr[i], UINT64_MAX, &used[i]))
			return false;
	return true;
}

static bool get_device_key(
	const msgpack_object *key, const msgpack_object *value, struct obp_load_device *to)
{
	uint64_t number;

	if (obp_key_is(key, "name"))
		return obp_get_text(value, to->name, sizeof to->name);
	if (obp_key_is(key, "uuid"))
		return obp_get_bytes(value, to->uuid, sizeof to->uuid);
	if (obp_key_is(key, "facts"))
		return get_facts(value, &to->facts);
	DEVICE_NUMBERS(GET_ONE)
	return true;
}

static bool get_session_key(
	const msgpack_object *key, const msgpack_object *value, struct obp_load_session *to)
{
	uint64_t number;

	if (obp_key_is(key, "program"))
		return obp_get_text(value, to->program, sizeof to->program);
	if (obp_key_is(key, "client"))
		return obp_get_text(value, to->client, sizeof to->client);
	if (obp_key_is(key, "used"))
		return get_used(value, to->used);
	SESSION_NUMBERS(GET_ONE)
	return true;
}

static bool get_devices(const msgpack_object *o, struct obp_load *to)
{
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > OBP_DEVICE_MAX)
		return false;
	to->n_devices = o->via.array.size;
	for (uint32_t i = 0; i < to->n_devices; i++) {
		const msgpack_object *map = &o->via.array.ptr[i];

		if (map->type != MSGPACK_OBJECT_MAP)
			return false;
		for (uint32_t k = 0; k < map->via.map.size; k++)
			if (!get_device_key(&map->via.map.ptr[k].key, &map->via.map.ptr[k].val,
				    &to->devices[i]))
				return false;
	}
	return true;
}

static bool get_sessions(const msgpack_object *o, struct obp_load *to)
{
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > OBP_LOAD_SESSIONS_MAX ||
		to->listed)
		return false;
	to->listed = calloc(o->via.array.size + 1, sizeof *to->listed);
	if (!to->listed)
		return false;
	to->n_sessions = o->via.array.size;
	for (uint32_t i = 0; i < to->n_sessions; i++) {
		const msgpack_object *map = &o->via.array.ptr[i];

		if (map->type != MSGPACK_OBJECT_MAP)
			return false;
		for (uint32_t k = 0; k < map->via.map.size; k++)
			if (!get_session_key(&map->via.map.ptr[k].key, &map->via.map.ptr[k].val,
				    &to->listed[i]))
				return false;
	}
	return true;
}

static bool get_load_key(const msgpack_object *key, const msgpack_object *value,
	struct obp_load *to, bool *ret_typed)
{
	uint64_t number;

	if (obp_key_is(key, "type")) {
		*ret_typed =
			obp_get_number(value, OBP_LOAD_TYPE, &number) && number == OBP_LOAD_TYPE;
		return *ret_typed;
	}
	if (obp_key_is(key, "version"))
		return obp_get_text(value, to->version, sizeof to->version);
	if (obp_key_is(key, "driver"))
		return obp_get_text(value, to->driver, sizeof to->driver);
	if (obp_key_is(key, "nvidia"))
		return obp_get_text(value, to->nvidia_version, sizeof to->nvidia_version);
	if (obp_key_is(key, "devices"))
		return get_devices(value, to);
	if (obp_key_is(key, "listed"))
		return get_sessions(value, to);
	LOAD_NUMBERS(GET_ONE)
	return true;
}

bool obp_load_get(const msgpack_object *map, struct obp_load *ret)
{
	bool ok = map->type == MSGPACK_OBJECT_MAP, typed = false;

	*ret = (struct obp_load){ .sessions = 0 };
	for (uint32_t i = 0; ok && i < map->via.map.size; i++)
		ok = get_load_key(&map->via.map.ptr[i].key, &map->via.map.ptr[i].val, ret, &typed);
	if (ok && typed)
		return true;
	obp_load_fini(ret);
	return false;
}

enum ob_err obp_load_decode(const void *map, size_t size, struct obp_load *ret)
{
	msgpack_unpacked unpacked;
	size_t offset = 0;
	bool ok;

	*ret = (struct obp_load){ .sessions = 0 };
	if (size > OBP_CONTROL_MAX || !obp_map_claims_hold(map, size))
		return OB_ERR_PROTOCOL;
	msgpack_unpacked_init(&unpacked);
	ok = msgpack_unpack_next(&unpacked, map, size, &offset) == MSGPACK_UNPACK_SUCCESS &&
		offset == size && obp_load_get(&unpacked.data, ret);
	msgpack_unpacked_destroy(&unpacked);
	return ok ? OB_ERR_NONE : OB_ERR_PROTOCOL;
}

void obp_load_fini(struct obp_load *load)
{
	free(load->listed);
	load->listed = NULL;
	load->n_sessions = 0;
}

const char *obp_throttle_name(uint32_t throttle)
{
	static const char *const names[OBP_THROTTLE_COUNT] = { "well", "warned", "limited",
		"suspended", "ended" };

	return throttle < OBP_THROTTLE_COUNT ? names[throttle] : "?";
}

const char *obp_share_by_name(uint32_t share_by)
{
	static const char *const names[OBP_SHARE_BY_COUNT] = { "none", "throttle", "green", "mps" };

	return share_by < OBP_SHARE_BY_COUNT ? names[share_by] : "?";
}
