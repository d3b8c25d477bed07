/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <string.h>

#include "compute/curve/g1.h"

#define FLAG_COMPRESSED 0x80
#define FLAG_INFINITY   0x40
#define FLAG_LARGE      0x20
#define FLAGS           (FLAG_COMPRESSED | FLAG_INFINITY | FLAG_LARGE)

static bool all_zero(const uint8_t *bytes, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= bytes[i];
	return any == 0;
}

static enum ob_err refuse(struct obk_fault *fault, size_t item, const char *why)
{
	if (item == OBK_FAULT_NO_ITEM)
		return obk_fault_set(fault, OB_ERR_ARGUMENT, item, "the point %s", why);
	return obk_fault_set(fault, OB_ERR_ARGUMENT, item, "point %zu %s", item, why);
}

/* Detects infinity; otherwise returns the coordinate's bytes without the flags. */
static enum ob_err take_flags(uint8_t *bytes, size_t n, uint8_t want, bool *ret_infinity,
	bool *ret_large, size_t item, struct obk_fault *fault)
{
	uint8_t flags = bytes[0] & FLAGS;

	bytes[0] &= (uint8_t)~FLAGS;
	if ((flags & FLAG_COMPRESSED) != want)
		return refuse(fault, item,
			want ? "lacks the flag 0x80 of the compressed form in its first byte"
			     : "has the flag 0x80 of the compressed form in its first byte where "
			       "96 uncompressed bytes were expected");
	*ret_infinity = flags & FLAG_INFINITY;
	*ret_large = flags & FLAG_LARGE;
	if (*ret_infinity && (*ret_large || !all_zero(bytes, n)))
		return refuse(
			fault, item, "has the flag 0x40 of infinity but is not zero otherwise");
	if (*ret_large && !want)
		return refuse(
			fault, item, "has the flag 0x20, which only the compressed form may have");
	return OB_ERR_NONE;
}

enum ob_err obk_g1_decode_compressed(struct obk_g1_affine *ret,
	const uint8_t bytes[OBK_G1_COMPRESSED_BYTES], size_t item, struct obk_fault *fault)
{
	uint8_t plain[OBK_G1_COMPRESSED_BYTES];
	struct obk_g1_affine p;
	struct obk_fp t, four;
	bool infinity = false, large = false;
	enum ob_err err;

	memcpy(plain, bytes, sizeof(plain));
	err = take_flags(plain, sizeof(plain), FLAG_COMPRESSED, &infinity, &large, item, fault);
	if (err)
		return err;
	if (infinity) {
		*ret = (struct obk_g1_affine){ .x = obk_fp_zero, .y = obk_fp_zero };
		return OB_ERR_NONE;
	}
	if (!obk_fp_from_bytes(&p.x, plain))
		return refuse(
			fault, item, "has a coordinate x that is not below the field's prime");
	obk_fp_add(&four, &obk_fp_one, &obk_fp_one);
	obk_fp_add(&four, &four, &four);
	obk_fp_sqr(&t, &p.x);
	obk_fp_mul(&t, &t, &p.x);
	obk_fp_add(&t, &t, &four);
	if (!obk_fp_sqrt(&p.y, &t))
		return refuse(fault, item, "is not on the curve: its x belongs to no point");
	if (obk_fp_is_large(&p.y) != large)
		obk_fp_neg(&p.y, &p.y);
	*ret = p;
	return OB_ERR_NONE;
}

enum ob_err obk_g1_decode_uncompressed(struct obk_g1_affine *ret,
	const uint8_t bytes[OBK_G1_UNCOMPRESSED_BYTES], size_t item, struct obk_fault *fault)
{
	uint8_t plain[OBK_G1_UNCOMPRESSED_BYTES];
	struct obk_g1_affine p;
	bool infinity = false, large = false;
	enum ob_err err;

	memcpy(plain, bytes, sizeof(plain));
	err = take_flags(plain, sizeof(plain), 0, &infinity, &large, item, fault);
	if (err)
		return err;
	if (infinity) {
		*ret = (struct obk_g1_affine){ .x = obk_fp_zero, .y = obk_fp_zero };
		return OB_ERR_NONE;
	}
	if (!obk_fp_from_bytes(&p.x, plain) || !obk_fp_from_bytes(&p.y, plain + OBK_FP_BYTES))
		return refuse(fault, item, "has a coordinate that is not below the field's prime");
	/* (0, 0) without the flag is refused too: it is not on the curve */
	if (obk_g1_affine_is_infinity(&p) || !obk_g1_on_curve(&p))
		return refuse(fault, item, "is not on the curve y^2 = x^3 + 4");
	*ret = p;
	return OB_ERR_NONE;
}

void obk_g1_encode_compressed(uint8_t bytes[OBK_G1_COMPRESSED_BYTES], const struct obk_g1_affine *p)
{
	if (obk_g1_affine_is_infinity(p)) {
		memset(bytes, 0, OBK_G1_COMPRESSED_BYTES);
		bytes[0] = FLAG_COMPRESSED | FLAG_INFINITY;
		return;
	}
	obk_fp_to_bytes(bytes, &p->x);
	bytes[0] |= (uint8_t)(FLAG_COMPRESSED | (obk_fp_is_large(&p->y) ? FLAG_LARGE : 0));
}

void obk_g1_encode_uncompressed(
	uint8_t bytes[OBK_G1_UNCOMPRESSED_BYTES], const struct obk_g1_affine *p)
{
	obk_fp_to_bytes(bytes, &p->x);
	obk_fp_to_bytes(bytes + OBK_FP_BYTES, &p->y);
	if (obk_g1_affine_is_infinity(p))
		bytes[0] = FLAG_INFINITY;
}
