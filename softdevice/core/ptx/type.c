/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "softdevice/core/ptx/type.h"

#include <string.h>

static const struct {
	const char *name;
	enum obd_type type;
	uint8_t bytes;
	uint8_t cls;
} types[] = {
	{ "u8", OBD_T_U8, 1, OBD_CLASS_32 },
	{ "u16", OBD_T_U16, 2, OBD_CLASS_32 },
	{ "u32", OBD_T_U32, 4, OBD_CLASS_32 },
	{ "u64", OBD_T_U64, 8, OBD_CLASS_64 },
	{ "s8", OBD_T_S8, 1, OBD_CLASS_32 },
	{ "s16", OBD_T_S16, 2, OBD_CLASS_32 },
	{ "s32", OBD_T_S32, 4, OBD_CLASS_32 },
	{ "s64", OBD_T_S64, 8, OBD_CLASS_64 },
	{ "f16", OBD_T_F16, 2, OBD_CLASS_32 },
	{ "f32", OBD_T_F32, 4, OBD_CLASS_32 },
	{ "f64", OBD_T_F64, 8, OBD_CLASS_64 },
	{ "bf16", OBD_T_BF16, 2, OBD_CLASS_32 },
	{ "tf32", OBD_T_TF32, 4, OBD_CLASS_32 },
	{ "e4m3", OBD_T_E4M3, 1, OBD_CLASS_32 },
	{ "e5m2", OBD_T_E5M2, 1, OBD_CLASS_32 },
	{ "b8", OBD_T_B8, 1, OBD_CLASS_32 },
	{ "b16", OBD_T_B16, 2, OBD_CLASS_32 },
	{ "b32", OBD_T_B32, 4, OBD_CLASS_32 },
	{ "b64", OBD_T_B64, 8, OBD_CLASS_64 },
	{ "b128", OBD_T_B128, 16, OBD_CLASS_128 },
	{ "pred", OBD_T_PRED, 1, OBD_CLASS_PRED },
	{ "f16x2", OBD_T_F16X2, 4, OBD_CLASS_32 },
	{ "bf16x2", OBD_T_BF16X2, 4, OBD_CLASS_32 },
	{ "e4m3x2", OBD_T_E4M3X2, 2, OBD_CLASS_32 },
	{ "e5m2x2", OBD_T_E5M2X2, 2, OBD_CLASS_32 },
	{ "u16x2", OBD_T_U16X2, 4, OBD_CLASS_32 },
	{ "s16x2", OBD_T_S16X2, 4, OBD_CLASS_32 },
	{ "f32x2", OBD_T_F32X2, 8, OBD_CLASS_64 },
	{ "e2m1", OBD_T_E2M1, 1, OBD_CLASS_32 },
	{ "e2m3", OBD_T_E2M3, 1, OBD_CLASS_32 },
	{ "e3m2", OBD_T_E3M2, 1, OBD_CLASS_32 },
	{ "e2m1x2", OBD_T_E2M1X2, 1, OBD_CLASS_32 },
	{ "e2m3x2", OBD_T_E2M3X2, 2, OBD_CLASS_32 },
	{ "e3m2x2", OBD_T_E3M2X2, 2, OBD_CLASS_32 },
	{ "ue8m0x2", OBD_T_UE8M0X2, 2, OBD_CLASS_32 },
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

enum obd_type obd_type_named(const char *text, uint32_t size)
{
	for (size_t i = 0; i < N_TYPES; i++)
		if (types[i].name[0] == text[0] && strlen(types[i].name) == size &&
			memcmp(types[i].name, text, size) == 0)
			return types[i].type;
	return OBD_T_NONE;
}

uint32_t obd_type_bytes(enum obd_type t)
{
	for (size_t i = 0; i < N_TYPES; i++)
		if (types[i].type == t)
			return types[i].bytes;
	return 4;
}

enum obd_reg_class obd_type_class(enum obd_type t)
{
	for (size_t i = 0; i < N_TYPES; i++)
		if (types[i].type == t)
			return (enum obd_reg_class)types[i].cls;
	return OBD_CLASS_32;
}

bool obd_type_signed(enum obd_type t)
{
	return t >= OBD_T_S8 && t <= OBD_T_S64;
}

bool obd_type_float(enum obd_type t)
{
	return t >= OBD_T_F16 && t <= OBD_T_E5M2;
}

bool obd_type_is16(enum obd_type t)
{
	return t == OBD_T_U16 || t == OBD_T_S16 || t == OBD_T_B16;
}
