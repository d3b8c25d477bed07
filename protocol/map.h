/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The msgpack maps of control messages: writing keys with values, and reading values whose type and
 * size are checked. Only for files in protocol/, so that no other part depends on msgpack. No
 * state; any thread.
 */
#ifndef OBP_MAP_H
#define OBP_MAP_H

#include <msgpack.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/terminal.h"

/*
 * False: a container claims more elements than bytes are left; msgpack must not decode such a map,
 * because it allocates what is claimed. Defined in control.c.
 */
bool obp_map_claims_hold(const uint8_t *map, size_t size);

/*
 * A control frame around one map: begin, pack the map into `frame`, end. Both return false when the
 * buffer is full or the map exceeds OBP_CONTROL_MAX; end then removes the frame. *ret_start is for
 * end. Defined in control.c.
 */
bool obp_map_begin(struct ob_buf *frame, size_t *ret_start);
bool obp_map_end(struct ob_buf *frame, size_t start);

static inline int obp_map_write(void *user, const char *data, size_t n)
{
	return ob_buf_append(user, data, n) ? 0 : -1;
}

static inline void obp_put_string(msgpack_packer *p, const char *text)
{
	size_t n = strlen(text);

	msgpack_pack_str(p, n);
	msgpack_pack_str_body(p, text, n);
}

static inline void obp_put_number(msgpack_packer *p, const char *key, uint64_t value)
{
	obp_put_string(p, key);
	msgpack_pack_uint64(p, value);
}

static inline void obp_put_text(msgpack_packer *p, const char *key, const char *text)
{
	obp_put_string(p, key);
	obp_put_string(p, text);
}

static inline void obp_put_bytes(msgpack_packer *p, const char *key, const uint8_t *data, size_t n)
{
	obp_put_string(p, key);
	msgpack_pack_bin(p, n);
	msgpack_pack_bin_body(p, data, n);
}

static inline bool obp_key_is(const msgpack_object *key, const char *name)
{
	return key->type == MSGPACK_OBJECT_STR && key->via.str.size == strlen(name) &&
		memcmp(key->via.str.ptr, name, key->via.str.size) == 0;
}

static inline bool obp_get_number(const msgpack_object *o, uint64_t max, uint64_t *ret)
{
	if (o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 > max)
		return false;
	*ret = o->via.u64;
	return true;
}

/*
 * Gets readable text into a field of `size` bytes; longer text is cut. Control characters are
 * replaced (base/terminal.h).
 */
static inline bool obp_get_text(const msgpack_object *o, char *dst, size_t size)
{
	size_t n;

	if (o->type != MSGPACK_OBJECT_STR)
		return false;
	n = o->via.str.size < size - 1 ? o->via.str.size : size - 1;
	if (n)
		memcpy(dst, o->via.str.ptr, n);
	dst[ob_text_clean(dst, n)] = 0;
	return true;
}

static inline bool obp_get_bytes(const msgpack_object *o, uint8_t *dst, size_t size)
{
	if (o->type != MSGPACK_OBJECT_BIN || o->via.bin.size != size)
		return false;
	memcpy(dst, o->via.bin.ptr, size);
	return true;
}

#endif
