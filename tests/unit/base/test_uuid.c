/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/uuid.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/machine_uuid.h"
#include "base/sha256.h"
#include "tests/test.h"

TEST(there_and_back)
{
	const uint8_t uuid[16] = { 0, 0x12, 0xab, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xfe };
	uint8_t back[16];
	char text[OB_UUID_TEXT];

	ob_uuid_print(uuid, text);
	CHECK_STR(text, "GPU-0012abff-0102-0304-0506-0708090a0bfe");
	CHECK(ob_uuid_parse(text, back) && memcmp(back, uuid, sizeof uuid) == 0);
	CHECK(ob_uuid_parse("GPU-0012ABFF-0102-0304-0506-0708090A0BFE", back));
}

TEST(other_texts_are_refused)
{
	static const char *const wrong[] = { "", "GPU-", "0012abff-0102-0304-0506-0708090a0bfe",
		"GPU-0012abff-0102-0304-0506-0708090a0bf",
		"GPU-0012abff-0102-0304-0506-0708090a0bfe1",
		"GPU-0012abff0-102-0304-0506-0708090a0bfe",
		"GPU-0012abfg-0102-0304-0506-0708090a0bfe",
		"MIG-0012abff-0102-0304-0506-0708090a0bfe" };
	uint8_t back[16];

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		CHECK(!ob_uuid_parse(wrong[i], back));
}

TEST(a_name_has_a_uuid_on_a_machine)
{
	uint8_t one[16], same[16], other[16], none[16];
	char text[OB_UUID_TEXT];

	ob_uuid_of_machine("rack-1", one);
	ob_uuid_of_machine("rack-1", same);
	ob_uuid_of_machine("rack-2", other);
	ob_uuid_of_machine("", none);
	CHECK(memcmp(one, same, sizeof one) == 0);
	for (unsigned half = 0; half < 16; half += 8) {
		CHECK(memcmp(one + half, other + half, 8) != 0);
		CHECK(memcmp(one + half, none + half, 8) != 0);
	}
	ob_uuid_print(one, text);
	CHECK(text[18] == '8' && strchr("89ab", text[23]));
}

/* Without the machine's id nobody can make it, and it does not tell the id. */
TEST(a_machines_uuid_is_keyed_with_its_id)
{
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	char id[64], text[300] = "outboard device";
	uint8_t made[16], digest[32];
	size_t host = strlen(text) + 1, end;
	ssize_t n = fd < 0 ? 0 : read(fd, id, sizeof id);
	struct ob_sha256 hash;

	if (fd >= 0)
		close(fd);
	CHECK(gethostname(text + host, sizeof text - host - 8) == 0);
	end = host + strlen(text + host) + 1;
	memcpy(text + end, "rack-1", 7);
	ob_sha256_init(&hash);
	ob_sha256_update(&hash, text, end + 7);
	ob_sha256_final(&hash, digest);
	ob_hmac_sha256(id, n > 0 ? (size_t)n : 0, digest, sizeof digest, digest);
	digest[6] = (uint8_t)((digest[6] & 0x0f) | 0x80);
	digest[8] = (uint8_t)((digest[8] & 0x3f) | 0x80);
	ob_uuid_of_machine("rack-1", made);
	CHECK(memcmp(made, digest, sizeof made) == 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
