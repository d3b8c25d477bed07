/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The curve y^2 = x^3 + 4 (1 + u) over Fp2 of BLS12-381 and its subgroup G2 of prime order r: the
 * second argument of the pairing. Additions are complete. Values are plain structs; any thread.
 * Written for a few points (those of a trusted setup), not for speed.
 */
#ifndef OBK_G2_H
#define OBK_G2_H

#include "compute/field/fault.h"
#include "compute/field/fp2.h"

#define OBK_G2_COMPRESSED_BYTES 96

/* (0, 0), which is not on the curve, stands for infinity. */
struct obk_g2_affine {
	struct obk_fp2 x, y;
};

/* x = X / ZZ, y = Y / ZZZ with ZZ^3 = ZZZ^2; infinity has ZZ = ZZZ = 0. */
struct obk_g2 {
	struct obk_fp2 x, y, zz, zzz;
};

extern const struct obk_g2_affine obk_g2_generator;

static inline bool obk_g2_affine_is_infinity(const struct obk_g2_affine *p)
{
	return obk_fp2_is_zero(&p->x) && obk_fp2_is_zero(&p->y);
}

static inline bool obk_g2_is_infinity(const struct obk_g2 *p)
{
	return obk_fp2_is_zero(&p->zz);
}

void obk_g2_set_infinity(struct obk_g2 *r);
void obk_g2_from_affine(struct obk_g2 *r, const struct obk_g2_affine *p);
void obk_g2_to_affine(struct obk_g2_affine *r, const struct obk_g2 *p);
void obk_g2_double(struct obk_g2 *r, const struct obk_g2 *p);
void obk_g2_add(struct obk_g2 *r, const struct obk_g2 *p, const struct obk_g2 *q);
bool obk_g2_equal(const struct obk_g2 *p, const struct obk_g2 *q);
/*
 * k P for a plain number k of `bits` bits, lowest limb first; correct for every point of the curve.
 */
void obk_g2_mul(struct obk_g2 *r, const struct obk_g2_affine *p, const uint64_t *k, unsigned bits);
bool obk_g2_on_curve(const struct obk_g2_affine *p);
/*
 * For a point of the curve: whether it is in G2. Checks psi(P) = x P with the endomorphism psi and
 * the curve's parameter x (M. Scott, eprint 2021/1130). True for infinity.
 */
bool obk_g2_in_subgroup(const struct obk_g2_affine *p);

/*
 * The compressed encoding of ZCash and the IETF: x as c[1] then c[0], 48 bytes each, big-endian,
 * with the flags of G1's encoding in byte 0. All other encodings are refused: OB_ERR_ARGUMENT with
 * a text in fault that names `item`. Checks that the point is on the curve, not that it is in the
 * subgroup.
 */
enum ob_err obk_g2_decode_compressed(struct obk_g2_affine *ret,
	const uint8_t bytes[OBK_G2_COMPRESSED_BYTES], size_t item, struct obk_fault *fault);
void obk_g2_encode_compressed(
	uint8_t bytes[OBK_G2_COMPRESSED_BYTES], const struct obk_g2_affine *p);

#endif
