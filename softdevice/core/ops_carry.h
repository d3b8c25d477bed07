/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Selection by predicate, four-operand operations, and the carry chains. A chain's code sets r from a, b, c and k (the
 * carry that comes in, 0 or 1) and leaves the carry that goes out in k. For subtraction the carry is a borrow.
 */
/* clang-format off */
SEL(selp_32, u32)
SEL(selp_64, u64)
SEL(slct_32, u32)
SEL(slct_64, u64)
ELT4(bfi_32, u32, u32, u32, u32, u32, (u32)obd_bfi(a, b, c, e, 32))
ELT4(bfi_64, u64, u64, u64, u32, u32, obd_bfi(a, b, c, e, 64))
CARRY(addcc_32, u32, r = a + b; k = r < a)
CARRY(addc_32, u32, r = a + b + k)
CARRY(addccc_32, u32, u32 t = a + b; r = t + k; k = (t < a) | (r < t))
CARRY(subcc_32, u32, r = a - b; k = a < b)
CARRY(subc_32, u32, r = a - b - k)
CARRY(subccc_32, u32, u32 t = a - b; r = t - k; k = (a < b) | (t < k))
CARRY(madlocc_32, u32, u32 t = a * b; r = t + c; k = r < t)
CARRY(madcloc_32, u32, r = a * b + c + k)
CARRY(madcloccc_32, u32, u32 t = a * b; u32 s = t + c; r = s + k; k = (s < t) | (r < s))
CARRY(madhicc_u32, u32, u32 t = MULHI32(a, b); r = t + c; k = r < t)
CARRY(madchi_u32, u32, r = MULHI32(a, b) + c + k)
CARRY(madchicc_u32, u32, u32 t = MULHI32(a, b); u32 s = t + c; r = s + k; k = (s < t) | (r < s))
CARRY(madhicc_s32, u32, u32 t = MULHIS32(a, b); r = t + c; k = r < t)
CARRY(madchi_s32, u32, r = MULHIS32(a, b) + c + k)
CARRY(madchicc_s32, u32, u32 t = MULHIS32(a, b); u32 s = t + c; r = s + k; k = (s < t) | (r < s))
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
