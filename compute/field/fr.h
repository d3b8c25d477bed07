/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The scalar field of BLS12-381: numbers modulo the 255-bit prime r, the order of G1; the scalars
 * of an MSM and the elements of an NTT. r = x^4 - x^2 + 1 with x = -0xd201000000010000; 2^32
 * divides r - 1. Elements are in Montgomery form, a * R mod m with R = 2^256, as 4 limbs of 64
 * bits, the lowest first, always in [0, m), so equal elements have equal limbs. All functions are
 * pure and may be called by any thread; results may alias operands. Nothing is constant time: do
 * not use it for secrets.
 */
#ifndef OBK_FR_H
#define OBK_FR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBK_FR_LIMBS 4
#define OBK_FR_BYTES 32

struct obk_fr {
	uint64_t l[OBK_FR_LIMBS];
};

/*
 * One implementation of the four operations that have several. All implementations agree limb for
 * limb.
 */
struct obk_fr_ops {
	const char *name;
	bool (*usable)(void); /* whether this processor has the instructions */
	void (*add)(struct obk_fr *r, const struct obk_fr *a, const struct obk_fr *b);
	void (*sub)(struct obk_fr *r, const struct obk_fr *a, const struct obk_fr *b);
	void (*mul)(struct obk_fr *r, const struct obk_fr *a, const struct obk_fr *b);
	void (*sqr)(struct obk_fr *r, const struct obk_fr *a);
};

/* All implementations in this build, the reference in C first; ends with a NULL name. */
extern const struct obk_fr_ops obk_fr_tables[];
/*
 * The implementation in use: the last usable one of the list, or the reference with
 * OUTBOARD_OPT=-adx. Chosen when the program starts.
 */
extern struct obk_fr_ops obk_fr_now;
/* Chooses again after ob_opt_set. Must not be called while other threads compute. */
void obk_fr_choose(void);

extern const struct obk_fr obk_fr_zero, obk_fr_one;
extern const struct obk_fr obk_fr_modulus; /* the plain number m, not an element */
/* R^2 mod m, as plain limbs: multiplying by it converts to Montgomery form */
extern const struct obk_fr obk_fr_r2;

static inline void obk_fr_add(struct obk_fr *r, const struct obk_fr *a, const struct obk_fr *b)
{
	obk_fr_now.add(r, a, b);
}

static inline void obk_fr_sub(struct obk_fr *r, const struct obk_fr *a, const struct obk_fr *b)
{
	obk_fr_now.sub(r, a, b);
}

static inline void obk_fr_mul(struct obk_fr *r, const struct obk_fr *a, const struct obk_fr *b)
{
	obk_fr_now.mul(r, a, b);
}

static inline void obk_fr_sqr(struct obk_fr *r, const struct obk_fr *a)
{
	obk_fr_now.sqr(r, a);
}

static inline bool obk_fr_is_zero(const struct obk_fr *a)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < OBK_FR_LIMBS; i++)
		any |= a->l[i];
	return any == 0;
}

static inline bool obk_fr_equal(const struct obk_fr *a, const struct obk_fr *b)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < OBK_FR_LIMBS; i++)
		any |= a->l[i] ^ b->l[i];
	return any == 0;
}

void obk_fr_neg(struct obk_fr *r, const struct obk_fr *a);
/*
 * The inverse; 0 for 0. Binary greatest common divisor, 31 steps at a time (T. Pornin, eprint
 * 2020/972).
 */
void obk_fr_inv(struct obk_fr *r, const struct obk_fr *a);
/* a[i] = 1 / a[i] for n elements with one inversion; zeros stay zero. scratch holds n elements. */
void obk_fr_inv_batch(struct obk_fr *a, size_t n, struct obk_fr *scratch);
/* r = a^e; e is a plain number of `limbs` 64-bit limbs. */
void obk_fr_pow(struct obk_fr *r, const struct obk_fr *a, const uint64_t *e, unsigned limbs);
/*
 * Conversion from and to plain numbers, lowest limb first. Input may be any 256-bit number; it is
 * reduced.
 */
void obk_fr_from_plain(struct obk_fr *r, const uint64_t plain[OBK_FR_LIMBS]);
void obk_fr_to_plain(uint64_t plain[OBK_FR_LIMBS], const struct obk_fr *a);
/*
 * Conversion from and to 32 bytes, big-endian. False, and nothing written, if the number is not
 * below m.
 */
bool obk_fr_from_bytes(struct obk_fr *ret, const uint8_t bytes[OBK_FR_BYTES]);
void obk_fr_to_bytes(uint8_t bytes[OBK_FR_BYTES], const struct obk_fr *a);
/* Whether the plain number is below m. */
bool obk_fr_plain_is_canonical(const uint64_t plain[OBK_FR_LIMBS]);

/* A primitive 2^log_n-th root of unity, log_n <= OBK_FR_TWO_ADICITY: 7^((r - 1) / 2^log_n). */
#define OBK_FR_TWO_ADICITY 32
void obk_fr_root(struct obk_fr *r, unsigned log_n);

#endif
