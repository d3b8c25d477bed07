/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/format.h"

#define PRINT_ELEMENTS 4  /* elements of an array; further ones are printed as "..." */
#define PRINT_TEXT     64 /* bytes of a string */

bool obp_check_req(uint16_t opcode, const void *body, uint32_t size)
{
	const struct obp_call_info *info = obp_call_info(opcode);
	if (!info || size < info->req_size)
		return false;
	if (!info->sizes)
		return size == info->req_size;
	uint64_t bytes[OBP_VAR_MAX];
	if (!info->sizes(body, bytes))
		return false;
	uint64_t at = info->req_size;
	for (unsigned i = 0; i < info->n_req_vars; i++) {
		/* Each part is at most its named maximum, so the sum cannot overflow. */
		if (at + obp_pad(bytes[i]) > size)
			return false;
		if (info->req_vars[i].type == OBP_CSTR) {
			const char *text = (const char *)body + at;
			if (bytes[i] == 0 && info->req_vars[i].optional)
				continue;
			if (bytes[i] == 0 || memchr(text, 0, bytes[i]) != text + bytes[i] - 1)
				return false;
		}
		at += obp_pad(bytes[i]);
	}
	return at == size;
}

/* ---- replies ---- */

/*
 * Checks one piece of copy data: all but the last are marked OBP_REPLY_MORE, together they have
 * exactly the requested size, and a failure ends them with a reply without data.
 */
static const char *streamed_wrong(const struct obp_reply *reply, uint64_t got, uint64_t capacity)
{
	if (reply->flags & OBP_REPLY_MORE) {
		if (reply->result || reply->deferred)
			return "a piece of an answer that carries an error";
		if (reply->body == 0 || got + reply->body >= capacity)
			return "a piece of an answer that is empty or leaves nothing to follow";
		return NULL;
	}
	if (reply->result)
		return reply->body ? "a failed copy that carries data" : NULL;
	return got + reply->body == capacity ? NULL : "fewer bytes than the call asked for";
}

/* NULL: nothing. */
static const char *reply_wrong(
	uint16_t opcode, const struct obp_reply *reply, uint64_t got, uint64_t capacity)
{
	const struct obp_call_info *info = obp_call_info(opcode);

	if (!info || !(info->flags & OBP_CALL_REPLIES))
		return "a call that has no reply";
	if (reply->flags & ~(unsigned)OBP_REPLY_MORE)
		return "unknown flags";
	if (reply->result > OBP_RESULT_MAX || reply->deferred > OBP_RESULT_MAX)
		return "a result that no driver gives";
	if (got > capacity || reply->body > capacity - got)
		return "more bytes than the call asked for";
	if (info->flags & OBP_CALL_STREAMED)
		return streamed_wrong(reply, got, capacity);
	if (reply->flags & OBP_REPLY_MORE)
		return "an answer in pieces to a call that has only one";
	if (reply->body == 0 && reply->result)
		return NULL;
	if (reply->body < info->rep_size ||
		(info->n_rep_vars == 0 && reply->body != info->rep_size))
		return "an answer of the wrong size";
	return NULL;
}

enum ob_err obp_check_reply(uint16_t opcode, const struct obp_reply *reply, uint64_t got,
	uint64_t capacity, struct ob_cause *ret_cause)
{
	const char *wrong = reply_wrong(opcode, reply, got, capacity);

	return ob_unlikely(wrong) ? ob_cause_set(ret_cause, OB_ERR_PROTOCOL, "%s", wrong)
				  : OB_ERR_NONE;
}

bool obp_check_rep(uint16_t opcode, const void *body, uint64_t size)
{
	const struct obp_call_info *info = obp_call_info(opcode);

	return !info || !info->rep_bounds || size < info->rep_size || info->rep_bounds(body);
}

/* ---- printing ---- */

struct out {
	char *dst;
	size_t capacity, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *out, const char *format, ...)
{
	if (out->used + 1 >= out->capacity)
		return;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(out->dst + out->used, out->capacity - out->used, format, args);
	va_end(args);
	if (n > 0)
		out->used = out->used + (size_t)n < out->capacity ? out->used + (size_t)n
								  : out->capacity - 1;
}

static unsigned wire_width(uint8_t type)
{
	switch (type) {
	case OBP_U16:
		return 2;
	case OBP_U32:
	case OBP_I32:
	case OBP_F32:
		return 4;
	case OBP_U64:
	case OBP_I64:
	case OBP_F64:
		return 8;
	default:
		return 1;
	}
}

static void put_element(struct out *out, uint8_t type, const uint8_t *p)
{
	union {
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		int32_t i32;
		int64_t i64;
		float f32;
		double f64;
	} v;
	memcpy(&v, p, wire_width(type));
	switch (type) {
	case OBP_U8:
		put(out, "%u", *p);
		break;
	case OBP_U16:
		put(out, "%u", v.u16);
		break;
	case OBP_U32:
		put(out, "%" PRIu32, v.u32);
		break;
	case OBP_U64:
		put(out, v.u64 < 0x100000 ? "%" PRIu64 : "0x%" PRIx64, v.u64);
		break;
	case OBP_I32:
		put(out, "%" PRId32, v.i32);
		break;
	case OBP_I64:
		put(out, "%" PRId64, v.i64);
		break;
	case OBP_F32:
		put(out, "%g", (double)v.f32);
		break;
	case OBP_F64:
		put(out, "%g", v.f64);
		break;
	default:
		put(out, "%02x", *p);
		break;
	}
}

static void put_text(struct out *out, const uint8_t *p, uint64_t size)
{
	put(out, "\"");
	for (uint64_t i = 0; i < size && p[i] && i < PRINT_TEXT; i++)
		put(out,
			p[i] >= ' ' && p[i] < 127 && p[i] != '"' && p[i] != '\\' ? "%c" : "\\x%02x",
			p[i]);
	put(out, size > PRINT_TEXT ? "...\"" : "\"");
}

/* Prints an array of `size` bytes by its elements' type. */
static void put_array(struct out *out, uint8_t type, const uint8_t *p, uint64_t size)
{
	if (type == OBP_CSTR) {
		put_text(out, p, size);
		return;
	}
	unsigned width = wire_width(type);
	if (type == OBP_BYTES || type == OBP_U8) {
		put(out, "<%" PRIu64 " bytes", size);
		for (uint64_t i = 0; i < size && i < 2 * PRINT_ELEMENTS; i++)
			put(out, i ? "%02x" : " %02x", p[i]);
		put(out, size > 2 * PRINT_ELEMENTS ? "...>" : ">");
		return;
	}
	put(out, "{");
	for (uint64_t i = 0; (i + 1) * width <= size && i < PRINT_ELEMENTS; i++) {
		put(out, i ? ", " : "");
		put_element(out, type, p + i * width);
	}
	put(out, size > (uint64_t)PRINT_ELEMENTS * width ? ", ...}" : "}");
}

static void put_fields(struct out *out, const struct obp_field *fields, unsigned n,
	const uint8_t *body, uint32_t size)
{
	for (unsigned i = 0; i < n; i++) {
		const struct obp_field *field = &fields[i];
		put(out, i ? ", %s=" : "%s=", field->name);
		unsigned bytes = wire_width(field->type) * field->count;
		if (field->offset + bytes > size)
			put(out, "?");
		else if (field->count == 1 && field->type != OBP_BYTES)
			put_element(out, field->type, body + field->offset);
		else
			put_array(out, field->type, body + field->offset, bytes);
	}
}

size_t obp_print_call(char *dst, size_t capacity, uint16_t opcode, const void *body, uint32_t size)
{
	struct out out = { dst, capacity, 0 };
	if (!capacity)
		return 0;
	*dst = 0;
	const struct obp_call_info *info = obp_call_info(opcode);
	if (!info) {
		put(&out, "opcode 0x%04x(<%" PRIu32 " bytes>)", opcode, size);
		return out.used;
	}
	put(&out, "%s(", info->name);
	put_fields(&out, info->req, info->n_req, body, size);
	uint64_t bytes[OBP_VAR_MAX] = { 0 };
	uint64_t at = info->req_size;
	bool sound = size >= info->req_size && info->sizes && info->sizes(body, bytes);
	for (unsigned i = 0; i < info->n_req_vars; i++) {
		put(&out, i || info->n_req ? ", %s=" : "%s=", info->req_vars[i].name);
		if (!sound || at + bytes[i] > size) {
			put(&out, "?");
			break;
		}
		put_array(&out, info->req_vars[i].type, (const uint8_t *)body + at, bytes[i]);
		at += obp_pad(bytes[i]);
	}
	put(&out, ")");
	return out.used;
}

size_t obp_print_reply(char *dst, size_t capacity, uint16_t opcode, uint32_t result,
	const void *body, uint32_t size)
{
	struct out out = { dst, capacity, 0 };
	if (!capacity)
		return 0;
	*dst = 0;
	const struct obp_call_info *info = obp_call_info(opcode);
	if (info)
		put(&out, "%s = %" PRIu32, info->name, result);
	else
		put(&out, "opcode 0x%04x = %" PRIu32, opcode, result);
	if (info && info->n_rep && size >= info->rep_size) {
		put(&out, " (");
		put_fields(&out, info->rep, info->n_rep, body, size);
		put(&out, ")");
		size -= info->rep_size;
	}
	if (size)
		put(&out, " + %" PRIu32 " bytes", size);
	return out.used;
}

void obp_gather(void *dst, const void *first, size_t stride, size_t width, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		memcpy((uint8_t *)dst + i * width, (const uint8_t *)first + i * stride, width);
}

void obp_scatter(void *first, size_t stride, const void *src, size_t width, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		memcpy((uint8_t *)first + i * stride, (const uint8_t *)src + i * width, width);
}
