/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/control.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/conn.h"
#include "protocol/map.h"
#include "protocol/resume.h"

/* ---- encoding ---- */

static void put_range(msgpack_packer *p, const struct obp_range *range)
{
	msgpack_pack_array(p, 2);
	msgpack_pack_uint64(p, range->base);
	msgpack_pack_uint64(p, range->size);
}

static void put_hello(msgpack_packer *p, const struct obp_hello *hello)
{
	obp_put_text(p, "version", hello->version);
	obp_put_text(p, "program", hello->program);
	obp_put_number(p, "pid", hello->pid);
	obp_put_number(p, "codecs", hello->codecs);
	obp_put_number(p, "codec", hello->codec);
	obp_put_text(p, "token", hello->token);
	obp_put_number(p, "grace", hello->grace_s);
	obp_put_number(p, "ring", hello->ring);
	obp_put_number(p, "want_memory", hello->want_memory);
	obp_put_number(p, "want_share", hello->want_share);
	obp_put_number(p, "want_priority", hello->want_priority);
	obp_put_number(p, "no_grant", hello->no_grant);
	if (hello->link_rate)
		obp_put_number(p, "link_rate", hello->link_rate);
	obp_put_number(p, "slabs", hello->slabs);
	obp_put_string(p, "ranges");
	msgpack_pack_array(p, hello->n_ranges);
	for (uint32_t i = 0; i < hello->n_ranges; i++)
		put_range(p, &hello->ranges[i]);
}

static void put_device(msgpack_packer *p, const struct obp_device *device)
{
	uint32_t n = 0;

	msgpack_pack_map(p, 8);
	obp_put_text(p, "name", device->name);
	obp_put_bytes(p, "uuid", device->uuid, sizeof device->uuid);
	obp_put_number(p, "total", device->total_mem);
	obp_put_number(p, "free", device->free_mem);
	obp_put_number(p, "ptx_only", device->ptx_only);
	obp_put_number(p, "grant", device->grant);
	obp_put_string(p, "range");
	put_range(p, &device->range);
	for (uint32_t i = 0; i < OBP_ATTR_MAX; i++)
		n += device->attr_known[i];
	obp_put_string(p, "attributes");
	msgpack_pack_map(p, n);
	for (uint32_t i = 0; i < OBP_ATTR_MAX; i++)
		if (device->attr_known[i]) {
			msgpack_pack_uint32(p, i);
			msgpack_pack_int32(p, device->attr[i]);
		}
}

static void put_welcome(msgpack_packer *p, const struct obp_welcome *welcome)
{
	obp_put_text(p, "version", welcome->version);
	obp_put_text(p, "driver", welcome->driver);
	obp_put_text(p, "sandbox", welcome->sandbox);
	obp_put_number(p, "route", welcome->route);
	obp_put_number(p, "driver_version", (uint64_t)welcome->driver_version);
	obp_put_number(p, "codecs", welcome->codecs);
	obp_put_number(p, "grace", welcome->grace_s);
	obp_put_number(p, "slabs", welcome->slabs);
	obp_put_number(p, "vmm", welcome->vmm);
	obp_put_number(p, "times", welcome->times);
	obp_put_number(p, "free_memory", welcome->free_memory);
	obp_put_number(p, "cache", welcome->cache);
	obp_put_number(p, "stripes", welcome->stripes);
	obp_put_number(p, "opcodes", welcome->opcodes);
	obp_put_number(p, "range_ok", welcome->range_ok);
	obp_put_string(p, "range");
	put_range(p, &welcome->range);
	obp_put_string(p, "devices");
	msgpack_pack_array(p, welcome->n_devices);
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		put_device(p, &welcome->devices[i]);
}

static void put_progress(msgpack_packer *p, const struct obp_message *message)
{
	obp_put_number(p, "received", message->received);
	obp_put_number(p, "sent", message->sent);
	obp_put_number(p, "bytes", message->bytes);
	obp_put_number(p, "attempt", message->attempt);
}

static void put_memory(msgpack_packer *p, const struct obp_message *message)
{
	obp_put_number(p, "received", message->received);
	obp_put_number(p, "free", message->free_bytes);
	obp_put_number(p, "total", message->total_bytes);
}

bool obp_map_begin(struct ob_buf *frame, size_t *ret_start)
{
	*ret_start = frame->size;
	return ob_buf_extend(frame, sizeof(struct obp_frame)) != NULL;
}

bool obp_map_end(struct ob_buf *frame, size_t start)
{
	size_t map = frame->size - start - sizeof(struct obp_frame);
	struct obp_frame header;

	if (ob_buf_append(frame, "\0\0\0\0\0\0\0", ob_round_up(map, 8) - map) &&
		map <= OBP_CONTROL_MAX) {
		obp_frame_fill(&header, OBP_FRAME_CONTROL, (uint32_t)ob_round_up(map, 8), 0, 0, 0);
		header.raw_size = (uint32_t)map;
		memcpy(frame->data + start, &header, sizeof header);
		return true;
	}
	frame->size = start;
	return false;
}

bool obp_message_encode(const struct obp_message *message, struct ob_buf *frame)
{
	msgpack_packer packer;
	uint32_t extra = 0;
	size_t start;

	if (message->type == OBP_MSG_HELLO)
		extra = 14 + (message->hello.link_rate != 0);
	else if (message->type == OBP_MSG_WELCOME)
		extra = 17;
	else if (message->type == OBP_MSG_MEMORY)
		extra = 3;
	else if (message->type >= OBP_MSG_JOIN && message->type <= OBP_MSG_PONG)
		extra = 4;
	else if (message->type == OBP_MSG_CALLBACK)
		extra = message->sent != 0;
	if (!obp_map_begin(frame, &start))
		return false;
	msgpack_packer_init(&packer, frame, obp_map_write);
	msgpack_pack_map(&packer, 5 + extra + (message->shm != 0));
	obp_put_number(&packer, "type", message->type);
	obp_put_number(&packer, "value", message->value);
	obp_put_number(&packer, "code", message->code);
	obp_put_bytes(&packer, "secret",
		message->type == OBP_MSG_WELCOME ? message->welcome.secret : message->secret,
		OBP_SECRET_BYTES);
	obp_put_text(&packer, "text", message->text);
	if (message->shm)
		obp_put_number(&packer, "shm", message->shm);
	if (message->type == OBP_MSG_HELLO)
		put_hello(&packer, &message->hello);
	else if (message->type == OBP_MSG_WELCOME)
		put_welcome(&packer, &message->welcome);
	else if (message->type == OBP_MSG_MEMORY)
		put_memory(&packer, message);
	else if (message->type == OBP_MSG_CALLBACK && extra)
		obp_put_number(&packer, "sent", message->sent);
	else if (extra)
		put_progress(&packer, message);
	return obp_map_end(frame, start);
}

/* ---- decoding ---- */

static bool get_flag(const msgpack_object *o, bool *ret)
{
	uint64_t value;

	if (!obp_get_number(o, 1, &value))
		return false;
	*ret = value != 0;
	return true;
}

static bool get_u32(const msgpack_object *o, uint32_t max, uint32_t *ret)
{
	uint64_t value;

	if (!obp_get_number(o, max, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

static bool get_range(const msgpack_object *o, struct obp_range *ret)
{
	uint64_t end;

	return o->type == MSGPACK_OBJECT_ARRAY && o->via.array.size == 2 &&
		obp_get_number(&o->via.array.ptr[0], UINT64_MAX, &ret->base) &&
		obp_get_number(&o->via.array.ptr[1], UINT64_MAX, &ret->size) &&
		!ob_add_overflows(ret->base, ret->size, &end);
}

static bool get_ranges(const msgpack_object *o, struct obp_hello *hello)
{
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > OBP_RANGE_MAX)
		return false;
	hello->n_ranges = o->via.array.size;
	for (uint32_t i = 0; i < hello->n_ranges; i++)
		if (!get_range(&o->via.array.ptr[i], &hello->ranges[i]))
			return false;
	return true;
}

static bool get_attributes(const msgpack_object *o, struct obp_device *device)
{
	if (o->type != MSGPACK_OBJECT_MAP)
		return false;
	for (uint32_t i = 0; i < o->via.map.size; i++) {
		const msgpack_object *value = &o->via.map.ptr[i].val;
		uint64_t id;

		if (!obp_get_number(&o->via.map.ptr[i].key, UINT32_MAX, &id))
			return false;
		if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER &&
			value->type != MSGPACK_OBJECT_NEGATIVE_INTEGER)
			return false;
		if (value->via.i64 < INT32_MIN || value->via.i64 > INT32_MAX)
			return false;
		if (id >= OBP_ATTR_MAX)
			continue; /* an attribute of a newer CUDA version */
		device->attr[id] = (int32_t)value->via.i64;
		device->attr_known[id] = true;
	}
	return true;
}

static bool get_device(const msgpack_object *o, struct obp_device *device)
{
	if (o->type != MSGPACK_OBJECT_MAP)
		return false;
	for (uint32_t i = 0; i < o->via.map.size; i++) {
		const msgpack_object *key = &o->via.map.ptr[i].key, *value = &o->via.map.ptr[i].val;
		bool ok = true;

		if (obp_key_is(key, "name"))
			ok = obp_get_text(value, device->name, sizeof device->name);
		else if (obp_key_is(key, "uuid"))
			ok = obp_get_bytes(value, device->uuid, sizeof device->uuid);
		else if (obp_key_is(key, "total"))
			ok = obp_get_number(value, UINT64_MAX, &device->total_mem);
		else if (obp_key_is(key, "free"))
			ok = obp_get_number(value, UINT64_MAX, &device->free_mem);
		else if (obp_key_is(key, "ptx_only"))
			ok = get_flag(value, &device->ptx_only);
		else if (obp_key_is(key, "grant"))
			ok = obp_get_number(value, UINT64_MAX, &device->grant);
		else if (obp_key_is(key, "range"))
			ok = get_range(value, &device->range);
		else if (obp_key_is(key, "attributes"))
			ok = get_attributes(value, device);
		if (!ok)
			return false;
	}
	return device->grant <= device->range.size;
}

static bool get_devices(const msgpack_object *o, struct obp_welcome *welcome)
{
	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > OBP_DEVICE_MAX ||
		welcome->devices)
		return false;
	welcome->devices = calloc(o->via.array.size + 1, sizeof *welcome->devices);
	if (!welcome->devices)
		return false;
	welcome->n_devices = o->via.array.size;
	for (uint32_t i = 0; i < welcome->n_devices; i++)
		if (!get_device(&o->via.array.ptr[i], &welcome->devices[i]))
			return false;
	return true;
}

static bool get_hello_key(
	const msgpack_object *key, const msgpack_object *value, struct obp_hello *hello)
{
	if (obp_key_is(key, "version"))
		return obp_get_text(value, hello->version, sizeof hello->version);
	if (obp_key_is(key, "program"))
		return obp_get_text(value, hello->program, sizeof hello->program);
	if (obp_key_is(key, "pid"))
		return obp_get_number(value, UINT64_MAX, &hello->pid);
	if (obp_key_is(key, "codecs"))
		return get_u32(value, UINT32_MAX, &hello->codecs);
	if (obp_key_is(key, "codec"))
		return get_u32(value, UINT32_MAX, &hello->codec);
	if (obp_key_is(key, "token"))
		return obp_get_text(value, hello->token, sizeof hello->token);
	if (obp_key_is(key, "grace"))
		return get_u32(value, OBP_GRACE_MAX_S, &hello->grace_s);
	if (obp_key_is(key, "ring"))
		return obp_get_number(value, UINT64_MAX, &hello->ring);
	if (obp_key_is(key, "want_memory"))
		return obp_get_number(value, UINT64_MAX, &hello->want_memory);
	if (obp_key_is(key, "want_share"))
		return get_u32(value, 1000000, &hello->want_share);
	if (obp_key_is(key, "want_priority"))
		return get_u32(value, 3, &hello->want_priority);
	if (obp_key_is(key, "no_grant"))
		return get_u32(value, 1, &hello->no_grant);
	if (obp_key_is(key, "link_rate"))
		return obp_get_number(value, UINT64_MAX, &hello->link_rate);
	if (obp_key_is(key, "slabs"))
		return get_u32(value, UINT32_MAX, &hello->slabs);
	if (obp_key_is(key, "ranges"))
		return get_ranges(value, hello);
	return true;
}

static bool get_welcome_key(
	const msgpack_object *key, const msgpack_object *value, struct obp_welcome *welcome)
{
	uint32_t number = 0;
	bool ok;

	if (obp_key_is(key, "version"))
		return obp_get_text(value, welcome->version, sizeof welcome->version);
	if (obp_key_is(key, "driver"))
		return obp_get_text(value, welcome->driver, sizeof welcome->driver);
	if (obp_key_is(key, "sandbox"))
		return obp_get_text(value, welcome->sandbox, sizeof welcome->sandbox);
	if (obp_key_is(key, "route"))
		return obp_get_number(value, UINT64_MAX, &welcome->route) && welcome->route != 0;
	if (obp_key_is(key, "codecs"))
		return get_u32(value, UINT32_MAX, &welcome->codecs);
	if (obp_key_is(key, "grace"))
		return get_u32(value, OBP_GRACE_MAX_S, &welcome->grace_s);
	if (obp_key_is(key, "times"))
		return get_flag(value, &welcome->times);
	if (obp_key_is(key, "free_memory"))
		return get_flag(value, &welcome->free_memory);
	if (obp_key_is(key, "cache"))
		return obp_get_number(value, UINT64_MAX, &welcome->cache);
	if (obp_key_is(key, "stripes"))
		/* a newer server may offer more stripes than this client opens */
		return get_u32(value, UINT32_MAX, &welcome->stripes);
	if (obp_key_is(key, "opcodes"))
		return get_u32(value, UINT32_MAX, &welcome->opcodes);
	if (obp_key_is(key, "slabs"))
		return obp_get_number(value, UINT64_MAX, &welcome->slabs);
	if (obp_key_is(key, "vmm"))
		return get_flag(value, &welcome->vmm);
	if (obp_key_is(key, "range_ok"))
		return get_flag(value, &welcome->range_ok);
	if (obp_key_is(key, "range"))
		return get_range(value, &welcome->range);
	if (obp_key_is(key, "devices"))
		return get_devices(value, welcome);
	if (obp_key_is(key, "driver_version")) {
		ok = get_u32(value, INT32_MAX, &number);
		welcome->driver_version = (int32_t)number;
		return ok;
	}
	return true;
}

/* Decodes a key of the messages about a connection: join, joined, ping, pong. */
static bool get_progress_key(
	const msgpack_object *key, const msgpack_object *value, struct obp_message *message)
{
	if (obp_key_is(key, "received"))
		return obp_get_number(value, UINT64_MAX, &message->received);
	if (obp_key_is(key, "sent"))
		return obp_get_number(value, UINT64_MAX, &message->sent);
	if (obp_key_is(key, "bytes"))
		return obp_get_number(value, UINT64_MAX, &message->bytes);
	if (obp_key_is(key, "attempt"))
		return obp_get_number(value, UINT64_MAX, &message->attempt);
	return true;
}

static bool get_memory_key(
	const msgpack_object *key, const msgpack_object *value, struct obp_message *message)
{
	if (obp_key_is(key, "received"))
		return obp_get_number(value, UINT64_MAX, &message->received);
	if (obp_key_is(key, "free"))
		return obp_get_number(value, UINT64_MAX, &message->free_bytes);
	if (obp_key_is(key, "total"))
		return obp_get_number(value, UINT64_MAX, &message->total_bytes);
	return true;
}

static bool get_message(const msgpack_object *map, struct obp_message *message)
{
	uint32_t type = 0;

	/* The meaning of the other keys depends on "type", which may be anywhere in the map. */
	for (uint32_t i = 0; i < map->via.map.size; i++)
		if (obp_key_is(&map->via.map.ptr[i].key, "type") &&
			!get_u32(&map->via.map.ptr[i].val, UINT16_MAX, &type))
			return false;
	if (type < OBP_MSG_HELLO || type > OBP_MSG_LAST)
		return false;
	message->type = (enum obp_message_type)type;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *key = &map->via.map.ptr[i].key,
				     *value = &map->via.map.ptr[i].val;
		bool ok = true;

		if (obp_key_is(key, "value"))
			ok = obp_get_number(value, UINT64_MAX, &message->value);
		else if (obp_key_is(key, "code"))
			ok = get_u32(value, UINT32_MAX, &message->code);
		else if (obp_key_is(key, "secret"))
			ok = obp_get_bytes(value, message->secret, sizeof message->secret);
		else if (obp_key_is(key, "shm"))
			ok = get_u32(value, UINT32_MAX, &message->shm);
		else if (obp_key_is(key, "text"))
			ok = obp_get_text(value, message->text, sizeof message->text);
		else if (type == OBP_MSG_HELLO)
			ok = get_hello_key(key, value, &message->hello);
		else if (type == OBP_MSG_WELCOME)
			ok = get_welcome_key(key, value, &message->welcome);
		else if (type == OBP_MSG_MEMORY)
			ok = get_memory_key(key, value, message);
		else if (type >= OBP_MSG_JOIN && type <= OBP_MSG_PONG)
			ok = get_progress_key(key, value, message);
		else if (type == OBP_MSG_CALLBACK && obp_key_is(key, "sent"))
			ok = obp_get_number(value, UINT64_MAX, &message->sent);
		if (!ok)
			return false;
	}
	if (type == OBP_MSG_WELCOME && message->welcome.route == 0)
		return false; /* the only mandatory key of this message */
	if (message->free_bytes > message->total_bytes)
		return false;
	if (type == OBP_MSG_WELCOME)
		memcpy(message->welcome.secret, message->secret, sizeof message->secret);
	return true;
}

/* Reads a big-endian number of n bytes at p[at]; false: beyond the end. */
static bool number_at(const uint8_t *p, size_t size, size_t at, size_t n, uint64_t *ret)
{
	if (!ob_span_inside(at, n, size))
		return false;
	*ret = 0;
	for (size_t i = 0; i < n; i++)
		*ret = *ret << 8 | p[at + i];
	return true;
}

/*
 * True when no container claims more elements than bytes are left. msgpack-c allocates memory for
 * the claimed elements before it reads them: without this check a map of a few bytes could allocate
 * gigabytes.
 */
bool obp_map_claims_hold(const uint8_t *p, size_t size)
{
	/*
	 * bytes that follow the type bytes 0xc0..0xdf; for containers and blobs: size of their
	 * count
	 */
	static const uint8_t fixed[32] = {
		0,
		0,
		0,
		0,
		1,
		2,
		4,
		1,
		2,
		4,
		4,
		8,
		1,
		2,
		4,
		8,
		1,
		2,
		4,
		8,
		2,
		3,
		5,
		9,
		17,
		1,
		2,
		4,
		2,
		4,
		2,
		4,
	};
	uint64_t wanted = 1, n;
	size_t at = 0;

	for (; wanted && at < size; wanted--) {
		uint8_t type = p[at++];

		n = 0;
		if (type >= 0xc0 && type <= 0xdf) {
			size_t width = fixed[type - 0xc0];

			if (!number_at(p, size, at, ob_min(width, (size_t)8), &n) ||
				!ob_span_inside(at, width, size))
				return false;
			at += width;
			if (type >= 0xdc) /* array 16, 32, map 16, 32 */
				wanted += type >= 0xde ? 2 * n : n;
			/* bin, ext, str */
			else if ((type >= 0xc4 && type <= 0xc9) || (type >= 0xd9 && type <= 0xdb))
				at += n + (type >= 0xc7 && type <= 0xc9);
		} else if (type >= 0x80 && type < 0xa0) { /* short map, short array */
			wanted += type < 0x90 ? 2 * (type & 15u) : type & 15u;
		} else if (type >= 0xa0 && type < 0xc0) { /* short str */
			at += type & 31u;
		}
		if (at > size || wanted - 1 > size - at)
			return false;
	}
	return wanted == 0;
}

enum ob_err obp_message_decode(const void *map, size_t size, struct obp_message *ret)
{
	enum ob_err err = OB_ERR_PROTOCOL;
	msgpack_unpacked unpacked;
	size_t offset = 0;

	memset(ret, 0, sizeof *ret);
	if (size > OBP_CONTROL_MAX || !obp_map_claims_hold(map, size))
		return OB_ERR_PROTOCOL;
	msgpack_unpacked_init(&unpacked);
	if (msgpack_unpack_next(&unpacked, map, size, &offset) == MSGPACK_UNPACK_SUCCESS &&
		offset == size && unpacked.data.type == MSGPACK_OBJECT_MAP &&
		get_message(&unpacked.data, ret))
		err = OB_ERR_NONE;
	msgpack_unpacked_destroy(&unpacked);
	if (err)
		obp_message_fini(ret);
	return err;
}

void obp_message_fini(struct obp_message *message)
{
	free(message->welcome.devices);
	message->welcome.devices = NULL;
	message->welcome.n_devices = 0;
}
