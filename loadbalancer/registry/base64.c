/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void obl_base64_encode(struct ob_buf *buf, const void *data, size_t size)
{
	const uint8_t *from = data;
	uint8_t *to = ob_buf_extend(buf, (size + 2) / 3 * 4);

	if (!to)
		return;
	for (; size >= 3; size -= 3, from += 3, to += 4) {
		to[0] = (uint8_t)digits[from[0] >> 2];
		to[1] = (uint8_t)digits[(from[0] & 3) << 4 | from[1] >> 4];
		to[2] = (uint8_t)digits[(from[1] & 15) << 2 | from[2] >> 6];
		to[3] = (uint8_t)digits[from[2] & 63];
	}
	if (size == 0)
		return;
	to[0] = (uint8_t)digits[from[0] >> 2];
	to[1] = (uint8_t)digits[(from[0] & 3) << 4 | (size == 2 ? from[1] >> 4 : 0)];
	to[2] = size == 2 ? (uint8_t)digits[(from[1] & 15) << 2] : '=';
	to[3] = '=';
}

/* The value of a digit; 64: not one. */
static uint32_t value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* The last group; n: its digits before the padding. */
static bool decode_last(const uint32_t *v, size_t n, uint8_t *to, size_t *ret_size)
{
	if (n == 4) {
		to[0] = (uint8_t)(v[0] << 2 | v[1] >> 4);
		to[1] = (uint8_t)(v[1] << 4 | v[2] >> 2);
		to[2] = (uint8_t)(v[2] << 6 | v[3]);
		*ret_size += 3;
		return true;
	}
	/* Bits that are not used must be zero. */
	if (n < 2 || (n == 2 && v[1] & 15) || (n == 3 && v[2] & 3))
		return false;
	to[0] = (uint8_t)(v[0] << 2 | v[1] >> 4);
	if (n == 3)
		to[1] = (uint8_t)(v[1] << 4 | v[2] >> 2);
	*ret_size += n - 1;
	return true;
}

bool obl_base64_decode(const char *text, size_t size, uint8_t *ret_data, size_t *ret_size)
{
	*ret_size = 0;
	if (size % 4)
		return false;
	for (size_t at = 0; at < size; at += 4) {
		bool last = at + 4 == size;
		size_t n = 4;
		uint32_t v[4];

		while (last && n > 0 && text[at + n - 1] == '=')
			n--;
		for (size_t i = 0; i < n; i++) {
			v[i] = value_of(text[at + i]);
			if (v[i] == 64)
				return false;
		}
		if (!decode_last(v, n, ret_data + at / 4 * 3, ret_size))
			return false;
	}
	return true;
}
