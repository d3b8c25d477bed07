/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The base field of BLS12-381: numbers modulo a prime p of 381 bits, coordinates of points. p = (x
 * - 1)^2 (x^4 - x^2 + 1) / 3 + x with x = -0xd201000000010000. Elements are held in Montgomery
 * form, a * R mod m with R = 2^384, 6 limbs of 64 bits, the lowest first, always in [0, m): equal
 * elements have equal limbs. Everything here is pure and may be called by any thread; results may
 * alias operands. Nothing is constant time: no secrets belong here.
 */
#ifndef OBK_FP_H
#define OBK_FP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBK_FP_LIMBS 6
#define OBK_FP_BYTES 48

struct obk_fp {
	uint64_t l[OBK_FP_LIMBS];
};

/*
 * One implementation of the four operations that are worth writing twice. All of them agree limb
 * for limb.
 */
struct obk_fp_ops {
	const char *name;
	bool (*usable)(void); /* does this processor have the instructions? */
	void (*add)(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b);
	void (*sub)(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b);
	void (*mul)(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b);
	void (*sqr)(struct obk_fp *r, const struct obk_fp *a);
};

/* Every implementation in this build, the reference in C first; ends with a NULL name. */
extern const struct obk_fp_ops obk_fp_tables[];
/*
 * The one in use: the last usable one of the list, or the reference under OUTBOARD_OPT=-adx. Chosen
 * when the program starts.
 */
extern struct obk_fp_ops obk_fp_now;
/* Chooses again, after ob_opt_set. Not while other threads compute. */
void obk_fp_choose(void);

extern const struct obk_fp obk_fp_zero, obk_fp_one;
extern const struct obk_fp obk_fp_modulus; /* the plain number m, not an element */
/* R^2 mod m, as plain limbs: multiplying by it enters Montgomery form */
extern const struct obk_fp obk_fp_r2;

static inline void obk_fp_add(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b)
{
	obk_fp_now.add(r, a, b);
}

static inline void obk_fp_sub(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b)
{
	obk_fp_now.sub(r, a, b);
}

static inline void obk_fp_mul(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b)
{
	obk_fp_now.mul(r, a, b);
}

static inline void obk_fp_sqr(struct obk_fp *r, const struct obk_fp *a)
{
	obk_fp_now.sqr(r, a);
}

static inline bool obk_fp_is_zero(const struct obk_fp *a)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < OBK_FP_LIMBS; i++)
		any |= a->l[i];
	return any == 0;
}

static inline bool obk_fp_equal(const struct obk_fp *a, const struct obk_fp *b)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < OBK_FP_LIMBS; i++)
		any |= a->l[i] ^ b->l[i];
	return any == 0;
}

void obk_fp_neg(struct obk_fp *r, const struct obk_fp *a);
/*
 * The inverse; 0 for 0. Binary greatest common divisor on 31 steps at a time (T. Pornin, eprint
 * 2020/972).
 */
void obk_fp_inv(struct obk_fp *r, const struct obk_fp *a);
/* a[i] = 1 / a[i] for n elements with one inversion; zeros stay zero. scratch holds n elements. */
void obk_fp_inv_batch(struct obk_fp *a, size_t n, struct obk_fp *scratch);
/* r = a^e; e is a plain number of `limbs` 64-bit limbs. */
void obk_fp_pow(struct obk_fp *r, const struct obk_fp *a, const uint64_t *e, unsigned limbs);
/* From and to plain numbers, lowest limb first. Input may be any 384-bit number: it is reduced. */
void obk_fp_from_plain(struct obk_fp *r, const uint64_t plain[OBK_FP_LIMBS]);
void obk_fp_to_plain(uint64_t plain[OBK_FP_LIMBS], const struct obk_fp *a);
/*
 * From and to 48 bytes, the highest first. False, and nothing written, if the number is not below
 * m.
 */
bool obk_fp_from_bytes(struct obk_fp *ret, const uint8_t bytes[OBK_FP_BYTES]);
void obk_fp_to_bytes(uint8_t bytes[OBK_FP_BYTES], const struct obk_fp *a);
/* Is the plain number below m? */
bool obk_fp_plain_is_canonical(const uint64_t plain[OBK_FP_LIMBS]);
/* A square root; false, and nothing written, if there is none. */
bool obk_fp_sqrt(struct obk_fp *ret, const struct obk_fp *a);
/*
 * Is the element, as a plain number, above (p - 1) / 2? The sign of a y coordinate in the
 * encodings.
 */
bool obk_fp_is_large(const struct obk_fp *a);

#endif
