/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_op: the operation codes of the interpreter, and the packed operands that some of them have.
 */
#ifndef OBD_CORE_OPS_H
#define OBD_CORE_OPS_H

#include <stdint.h>

enum obd_op {
#define ELT1(name, td, ta, value)             OBD_OP_##name,
#define ELT2(name, td, ta, tb, value)         OBD_OP_##name,
#define ELT3(name, td, ta, tb, tc, value)     OBD_OP_##name,
#define ELT4(name, td, ta, tb, tc, te, value) OBD_OP_##name,
#define SEL(name, t)                          OBD_OP_##name,
#define CARRY(name, t, compute)               OBD_OP_##name,
#define CARRYV(name, changes, compute)        OBD_OP_##name,
#define OPX(name)                             OBD_OP_##name,
#define HALF(name, format, value)             OBD_OP_##name,
#define HALFU(name, value)                    OBD_OP_##name,
#define VEC(name, value)                      OBD_OP_##name,
#define QUOT(name, narrow, wide)              OBD_OP_##name,
#include "softdevice/core/ops_elt.h"
#include "softdevice/core/ops_carry.h"
#include "softdevice/core/ops_vector.h"
#include "softdevice/core/ops_other.h"
#include "softdevice/core/ops_undef.h"
	OBD_OP_COUNT
};

#define OBD_NO_SLOT 0xffffu
#define OBD_NO_OP   0xffffu

/* PTX types, used by cvt, atom and the lowering. */
/* clang-format off */
enum obd_type {
	OBD_T_NONE, OBD_T_U8, OBD_T_U16, OBD_T_U32, OBD_T_U64, OBD_T_S8, OBD_T_S16, OBD_T_S32,
	OBD_T_S64, OBD_T_F16, OBD_T_F32, OBD_T_F64, OBD_T_BF16, OBD_T_TF32, OBD_T_E4M3, OBD_T_E5M2,
	OBD_T_B8, OBD_T_B16, OBD_T_B32, OBD_T_B64, OBD_T_B128, OBD_T_PRED, OBD_T_F16X2,
	OBD_T_BF16X2, OBD_T_E4M3X2, OBD_T_E5M2X2, OBD_T_U16X2, OBD_T_S16X2, OBD_T_F32X2, OBD_T_E2M1X2, OBD_T_E2M3X2,
	OBD_T_E3M2X2, OBD_T_UE8M0X2, OBD_T_E2M1, OBD_T_E2M3, OBD_T_E3M2, OBD_T_COUNT
};
/* clang-format on */

/* imm of cvt: destination type, source type, rounding mode, flags */
enum {
	OBD_CVT_RN,
	OBD_CVT_RZ,
	OBD_CVT_RM,
	OBD_CVT_RP,
	OBD_CVT_RNA,
	OBD_CVT_RNI,
	OBD_CVT_RZI,
	OBD_CVT_RMI,
	OBD_CVT_RPI
};
#define OBD_CVT_CODE(dt, st, mode, sat, ftz, relu)                           \
	((uint32_t)(dt) | ((uint32_t)(st) << 5) | ((uint32_t)(mode) << 10) | \
		((uint32_t)(sat) << 14) | ((uint32_t)(ftz) << 15) | ((uint32_t)(relu) << 16))

/* imm of cvt_narrow: the narrow type, the other one, and flags */
#define OBD_NARROW_CODE(narrow, wide, flags) ((narrow) | ((wide) << 6) | ((flags) << 12))
enum {
	OBD_NARROW_FROM = 1, /* the narrow type is the source's */
	OBD_NARROW_RELU = 2,
	OBD_NARROW_UP = 4,     /* ue8m0: rounds up */
	OBD_NARROW_FINITE = 8, /* ue8m0: infinity becomes the largest number */
};

/* e of cvt_small_f32 and cvt_small_f64: width and sign of the integer */
#define OBD_SMALL(bits, sign) ((uint16_t)((bits) | ((sign) << 5)))

/* e of an access with an index, beside the alignment: the index is signed */
#define OBD_INDEX_SIGNED 0x100u

/* e of atom: operation, type, space */
/* clang-format off */
enum obd_atom_op {
	OBD_ATOM_ADD, OBD_ATOM_MIN, OBD_ATOM_MAX, OBD_ATOM_AND, OBD_ATOM_OR, OBD_ATOM_XOR,
	OBD_ATOM_INC, OBD_ATOM_DEC, OBD_ATOM_EXCH, OBD_ATOM_CAS,
};
/* clang-format on */
enum obd_space_code { OBD_SP_FLAT, OBD_SP_SHARED, OBD_SP_LOCAL };
#define OBD_ATOM_CODE(op, type, space) ((uint16_t)((op) | ((type) << 4) | ((space) << 9)))

/* e of sync: the operation among the lanes */
/* clang-format off */
enum obd_sync_kind {
	OBD_SYNC_WARP, OBD_SYNC_SHFL_UP, OBD_SYNC_SHFL_DOWN, OBD_SYNC_SHFL_BFLY, OBD_SYNC_SHFL_IDX,
	OBD_SYNC_VOTE_ALL, OBD_SYNC_VOTE_ANY, OBD_SYNC_VOTE_UNI, OBD_SYNC_VOTE_BALLOT,
	OBD_SYNC_MATCH_ANY32, OBD_SYNC_MATCH_ANY64, OBD_SYNC_MATCH_ALL32, OBD_SYNC_MATCH_ALL64,
	OBD_SYNC_REDUX_ADD, OBD_SYNC_REDUX_MIN_U, OBD_SYNC_REDUX_MAX_U, OBD_SYNC_REDUX_MIN_S,
	OBD_SYNC_REDUX_MAX_S, OBD_SYNC_REDUX_AND, OBD_SYNC_REDUX_OR, OBD_SYNC_REDUX_XOR,
	OBD_SYNC_REDUX_FMIN, OBD_SYNC_REDUX_FMAX, OBD_SYNC_ELECT,
};
/* clang-format on */

/*
 * The element types of matrices; an instruction has 4 bits for each. S4 and U4: 8 in a register,
 * B1: 32.
 */
/* clang-format off */
enum obd_mma_type {
	OBD_MMA_F16, OBD_MMA_BF16, OBD_MMA_TF32, OBD_MMA_E4M3, OBD_MMA_E5M2, OBD_MMA_S8, OBD_MMA_U8,
	OBD_MMA_F64, OBD_MMA_F32, OBD_MMA_S32, OBD_MMA_S4, OBD_MMA_U4, OBD_MMA_B1,
	/* in bytes: e2m1 in bits 2 to 5, the others in the lower six */
	OBD_MMA_E2M1, OBD_MMA_E2M3, OBD_MMA_E3M2, OBD_MMA_TYPES
};
/* clang-format on */

/* e of mma: the types of A, B, C and D. d: the shape's rows and columns, and flags. c: its depth */
#define OBD_MMA_TYPES_CODE(a, b, c, d) ((uint16_t)((a) | ((b) << 4) | ((c) << 8) | ((d) << 12)))
#define OBD_MMA_M(code)                ((((code)&7u)) * 8)
#define OBD_MMA_N(code)                ((((code) >> 3) & 7u) * 8)
enum {
	OBD_MMA_SAT = 1 << 6,
	OBD_MMA_AND = 1 << 7,   /* b1: and instead of xor */
	OBD_MMA_QUADS = 1 << 8, /* m8n8k4 with f16: four products, of 8 lanes each */
	OBD_MMA_A_COL = 1 << 9, /* the layouts of A and B, with QUADS only */
	OBD_MMA_B_COL = 1 << 10,
	OBD_MMA_SPARSE = 1 << 11,
	OBD_MMA_SELECTOR = 12,    /* shift of 2 bits: the lanes with the metadata */
	OBD_MMA_REPEAT = 1 << 14, /* wmma with f16: A and B have 8 registers, which may repeat */
};

/* e of ldmatrix: the registers; transposed, a store; elements of bytes, of 4 or 6 bits in memory */
enum {
	OBD_LDM_COUNT = 7,
	OBD_LDM_TRANS = 8,
	OBD_LDM_STORE = 16,
	OBD_LDM_BYTES = 32,
	OBD_LDM_4BITS = 64,
	OBD_LDM_6BITS = 128,
};

/*
 * e of wmma_move: the operand (0 A, 1 B, 2 C or D), element type, column-major memory, shared
 * memory, store. d: rows and columns of the shape as with mma. c: its depth
 */
#define OBD_WMMA_CODE(operand, type, column, shared, store) \
	((uint16_t)((operand) | ((type) << 2) | ((column) << 6) | ((shared) << 7) | ((store) << 8)))

/* e of wgmma: the types of A and B, and of D. d: the columns / 8 and flags. */
#define OBD_WGMMA_TYPES(a, b, d) ((uint16_t)((a) | ((b) << 4) | ((d) << 8)))
#define OBD_WGMMA_N(code)        (((code)&63u) * 8)
enum {
	OBD_WGMMA_NEGATE = 1 << 6,  /* of all products */
	OBD_WGMMA_A_TRANS = 1 << 7, /* A is column-major in memory, B row-major */
	OBD_WGMMA_B_TRANS = 1 << 8,
	OBD_WGMMA_SAT = 1 << 9,
	OBD_WGMMA_REGISTERS = 1 << 10, /* A is in registers */
	OBD_WGMMA_SPARSE = 1 << 11,    /* the last source is the metadata */
	OBD_WGMMA_SELECTOR = 12,       /* shift of 1 bit */
};

/* e of mbarrier: the operation; +16: the barrier is in shared memory */
enum obd_mbarrier_op {
	OBD_MBAR_INIT,
	OBD_MBAR_INVAL,
	OBD_MBAR_ARRIVE,
	OBD_MBAR_ARRIVE_DROP,
	OBD_MBAR_TEST,
	OBD_MBAR_TEST_PARITY,
	OBD_MBAR_PENDING,
	/* with a transaction count, in bytes */
	OBD_MBAR_EXPECT_TX,
	OBD_MBAR_COMPLETE_TX,
	OBD_MBAR_ARRIVE_TX,
	OBD_MBAR_ARRIVE_DROP_TX,
};

/* e of copy_bulk. With REDUCE, imm is an OBD_ATOM_CODE. */
enum {
	OBD_BULK_TO_SHARED = 1,
	OBD_BULK_FROM_SHARED = 2,
	OBD_BULK_BARRIER = 4,
	OBD_BULK_REDUCE = 8,
};

/*
 * e of tensor: the operation, flags, the rank of the tensor, and the OBD_ATOM_* of a reduction. The
 * operands are the coordinates, and then the mask of blocks with MULTICAST.
 */
enum obd_tensor_op {
	OBD_TENSOR_LOAD,
	OBD_TENSOR_STORE,
	OBD_TENSOR_REDUCE,
	/*
	 * operand: the value; the dimension in place of the rank, OBD_FIELD_* in place of the atom
	 */
	OBD_TENSOR_REPLACE,
	OBD_TENSOR_COPY, /* of a map, from shared to global memory */
};
#define OBD_TENSOR_CODE(op, rank, atom) ((uint16_t)((op) | ((rank) << 4) | ((atom) << 8)))
enum { OBD_TENSOR_MULTICAST = 1 << 7 };
/* clang-format off */
enum obd_tensor_field {
	OBD_FIELD_ADDRESS, OBD_FIELD_RANK, OBD_FIELD_BOX, OBD_FIELD_DIM, OBD_FIELD_STRIDE,
	OBD_FIELD_STEP, OBD_FIELD_TYPE, OBD_FIELD_INTERLEAVE, OBD_FIELD_SWIZZLE, OBD_FIELD_FILL,
};
/* clang-format on */

/* e of bar */
enum obd_bar_kind {
	OBD_BAR_SYNC,
	OBD_BAR_ARRIVE,
	OBD_BAR_RED_POPC,
	OBD_BAR_RED_AND,
	OBD_BAR_RED_OR,
	OBD_BAR_CLUSTER_ARRIVE,
	OBD_BAR_CLUSTER_WAIT,
	OBD_BAR_GROUP, /* of the four warps of a warpgroup */
};

/*
 * e of cluster_addr: conversions between generic addresses and those of shared::cluster, mapa and
 * getctarank for both. a: the address; b: a rank. The result takes 64 bits. CHECKED, as
 * OBD_CLUSTER_ACCESS, is for an access at a + imm, of which all bytes must be in the shared memory
 * of one block.
 */
#define OBD_CLUSTER_OP(e)         ((e)&15u)
#define OBD_CLUSTER_BYTES(e)      ((uint32_t)(e) >> 4)
#define OBD_CLUSTER_ACCESS(bytes) ((uint16_t)(OBD_CLUSTER_CHECKED | (bytes) << 4))
enum obd_cluster_op {
	OBD_CLUSTER_CHECKED,
	OBD_CLUSTER_FLAT,
	OBD_CLUSTER_NARROW,
	OBD_CLUSTER_MAP,
	OBD_CLUSTER_MAP_FLAT,
	OBD_CLUSTER_RANK,
	OBD_CLUSTER_RANK_FLAT,
};

enum obd_sreg {
	OBD_SREG_TID_X,
	OBD_SREG_TID_Y,
	OBD_SREG_TID_Z,
	OBD_SREG_NTID_X,
	OBD_SREG_NTID_Y,
	OBD_SREG_NTID_Z,
	OBD_SREG_CTAID_X,
	OBD_SREG_CTAID_Y,
	OBD_SREG_CTAID_Z,
	OBD_SREG_NCTAID_X,
	OBD_SREG_NCTAID_Y,
	OBD_SREG_NCTAID_Z,
	OBD_SREG_ZERO,
	OBD_SREG_ONE,
	OBD_SREG_LANEID,
	OBD_SREG_WARPID,
	OBD_SREG_NWARPID,
	OBD_SREG_SMID,
	OBD_SREG_NSMID,
	OBD_SREG_GRIDID,
	OBD_SREG_LM_EQ,
	OBD_SREG_LM_LE,
	OBD_SREG_LM_LT,
	OBD_SREG_LM_GE,
	OBD_SREG_LM_GT,
	OBD_SREG_CLOCK,
	OBD_SREG_CLOCK_HI,
	OBD_SREG_CLOCK64,
	OBD_SREG_GLOBALTIMER,
	OBD_SREG_GLOBALTIMER_LO,
	OBD_SREG_GLOBALTIMER_HI,
	OBD_SREG_ENVREG1,
	OBD_SREG_ENVREG2,
	OBD_SREG_DYN_SMEM,
	OBD_SREG_TOTAL_SMEM,
	/* the reserved shared memory: first byte, end, size, and its two offsets */
	OBD_SREG_RESERVED_BEGIN,
	OBD_SREG_RESERVED_END,
	OBD_SREG_RESERVED_CAP,
	OBD_SREG_RESERVED_0,
	OBD_SREG_RESERVED_1,
	OBD_SREG_CLUSTERID_X,
	OBD_SREG_CLUSTERID_Y,
	OBD_SREG_CLUSTERID_Z,
	OBD_SREG_NCLUSTERID_X,
	OBD_SREG_NCLUSTERID_Y,
	OBD_SREG_NCLUSTERID_Z,
	OBD_SREG_CLUSTER_CTAID_X,
	OBD_SREG_CLUSTER_CTAID_Y,
	OBD_SREG_CLUSTER_CTAID_Z,
	OBD_SREG_CLUSTER_NCTAID_X,
	OBD_SREG_CLUSTER_NCTAID_Y,
	OBD_SREG_CLUSTER_NCTAID_Z,
	OBD_SREG_CLUSTER_CTARANK,
	OBD_SREG_CLUSTER_NCTARANK,
	OBD_SREG_EXPLICIT_CLUSTER, /* a predicate */
	OBD_SREG_COUNT
};

#endif
