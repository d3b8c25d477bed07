/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/uuid.h"

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

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
