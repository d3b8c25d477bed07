/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The curve y^2 = x^3 + 4 over Fp of BLS12-381 and its subgroup G1 of prime order r. Additions are
 * complete: they handle infinity, equal and opposite points. Values are plain structs; any thread.
 */
#ifndef OBK_G1_H
#define OBK_G1_H

#include "compute/field/fault.h"
#include "compute/field/fp.h"
#include "compute/field/fr.h"

#define OBK_G1_COMPRESSED_BYTES   48
#define OBK_G1_UNCOMPRESSED_BYTES 96

/*
 * (0, 0), which is not on the curve, stands for infinity. 96 bytes: the layout of blst, arkworks
 * and sppark.
 */
struct obk_g1_affine {
	struct obk_fp x, y;
};

/* x = X / ZZ, y = Y / ZZZ with ZZ^3 = ZZZ^2; infinity has ZZ = ZZZ = 0. */
struct obk_g1 {
	struct obk_fp x, y, zz, zzz;
};

extern const struct obk_g1_affine obk_g1_generator;
/*
 * The map (x, y) -> (beta x, y) multiplies a point of G1 by lambda = x^2 - 1, a 128-bit number.
 * Points outside G1 are not multiplied by lambda.
 */
extern const struct obk_fp obk_g1_beta;

static inline bool obk_g1_affine_is_infinity(const struct obk_g1_affine *p)
{
	return obk_fp_is_zero(&p->x) && obk_fp_is_zero(&p->y);
}

static inline bool obk_g1_is_infinity(const struct obk_g1 *p)
{
	return obk_fp_is_zero(&p->zz);
}

static inline bool obk_g1_affine_equal(const struct obk_g1_affine *p, const struct obk_g1_affine *q)
{
	return obk_fp_equal(&p->x, &q->x) && obk_fp_equal(&p->y, &q->y);
}

void obk_g1_set_infinity(struct obk_g1 *r);
void obk_g1_from_affine(struct obk_g1 *r, const struct obk_g1_affine *p);
/* Takes one inversion. */
void obk_g1_to_affine(struct obk_g1_affine *r, const struct obk_g1 *p);
/* Converts n points with one inversion; scratch holds 2 n elements. */
void obk_g1_to_affine_batch(
	struct obk_g1_affine *r, const struct obk_g1 *p, size_t n, struct obk_fp *scratch);
void obk_g1_double(struct obk_g1 *r, const struct obk_g1 *p);
void obk_g1_add(struct obk_g1 *r, const struct obk_g1 *p, const struct obk_g1 *q);
void obk_g1_add_affine(struct obk_g1 *r, const struct obk_g1 *p, const struct obk_g1_affine *q);
void obk_g1_affine_neg(struct obk_g1_affine *r, const struct obk_g1_affine *p);
void obk_g1_neg(struct obk_g1 *r, const struct obk_g1 *p);
/* Whether both are the same group element; the denominators may differ. */
bool obk_g1_equal(const struct obk_g1 *p, const struct obk_g1 *q);
/*
 * k P for a plain number k of `bits` bits, lowest limb first, with windows of four bits; correct
 * for every point of the curve, also outside G1.
 */
void obk_g1_mul(struct obk_g1 *r, const struct obk_g1_affine *p, const uint64_t *k, unsigned bits);
void obk_g1_mul_full(struct obk_g1 *r, const struct obk_g1 *p, const uint64_t *k, unsigned bits);

bool obk_g1_on_curve(const struct obk_g1_affine *p);
/*
 * For a point of the curve: whether it is in G1. Checks lambda P = (beta x, y) (M. Scott, eprint
 * 2021/1130). True for infinity.
 */
bool obk_g1_in_subgroup(const struct obk_g1_affine *p);

/*
 * The encodings of ZCash and the IETF: x, or x and y, 48 bytes each, big-endian. Flags in byte 0:
 * 0x80 compressed; 0x40 infinity (all other bits are zero); 0x20 y is the larger root (compressed
 * only). Decoding refuses all non-canonical encodings: OB_ERR_ARGUMENT with a text in fault. `item`
 * is used for the fault only. Decoding checks that the point is on the curve, not that it is in the
 * subgroup.
 */
enum ob_err obk_g1_decode_compressed(struct obk_g1_affine *ret,
	const uint8_t bytes[OBK_G1_COMPRESSED_BYTES], size_t item, struct obk_fault *fault);
enum ob_err obk_g1_decode_uncompressed(struct obk_g1_affine *ret,
	const uint8_t bytes[OBK_G1_UNCOMPRESSED_BYTES], size_t item, struct obk_fault *fault);
void obk_g1_encode_compressed(
	uint8_t bytes[OBK_G1_COMPRESSED_BYTES], const struct obk_g1_affine *p);
void obk_g1_encode_uncompressed(
	uint8_t bytes[OBK_G1_UNCOMPRESSED_BYTES], const struct obk_g1_affine *p);

#endif
