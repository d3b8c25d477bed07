/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Part of test_field.c: the tests of one field. The including file defines F(name), ELT, OPS,
 * LIMBS, BYTES, and T(name) for the tests' names.
 */

static const uint64_t T(edges)[] = { 0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff,
	0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffffe, 0xffffffffffffffff };

/* Random elements, every fourth with edge values as limbs. The first ones are 0, 1, m - 1 and R. */
static void T(element)(ELT *r, unsigned i, uint64_t *state)
{
	for (unsigned j = 0; j < LIMBS; j++)
		r->l[j] = i % 4 == 3 ? T(edges)[oracle_random(state) % 10] : oracle_random(state);
	if (i < 2)
		*r = (ELT){ { i } };
	if (i == 2)
		*r = F(one);
	if (i == 3) {
		*r = F(modulus);
		r->l[0]--;
	}
	while (!F(plain_is_canonical)(r->l))
		r->l[LIMBS - 1] >>= 1;
}

EXPANDED_TEST(T(every_implementation_agrees_limb_for_limb))
{
	const OPS *ref = &F(tables)[0];
	uint64_t state = 1;

	for (const OPS *ops = ref; ops->name; ops++) {
		for (unsigned i = 0; i < 20000 && ops->usable(); i++) {
			ELT a, b, want, have;

			T(element)(&a, i / 7 % 300, &state);
			T(element)(&b, i % 7, &state);
			ref->add(&want, &a, &b);
			ops->add(&have, &a, &b);
			CHECK(F(equal)(&want, &have));
			ref->sub(&want, &a, &b);
			ops->sub(&have, &a, &b);
			CHECK(F(equal)(&want, &have));
			ref->mul(&want, &a, &b);
			ops->mul(&have, &a, &b);
			CHECK(F(equal)(&want, &have) && F(plain_is_canonical)(have.l));
			ref->sqr(&want, &a);
			ops->sqr(&a, &a);
			CHECK(F(equal)(&want, &a));
			ops->mul(&b, &b, &b);
			ops->sub(&b, &b, &b);
			CHECK(F(is_zero)(&b));
		}
	}
}

EXPANDED_TEST(T(products_and_inverses_are_openssls))
{
	uint8_t m[BYTES], a[BYTES], b[BYTES], have[BYTES], want[BYTES];
	uint64_t state = 2;

	for (unsigned i = 0; i < BYTES; i++)
		m[i] = (uint8_t)(F(modulus).l[(BYTES - 1 - i) / 8] >> 8 * ((BYTES - 1 - i) % 8));
	for (unsigned i = 0; i < 400; i++) {
		ELT x, y, z, w;

		T(element)(&x, i, &state);
		T(element)(&y, i + 7, &state);
		F(to_bytes)(a, &x);
		F(to_bytes)(b, &y);
		CHECK(F(from_bytes)(&w, a) && F(equal)(&w, &x));
		F(mul)(&z, &x, &y);
		F(to_bytes)(have, &z);
		oracle_mul_mod(want, a, b, m, BYTES);
		CHECK(memcmp(have, want, BYTES) == 0);
		F(inv)(&z, &x);
		if (F(is_zero)(&x)) {
			CHECK(F(is_zero)(&z));
			continue;
		}
		oracle_inv_mod(want, a, m, BYTES);
		F(to_bytes)(have, &z);
		CHECK(memcmp(have, want, BYTES) == 0);
	}
	CHECK(!F(from_bytes)(&(ELT){ { 0 } }, m));
}

EXPANDED_TEST(T(batch_inversion_and_powers))
{
	ELT a[37], b[37], scratch[37], t;
	uint64_t state = 3, e[LIMBS];

	for (unsigned i = 0; i < 37; i++)
		T(element)(&a[i], i % 20, &state);
	memcpy(b, a, sizeof(b));
	F(inv_batch)(b, 37, scratch);
	for (unsigned i = 0; i < 37; i++) {
		F(inv)(&t, &a[i]);
		CHECK(F(equal)(&t, &b[i]));
		/* a^(m - 2) = 1 / a */
		memcpy(e, F(modulus).l, sizeof(e));
		e[0] -= 2;
		F(pow)(&t, &a[i], e, LIMBS);
		CHECK(F(equal)(&t, &b[i]));
		F(neg)(&t, &a[i]);
		F(add)(&t, &t, &a[i]);
		CHECK(F(is_zero)(&t));
	}
	for (unsigned i = 0; i < LIMBS; i++)
		e[i] = UINT64_MAX;
	F(from_plain)(&t, e); /* reduces a number of LIMBS limbs that may be m or more */
	F(to_plain)(e, &t);
	CHECK(F(plain_is_canonical)(e));
	F(add)(&t, &t, &F(one));
	e[0] = 2;
	F(from_plain)(&a[0], (const uint64_t[LIMBS]){ 2 });
	memset(e, 0, sizeof(e));
	e[0] = 64 * LIMBS;
	F(pow)(&a[0], &a[0], e, LIMBS); /* 2^(64 n) - 1 + 1 */
	CHECK(F(equal)(&t, &a[0]));
}
