/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Hashes of chunks: the code for every instruction set must agree with the definition in tree.h,
 * implemented here with OpenSSL's compression function.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/text.h"
#include "tests/test.h"
#include "transport/tree.h"

#define SIZE_MAX_TESTED (5 * OBT_TREE_BLOCK + 1)

static void by_definition(const uint8_t *data, size_t size, uint8_t ret[OBT_SHA256_BYTES])
{
	size_t padded = (size + OBT_TREE_BLOCK - 1) / OBT_TREE_BLOCK * OBT_TREE_BLOCK;
	uint8_t bytes[SIZE_MAX_TESTED + OBT_TREE_BLOCK] = { 0 };
	uint32_t last[8 * OBT_TREE_LANES + 2];
	uint64_t length = size;

	memcpy(bytes, data, size);
	for (size_t lane = 0; lane < OBT_TREE_LANES; lane++) {
		SHA256_CTX ctx;

		SHA256_Init(&ctx);
		for (size_t at = 0; at < padded; at += OBT_TREE_BLOCK) {
			uint8_t block[64];

			/* SHA-256 reads numbers big-endian. */
			for (size_t t = 0; t < 16; t++)
				for (size_t b = 0; b < 4; b++)
					block[4 * t + b] =
						bytes[at + 4 * (OBT_TREE_LANES * t + lane) + 3 - b];
			SHA256_Transform(&ctx, block);
		}
		for (size_t i = 0; i < 8; i++)
			last[i * OBT_TREE_LANES + lane] = ctx.h[i];
	}
	memcpy(&last[8 * OBT_TREE_LANES], &length, sizeof length);
	SHA256((const uint8_t *)last, sizeof last, ret);
}

TEST(every_instruction_set_follows_the_definition)
{
	static const size_t sizes[] = { 0, 1, 63, 64, 1023, 1024, 1025, 2048, 4095, 5120, 5121 };
	uint8_t data[SIZE_MAX_TESTED + 3], right[OBT_SHA256_BYTES], name[OBT_SHA256_BYTES];
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
		for (size_t shift = 0; shift < 3; shift++) {
			by_definition(data + shift, sizes[s], right);
			for (enum obt_tree_isa isa = 0; isa < OBT_TREE_ISAS; isa++) {
				if (!obt_tree_can(isa))
					continue;
				obt_tree_digest_by(isa, data + shift, sizes[s], name);
				CHECK(!memcmp(name, right, sizeof name));
			}
			obt_tree_digest(data + shift, sizes[s], name);
			CHECK(!memcmp(name, right, sizeof name));
		}
}

TEST(one_bit_or_one_zero_more_is_another_name)
{
	uint8_t data[4096] = { 0 }, first[OBT_SHA256_BYTES], name[OBT_SHA256_BYTES];

	obt_tree_digest(data, 4000, first);
	for (size_t bit = 0; bit < 8 * 4000; bit += 97) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		obt_tree_digest(data, 4000, name);
		CHECK(memcmp(name, first, sizeof name));
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	obt_tree_digest(data, 4001, name);
	CHECK(memcmp(name, first, sizeof name));
}

/* Hashes are on the wire and on servers' disks: they must never change. */
TEST(names_stay)
{
	char text[2 * OBT_SHA256_BYTES + 1];
	uint8_t name[OBT_SHA256_BYTES];

	obt_tree_digest("Outboard", 8, name);
	ob_text_hex(name, sizeof name, text);
	CHECK_STR(text, "ed4b13271278d49bed11ddf2aea0d403efd91146c4560b44806356586c844751");
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
