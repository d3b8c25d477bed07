/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/uuid.h"

#include <stdio.h>
#include <string.h>

void ob_uuid_print(const uint8_t uuid[16], char ret_text[OB_UUID_TEXT])
{
	size_t n = (size_t)snprintf(ret_text, OB_UUID_TEXT, "GPU-");

	for (unsigned i = 0; i < 16; i++) {
		const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

		n += (size_t)snprintf(ret_text + n, OB_UUID_TEXT - n, "%s%02x", dash, uuid[i]);
	}
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 32);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ob_uuid_parse(const char *text, uint8_t ret_uuid[16])
{
	if (strncmp(text, "GPU-", 4) != 0)
		return false;
	text += 4;
	for (unsigned i = 0; i < 16; i++) {
		int high, low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		high = digit(text[0]);
		low = high < 0 ? -1 : digit(text[1]);
		if (low < 0)
			return false;
		ret_uuid[i] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	return !*text;
}
