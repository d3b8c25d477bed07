/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Part of fp.c and fr.c: the code that both prime fields share. The including file defines F(name),
 * the prefix of function names, ELT, the type of an element, OPS, LIMBS, BYTES and the constants
 * NINV (-1 / m mod 2^64), NINV31 (-1 / m mod 2^31), R3 (R^3 mod m), and has F(modulus), F(r2),
 * F(one).
 */

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

/* t is below 2 m: subtracts m if t >= m. */
static void reduce_once(uint64_t t[LIMBS])
{
	uint64_t low[LIMBS], borrow = 0;

	for (unsigned i = 0; i < LIMBS; i++) {
		u128 d = (u128)t[i] - F(modulus).l[i] - borrow;

		low[i] = (uint64_t)d;
		borrow = (uint64_t)(d >> 64) & 1;
	}
	for (unsigned i = 0; i < LIMBS && !borrow; i++)
		t[i] = low[i];
}

static void add_ref(ELT *r, const ELT *a, const ELT *b)
{
	uint64_t carry = 0;

	for (unsigned i = 0; i < LIMBS; i++) {
		u128 s = (u128)a->l[i] + b->l[i] + carry;

		r->l[i] = (uint64_t)s;
		carry = (uint64_t)(s >> 64);
	}
	reduce_once(r->l); /* the top bits of m are 0: there is no carry */
}

static void sub_ref(ELT *r, const ELT *a, const ELT *b)
{
	uint64_t borrow = 0, carry = 0, mask;

	for (unsigned i = 0; i < LIMBS; i++) {
		u128 d = (u128)a->l[i] - b->l[i] - borrow;

		r->l[i] = (uint64_t)d;
		borrow = (uint64_t)(d >> 64) & 1;
	}
	mask = 0 - borrow;
	for (unsigned i = 0; i < LIMBS; i++) {
		u128 s = (u128)r->l[i] + (F(modulus).l[i] & mask) + carry;

		r->l[i] = (uint64_t)s;
		carry = (uint64_t)(s >> 64);
	}
}

static void mul_ref(ELT *r, const ELT *a, const ELT *b)
{
	uint64_t t[LIMBS + 1] = { 0 };

	for (unsigned i = 0; i < LIMBS; i++) {
		uint64_t carry = 0, m;
		u128 s;

		for (unsigned j = 0; j < LIMBS; j++) {
			s = (u128)a->l[j] * b->l[i] + t[j] + carry;
			t[j] = (uint64_t)s;
			carry = (uint64_t)(s >> 64);
		}
		t[LIMBS] = carry;
		m = t[0] * NINV;
		s = (u128)m * F(modulus).l[0] + t[0];
		carry = (uint64_t)(s >> 64);
		for (unsigned j = 1; j < LIMBS; j++) {
			s = (u128)m * F(modulus).l[j] + t[j] + carry;
			t[j - 1] = (uint64_t)s;
			carry = (uint64_t)(s >> 64);
		}
		t[LIMBS - 1] = t[LIMBS] + carry;
	}
	reduce_once(t);
	memcpy(r->l, t, sizeof(r->l));
}

static void sqr_ref(ELT *r, const ELT *a)
{
	mul_ref(r, a, a);
}

static bool always(void)
{
	return true;
}

#if defined(__x86_64__)
void F(add_x86)(ELT *r, const ELT *a, const ELT *b);
void F(sub_x86)(ELT *r, const ELT *a, const ELT *b);
void F(mul_adx)(ELT *r, const ELT *a, const ELT *b);

static void sqr_adx(ELT *r, const ELT *a)
{
	F(mul_adx)(r, a, a);
}

static bool has_adx(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_BMI2) && (b & bit_ADX);
}
#endif

const OPS F(tables)[] = {
	{ "reference", always, add_ref, sub_ref, mul_ref, sqr_ref },
#if defined(__x86_64__)
	{ "adx", has_adx, F(add_x86), F(sub_x86), F(mul_adx), sqr_adx },
#endif
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};

OPS F(now) = { "reference", always, add_ref, sub_ref, mul_ref, sqr_ref };

void F(choose)(void)
{
	F(now) = F(tables)[0];
	for (const OPS *ops = F(tables); ops->name && ob_opt_on(OB_OPT_ADX); ops++) {
		if (ops->usable())
			F(now) = *ops;
	}
}

__attribute__((constructor)) static void choose_at_start(void)
{
	F(choose)();
}

void F(neg)(ELT *r, const ELT *a)
{
	F(now).sub(r, &F(zero), a);
}

bool F(plain_is_canonical)(const uint64_t plain[LIMBS])
{
	for (unsigned i = LIMBS; i-- > 0;) {
		if (plain[i] != F(modulus).l[i])
			return plain[i] < F(modulus).l[i];
	}
	return false;
}

void F(from_plain)(ELT *r, const uint64_t plain[LIMBS])
{
	ELT t;

	memcpy(t.l, plain, sizeof(t.l));
	while (!F(plain_is_canonical)(t.l))
		reduce_once(t.l);
	F(now).mul(r, &t, &F(r2));
}

void F(to_plain)(uint64_t plain[LIMBS], const ELT *a)
{
	static const ELT unit = { { 1 } };
	ELT t;

	F(now).mul(&t, a, &unit);
	memcpy(plain, t.l, sizeof(t.l));
}

bool F(from_bytes)(ELT *ret, const uint8_t bytes[BYTES])
{
	uint64_t plain[LIMBS];

	for (unsigned i = 0; i < LIMBS; i++) {
		uint64_t v;

		memcpy(&v, bytes + BYTES - 8 * (i + 1), 8);
		plain[i] = be64toh(v);
	}
	if (!F(plain_is_canonical)(plain))
		return false;
	F(from_plain)(ret, plain);
	return true;
}

void F(to_bytes)(uint8_t bytes[BYTES], const ELT *a)
{
	uint64_t plain[LIMBS];

	F(to_plain)(plain, a);
	for (unsigned i = 0; i < LIMBS; i++) {
		uint64_t v = htobe64(plain[i]);

		memcpy(bytes + BYTES - 8 * (i + 1), &v, 8);
	}
}

void F(pow)(ELT *r, const ELT *a, const uint64_t *e, unsigned limbs)
{
	ELT table[16], t = F(one);
	bool any = false;

	table[0] = F(one);
	for (unsigned i = 1; i < 16; i++)
		F(now).mul(&table[i], &table[i - 1], a);
	for (unsigned at = 64 * limbs; at > 0;) {
		unsigned digit;

		at -= 4;
		digit = (unsigned)(e[at / 64] >> at % 64) & 15;
		for (unsigned i = 0; i < 4 && any; i++)
			F(now).sqr(&t, &t);
		if (digit) {
			F(now).mul(&t, &t, &table[digit]);
			any = true;
		}
	}
	*r = t;
}

/*
 * Inversion. a and b start as the element and m, u and v as 1 and 0; a = u y, b = v y (mod m) holds
 * throughout. Thirty-one steps of the binary greatest common divisor are computed on 62-bit
 * approximations that consist of the top 31 and the low 31 bits of a and b. They yield four
 * factors, which are then applied to the long numbers at once. Pornin shows that a wrong sign from
 * the approximation does no harm.
 */
struct factors {
	int64_t f0, g0, f1, g1;
};

static struct factors inner_steps(uint64_t xa, uint64_t xb, unsigned steps)
{
	/*
	 * Two factors share a word, each with a bias, so that one subtraction or shift processes
	 * both.
	 */
	uint64_t fg0 = 1, fg1 = (uint64_t)1 << 32;
	const uint64_t bias = 0x7fffffff7fffffffu;

	for (unsigned i = 0; i < steps; i++) {
		uint64_t odd = 0 - (xa & 1), swap = odd & (0 - (uint64_t)(xa < xb)), t;

		t = (xa ^ xb) & swap;
		xa ^= t;
		xb ^= t;
		t = (fg0 ^ fg1) & swap;
		fg0 ^= t;
		fg1 ^= t;
		xa = (xa - (xb & odd)) >> 1;
		fg0 -= fg1 & odd;
		fg1 += fg1;
	}
	fg0 += bias;
	fg1 += bias;
	return (struct factors){ (int64_t)(fg0 & 0xffffffff) - 0x7fffffff,
		(int64_t)(fg0 >> 32) - 0x7fffffff, (int64_t)(fg1 & 0xffffffff) - 0x7fffffff,
		(int64_t)(fg1 >> 32) - 0x7fffffff };
}

/* r = |a f + b g| / 2^shift, without a remainder; returns whether the sign was changed. */
static bool combine(uint64_t r[LIMBS], const uint64_t a[LIMBS], const uint64_t b[LIMBS], int64_t f,
	int64_t g, unsigned shift)
{
	uint64_t t[LIMBS + 1];
	s128 carry = 0;
	bool negative;

	for (unsigned i = 0; i < LIMBS; i++) {
		s128 s = (s128)a[i] * f + carry;
		s128 q = (s128)b[i] * g + (s128)(uint64_t)s;

		t[i] = (uint64_t)q;
		carry = (s >> 64) + (q >> 64);
	}
	t[LIMBS] = (uint64_t)carry;
	negative = (int64_t)t[LIMBS] < 0;
	if (negative) {
		uint64_t one = 1;

		for (unsigned i = 0; i <= LIMBS; i++) {
			t[i] = ~t[i] + one;
			one = one && t[i] == 0;
		}
	}
	for (unsigned i = 0; i < LIMBS; i++)
		r[i] = t[i] >> shift | t[i + 1] << (64 - shift);
	return negative;
}

/* r = (u f + v g) / 2^31 mod m, in [0, m). */
static void combine_mod(
	uint64_t r[LIMBS], const uint64_t u[LIMBS], const uint64_t v[LIMBS], int64_t f, int64_t g)
{
	uint64_t t[LIMBS + 1], k, out[LIMBS];
	s128 carry = 0;
	u128 up = 0;

	for (unsigned i = 0; i < LIMBS; i++) {
		s128 s = (s128)u[i] * f + carry;
		s128 q = (s128)v[i] * g + (s128)(uint64_t)s;

		t[i] = (uint64_t)q;
		carry = (s >> 64) + (q >> 64);
	}
	t[LIMBS] = (uint64_t)carry;
	k = t[0] * NINV31 & 0x7fffffff;
	for (unsigned i = 0; i < LIMBS; i++) {
		up += (u128)F(modulus).l[i] * k + t[i];
		t[i] = (uint64_t)up;
		up >>= 64;
	}
	t[LIMBS] += (uint64_t)up;
	for (unsigned i = 0; i < LIMBS; i++)
		out[i] = t[i] >> 31 | t[i + 1] << 33;
	if ((int64_t)t[LIMBS] < 0) { /* in (-m, 0) */
		uint64_t c = 0;

		for (unsigned i = 0; i < LIMBS; i++) {
			u128 s = (u128)out[i] + F(modulus).l[i] + c;

			out[i] = (uint64_t)s;
			c = (uint64_t)(s >> 64);
		}
	}
	while (!F(plain_is_canonical)(out))
		reduce_once(out);
	memcpy(r, out, sizeof(out));
}

static unsigned top_limb(const uint64_t a[LIMBS], const uint64_t b[LIMBS])
{
	for (unsigned i = LIMBS; i-- > 1;) {
		if (a[i] | b[i])
			return i;
	}
	return 0;
}

/*
 * An approximation: 33 bits from the highest set bit of both numbers on, then the 31 lowest bits.
 */
static void stand_ins(uint64_t *xa, uint64_t *xb, const uint64_t a[LIMBS], const uint64_t b[LIMBS])
{
	unsigned top = top_limb(a, b), zeros;
	uint64_t ha = a[top], hb = b[top];

	if (top == 0) {
		*xa = ha;
		*xb = hb;
		return;
	}
	zeros = (unsigned)__builtin_clzll(ha | hb);
	if (zeros) {
		ha = ha << zeros | a[top - 1] >> (64 - zeros);
		hb = hb << zeros | b[top - 1] >> (64 - zeros);
	}
	*xa = (ha >> 31 << 31) | (a[0] & 0x7fffffff);
	*xb = (hb >> 31 << 31) | (b[0] & 0x7fffffff);
}

static bool plain_is_zero(const uint64_t a[LIMBS])
{
	uint64_t any = 0;

	for (unsigned i = 0; i < LIMBS; i++)
		any |= a[i];
	return any == 0;
}

void F(inv)(ELT *r, const ELT *x)
{
	static const ELT r3 = { R3 };
	uint64_t a[LIMBS], b[LIMBS], u[LIMBS] = { 1 }, v[LIMBS] = { 0 };

	memcpy(a, x->l, sizeof(a));
	memcpy(b, F(modulus).l, sizeof(b));
	while (!plain_is_zero(a)) {
		uint64_t xa, xb, na[LIMBS], nb[LIMBS], nu[LIMBS], nv[LIMBS];
		struct factors k;

		stand_ins(&xa, &xb, a, b);
		k = inner_steps(xa, xb, 31);
		if (combine(na, a, b, k.f0, k.g0, 31)) {
			k.f0 = -k.f0;
			k.g0 = -k.g0;
		}
		if (combine(nb, a, b, k.f1, k.g1, 31)) {
			k.f1 = -k.f1;
			k.g1 = -k.g1;
		}
		combine_mod(nu, u, v, k.f0, k.g0);
		combine_mod(nv, u, v, k.f1, k.g1);
		memcpy(a, na, sizeof(a));
		memcpy(b, nb, sizeof(b));
		memcpy(u, nu, sizeof(u));
		memcpy(v, nv, sizeof(v));
	}
	/* b is 1 now, or m for x = 0; in that case v is still 0 */
	memcpy(r->l, v, sizeof(v));
	F(now).mul(r, r, &r3);
}

void F(inv_batch)(ELT *a, size_t n, ELT *scratch)
{
	ELT run = F(one);

	for (size_t i = 0; i < n; i++) {
		scratch[i] = run;
		if (!F(is_zero)(&a[i]))
			F(now).mul(&run, &run, &a[i]);
	}
	F(inv)(&run, &run);
	for (size_t i = n; i-- > 0;) {
		ELT t;

		if (F(is_zero)(&a[i]))
			continue;
		F(now).mul(&t, &run, &scratch[i]);
		F(now).mul(&run, &run, &a[i]);
		a[i] = t;
	}
}
