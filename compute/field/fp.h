/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The base field of BLS12-381: numbers modulo a 381-bit prime p; the coordinates of points. p = (x
 * - 1)^2 (x^4 - x^2 + 1) / 3 + x with x = -0xd201000000010000. Elements are in Montgomery form, a *
 * R mod m with R = 2^384, as 6 limbs of 64 bits, the lowest first, always in [0, m), so equal
 * elements have equal limbs. All functions are pure and may be called by any thread; results may
 * alias operands. Nothing is constant time: do not use it for secrets.
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
 * One implementation of the four operations that have several. All implementations agree limb for
 * limb.
 */
struct obk_fp_ops {
	const char *name;
	bool (*usable)(void); /* whether this processor has the instructions */
	void (*add)(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b);
	void (*sub)(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b);
	void (*mul)(struct obk_fp *r, const struct obk_fp *a, const struct obk_fp *b);
	void (*sqr)(struct obk_fp *r, const struct obk_fp *a);
};

/* All implementations in this build, the reference in C first; ends with a NULL name. */
extern const struct obk_fp_ops obk_fp_tables[];
/*
 * The implementation in use: the last usable one of the list, or the reference with
 * OUTBOARD_OPT=-adx. Chosen when the program starts.
 */
extern struct obk_fp_ops obk_fp_now;
/* Chooses again after ob_opt_set. Must not be called while other threads compute. */
void obk_fp_choose(void);

extern const struct obk_fp obk_fp_zero, obk_fp_one;
extern const struct obk_fp obk_fp_modulus; /* the plain number m, not an element */
/* R^2 mod m, as plain limbs: multiplying by it converts to Montgomery form */
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
 * The inverse; 0 for 0. Binary greatest common divisor, 31 steps at a time (T. Pornin, eprint
 * 2020/972).
 */
void obk_fp_inv(struct obk_fp *r, const struct obk_fp *a);
/* a[i] = 1 / a[i] for n elements with one inversion; zeros stay zero. scratch holds n elements. */
void obk_fp_inv_batch(struct obk_fp *a, size_t n, struct obk_fp *scratch);
/* r = a^e; e is a plain number of `limbs` 64-bit limbs. */
void obk_fp_pow(struct obk_fp *r, const struct obk_fp *a, const uint64_t *e, unsigned limbs);
/*
 * Conversion from and to plain numbers, lowest limb first. Input may be any 384-bit number; it is
 * reduced.
 */
void obk_fp_from_plain(struct obk_fp *r, const uint64_t plain[OBK_FP_LIMBS]);
void obk_fp_to_plain(uint64_t plain[OBK_FP_LIMBS], const struct obk_fp *a);
/*
 * Conversion from and to 48 bytes, big-endian. False, and nothing written, if the number is not
 * below m.
 */
bool obk_fp_from_bytes(struct obk_fp *ret, const uint8_t bytes[OBK_FP_BYTES]);
void obk_fp_to_bytes(uint8_t bytes[OBK_FP_BYTES], const struct obk_fp *a);
/* Whether the plain number is below m. */
bool obk_fp_plain_is_canonical(const uint64_t plain[OBK_FP_LIMBS]);
/* A square root; false, and nothing written, if there is none. */
bool obk_fp_sqrt(struct obk_fp *ret, const struct obk_fp *a);
/*
 * Whether the element, as a plain number, is above (p - 1) / 2. This is the sign of a y coordinate
 * in the encodings.
 */
bool obk_fp_is_large(const struct obk_fp *a);

#endif
