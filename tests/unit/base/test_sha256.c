/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* SHA-256 with the examples of FIPS 180-4, HMAC-SHA256 with those of RFC 4231. */
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

/* Hexadecimal digits of a hash. */
static const char *print(const uint8_t hash[OB_SHA256_BYTES])
{
	static char text[2 * OB_SHA256_BYTES + 1];

	for (unsigned i = 0; i < OB_SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	return text;
}

/* The hash of the text `times` times, in pieces of the text's length. */
static const char *hash(const char *text, unsigned times)
{
	uint8_t out[OB_SHA256_BYTES];
	struct ob_sha256 s;

	ob_sha256_init(&s);
	while (times--)
		ob_sha256_update(&s, text, strlen(text));
	ob_sha256_final(&s, out);
	return print(out);
}

/* With a key of n such bytes. */
static const char *keyed(char byte, unsigned n, const char *text)
{
	uint8_t out[OB_SHA256_BYTES];
	char key[256];

	memset(key, byte, n);
	ob_hmac_sha256(key, n, text, strlen(text), out);
	return print(out);
}

TEST(hashes)
{
	CHECK_STR(hash("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	CHECK_STR(
		hash("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	CHECK_STR(hash("a", 1000000),
		"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(keyed_hashes)
{
	uint8_t out[OB_SHA256_BYTES];

	CHECK_STR(keyed(0x0b, 20, "Hi There"),
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	ob_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, out);
	CHECK_STR(print(out), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	CHECK_STR(keyed((char)0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First"),
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
	/* a key as long as a block, and one byte longer (by Python's hmac) */
	CHECK_STR(keyed((char)0xaa, 64, "x"),
		"ce3c639dcb9d8baae5d44c3b8b5e233faab4d1860e07489af5c84f213998bd79");
	CHECK_STR(keyed((char)0xaa, 65, "x"),
		"c2b9a0a013df029c7d812c5ac18388feef0194ee64fcc5f321d149c06137caa3");
	CHECK_STR(keyed(0, 0, ""),
		"b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
