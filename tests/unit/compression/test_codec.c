/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Codecs reproduce their input within the given space. Damaged or malicious input is refused, and
 * no byte is written beyond the announced size.
 */
#include <math.h>

#include "base/clock.h"
#include "compression/chooser.h"
#include "compression/codec.h"
#include "compression/shuffle.h"
#include "tests/test.h"

#define SIZE_MAX_TRIED (300u << 10)
#define GUARD          64u

static uint64_t seed = 88172645463325252u;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

enum kind { ZEROS, TEXT, FLOATS, BFLOATS, TOKENS, RANDOM, KINDS };

static double normal(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += (double)(next() >> 11) / 9007199254740992.0;
	return (sum - 6) * 0.02;
}

static void fill(enum kind kind, uint8_t *data, size_t size)
{
	static const char words[] = "the quick brown fox jumps over the lazy dog and runs away ";

	for (size_t i = 0; i < size; i++)
		data[i] = kind == TEXT   ? (uint8_t)words[(i + i / 91) % (sizeof words - 1)]
			: kind == RANDOM ? (uint8_t)next()
					 : 0;
	for (size_t i = 0; kind == FLOATS && i + 4 <= size; i += 4) {
		float x = (float)normal();

		memcpy(data + i, &x, 4);
	}
	for (size_t i = 0; kind == BFLOATS && i + 2 <= size; i += 2) {
		float x = (float)normal();

		memcpy(data + i, (char *)&x + 2, 2);
	}
	for (size_t i = 0; kind == TOKENS && i + 8 <= size; i += 8)
		data[i] = (uint8_t)next(), data[i + 1] = (uint8_t)(next() % 125);
}

/*
 * Decompresses into memory of exactly the announced size, so that a sanitizer detects an overflow;
 * other builds check the guard bytes.
 */
static enum ob_err unpack(struct obz_work *work, enum obz_codec codec, const uint8_t *packed,
	size_t size, size_t announced, uint8_t **ret)
{
	uint8_t *out = malloc(announced + GUARD);
	enum ob_err err;

	CHECK(out);
	memset(out + announced, 0x5a, GUARD);
	err = obz_decompress_with(work, codec, packed, size, out, announced);
	for (size_t i = 0; i < GUARD; i++)
		CHECK(out[announced + i] == 0x5a);
	if (ret)
		*ret = out;
	else
		free(out);
	return err;
}

TEST(round_trips_of_all_sizes)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 127, 1000, 4099,
		65536, 65537, SIZE_MAX_TRIED - 1, SIZE_MAX_TRIED };
	static uint8_t data[SIZE_MAX_TRIED], packed[2 * SIZE_MAX_TRIED];
	struct obz_work work = { 0 };

	for (unsigned kind = 0; kind < KINDS; kind++)
		for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
			for (unsigned c = 0; c < OBZ_CODEC_COUNT; c++) {
				uint8_t *back;
				size_t n;

				fill((enum kind)kind, data, sizes[s]);
				n = obz_compress(&work, (enum obz_codec)c, data, sizes[s], packed,
					sizeof packed);
				CHECK(n > 0 || sizes[s] < 4);
				if (!n)
					continue;
				CHECK_INT(unpack(&work, (enum obz_codec)c, packed, n, sizes[s],
						  &back),
					OB_ERR_NONE);
				CHECK(memcmp(back, data, sizes[s]) == 0);
				free(back);
				CHECK_INT(
					unpack(NULL, (enum obz_codec)c, packed, n, sizes[s], NULL),
					OB_ERR_NONE);
				CHECK_INT(unpack(&work, (enum obz_codec)c, packed, n, sizes[s] + 1,
						  NULL),
					OB_ERR_COMPRESSED);
				if (sizes[s])
					CHECK_INT(unpack(&work, (enum obz_codec)c, packed, n,
							  sizes[s] - 1, NULL),
						OB_ERR_COMPRESSED);
			}
	obz_work_fini(&work);
}

TEST(never_beyond_the_room)
{
	static uint8_t data[70000], packed[80000];
	struct obz_work work = { 0 };

	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned c = 1; c < OBZ_CODEC_COUNT; c++) {
			size_t whole, n;

			fill((enum kind)kind, data, sizeof data);
			whole = obz_compress(
				&work, (enum obz_codec)c, data, sizeof data, packed, sizeof packed);
			CHECK(whole > 0);
			for (size_t room = 0; room < whole; room += whole / 23 + 1) {
				memset(packed, 0x5a, sizeof packed);
				n = obz_compress(
					&work, (enum obz_codec)c, data, sizeof data, packed, room);
				CHECK(n <= room);
				for (size_t i = room; i < sizeof packed; i++)
					CHECK(packed[i] == 0x5a);
			}
		}
	obz_work_fini(&work);
}

/*
 * Changes every byte of a short piece, and truncates it at every length: the input is refused or
 * gives another result, without an overflow or a crash.
 */
TEST(damaged_input)
{
	static uint8_t data[3001], packed[4096], bad[4096];
	struct obz_work work = { 0 };

	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned c = 1; c < OBZ_CODEC_COUNT; c++) {
			size_t n;

			fill((enum kind)kind, data, sizeof data);
			n = obz_compress(
				&work, (enum obz_codec)c, data, sizeof data, packed, sizeof packed);
			CHECK(n > 0);
			for (size_t i = 0; i < n; i++) {
				memcpy(bad, packed, n);
				bad[i] ^= (uint8_t)(1 + next() % 255);
				unpack(&work, (enum obz_codec)c, bad, n, sizeof data, NULL);
				CHECK_INT(unpack(&work, (enum obz_codec)c, packed, i, sizeof data,
						  NULL),
					OB_ERR_COMPRESSED);
			}
			/*
			 * zstd accepts further frames; trailing bytes that are no frame must be
			 * refused.
			 */
			memcpy(bad, packed, n);
			bad[n] = 0xff;
			CHECK_INT(unpack(&work, (enum obz_codec)c, bad, n + 1, sizeof data, NULL),
				OB_ERR_COMPRESSED);
		}
	CHECK_INT(unpack(&work, (enum obz_codec)OBZ_CODEC_COUNT, packed, 10, 10, NULL),
		OB_ERR_COMPRESSED);
	CHECK_INT(unpack(&work, (enum obz_codec) - 1, packed, 10, 10, NULL), OB_ERR_COMPRESSED);
	obz_work_fini(&work);
}

TEST(planes_that_lie)
{
	static const uint32_t heads[][5] = {
		{ 0, 1, 1, 1, 1 },
		{ 3, 1, 1, 1, 0 },
		{ 8, 1, 1, 1, 1 },
		{ 2, 0, 0, 0, 0 },
		{ 4, 0xffffffff, 1, 1, 1 },
		{ 4, 100, 0xffffff9c, 0, 0 },
		{ 2, 50, 51, 0, 0 },
		{ 2, 50, 49, 0, 0 },
		{ 0xffffffff, 1, 1, 1, 1 },
	};
	uint8_t bytes[20 + 100] = { 0 };
	struct obz_work work = { 0 };

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		memcpy(bytes, heads[i], 20);
		CHECK_INT(unpack(&work, OBZ_SHUFFLE, bytes, sizeof bytes, 100, NULL),
			OB_ERR_COMPRESSED);
	}
	memcpy(bytes, (uint32_t[5]){ 2, 50, 50, 0, 0 }, 20);
	CHECK_INT(unpack(&work, OBZ_SHUFFLE, bytes, sizeof bytes, 100, NULL), OB_ERR_NONE);
	obz_work_fini(&work);
}

TEST(split_and_join)
{
	uint8_t data[400], planes[400], back[400];

	for (unsigned width = 2; width <= 4; width += 2)
		for (size_t n = 0; n * width <= sizeof data; n++) {
			fill(RANDOM, data, sizeof data);
			obz_shuffle(data, n, width, planes);
			for (size_t i = 0; i < n * width; i++)
				CHECK_INT(planes[i % width * n + i / width], data[i]);
			obz_unshuffle(planes, n, width, back);
			CHECK(memcmp(data, back, n * width) == 0);
		}
}

TEST(planes_of_weights_are_smaller)
{
	static uint8_t data[SIZE_MAX_TRIED], packed[2 * SIZE_MAX_TRIED];
	struct obz_work work = { 0 };
	size_t planes;

	fill(FLOATS, data, sizeof data);
	CHECK_INT(obz_shuffle_guess(data, sizeof data), 4);
	planes = obz_compress(&work, OBZ_SHUFFLE, data, sizeof data, packed, sizeof packed);
	CHECK(planes < obz_compress(&work, OBZ_ZSTD, data, sizeof data, packed, sizeof packed));
	fill(BFLOATS, data, sizeof data);
	CHECK_INT(obz_shuffle_guess(data, sizeof data), 2);
	planes = obz_compress(&work, OBZ_SHUFFLE, data, sizeof data, packed, sizeof packed);
	CHECK(planes < obz_compress(&work, OBZ_ZSTD, data, sizeof data, packed, sizeof packed));
	CHECK(planes < sizeof data * 8 / 10);
	obz_work_fini(&work);
}

TEST(names)
{
	enum obz_codec codec;

	for (unsigned c = 0; c < OBZ_CODEC_COUNT; c++) {
		CHECK(obz_codec_find(obz_codec_name((enum obz_codec)c), &codec));
		CHECK_INT(codec, c);
	}
	CHECK(!obz_codec_find("zip", &codec));
	CHECK(!obz_codec_name((enum obz_codec)OBZ_CODEC_COUNT));
}

/* ---- choosing ---- */

TEST(choice_follows_the_rule)
{
	struct obz_guess guess[OBZ_CODEC_COUNT] = {
		[OBZ_LZ4] = { 1.0, 20e9 },
		[OBZ_ZSTD] = { 1.28, 0.67e9 },
		[OBZ_SHUFFLE] = { 1.46, 0.66e9 },
	};

	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_NONE, 0), OBZ_NONE);
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_NONE, 12.5e6), OBZ_SHUFFLE);
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_NONE, 125e6), OBZ_SHUFFLE);
	/* the codecs are slower than the link */
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_NONE, 1.25e9), OBZ_NONE);
	CHECK_INT(obz_choose(guess, 1u << OBZ_ZSTD, OBZ_NONE, 125e6), OBZ_ZSTD);
	CHECK_INT(obz_choose(guess, 0, OBZ_NONE, 125e6), OBZ_NONE);
	guess[OBZ_LZ4] = (struct obz_guess){ 255, 30e9 };
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_NONE, 3.1e9), OBZ_LZ4);
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_NONE, 100e9), OBZ_NONE);
	guess[OBZ_LZ4] = (struct obz_guess){ 1.04, 30e9 };
	/* less than a twentieth is not worth it */
	CHECK_INT(obz_choose(guess, 1u << OBZ_LZ4, OBZ_NONE, 1e9), OBZ_NONE);
	/* The present codec is kept until another is better by a twentieth. */
	guess[OBZ_LZ4] = (struct obz_guess){ 2.0, 1e9 };
	guess[OBZ_ZSTD] = (struct obz_guess){ 2.08, 1e9 };
	guess[OBZ_SHUFFLE] = (struct obz_guess){ 1, 1e9 };
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_LZ4, 100e6), OBZ_LZ4);
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_ZSTD, 100e6), OBZ_ZSTD);
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_NONE, 100e6), OBZ_ZSTD);
	guess[OBZ_ZSTD].ratio = 2.2;
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_LZ4, 100e6), OBZ_ZSTD);
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_LZ4, 3e9), OBZ_NONE);
	CHECK_INT(obz_choose(guess, OBZ_ALL_CODECS, OBZ_SHUFFLE, 900e6), OBZ_LZ4);
}

TEST(chooser_samples_one_in_sixteen)
{
	struct obz_chooser chooser;
	uint64_t now = OB_SECOND;
	unsigned due = 0;

	obz_chooser_init(&chooser, OBZ_ALL_CODECS, OBZ_NONE);
	for (unsigned i = 0; i < 16; i++)
		due += obz_chooser_due(&chooser, now += OB_MS);
	CHECK_INT(due, 5); /* 0, 1, 3, 7, 15 */
	due = 0;
	for (unsigned i = 0; i < 1600; i++)
		due += obz_chooser_due(&chooser, now += OB_MS);
	CHECK_INT(due, 100);
	/*
	 * Sampling may take a fiftieth of the time: after a sample of a millisecond, the next one
	 * is due after 50 chunks here.
	 */
	chooser.sample_credit = -1e-3;
	due = 0;
	for (unsigned i = 0; i < 80; i++)
		due += obz_chooser_due(&chooser, now += OB_MS);
	CHECK_INT(due, 1);
	obz_chooser_init(&chooser, OBZ_ALL_CODECS, OBZ_ZSTD);
	CHECK(!obz_chooser_due(&chooser, now));
	CHECK_INT(chooser.now, OBZ_ZSTD);
}

static void show(struct obz_chooser *chooser, struct obz_work *work, const uint8_t *data,
	size_t size, double rate)
{
	static uint8_t scratch[OBZ_SAMPLE_BYTES];

	obz_chooser_rate(chooser, rate);
	obz_chooser_sample(chooser, work, data, size, scratch);
}

/* At 12.5 MB/s every codec is fast enough even on a loaded machine, so only ratios decide. */
TEST(chooser_by_data)
{
	static uint8_t data[256 << 10];
	struct obz_work work = { 0 };
	struct obz_chooser chooser;

	obz_chooser_init(&chooser, OBZ_ALL_CODECS, OBZ_NONE);
	fill(BFLOATS, data, sizeof data);
	show(&chooser, &work, data, sizeof data, 0);
	/* no rate yet; then one so low that no codec is slower even on a busy machine */
	CHECK_INT(chooser.now, OBZ_NONE);
	show(&chooser, &work, data, sizeof data, 12.5e3);
	CHECK_INT(chooser.now, OBZ_SHUFFLE);
	obz_chooser_learn(&chooser, OBZ_SHUFFLE, sizeof data, 0, 1000000);
	CHECK(chooser.now != OBZ_SHUFFLE); /* the data has changed: the codec changes at once */
	obz_chooser_init(&chooser, OBZ_ALL_CODECS, OBZ_NONE);
	fill(RANDOM, data, sizeof data);
	for (int i = 0; i < 10; i++)
		show(&chooser, &work, data, sizeof data, 12.5e3);
	CHECK_INT(chooser.now, OBZ_NONE);
	fill(TEXT, data, sizeof data);
	for (int i = 0; i < 10; i++)
		show(&chooser, &work, data, sizeof data, 12.5e3);
	CHECK(chooser.now != OBZ_NONE);
	show(&chooser, &work, data, sizeof data, 1e15);
	CHECK_INT(chooser.now, OBZ_NONE);
	obz_work_fini(&work);
}

/*
 * Chunks of a program file differ, and some are compressed slowly because the thread was preempted.
 * The codec that is best for their sum stays chosen.
 */
TEST(a_chunk_that_differs_does_not_change_the_choice)
{
	enum { CHUNK = 256 << 10 };
	static const double ratios[] = { 1.5, 5.4, 2.2, 1.6, 4.5, 1.4 };
	struct obz_chooser chooser;

	obz_chooser_init(&chooser, OBZ_ALL_CODECS, OBZ_NONE);
	chooser.guess[OBZ_LZ4] = (struct obz_guess){ 1.7, 650e6 };
	chooser.guess[OBZ_ZSTD] = (struct obz_guess){ 2.2, 350e6 };
	obz_chooser_rate(&chooser, 125e6);
	CHECK_INT(chooser.now, OBZ_ZSTD);
	for (int i = 0; i < 60; i++) {
		bool preempted = i % 10 == 1;

		obz_chooser_learn(&chooser, OBZ_ZSTD, CHUNK, (size_t)(CHUNK / ratios[i % 6]),
			preempted ? 2500000 : 700000);
		CHECK_INT(chooser.now, OBZ_ZSTD);
	}
	obz_chooser_learn(&chooser, OBZ_ZSTD, CHUNK, 0, 700000);
	CHECK(chooser.now != OBZ_ZSTD); /* it cannot compress the data at all */
}

TEST(link_with_time_to_spare_is_probed)
{
	struct obz_chooser chooser;
	unsigned raw = 0;

	obz_chooser_init(&chooser, OBZ_ALL_CODECS, OBZ_NONE);
	chooser.guess[OBZ_LZ4] = (struct obz_guess){ 200, 2e9 };
	obz_chooser_rate(&chooser, 125e6);
	CHECK_INT(chooser.now, OBZ_LZ4);
	/* 131 ms, of which raw chunks may take 3%: 2.1 ms each */
	for (unsigned i = 0; i < 1000; i++) {
		obz_chooser_due(&chooser, OB_SECOND + i * 131072ull);
		raw += obz_chooser_pick(&chooser, 256 << 10) == OBZ_NONE;
	}
	CHECK(raw >= 1 && raw <= 3);
	obz_chooser_rate(&chooser, 1e6); /* the link is the bottleneck: its rate is known */
	for (unsigned i = 0; i < 1000; i++) {
		obz_chooser_due(&chooser, 2 * OB_SECOND + i * 1311072ull);
		CHECK_INT(obz_chooser_pick(&chooser, 256 << 10), OBZ_LZ4);
	}
	obz_chooser_rate(&chooser, 3e9);
	CHECK_INT(chooser.now, OBZ_NONE);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
