/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/uuid.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

#define HOST_NAME_BYTES 256u

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

static size_t machine_id(char *ret, size_t size)
{
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, size);

	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

void ob_uuid_of_machine(const char *name, uint8_t ret_uuid[16])
{
	char id[64], host[HOST_NAME_BYTES] = "";
	uint64_t hash = ob_hash(OB_HASH_START, id, machine_id(id, sizeof id));

	gethostname(host, sizeof host - 1);
	for (unsigned half = 0; half < 2; half++) {
		/* Twice, with the ends of the texts: each bit depends on each byte. */
		for (unsigned round = 0; round < 2; round++) {
			hash = ob_hash(hash, host, strlen(host) + 1);
			hash = ob_hash(hash, name, strlen(name) + 1);
		}
		memcpy(ret_uuid + 8 * half, &hash, sizeof hash);
	}
	/* Version 8, "of one's own making", of RFC 9562. */
	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x80);
	ret_uuid[8] = (uint8_t)((ret_uuid[8] & 0x3f) | 0x80);
}
