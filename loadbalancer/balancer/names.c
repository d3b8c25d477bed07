/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/names.h"

#include <string.h>

#include "base/text.h"

bool obl_name_valid(const char *name)
{
	size_t n =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

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
