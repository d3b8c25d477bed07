/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/ticket.h"

#include "protocol/load.h"
#include "protocol/map.h"

/* clang-format off */
#define TICKET_NUMBERS(X)                                                                         \
	X("incarnation", incarnation, UINT64_MAX, 0) X("fence", fence, UINT64_MAX, 1)             \
	X("issued", issued, UINT64_MAX, 2) X("expires", expires, UINT64_MAX, 3)                   \
	X("linger", linger_s, UINT32_MAX, 4) X("memory", memory, UINT64_MAX, 5)                   \
	X("share", share, OBP_SHARE_ALL, 6) X("priority", priority, 3, 7)                         \
	X("exclusive", exclusive, 1, 8)
/* clang-format on */

/* Bits of what was found, behind those of the numbers. */
enum {
	FOUND_RESERVATION = 1 << 9,
	FOUND_SERVER = 1 << 10,
	FOUND_TENANT = 1 << 11,
	FOUND_DEVICES = 1 << 12,
	FOUND_ALL = (1 << 13) - 1
};

#define COUNT_ONE(key, field, max, bit) +1
#define PUT_ONE(key, field, max, bit)   obp_put_number(&p, key, ticket->field);
#define GET_ONE(key_text, field, max, bit)                 \
	if (obp_key_is(key, key_text)) {                   \
		if (!obp_get_number(value, max, &number))  \
			return -1;                         \
		to->field = (__typeof__(to->field))number; \
		return 1 << (bit);                         \
	}

bool obp_ticket_encode(const struct obp_ticket *ticket, struct ob_buf *body)
{
	size_t start = body->size;
	msgpack_packer p;

	msgpack_packer_init(&p, body, obp_map_write);
	msgpack_pack_map(&p, 4 TICKET_NUMBERS(COUNT_ONE));
	obp_put_bytes(&p, "reservation", ticket->reservation, sizeof ticket->reservation);
	obp_put_text(&p, "server", ticket->server);
	obp_put_text(&p, "tenant", ticket->tenant);
	TICKET_NUMBERS(PUT_ONE)
	obp_put_string(&p, "devices");
	msgpack_pack_array(&p, ticket->n_devices);
	for (uint32_t i = 0; i < ticket->n_devices; i++) {
		msgpack_pack_bin(&p, sizeof ticket->devices[i]);
		msgpack_pack_bin_body(&p, ticket->devices[i], sizeof ticket->devices[i]);
	}
	if (body->failed || body->size - start > OBP_TICKET_BODY_MAX) {
		body->size = start;
		return false;
	}
	return true;
}

/* ---- decoding ---- */

static bool get_devices(const msgpack_object *o, struct obp_ticket *to)
{
	if (o->type != MSGPACK_OBJECT_ARRAY || !o->via.array.size ||
		o->via.array.size > OBP_DEVICE_MAX)
		return false;
	to->n_devices = o->via.array.size;
	for (uint32_t i = 0; i < to->n_devices; i++)
		if (!obp_get_bytes(&o->via.array.ptr[i], to->devices[i], sizeof to->devices[i]))
			return false;
	return true;
}

/* The bit of what was found; 0: an unknown key; -1: a wrong value. */
static int get_key(const msgpack_object *key, const msgpack_object *value, struct obp_ticket *to)
{
	uint64_t number;

	if (obp_key_is(key, "reservation"))
		return obp_get_bytes(value, to->reservation, sizeof to->reservation)
			? FOUND_RESERVATION
			: -1;
	if (obp_key_is(key, "server"))
		return obp_get_text(value, to->server, sizeof to->server) ? FOUND_SERVER : -1;
	if (obp_key_is(key, "tenant"))
		return obp_get_text(value, to->tenant, sizeof to->tenant) ? FOUND_TENANT : -1;
	if (obp_key_is(key, "devices"))
		return get_devices(value, to) ? FOUND_DEVICES : -1;
	TICKET_NUMBERS(GET_ONE)
	return 0;
}

static bool get_ticket(const msgpack_object *map, struct obp_ticket *to)
{
	int found = 0;

	if (map->type != MSGPACK_OBJECT_MAP)
		return false;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		int bit = get_key(&map->via.map.ptr[i].key, &map->via.map.ptr[i].val, to);

		if (bit < 0)
			return false;
		found |= bit;
	}
	return found == FOUND_ALL;
}

enum ob_err obp_ticket_decode(const void *body, size_t size, struct obp_ticket *ret)
{
	struct obp_ticket ticket = { .n_devices = 0 };
	msgpack_unpacked unpacked;
	size_t offset = 0;
	bool ok;

	if (size > OBP_TICKET_BODY_MAX || !obp_map_claims_hold(body, size))
		return OB_ERR_PROTOCOL;
	msgpack_unpacked_init(&unpacked);
	ok = msgpack_unpack_next(&unpacked, body, size, &offset) == MSGPACK_UNPACK_SUCCESS &&
		offset == size && get_ticket(&unpacked.data, &ticket);
	msgpack_unpacked_destroy(&unpacked);
	if (!ok)
		return OB_ERR_PROTOCOL;
	*ret = ticket;
	return OB_ERR_NONE;
}
