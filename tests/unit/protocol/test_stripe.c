/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "protocol/stripe.h"
#include "compression/codec.h"
#include "tests/test.h"

static struct obp_frame part(void)
{
	struct obp_frame f;

	obp_stripe_fill(&f, OBP_FRAME_PART, 7, 4096, 1001);
	return f;
}

TEST(what_is_made_is_taken)
{
	struct obp_frame f = part();

	CHECK_INT(f.size, 1008);
	CHECK(!obp_stripe_check(&f, 0, UINT64_MAX, NULL));
	CHECK(!obp_stripe_check(&f, 0, 4096 + 1001, NULL));
	obp_stripe_fill(&f, OBP_FRAME_PART, 1, 0, OBP_CHUNK_MAX);
	CHECK(!obp_stripe_check(&f, 0, OBP_CHUNK_MAX, NULL));
	obp_stripe_fill(&f, OBP_FRAME_GIVE, 8, 0, 0);
	CHECK(!obp_stripe_check(&f, 0, UINT64_MAX, NULL));
	obp_stripe_fill(&f, OBP_FRAME_GIVEN, 8, 0, 0);
	CHECK(!obp_stripe_check(&f, 0, UINT64_MAX, NULL));
	f = part();
	f.flags = OBZ_LZ4;
	f.raw_size = 1008;
	f.size = 512;
	CHECK(!obp_stripe_check(&f, OBZ_ALL_CODECS, UINT64_MAX, NULL));
}

/* One wrong field each. */
TEST(what_is_wrong_is_not)
{
#define WRONG(change)                                                      \
	do {                                                               \
		struct obp_frame f = part();                               \
		change;                                                    \
		CHECK(obp_stripe_check(&f, 1u << OBZ_LZ4, 1 << 20, NULL)); \
	} while (0)
	WRONG(f.magic++);
	WRONG(f.version++);
	for (unsigned type = 0; type < 256; type++)
		if (type != OBP_FRAME_PART)
			WRONG(f.type = (uint8_t)type);
	WRONG(f.sequence = 0);
	WRONG(f.reserved = 1);
	WRONG(f.count = 0);
	WRONG(f.count = UINT32_MAX);
	WRONG((f.count = f.raw_size = OBP_CHUNK_MAX + 1, f.size = OBP_CHUNK_MAX + 8));
	WRONG(f.size = 1000);
	WRONG(f.size = 1016);
	WRONG(f.raw_size = 1000);
	WRONG(f.ack = (1 << 20) - 1000);
	WRONG(f.ack = UINT64_MAX - 500);
	WRONG(f.flags = OBZ_LZ4); /* its sizes are those of an unpacked part */
	WRONG((f.flags = OBZ_ZSTD, f.raw_size = 1008, f.size = 512));
	WRONG((f.flags = 77, f.raw_size = 1008, f.size = 512));
	WRONG((f.flags = OBZ_LZ4, f.raw_size = 1008, f.size = 8));
	WRONG((f.flags = OBZ_LZ4, f.raw_size = 1008, f.size = 511));
	WRONG((f.flags = OBZ_LZ4, f.raw_size = 1008, f.size = 1016));
	WRONG((f.flags = OBZ_LZ4, f.raw_size = 1016, f.size = 512));
	WRONG((f.type = OBP_FRAME_GIVE, f.count = f.raw_size = 0));
	WRONG((f.type = OBP_FRAME_GIVEN, f.count = f.raw_size = f.size = 0, f.ack = 8));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
