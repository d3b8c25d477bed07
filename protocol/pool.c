/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/pool.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/load_map.h"

/*
 * The fields of each message, for encoding and decoding: NUMBER(key, field, maximum), TEXT(key,
 * field), BYTES(key, field). What is not in a list is written and read by hand.
 */
/* clang-format off */
#define ASK_FIELDS(NUMBER, TEXT, BYTES)                                                           \
	BYTES("id", id) NUMBER("gpus", gpus, UINT32_MAX) NUMBER("memory", memory, UINT64_MAX)     \
	NUMBER("share", share, OBP_SHARE_ALL) NUMBER("priority", priority, 3)                     \
	NUMBER("exclusive", exclusive, 1) NUMBER("one_server", one_server, 1)                     \
	NUMBER("policy", policy, 255) NUMBER("wait", wait_s, UINT32_MAX)                          \
	NUMBER("linger", linger_s, UINT32_MAX) NUMBER("cuda", cuda, UINT32_MAX)                   \
	NUMBER("restartable", restartable, 1) NUMBER("pid", pid, UINT64_MAX)                      \
	NUMBER("offered", offered, 1) TEXT("where", where) TEXT("apart", apart) TEXT("program", program) TEXT("host", host)     \
	TEXT("user", user) TEXT("token", token)
#define QUEUED_FIELDS(NUMBER, TEXT, BYTES)                                                        \
	NUMBER("position", position, UINT32_MAX) NUMBER("length", length, UINT32_MAX)             \
	NUMBER("estimate", estimate_ms, UINT64_MAX) TEXT("reason", reason)
#define PART_FIELDS(NUMBER, TEXT, BYTES) TEXT("server", server) TEXT("urls", urls) TEXT("pin", pin)
#define GRANT_FIELDS(NUMBER, TEXT, BYTES) BYTES("id", id) TEXT("tenant", tenant)
#define REFUSED_FIELDS(NUMBER, TEXT, BYTES)                                                       \
	NUMBER("code", code, OBP_POOL_FAULT) NUMBER("retry", retry_ms, UINT64_MAX) TEXT("text", text)
#define CANCEL_FIELDS(NUMBER, TEXT, BYTES)                                                        \
	BYTES("id", id) TEXT("token", token) NUMBER("over", over, 1)
#define FOLLOW_FIELDS(NUMBER, TEXT, BYTES)                                                        \
	BYTES("id", id) TEXT("token", token) NUMBER("fixed", fixed, 1)
#define MOVED_FIELDS(NUMBER, TEXT, BYTES)                                                         \
	BYTES("id", id) BYTES("successor", successor) TEXT("server", server) TEXT("text", text)   \
	NUMBER("left", left_s, UINT32_MAX)
#define QUERY_FIELDS(NUMBER, TEXT, BYTES)                                                         \
	TEXT("what", what) TEXT("target", target) NUMBER("since", since, UINT64_MAX)              \
	TEXT("token", token)
#define COMMAND_FIELDS(NUMBER, TEXT, BYTES)                                                       \
	TEXT("verb", verb) TEXT("target", target) TEXT("argument", argument) TEXT("token", token)
#define REGISTER_FIELDS(NUMBER, TEXT, BYTES)                                                      \
	TEXT("name", name) NUMBER("incarnation", incarnation, UINT64_MAX) TEXT("version", version) \
	TEXT("urls", urls) TEXT("pin", pin) TEXT("labels", labels) TEXT("token", token)
#define REGISTERED_FIELDS(NUMBER, TEXT, BYTES)                                                    \
	TEXT("balancer", balancer) BYTES("key", key) NUMBER("time", time_s, UINT64_MAX)           \
	NUMBER("cordoned", cordoned, 1)
#define BEAT_FIELDS(NUMBER, TEXT, BYTES)                                                          \
	NUMBER("number", number, UINT64_MAX) NUMBER("healthy", healthy, 1) TEXT("health", health) \
	NUMBER("cordoned", cordoned, 1) NUMBER("drained", drained, 1)                            \
	NUMBER("as_of", as_of, UINT64_MAX)
#define HELD_FIELDS(NUMBER, TEXT, BYTES)                                                          \
	BYTES("id", id) NUMBER("fence", fence, UINT64_MAX) NUMBER("state", state, OBP_POOL_VOID)  \
	NUMBER("sessions", sessions, UINT32_MAX) NUMBER("used", used, UINT64_MAX)         \
	NUMBER("share_by", share_by, OBP_SHARE_BY_MAX) NUMBER("busy", busy, 1000)
#define ORDER_FIELDS(NUMBER, TEXT, BYTES)                                                         \
	NUMBER("kind", kind, OBP_POOL_ORDER_LAST) BYTES("id", id)                                 \
	NUMBER("number", number, UINT64_MAX) TEXT("text", text)                                   \
	NUMBER("as_of", as_of, UINT64_MAX) NUMBER("force", force, 1)
#define OBEYED_FIELDS(NUMBER, TEXT, BYTES)                                                        \
	NUMBER("kind", kind, OBP_POOL_ORDER_LAST) BYTES("id", id)                                 \
	NUMBER("number", number, UINT64_MAX) NUMBER("result", result, UINT32_MAX)
/* clang-format on */

#define COUNT_NUMBER(key, field, max) +1
#define COUNT_OTHER(key, field)       +1
#define COUNT(fields)                 (0 fields(COUNT_NUMBER, COUNT_OTHER, COUNT_OTHER))
#define PUT_NUMBER(key, field, max)   obp_put_number(p, key, from->field);
#define PUT_TEXT(key, field)          obp_put_text(p, key, from->field);
#define PUT_BYTES(key, field)         obp_put_bytes(p, key, from->field, sizeof from->field);
#define PUT(fields)                   fields(PUT_NUMBER, PUT_TEXT, PUT_BYTES)
#define GET_NUMBER(key_text, field, max)                   \
	if (obp_key_is(key, key_text)) {                   \
		uint64_t number;                           \
                                                           \
		if (!obp_get_number(value, max, &number))  \
			return false;                      \
		to->field = (__typeof__(to->field))number; \
		return true;                               \
	}
#define GET_TEXT(key_text, field)      \
	if (obp_key_is(key, key_text)) \
		return obp_get_text(value, to->field, sizeof to->field);
#define GET_BYTES(key_text, field)     \
	if (obp_key_is(key, key_text)) \
		return obp_get_bytes(value, to->field, sizeof to->field);
#define GET(fields) fields(GET_NUMBER, GET_TEXT, GET_BYTES)

/* ---- encoding ---- */

/* A message whose fields are all in its list. */
#define PLAIN_PUT(name, structure, fields)                                                 \
	static void put_##name(msgpack_packer *p, const struct obp_pool_##structure *from) \
	{                                                                                  \
		PUT(fields)                                                                \
	}
PLAIN_PUT(ask, ask, ASK_FIELDS)
PLAIN_PUT(queued, queued, QUEUED_FIELDS)
PLAIN_PUT(refused, refused, REFUSED_FIELDS)
PLAIN_PUT(cancel, cancel, CANCEL_FIELDS)
PLAIN_PUT(follow, follow, FOLLOW_FIELDS)
PLAIN_PUT(moved, moved, MOVED_FIELDS)
PLAIN_PUT(query, query, QUERY_FIELDS)
PLAIN_PUT(command, command, COMMAND_FIELDS)
PLAIN_PUT(register, register, REGISTER_FIELDS)
PLAIN_PUT(registered, registered, REGISTERED_FIELDS)
PLAIN_PUT(order, order, ORDER_FIELDS)
PLAIN_PUT(obeyed, obeyed, OBEYED_FIELDS)

static void put_part(msgpack_packer *p, const struct obp_pool_part *from)
{
	msgpack_pack_map(p, COUNT(PART_FIELDS) + 1);
	PUT(PART_FIELDS)
	obp_put_bytes(p, "ticket", from->ticket, from->ticket_size);
}

static void put_grant(msgpack_packer *p, const struct obp_pool_grant *from)
{
	PUT(GRANT_FIELDS)
	obp_put_string(p, "parts");
	msgpack_pack_array(p, from->n_parts);
	for (uint32_t i = 0; i < from->n_parts; i++)
		put_part(p, &from->parts[i]);
}

static void put_answer(msgpack_packer *p, const struct obp_pool_answer *from)
{
	obp_put_number(p, "more", from->more);
	obp_put_bytes(p, "bytes", from->bytes, from->size);
}

static void put_held(msgpack_packer *p, const struct obp_pool_held *from)
{
	msgpack_pack_map(p, COUNT(HELD_FIELDS));
	PUT(HELD_FIELDS)
}

static void put_beat(msgpack_packer *p, const struct obp_pool_beat *from)
{
	PUT(BEAT_FIELDS)
	obp_put_string(p, "load");
	obp_load_put(p, &from->load);
	obp_put_string(p, "held");
	msgpack_pack_array(p, from->n_held);
	for (uint32_t i = 0; i < from->n_held; i++)
		put_held(p, &from->held[i]);
}

static void put_message(msgpack_packer *p, const struct obp_pool_message *m)
{
	static const uint8_t counts[OBP_POOL_LAST + 1] = {
		[OBP_POOL_ASK] = COUNT(ASK_FIELDS),
		[OBP_POOL_QUEUED] = COUNT(QUEUED_FIELDS),
		[OBP_POOL_GRANT] = COUNT(GRANT_FIELDS) + 1,
		[OBP_POOL_REFUSED] = COUNT(REFUSED_FIELDS),
		[OBP_POOL_CANCEL] = COUNT(CANCEL_FIELDS),
		[OBP_POOL_QUERY] = COUNT(QUERY_FIELDS),
		[OBP_POOL_ANSWER] = 2,
		[OBP_POOL_COMMAND] = COUNT(COMMAND_FIELDS),
		[OBP_POOL_DONE] = COUNT(REFUSED_FIELDS),
		[OBP_POOL_REGISTER] = COUNT(REGISTER_FIELDS),
		[OBP_POOL_REGISTERED] = COUNT(REGISTERED_FIELDS),
		[OBP_POOL_BEAT] = COUNT(BEAT_FIELDS) + 2,
		[OBP_POOL_ORDER] = COUNT(ORDER_FIELDS),
		[OBP_POOL_OBEYED] = COUNT(OBEYED_FIELDS),
		[OBP_POOL_FOLLOW] = COUNT(FOLLOW_FIELDS),
		[OBP_POOL_MOVED] = COUNT(MOVED_FIELDS),
	};

	msgpack_pack_map(p, 1u + counts[m->type]);
	obp_put_number(p, "type", m->type);
	switch (m->type) {
	case OBP_POOL_ASK:
		return put_ask(p, &m->u.ask);
	case OBP_POOL_QUEUED:
		return put_queued(p, &m->u.queued);
	case OBP_POOL_GRANT:
		return put_grant(p, &m->u.grant);
	case OBP_POOL_REFUSED:
	case OBP_POOL_DONE:
		return put_refused(p, &m->u.refused);
	case OBP_POOL_CANCEL:
		return put_cancel(p, &m->u.cancel);
	case OBP_POOL_QUERY:
		return put_query(p, &m->u.query);
	case OBP_POOL_ANSWER:
		return put_answer(p, &m->u.answer);
	case OBP_POOL_COMMAND:
		return put_command(p, &m->u.command);
	case OBP_POOL_REGISTER:
		return put_register(p, &m->u.join);
	case OBP_POOL_REGISTERED:
		return put_registered(p, &m->u.registered);
	case OBP_POOL_BEAT:
		return put_beat(p, &m->u.beat);
	case OBP_POOL_ORDER:
		return put_order(p, &m->u.order);
	case OBP_POOL_OBEYED:
		return put_obeyed(p, &m->u.obeyed);
	case OBP_POOL_FOLLOW:
		return put_follow(p, &m->u.follow);
	case OBP_POOL_MOVED:
		return put_moved(p, &m->u.moved);
	}
}

bool obp_pool_encode(const struct obp_pool_message *message, struct ob_buf *frame)
{
	msgpack_packer packer;
	size_t start;

	if (!obp_map_begin(frame, &start))
		return false;
	msgpack_packer_init(&packer, frame, obp_map_write);
	put_message(&packer, message);
	return obp_map_end(frame, start);
}

/* ---- decoding ---- */

#define PLAIN_GET(name, structure, fields)                                             \
	static bool get_##name(const msgpack_object *key, const msgpack_object *value, \
		struct obp_pool_##structure *to)                                       \
	{                                                                              \
		GET(fields)                                                            \
		return true;                                                           \
	}
PLAIN_GET(ask, ask, ASK_FIELDS)
PLAIN_GET(queued, queued, QUEUED_FIELDS)
PLAIN_GET(refused, refused, REFUSED_FIELDS)
PLAIN_GET(cancel, cancel, CANCEL_FIELDS)
PLAIN_GET(follow, follow, FOLLOW_FIELDS)
PLAIN_GET(moved, moved, MOVED_FIELDS)
PLAIN_GET(query, query, QUERY_FIELDS)
PLAIN_GET(command, command, COMMAND_FIELDS)
PLAIN_GET(register, register, REGISTER_FIELDS)
PLAIN_GET(registered, registered, REGISTERED_FIELDS)
PLAIN_GET(order, order, ORDER_FIELDS)
PLAIN_GET(obeyed, obeyed, OBEYED_FIELDS)
PLAIN_GET(held, held, HELD_FIELDS)

static bool get_part(
	const msgpack_object *key, const msgpack_object *value, struct obp_pool_part *to)
{
	GET(PART_FIELDS)
	if (!obp_key_is(key, "ticket"))
		return true;
	if (value->type != MSGPACK_OBJECT_BIN || value->via.bin.size > sizeof to->ticket)
		return false;
	to->ticket_size = value->via.bin.size;
	memcpy(to->ticket, value->via.bin.ptr, to->ticket_size);
	return true;
}

/*
 * An array of maps: allocates room for its elements and gets each key of each by `get`. The key may
 * come once only.
 */
#define GET_ARRAY(list, n, max, get)                                                         \
	do {                                                                                 \
		const msgpack_object *o = value;                                             \
                                                                                             \
		if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > (max) || (list))  \
			return false;                                                        \
		(list) = calloc(o->via.array.size + 1, sizeof *(list));                      \
		if (!(list))                                                                 \
			return false;                                                        \
		(n) = o->via.array.size;                                                     \
		for (uint32_t i = 0; i < (n); i++) {                                         \
			const msgpack_object *map = &o->via.array.ptr[i];                    \
                                                                                             \
			if (map->type != MSGPACK_OBJECT_MAP)                                 \
				return false;                                                \
			for (uint32_t k = 0; k < map->via.map.size; k++)                     \
				if (!get(&map->via.map.ptr[k].key, &map->via.map.ptr[k].val, \
					    &(list)[i]))                                     \
					return false;                                        \
		}                                                                            \
		return true;                                                                 \
	} while (0)

static bool get_grant(
	const msgpack_object *key, const msgpack_object *value, struct obp_pool_grant *to)
{
	GET(GRANT_FIELDS)
	if (!obp_key_is(key, "parts"))
		return true;
	GET_ARRAY(to->parts, to->n_parts, OBP_POOL_PARTS_MAX, get_part);
}

static bool get_beat(
	const msgpack_object *key, const msgpack_object *value, struct obp_pool_beat *to)
{
	GET(BEAT_FIELDS)
	/* a second "load" would leak the first one's sessions */
	if (obp_key_is(key, "load"))
		return !to->load.listed && obp_load_get(value, &to->load);
	if (!obp_key_is(key, "held"))
		return true;
	GET_ARRAY(to->held, to->n_held, OBP_POOL_BEAT_MAX, get_held);
}

static bool get_answer(
	const msgpack_object *key, const msgpack_object *value, struct obp_pool_answer *to)
{
	uint64_t more;

	if (obp_key_is(key, "more")) {
		if (!obp_get_number(value, 1, &more))
			return false;
		to->more = (uint32_t)more;
	} else if (obp_key_is(key, "bytes")) {
		if (value->type != MSGPACK_OBJECT_BIN || value->via.bin.size > OBP_POOL_ANSWER_MAX)
			return false;
		to->bytes = (const uint8_t *)value->via.bin.ptr;
		to->size = value->via.bin.size;
	}
	return true;
}

static bool get_key(
	const msgpack_object *key, const msgpack_object *value, struct obp_pool_message *to)
{
	switch (to->type) {
	case OBP_POOL_ASK:
		return get_ask(key, value, &to->u.ask);
	case OBP_POOL_QUEUED:
		return get_queued(key, value, &to->u.queued);
	case OBP_POOL_GRANT:
		return get_grant(key, value, &to->u.grant);
	case OBP_POOL_REFUSED:
	case OBP_POOL_DONE:
		return get_refused(key, value, &to->u.refused);
	case OBP_POOL_CANCEL:
		return get_cancel(key, value, &to->u.cancel);
	case OBP_POOL_QUERY:
		return get_query(key, value, &to->u.query);
	case OBP_POOL_ANSWER:
		return get_answer(key, value, &to->u.answer);
	case OBP_POOL_COMMAND:
		return get_command(key, value, &to->u.command);
	case OBP_POOL_REGISTER:
		return get_register(key, value, &to->u.join);
	case OBP_POOL_REGISTERED:
		return get_registered(key, value, &to->u.registered);
	case OBP_POOL_BEAT:
		return get_beat(key, value, &to->u.beat);
	case OBP_POOL_ORDER:
		return get_order(key, value, &to->u.order);
	case OBP_POOL_OBEYED:
		return get_obeyed(key, value, &to->u.obeyed);
	case OBP_POOL_FOLLOW:
		return get_follow(key, value, &to->u.follow);
	case OBP_POOL_MOVED:
		return get_moved(key, value, &to->u.moved);
	}
	return false;
}

/* The type must be the first key, as it is in what obp_pool_encode writes. */
static bool get_message(const msgpack_object *map, struct obp_pool_message *to)
{
	uint64_t type;

	if (map->type != MSGPACK_OBJECT_MAP || !map->via.map.size ||
		!obp_key_is(&map->via.map.ptr[0].key, "type") ||
		!obp_get_number(&map->via.map.ptr[0].val, OBP_POOL_LAST, &type) ||
		type < OBP_POOL_ASK)
		return false;
	to->type = (enum obp_pool_type)type;
	for (uint32_t i = 1; i < map->via.map.size; i++)
		if (!get_key(&map->via.map.ptr[i].key, &map->via.map.ptr[i].val, to))
			return false;
	return true;
}

enum ob_err obp_pool_decode(const void *map, size_t size, struct obp_pool_message *ret)
{
	msgpack_unpacked unpacked;
	size_t offset = 0;
	bool ok;

	memset(ret, 0, sizeof *ret);
	if (size > OBP_CONTROL_MAX || !obp_map_claims_hold(map, size))
		return OB_ERR_PROTOCOL;
	msgpack_unpacked_init(&unpacked);
	ok = msgpack_unpack_next(&unpacked, map, size, &offset) == MSGPACK_UNPACK_SUCCESS &&
		offset == size && get_message(&unpacked.data, ret);
	msgpack_unpacked_destroy(&unpacked);
	if (ok)
		return OB_ERR_NONE;
	obp_pool_fini(ret);
	return OB_ERR_PROTOCOL;
}

void obp_pool_fini(struct obp_pool_message *message)
{
	if (message->type == OBP_POOL_GRANT) {
		free(message->u.grant.parts);
		message->u.grant.parts = NULL;
	} else if (message->type == OBP_POOL_BEAT) {
		obp_load_fini(&message->u.beat.load);
		free(message->u.beat.held);
		message->u.beat.held = NULL;
	}
}

uint8_t obp_pool_exit_code(uint32_t code)
{
	/* EX_UNAVAILABLE, EX_TEMPFAIL, EX_NOPERM, EX_USAGE, EX_SOFTWARE of sysexits.h */
	static const uint8_t codes[] = { [OBP_POOL_CAPACITY] = 69,
		[OBP_POOL_LATER] = 75,
		[OBP_POOL_DENIED] = 77,
		[OBP_POOL_INVALID] = 64,
		[OBP_POOL_FAULT] = 70 };

	return code < sizeof codes / sizeof *codes ? codes[code] : codes[OBP_POOL_FAULT];
}
