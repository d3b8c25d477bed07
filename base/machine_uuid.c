/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/machine_uuid.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/sha256.h"

#define HOST_NAME_BYTES 256u

static size_t machine_id(char *ret, size_t size)
{
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, size);

	if (fd >= 0)
		close(fd);
	return n > 0 ? ob_min((size_t)n, size) : 0; /* at most size, which gcc cannot know */
}

void ob_uuid_of_machine(const char *name, uint8_t ret_uuid[16])
{
	static const char purpose[] = "outboard device";
	char id[64], host[HOST_NAME_BYTES] = "";
	uint8_t digest[OB_SHA256_BYTES];
	size_t id_size = machine_id(id, sizeof id);
	struct ob_sha256 hash;

	gethostname(host, sizeof host - 1);
	ob_sha256_init(&hash);
	ob_sha256_update(&hash, purpose, sizeof purpose);
	ob_sha256_update(&hash, host, strlen(host) + 1);
	ob_sha256_update(&hash, name, strlen(name) + 1);
	ob_sha256_final(&hash, digest);
	ob_hmac_sha256(id, id_size, digest, sizeof digest, digest);
	explicit_bzero(id, sizeof id);
	memcpy(ret_uuid, digest, 16);
	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x80);
	ret_uuid[8] = (uint8_t)((ret_uuid[8] & 0x3f) | 0x80);
}
