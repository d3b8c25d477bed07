/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Which operations there is code for. */
#include "softdevice/core/native/unit.h"

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;
typedef float f32;
typedef double f64;

/* c is a predicate for selp; slct, for which it is a register, has no code */
static struct obn_op infos[OBD_OP_COUNT] = {
#define ELT1(name, td, ta, value) [OBD_OP_##name] = { .bytes = { sizeof(td), sizeof(ta) } },
#define ELT2(name, td, ta, tb, value) \
	[OBD_OP_##name] = { .bytes = { sizeof(td), sizeof(ta), sizeof(tb) } },
#define ELT3(name, td, ta, tb, tc, value) \
	[OBD_OP_##name] = { .bytes = { sizeof(td), sizeof(ta), sizeof(tb), sizeof(tc) } },
#define ELT4(name, td, ta, tb, tc, te, value)
#define SEL(name, t)                   [OBD_OP_##name] = { .bytes = { sizeof(t), sizeof(t), sizeof(t), 1 } },
#define CARRY(name, t, compute)        [OBD_OP_##name] = { .chain = true },
#define CARRYV(name, changes, compute) [OBD_OP_##name] = { .bytes = { 4, 4, 4, 4 }, .chain = true },
#define OPX(name)
#define HALF(name, format, value)
#define HALFU(name, value)
#define VEC(name, value)
#define QUOT(name, narrow, wide)
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_carry.h"
#include "softdevice/core/ops_undef.h"
};

#define O(name) OBD_OP_##name
static const uint16_t scalar_ops[] = { O(mov_32), O(mov_64), O(add_u32), O(sub_u32), O(mul_u32),
	O(mad_u32), O(mulw_u32), O(mulw_s32), O(madw_u32), O(madw_s32), O(neg_u32), O(neg_u64),
	O(min_u32), O(max_u32), O(min_s32), O(max_s32), O(min_u64), O(max_u64), O(min_s64),
	O(max_s64), O(and_32), O(or_32), O(xor_32), O(not_32), O(and_64), O(or_64), O(xor_64),
	O(not_64), O(shl_32), O(shr_u32), O(shr_s32), O(shl_64), O(shr_u64), O(shr_s64), O(add_u64),
	O(sub_u64), O(mul_u64), O(mad_u64), O(zext8), O(zext16), O(sext8_32), O(sext16_32),
	O(zext32_64), O(sext32_64), O(lo_64), O(hi_64), O(pack_64), O(bits_32), O(selp_32),
	O(selp_64) };
static const uint16_t vector_ops[] = { O(mov_32), O(mov_64), O(add_u32), O(sub_u32), O(mul_u32),
	O(mad_u32), O(mulw_u32), O(mulw_s32), O(madw_u32), O(madw_s32), O(abs_s32), O(neg_u32),
	O(neg_u64), O(min_u32), O(max_u32), O(min_s32), O(max_s32), O(and_32), O(or_32), O(xor_32),
	O(not_32), O(and_64), O(or_64), O(xor_64), O(not_64), O(shl_32), O(shr_u32), O(shr_s32),
	O(shl_64), O(shr_u64), O(shf_lw), O(shf_rw), O(add_u64), O(sub_u64), O(zext8), O(zext16),
	O(sext8_32), O(sext16_32), O(zext32_64), O(sext32_64), O(lo_64), O(hi_64), O(pack_64),
	O(hi_32), O(bits_32), O(add_f32), O(sub_f32), O(mul_f32), O(fma_f32), O(div_f32),
	O(rcp_f32), O(sqrt_f32), O(rsqrt_f32), O(abs_f32), O(neg_f32), O(rint_f32), O(trunc_f32),
	O(floor_f32), O(ceil_f32), O(add_f64), O(sub_f64), O(mul_f64), O(fma_f64), O(div_f64),
	O(sqrt_f64), O(abs_f64), O(neg_f64), O(cvt_f32_s32), O(cvt_f64_s32), O(cvt_f64_f32),
	O(cvt_f32_f64), O(selp_32), O(selp_64), O(min_f32), O(max_f32) };
/* with AVX-512 only */
static const uint16_t wide_ops[] = { O(mul_u64), O(mad_u64), O(shr_s64), O(min_u64), O(max_u64),
	O(min_s64), O(max_s64), O(lop3), O(cvt_f32_u32), O(cvt_f64_u32) };
static const struct {
	uint16_t first, last;
	uint8_t special;
} ranges[] = {
	{ O(eq_32), O(le_s32_and), OBN_COMPARE },
	{ O(pset), O(pxor), OBN_PREDICATE },
	{ O(ld8_g), O(ld64_s), OBN_LOAD },
	{ O(st8_g), O(st64_s), OBN_STORE },
	{ O(ld8_i), O(ld64_i), OBN_LOAD },
	{ O(st8_i), O(st64_i), OBN_STORE },
	{ O(param32), O(shared_addr), OBN_VALUE },
	{ O(thread_index), O(thread_index), OBN_VALUE },
	{ O(cvta_shared), O(cvta_shared), OBN_VALUE },
	{ O(to_shared), O(to_shared), OBN_VALUE },
	{ O(bra), O(bra_p), OBN_CONTROL },
	{ O(guard), O(round), OBN_PREFIX },
};

__attribute__((constructor)) static void mark(void)
{
	for (size_t i = 0; i < sizeof(scalar_ops) / sizeof(*scalar_ops); i++)
		infos[scalar_ops[i]].scalar = true;
	for (size_t i = 0; i < sizeof(vector_ops) / sizeof(*vector_ops); i++)
		infos[vector_ops[i]].vector = true;
	for (size_t i = 0; i < sizeof(wide_ops) / sizeof(*wide_ops); i++)
		infos[wide_ops[i]].vector = infos[wide_ops[i]].vector_wide_only = true;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		for (uint32_t op = ranges[i].first; op <= ranges[i].last; op++)
			infos[op].special = ranges[i].special;
}

const struct obn_op *obn_op_info(uint32_t op)
{
	return &infos[op];
}

bool obn_leaves(uint32_t op)
{
	switch (op) {
	case OBD_OP_brx:
	case OBD_OP_call:
	case OBD_OP_call_ind:
	case OBD_OP_ret:
	case OBD_OP_exit:
	case OBD_OP_trap:
	case OBD_OP_nanosleep:
	case OBD_OP_bar:
		return true;
	default:
		return false;
	}
}
