/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Selection by predicate, operations with four operands, and operations of carry chains. The code
 * of a chain operation computes r from a, b, c and the carry in k (0 or 1), and leaves the new
 * carry in k. For subtraction the carry is a borrow. CARRYV operations work on whole vectors; their
 * flag says whether k changes.
 */
/* clang-format off */
SEL(selp_32, u32)
SEL(selp_64, u64)
SEL(slct_32, u32)
SEL(slct_64, u64)
ELT4(bfi_32, u32, u32, u32, u32, u32, (u32)obd_bfi(a, b, c, e, 32))
ELT4(bfi_64, u64, u64, u64, u32, u32, obd_bfi(a, b, c, e, 64))
CARRYV(addcc_32, true, r = a + b; k = CARRY_OUT(a, b, r))
CARRYV(addc_32, false, r = a + b + k)
CARRYV(addccc_32, true, r = a + b + k; k = CARRY_OUT(a, b, r))
CARRYV(subcc_32, true, r = a - b; k = BORROW_OUT(a, b, r))
CARRYV(subc_32, false, r = a - b - k)
CARRYV(subccc_32, true, r = a - b - k; k = BORROW_OUT(a, b, r))
CARRYV(madlocc_32, true, vu t = a * b; r = t + c; k = CARRY_OUT(t, c, r))
CARRYV(madcloc_32, false, r = a * b + c + k)
CARRYV(madcloccc_32, true, vu t = a * b; r = t + c + k; k = CARRY_OUT(t, c, r))
CARRYV(madhicc_u32, true, vu t = mulhi_vu(pa + i, pb + i); r = t + c; k = CARRY_OUT(t, c, r))
CARRYV(madchi_u32, false, r = mulhi_vu(pa + i, pb + i) + c + k)
CARRYV(madchicc_u32, true, vu t = mulhi_vu(pa + i, pb + i); r = t + c + k; k = CARRY_OUT(t, c, r))
CARRYV(madhicc_s32, true, vu t = mulhi_vs(pa + i, pb + i); r = t + c; k = CARRY_OUT(t, c, r))
CARRYV(madchi_s32, false, r = mulhi_vs(pa + i, pb + i) + c + k)
CARRYV(madchicc_s32, true, vu t = mulhi_vs(pa + i, pb + i); r = t + c + k; k = CARRY_OUT(t, c, r))
CARRYV(mulhi_u32, false, r = mulhi_vu(pa + i, pb + i))
CARRYV(mulhi_s32, false, r = mulhi_vs(pa + i, pb + i))
CARRYV(madhi_u32, false, r = mulhi_vu(pa + i, pb + i) + c)
CARRYV(madhi_s32, false, r = mulhi_vs(pa + i, pb + i) + c)
CARRY(addcc_64, u64, r = a + b; k = r < a)
CARRY(addc_64, u64, r = a + b + k)
CARRY(addccc_64, u64, u64 t = a + b; r = t + k; k = (t < a) | (r < t))
CARRY(subcc_64, u64, r = a - b; k = a < b)
CARRY(subc_64, u64, r = a - b - k)
CARRY(subccc_64, u64, u64 t = a - b; r = t - k; k = (a < b) | (t < k))
CARRY(madlocc_64, u64, u64 t = a * b; r = t + c; k = r < t)
CARRY(madcloc_64, u64, r = a * b + c + k)
CARRY(madcloccc_64, u64, u64 t = a * b; u64 s = t + c; r = s + k; k = (s < t) | (r < s))
CARRY(madhicc_u64, u64, u64 t = obd_mulhi_u64(a, b); r = t + c; k = r < t)
CARRY(madchi_u64, u64, r = obd_mulhi_u64(a, b) + c + k)
CARRY(madchicc_u64, u64, u64 t = obd_mulhi_u64(a, b); u64 s = t + c; r = s + k; k = (s < t) | (r < s))
CARRY(madhicc_s64, u64, u64 t = obd_mulhi_s64(a, b); r = t + c; k = r < t)
CARRY(madchi_s64, u64, r = obd_mulhi_s64(a, b) + c + k)
CARRY(madchicc_s64, u64, u64 t = obd_mulhi_s64(a, b); u64 s = t + c; r = s + k; k = (s < t) | (r < s))
/* clang-format on */
