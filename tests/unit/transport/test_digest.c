/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * SHA-256 against the vectors of FIPS 180-4, and that it does not initialise libcrypto, which would
 * take memory and time at the start of every program that loads the client library.
 */
#include <malloc.h>

#include "base/text.h"
#include "tests/test.h"
#include "transport/digest.h"

static void is(const void *data, size_t size, const char *expected)
{
	char text[2 * OBT_SHA256_BYTES + 1];
	uint8_t digest[OBT_SHA256_BYTES];

	obt_digest_sha256(data, size, digest);
	ob_text_hex(digest, sizeof digest, text);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%s\n", text);
	CHECK(strcmp(text, expected) == 0);
}

TEST(vectors)
{
	static char million[1000000];

	is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(million, 'a', sizeof million);
	is(million, sizeof million,
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(takes_no_heap)
{
	uint8_t digest[OBT_SHA256_BYTES];
	struct mallinfo2 before = mallinfo2(), after;

	obt_digest_sha256("abc", 3, digest);
	after = mallinfo2();
	CHECK_INT(after.uordblks, before.uordblks);
	CHECK_INT(after.hblkhd, before.hblkhd);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
