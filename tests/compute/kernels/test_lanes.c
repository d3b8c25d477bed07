/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Every implementation of many additions, compared with complete additions one by one. All special
 * cases occur in all SIMD lanes.
 */
#include "compute/curve/lanes.h"
#include "tests/compute/kernels/oracle.h"
#include "tests/test.h"

#define POINTS 64
#define PAIRS  1500

#if defined(__x86_64__)
/*
 * The implementation for AVX-512 IFMA with its two instructions emulated by others, for processors
 * without them.
 */
extern const struct obk_lanes obk_lanes_ifma_emulated;
#endif

static struct obk_g1_affine points[POINTS];

/*
 * Returns the l-th implementation: first those of the list, then those for tests only, then NULL.
 */
static const struct obk_lanes *nth(unsigned l)
{
	unsigned listed = 0;

	while (obk_lanes_list[listed])
		listed++;
#if defined(__x86_64__)
	if (l == listed)
		return &obk_lanes_ifma_emulated;
#endif
	return l < listed ? obk_lanes_list[l] : NULL;
}

/* Points i G for small i, large multiples, and infinity. */
static void make_points(void)
{
	struct obk_g1 t;

	for (unsigned i = 1; i < POINTS; i++) {
		uint64_t k[4] = { i, i > 32 ? i * 0x9e3779b97f4a7c15 : 0, i > 32 ? ~i : 0,
			i > 32 ? i : 0 };

		obk_g1_mul(&t, &obk_g1_generator, k, 256);
		obk_g1_to_affine(&points[i], &t);
	}
}

static void reference(struct obk_g1_affine *r, const struct obk_g1_affine *from,
	const struct obk_g1_affine *scratch, const struct obk_pair *pair)
{
	struct obk_g1_affine a =
		(pair->a & OBK_REF_SCRATCH ? scratch : from)[pair->a & OBK_REF_INDEX];
	struct obk_g1_affine b =
		(pair->b & OBK_REF_SCRATCH ? scratch : from)[pair->b & OBK_REF_INDEX];
	struct obk_g1 t;

	if (pair->a & OBK_REF_NEGATIVE)
		obk_g1_affine_neg(&a, &a);
	if (pair->b & OBK_REF_NEGATIVE)
		obk_g1_affine_neg(&b, &b);
	obk_g1_from_affine(&t, &a);
	obk_g1_add_affine(&t, &t, &b);
	obk_g1_to_affine(r, &t);
}

/* kinds: the number of different points. With few every pair is a special case, with many none. */
static void run(
	const struct obk_lanes *lanes, unsigned first, unsigned kinds, size_t n, uint64_t *state)
{
	static struct obk_g1_affine plain[2 * PAIRS], want[PAIRS], have[2 * PAIRS];
	static struct obk_pair pairs[PAIRS];
	void *base = aligned_alloc(64, (POINTS * lanes->slot_bytes + 63) / 64 * 64);
	void *scratch = aligned_alloc(64, (2 * PAIRS * lanes->slot_bytes + 63) / 64 * 64);
	void *workspace = aligned_alloc(64, (lanes->workspace_bytes(n) + 63) / 64 * 64);

	lanes->load(base, points, POINTS);
	memset(plain, 0, sizeof(plain));
	for (size_t i = 0; i < PAIRS; i++)
		plain[PAIRS + i] = points[first + oracle_random(state) % kinds];
	lanes->load((char *)scratch + PAIRS * lanes->slot_bytes, plain + PAIRS, PAIRS);
	for (unsigned round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < n; i++) {
			uint64_t v = oracle_random(state);
			uint32_t a = (uint32_t)(first + v % kinds),
				 b = (uint32_t)(first + (v >> 20) % kinds);

			if (v >> 62 & 1)
				a = OBK_REF_SCRATCH | (PAIRS + (uint32_t)((v >> 8) % PAIRS));
			if (v >> 63)
				b = OBK_REF_SCRATCH | (PAIRS + (uint32_t)((v >> 30) % PAIRS));
			pairs[i] = (struct obk_pair){ .a = a | (v >> 50 & 1 ? OBK_REF_NEGATIVE : 0),
				.b = b | (v >> 51 & 1 ? OBK_REF_NEGATIVE : 0),
				.out = i };
			reference(&want[i], points, plain, &pairs[i]);
		}
		lanes->add(base, scratch, pairs, n, workspace);
		lanes->store(have, scratch, n);
		for (size_t i = 0; i < n; i++)
			CHECK(obk_g1_affine_equal(&have[i], &want[i]));
		/* sums become operands of the next round */
		memcpy((char *)scratch + PAIRS * lanes->slot_bytes, scratch, n * lanes->slot_bytes);
		memcpy(plain + PAIRS, want, n * sizeof(want[0]));
	}
	free(base);
	free(scratch);
	free(workspace);
}

TEST(sums_in_lanes_are_the_sums_one_by_one)
{
	uint64_t state = 6;

	make_points();
	for (unsigned l = 0; nth(l); l++) {
		const struct obk_lanes *lanes = nth(l);

		if (!lanes->usable())
			continue;
		for (size_t n = 1; n < 40; n++) {
			run(lanes, 0, 3, n, &state);
			run(lanes, 33, 20, n, &state);
		}
		run(lanes, 0, POINTS, PAIRS, &state);
		run(lanes, 0, 2, PAIRS, &state);
		run(lanes, 1, 1, PAIRS, &state);
		run(lanes, 1, 31, PAIRS, &state);
	}
}

TEST(points_survive_the_way_in_and_out)
{
	make_points();
	for (unsigned l = 0; nth(l); l++) {
		const struct obk_lanes *lanes = nth(l);
		struct obk_g1_affine back[POINTS];
		void *slots = aligned_alloc(64, POINTS * lanes->slot_bytes);

		if (lanes->usable()) {
			lanes->load(slots, points, POINTS);
			lanes->store(back, slots, POINTS);
			CHECK(memcmp(back, points, sizeof(points)) == 0);
			lanes->set_infinity(slots);
			lanes->store(back, slots, 1);
			CHECK(obk_g1_affine_is_infinity(back));
		}
		free(slots);
	}
}

TEST(the_choice_is_usable)
{
	CHECK(obk_lanes_choose()->usable());
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
