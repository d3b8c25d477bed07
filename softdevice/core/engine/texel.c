/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Source of the conversions: the appendix "Texture Fetching" of the CUDA C++ Programming Guide. */
#include "softdevice/core/engine/texel.h"

#include <math.h>
#include <string.h>

#include "softdevice/core/half.h"

/* 8-bit values as floats: k / 255, and the same from sRGB to linear (IEC 61966-2-1). */
static float unorm8[256], srgb8[256];

__attribute__((constructor)) static void fill_tables(void)
{
	for (unsigned i = 0; i < 256; i++) {
		double x = i / 255.0;

		unorm8[i] = (float)x;
		srgb8[i] = (float)(x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4));
	}
}

/* Both of the two lowest integers are -1. */
static float snorm(int value, float most)
{
	float x = (float)value / most;

	return x < -1 ? -1 : x;
}

/* A reader for each number of channels; `value` is computed from v, the cell of channel c. */
#define READER_N(name, cell, value, n)                           \
	static void name##_##n(const void *texel, uint32_t *ret) \
	{                                                        \
		cell cells[n];                                   \
                                                                 \
		memcpy(cells, texel, sizeof cells);              \
		for (unsigned c = 0; c < (n); c++) {             \
			cell v = cells[c];                       \
                                                                 \
			ret[c] = (value);                        \
		}                                                \
	}
#define READER(name, cell, value)      \
	READER_N(name, cell, value, 1) \
	READER_N(name, cell, value, 2) \
	READER_N(name, cell, value, 4)
READER(u8, uint8_t, v)
READER(s8, int8_t, (uint32_t)v)
READER(u16, uint16_t, v)
READER(s16, int16_t, (uint32_t)v)
READER(b32, uint32_t, v)
READER(f16, uint16_t, obd_f32_bits(obd_f16_f32(v)))
READER(unorm8, uint8_t, obd_f32_bits(unorm8[v]))
READER(snorm8, int8_t, obd_f32_bits(snorm(v, 127)))
READER(unorm16, uint16_t, obd_f32_bits((float)v / 65535))
READER(snorm16, int16_t, obd_f32_bits(snorm(v, 32767)))
/* alpha is linear */
READER(srgb8, uint8_t, obd_f32_bits(c < 3 ? srgb8[v] : unorm8[v]))

static void packed_10_10_10_2(const void *texel, uint32_t *ret)
{
	uint32_t v;

	memcpy(&v, texel, sizeof v);
	for (unsigned c = 0; c < 3; c++)
		ret[c] = obd_f32_bits((float)(v >> 10 * c & 1023) / 1023);
	ret[3] = obd_f32_bits((float)(v >> 30) / 3);
}

#define READERS(name)                        \
	{                                    \
		name##_1, name##_2, name##_4 \
	}

obd_texel_reader obd_texel_reader_of(const struct obd_texture *t)
{
	static const obd_texel_reader plain[][3] = {
		[OBD_TEXEL_U8] = READERS(u8),
		[OBD_TEXEL_S8] = READERS(s8),
		[OBD_TEXEL_U16] = READERS(u16),
		[OBD_TEXEL_S16] = READERS(s16),
		[OBD_TEXEL_U32] = READERS(b32),
		[OBD_TEXEL_S32] = READERS(b32),
		[OBD_TEXEL_F16] = READERS(f16),
		[OBD_TEXEL_F32] = READERS(b32),
	};
	static const obd_texel_reader normalized[][3] = {
		[OBD_TEXEL_U8] = READERS(unorm8),
		[OBD_TEXEL_S8] = READERS(snorm8),
		[OBD_TEXEL_U16] = READERS(unorm16),
		[OBD_TEXEL_S16] = READERS(snorm16),
	};
	static const obd_texel_reader srgb[3] = READERS(srgb8);
	uint32_t n = t->channels == 4 ? 2u : t->channels - 1u;

	if (t->texel == OBD_TEXEL_10_10_10_2)
		return packed_10_10_10_2;
	if (!t->as_float || t->texel > OBD_TEXEL_S16)
		return plain[t->texel][n];
	return t->srgb && t->texel == OBD_TEXEL_U8 ? srgb[n] : normalized[t->texel][n];
}

void obd_texel_complete(const struct obd_texture *t, uint32_t *channels)
{
	for (uint32_t c = t->channels; c < 4; c++)
		channels[c] = c < 3 ? 0 : obd_texel_is_float(t) ? 0x3f800000u : 1u;
}

static uint32_t limited(uint32_t word, bool is_signed, uint32_t bits)
{
	int32_t v = (int32_t)word, most = (1 << (bits - 1)) - 1;

	if (is_signed)
		return (uint32_t)(v > most ? most : v < -most - 1 ? -most - 1 : v);
	return word >> bits ? (1u << bits) - 1 : word;
}

/* A number in [0, 1] or [-1, 1] in steps of 1 / most. */
static uint32_t normalized_bits(uint32_t word, bool is_signed, uint32_t most)
{
	float x = obd_bits_f32(word), least = is_signed ? -1 : 0;

	x = x > least ? (x < 1 ? x : 1) : x == x ? least : 0;
	return (uint32_t)(int32_t)lrintf(x * (float)most);
}

void obd_texel_write(const struct obd_texture *t, void *texel, const uint32_t *words, uint32_t n)
{
	bool is_signed = t->texel == OBD_TEXEL_S8 || t->texel == OBD_TEXEL_S16;
	uint32_t cells[4] = { 0 }, size = obd_texel_bytes(t->texel, 1);

	for (uint32_t c = 0; c < t->channels; c++) {
		uint32_t v = c < n ? words[c] : 0;

		if (t->texel == OBD_TEXEL_F16)
			v = obd_f32_f16(obd_bits_f32(v));
		else if (t->texel == OBD_TEXEL_10_10_10_2)
			v = normalized_bits(v, false, c < 3 ? 1023 : 3);
		else if (t->as_float && size < 4)
			v = normalized_bits(v, is_signed, (1u << (size * 8 - is_signed)) - 1);
		else if (size < 4)
			v = limited(v, is_signed, size * 8);
		cells[c] = v;
	}
	if (t->texel == OBD_TEXEL_10_10_10_2) {
		cells[0] |= cells[1] << 10 | cells[2] << 20 | cells[3] << 30;
		memcpy(texel, cells, 4);
		return;
	}
	for (uint32_t c = 0; c < t->channels; c++)
		memcpy((char *)texel + c * size, &cells[c], size);
}
