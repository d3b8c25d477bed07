/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Every codec, with a reused work area and without one: no byte may be written beyond the announced
 * size, and compressed data must decompress to the original. Also the payload of a packed frame
 * with any header.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "compression/codec.h"
#include "protocol/pack.h"
#include "tests/fuzz/fuzz.h"

static struct obz_work work;

static void round_trip(enum obz_codec codec, const uint8_t *data, size_t size)
{
	size_t room = size + size / 8 + 256, n;
	uint8_t *packed = malloc(room), *back = malloc(size + 1);

	if (packed && back) {
		n = obz_compress(&work, codec, data, size, packed, room);
		if (n > room ||
			(n &&
				(obz_decompress_with(&work, codec, packed, n, back, size) ||
					memcmp(back, data, size) != 0)))
			abort();
	}
	free(packed);
	free(back);
}

static void frame(unsigned codec, uint32_t announced, const uint8_t *data, size_t size)
{
	struct obp_unpacker unpacker = { 0 };
	struct obp_frame header = { .size = (uint32_t)size,
		.raw_size = (uint32_t)ob_round_up(announced, 8),
		.flags = (uint16_t)codec };

	if (size >= sizeof(struct obp_packed) &&
		obp_unpacker_begin(&unpacker, &header) == OB_ERR_NONE) {
		memcpy(unpacker.packed, data, size);
		obp_unpacker_finish(&unpacker);
	}
	obp_unpacker_fini(&unpacker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t announced;
	unsigned codec;
	uint8_t *out;

	if (size < 3 || size > 1u << 20)
		return 0;
	memcpy(&announced, data, 2);
	codec = data[2] % (OBZ_CODEC_COUNT + 1);
	data += 3;
	size -= 3;
	out = malloc(announced + 1u);
	if (out) {
		obz_decompress((enum obz_codec)codec, data, size, out, announced);
		obz_decompress_with(&work, (enum obz_codec)codec, data, size, out, announced);
	}
	free(out);
	if (codec < OBZ_CODEC_COUNT)
		round_trip((enum obz_codec)codec, data, size);
	frame(codec, announced, data, size & ~(size_t)7);
	return 0;
}
