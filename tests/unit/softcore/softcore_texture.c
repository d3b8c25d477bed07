/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Textures and surfaces in the interpreter: the forms of instructions that CUDA C++ does not have,
 * exact values of filters, handles that are wrong, and references. Expected values are computed
 * here from the PTX ISA and the CUDA C++ Programming Guide.
 */
#include <math.h>

#include "softdevice/core/half.h"
#include "softdevice/core/texture.h"
#include "tests/unit/softcore/device.h"

#define PROLOGUE                                                                               \
	".reg .b64 %d<8>; .reg .b32 %r<16>; .reg .pred %p<4>; .reg .f32 %f<16>; .reg .b16 "    \
	"%h<8>;\n"                                                                             \
	"ld.param.u64 %d0, [out]; ld.param.u64 %d2, [a]; ld.param.u64 %d3, [b]; mov.u32 %r0, " \
	"%tid.x; mul.wide.u32 %d1, %r0, 16; add.u64 %d1, %d1, %d0; cvt.rn.f32.u32 %f0, %r0;\n"
#define KERNEL(name, body)      \
	".visible .entry " name \
	"(.param .u64 out, .param .u64 a, .param .u64 b) {\n" PROLOGUE body "\nret; }\n"
#define STORE_F "st.global.v4.f32 [%d1], {%f4, %f5, %f6, %f7};"
#define STORE_R "st.global.v4.u32 [%d1], {%r4, %r5, %r6, %r7};"

struct params {
	uint32_t *out;
	uint64_t a, b;
};

static struct obd_textures *table;
static struct params params;
static struct obd_env env;

static void *take(size_t size)
{
	void *p = device_take(NULL, size, 512);

	CHECK(p != NULL);
	memset(p, 0, size);
	return p;
}

static struct obd_program *loaded(const char *body)
{
	static char text[16384];
	struct obd_program *p = NULL;

	snprintf(
		text, sizeof text, "%s%s", ".version 8.0\n.target sm_90\n.address_size 64\n", body);
	env = device_env();
	if (!table)
		table = obd_textures_new();
	CHECK(table != NULL);
	env.textures = table;
	params.out = take(64 * 16);
	if (obd_program_load(text, strlen(text), &env, &p, load_log, sizeof load_log))
		fprintf(stderr, "%s", load_log);
	CHECK(p != NULL);
	return p;
}

static void finished(struct obd_program *p)
{
	device_end(p);
	obd_textures_free(table);
	table = NULL;
}

/* A texture over memory without gaps. */
static struct obd_texture made(const void *base, enum obd_texel texel, uint8_t channels, uint32_t w,
	uint32_t h, uint32_t d)
{
	struct obd_texture t = { .texel = texel,
		.channels = channels,
		.element = (uint8_t)obd_texel_bytes(texel, channels),
		.dims = d > 1   ? 3
			: h > 1 ? 2
				: 1,
		.wrap = { OBD_WRAP_CLAMP, OBD_WRAP_CLAMP, OBD_WRAP_CLAMP },
		.n_layers = 1,
		.n_levels = 1,
		.n_queried_levels = 1 };
	uint64_t pitch = (uint64_t)w * t.element;

	t.levels[0] = (struct obd_texture_level){ (uintptr_t)base, pitch, pitch * h, w, h, d };
	t.bytes = pitch * h * d;
	return t;
}

static float got(uint32_t lane, uint32_t i)
{
	return obd_bits_f32(params.out[lane * 4 + i]);
}

static CUresult run(struct obd_program *p, const char *name)
{
	return device_run(p, name, 1, 32, &params);
}

TEST(handles_have_generations)
{
	struct obd_textures *t = obd_textures_new();
	struct obd_texture one = { .channels = 1 }, two = { .channels = 2 };
	uint64_t handles[3000], again;

	for (unsigned i = 0; i < 3000; i++) {
		handles[i] = obd_textures_add(t, i % 2 ? &two : &one);
		CHECK(handles[i] != 0);
	}
	for (unsigned i = 0; i < 3000; i++)
		CHECK_INT(obd_textures_find(t, handles[i])->channels, i % 2 + 1);
	free(obd_textures_swap(t, handles[5], &one));
	CHECK_INT(obd_textures_find(t, handles[5])->channels, 1);
	free(obd_textures_swap(t, handles[7], NULL));
	CHECK(obd_textures_find(t, handles[7]) == NULL);
	CHECK(obd_textures_swap(t, handles[7], NULL) == NULL);
	CHECK(obd_textures_swap(t, handles[7], &one) == NULL);
	again = obd_textures_add(t, &two);
	CHECK(again != handles[7] && again % OBD_TEXTURES_MAX == handles[7] % OBD_TEXTURES_MAX);
	CHECK(obd_textures_find(t, handles[7]) == NULL);
	CHECK(obd_textures_find(t, 0) == NULL);
	CHECK(obd_textures_find(t, 7) == NULL);
	CHECK(obd_textures_find(t, UINT64_MAX) == NULL);
	CHECK(obd_textures_find(NULL, again) == NULL);
	CHECK_INT(obd_textures_add(NULL, &one), 0);
	obd_textures_free(t);
}

/* Weights have 8 bits: x is rounded to the next 1/256. */
TEST(filters_with_weights_of_8_bits)
{
	struct obd_program *p = loaded(KERNEL("k",
		"fma.rn.f32 %f1, %f0, 0f3b800000, 0f40200000;\n" /* 2.5 + lane / 256 */
		"add.f32 %f2, %f1, 0f3ac00000;\n"                /* + 3/2048 */
		"tex.1d.v4.f32.f32 {%f4, %f8, %f9, %f10}, [%d2, {%f1}];\n"
		"tex.1d.v4.f32.f32 {%f5, %f8, %f9, %f10}, [%d2, {%f2}];\n"
		"sub.f32 %f1, %f0, 0f41000000; tex.1d.v4.f32.f32 {%f6, %f8, %f9, %f10}, [%d2, "
		"%f1];\n"
		"tex.1d.v4.f32.f32 {%f8, %f9, %f10, %f7}, [%d2, {%f1}];\n" STORE_F));
	float *texels = take(8 * 4);
	struct obd_texture t = made(texels, OBD_TEXEL_F32, 1, 8, 1, 1);

	for (int i = 0; i < 8; i++)
		texels[i] = 256.f * (float)i;
	t.linear = true;
	params.a = obd_textures_add(table, &t);
	CHECK_INT(run(p, "k"), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++) {
		float x = (float)i - 8.5f; /* clamped to the centres of the first and last texel */

		CHECK(got(i, 0) == 512 + (float)i);
		CHECK(got(i, 1) == 512 + (float)i); /* 3/8 of a step is nearer to this one */
		CHECK(got(i, 2) == 256 * (x < 0 ? 0 : x > 7 ? 7 : x));
		CHECK(got(i, 3) == 1); /* a channel that the format does not have */
	}
	finished(p);
}

TEST(other_results)
{
	struct obd_program *p = loaded(KERNEL("half",
		"tex.1d.v4.f16.s32 {%h0, %h1, %h2, %h3}, [%d2, {%r0}];\n"
		"mov.b32 %r4, {%h0, %h1}; mov.b32 %r5, {%h2, %h3};\n"
		"tex.1d.v2.f16x2.s32 {%r6, %r7}, [%d2, {%r0}];\n" STORE_R) KERNEL("guarded",
		"mov.u32 %r4, 77; mov.u32 %r5, 77; mov.u32 %r6, 77; mov.u32 %r7, 77;\n"
		"and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0; selp.b64 %d4, %d2, %d3, %p0;\n"
		"and.b32 %r1, %r0, 2; setp.eq.u32 %p1, %r1, 0; and.b32 %r1, %r0, 3;\n"
		"@%p1 tex.1d.v4.s32.s32 {%r4, %r5, %r6, %r7}|%p2, [%d4, {%r1}], {1};\n"
		"@%p2 add.u32 %r7, %r7, 100;\n" STORE_R));
	uint16_t *halves = take(32 * 8);
	int8_t *bytes = take(32);
	struct obd_texture t = made(halves, OBD_TEXEL_F16, 4, 32, 1, 1),
			   u = made(bytes, OBD_TEXEL_S8, 1, 8, 1, 1);

	for (uint16_t i = 0; i < 128; i++)
		halves[i] = (uint16_t)(0x3c00 + i);
	for (int i = 0; i < 8; i++)
		bytes[i] = (int8_t)(-i);
	params.a = obd_textures_add(table, &t);
	CHECK_INT(run(p, "half"), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		for (uint32_t c = 0; c < 4; c++)
			CHECK_INT(params.out[i * 4 + c],
				halves[i * 4 + c % 2 * 2] |
					(uint32_t)halves[i * 4 + c % 2 * 2 + 1] << 16);
	/* even lanes read one texture, odd ones the other, two of four none */
	params.b = obd_textures_add(table, &u);
	t.texel = OBD_TEXEL_U16;
	params.a = obd_textures_add(table, &t);
	CHECK_INT(run(p, "guarded"), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++) {
		uint32_t *r = params.out + i * 4;

		if (i & 2)
			CHECK(r[0] == 77 && r[1] == 77 && r[2] == 77);
		else if (i & 1)
			CHECK(r[0] == -2u && r[1] == 0 && r[2] == 0 && r[3] == 101);
		else
			CHECK(r[0] == halves[4] && r[1] == halves[5] && r[3] == halves[7] + 100u);
	}
	finished(p);
}

TEST(gathers_and_levels)
{
	struct obd_program *p = loaded(KERNEL("gather",
		"mov.f32 %f1, 0f40000000; tld4.g.2d.v4.f32.f32 {%f4, %f5, %f6, "
		"%f7}, [%d2, {%f1, "
		"%f1}];\n" STORE_F) KERNEL("level",
		"mul.f32 %f1, %f0, 0f3e000000; mov.f32 %f2, "
		"0f3e99999a;\n" /* lane / 8 */
		"tex.level.2d.v4.f32.f32 {%f4, %f8, %f9, %f10}, "
		"[%d2, {%f2, %f2}], %f1;\n"
		"tex.base.2d.v4.f32.f32 {%f5, %f8, %f9, %f10}, "
		"[%d2, {%f2, %f2}];\n"
		"mov.f32 %f3, 0f3e800000; mov.f32 %f11, "
		"0f00000000;\n" /* 1/4 of 8 texels: level 1 */
		"tex.grad.2d.v4.f32.f32 {%f6, %f8, %f9, %f10}, "
		"[%d2, {%f2, %f2}], {%f11, %f3}, "
		"{%f11, %f11};\n"
		"mov.u32 %r1, 1; tex.level.2d.v4.f32.s32 {%f7, "
		"%f8, %f9, %f10}, [%d2, {%r0, "
		"%r1}], %r1;\n" STORE_F));
	float *texels = take(4096);
	struct obd_texture t = made(texels, OBD_TEXEL_F32, 2, 4, 4, 1);

	for (int i = 0; i < 32; i++)
		texels[i] = (float)i;
	params.a = obd_textures_add(table, &t);
	CHECK_INT(run(p, "gather"), CUDA_SUCCESS);
	/* the second channel of texels (1, 2), (2, 2), (2, 1), (1, 1) */
	CHECK(got(3, 0) == 19 && got(3, 1) == 21 && got(3, 2) == 13 && got(3, 3) == 11);
	t = made(texels, OBD_TEXEL_F32, 1, 8, 8, 1);
	t.normalized = t.linear = t.mip_linear = true;
	t.mip_max = 9;
	t.n_levels = 3;
	for (uint32_t i = 0, at = 0, n = 8; i < 3; at += n * n, n /= 2, i++) {
		t.levels[i] = (struct obd_texture_level){ (uintptr_t)(texels + at), 4ull * n,
			4ull * n * n, n, n, 1 };
		for (uint32_t k = 0; k < n * n; k++)
			texels[at + k] = (float)(64 * i);
	}
	params.a = obd_textures_add(table, &t);
	CHECK_INT(run(p, "level"), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++) {
		CHECK(got(i, 0) == (i < 16 ? 8 * (float)i : 128));
		CHECK(got(i, 1) == 0 && got(i, 2) == 64);
		CHECK(got(i, 3) == (i < 4 ? 64 : 0)); /* a texel outside is 0 */
	}
	finished(p);
}

/* The fast way for two coordinates gives the bits of the general one, which tex.level takes. */
TEST(both_ways_give_the_same_bits)
{
	struct obd_program *p = loaded(KERNEL("k",
		"sub.f32 %f1, %f0, 0f41700000; mul.f32 %f1, %f1, 0f3f21cac1;\n"
		"mul.f32 %f2, %f0, 0f3f3ab8d2; sub.f32 %f2, %f2, 0f41200000; mov.f32 %f3, "
		"0f00000000;\n"
		"setp.eq.u32 %p0, %r0, 30; @%p0 mov.f32 %f1, 0f7fc00000; @%p0 mov.f32 %f2, "
		"0f7f800000;\n"
		"setp.eq.u32 %p0, %r0, 31; @%p0 mov.f32 %f1, 0fff800000; @%p0 mov.f32 %f2, "
		"0f7149f2ca;\n"
		"tex.2d.v4.u32.f32 {%r4, %r5, %r6, %r7}, [%d2, {%f1, %f2}];\n"
		"tex.level.2d.v4.u32.f32 {%r8, %r9, %r10, %r11}, [%d2, {%f1, %f2}], %f3;\n"
		"xor.b32 %r12, %r4, %r8; xor.b32 %r13, %r5, %r9; xor.b32 %r14, %r6, %r10; xor.b32 "
		"%r15, %r7, %r11;\n"
		"st.global.v4.u32 [%d1], {%r12, %r13, %r14, %r15};"));
	uint32_t *texels = take(4096);
	uint32_t seed = 1;

	for (int i = 0; i < 1024; i++)
		texels[i] = (seed = seed * 1664525 + 1013904223) & 0xbfffffff; /* no NaN */
	for (unsigned k = 0; k < 4 * 2 * 2 * 4 * 3; k++) {
		static const enum obd_texel kinds[] = { OBD_TEXEL_F32, OBD_TEXEL_U8, OBD_TEXEL_S16,
			OBD_TEXEL_U32 };
		struct obd_texture t =
			made(texels, kinds[k / 16 % 4], (uint8_t)(1u << k / 64 % 3), 13, 7, 1);

		memset(t.wrap, (int)(k % 4), sizeof t.wrap);
		t.linear = k / 4 % 2;
		t.normalized = k / 8 % 2;
		t.as_float = t.texel <= OBD_TEXEL_S16;
		t.border[0] = t.border[3] = 0x3f000000;
		params.a = obd_textures_add(table, &t);
		CHECK_INT(run(p, "k"), CUDA_SUCCESS);
		for (uint32_t i = 0; i < 32 * 4; i++)
			CHECK_INT(params.out[i], 0);
	}
	finished(p);
}

/* Instructions for cubemaps and layers read any texture, and only texels that it has. */
TEST(wrong_geometries_read_texels)
{
	struct obd_program *p = loaded(KERNEL("k",
		"mul.f32 %f1, %f0, 0f3d800000; sub.f32 %f2, %f0, 0f41700000; mov.f32 %f3, "
		"0f3f800000;\n"
		"tex.cube.v4.f32.f32 {%f4, %f8, %f9, %f10}, [%d2, {%f3, %f2, %f1, %f1}];\n"
		"neg.f32 %f3, %f3; tex.acube.v4.f32.f32 {%f5, %f8, %f9, %f10}, [%d2, {%r0, %f2, "
		"%f1, %f3}];\n"
		"tex.a2d.v4.f32.f32 {%f6, %f8, %f9, %f10}, [%d2, {%r0, %f2, %f1, %f1}];\n"
		"tex.3d.v4.f32.f32 {%f7, %f8, %f9, %f10}, [%d2, {%f2, %f1, %f2, %f1}];\n" STORE_F));
	float *texels = take(3 * 4096);

	/* another value before and behind the texels */
	for (int i = 0; i < 3 * 1024; i++)
		texels[i] = i >= 1024 && i < 1024 + 16 ? 5 : 1000;
	for (unsigned k = 0; k < 8; k++) {
		struct obd_texture t = made(texels + 1024, OBD_TEXEL_F32, 1, 4, 4, 1);

		t.seamless = k & 1;
		t.linear = k >> 1 & 1;
		t.normalized = k >> 2;
		params.a = obd_textures_add(table, &t);
		CHECK_INT(run(p, "k"), CUDA_SUCCESS);
		for (uint32_t i = 0; i < 32 * 4; i++)
			CHECK(got(i / 4, i % 4) == 5);
	}
	finished(p);
}

TEST(queries)
{
	struct obd_program *p = loaded(KERNEL("texture",
		"txq.width.b32 %r4, [%d2]; txq.height.b32 %r5, [%d2];\n"
		"txq.channel_data_type.b32 %r6, [%d2]; txq.channel_order.b32 %r7, [%d2];\n" STORE_R)
			KERNEL("sampler",
				"txq.normalized_coords.b32 %r4, [%d2]; txq.addr_mode_1.b32 %r5, "
				"[%d2];\n"
				"txq.filter_mode.b32 %r6, [%d2]; txq.num_mipmap_levels.b32 %r7, "
				"[%d2];\n" STORE_R) KERNEL("surface",
				"suq.depth.b32 %r4, [%d3]; suq.channel_order.b32 %r5, [%d3];\n"
				"istypep.texref %p0, %d2; selp.u32 %r6, 1, 0, %p0;\n"
				"istypep.surfref %p1, %d3; @%p1 add.u32 %r6, %r6, 2;\n"
				"istypep.surfref %p1, %d2; @%p1 add.u32 %r6, %r6, 4;\n"
				"istypep.samplerref %p1, %d2; @%p1 add.u32 %r6, %r6, 8;\n"
				"istypep.texref %p1, %d0; @%p1 add.u32 %r6, %r6, 16;\n"
				"mov.u32 %r1, 9; txq.level.width.b32 %r7, [%d2], %r1;\n" STORE_R));
	struct obd_texture t = made(NULL, OBD_TEXEL_U16, 2, 8, 5, 1), s = t;

	t.as_float = t.normalized = true;
	t.wrap[1] = OBD_WRAP_MIRROR;
	t.n_queried_levels = 4;
	s.kind = OBD_IS_SURFACE;
	s.dims = 3;
	s.levels[0].depth = 6;
	params.a = obd_textures_add(table, &t);
	params.b = obd_textures_add(table, &s);
	CHECK_INT(run(p, "texture"), CUDA_SUCCESS);
	/* unorm_int16, rg */
	CHECK(params.out[0] == 8 && params.out[1] == 5 && params.out[2] == 0x10d3 &&
		params.out[3] == 0x10b2);
	CHECK_INT(run(p, "sampler"), CUDA_SUCCESS);
	CHECK(params.out[0] == 1 && params.out[1] == 1 && params.out[2] == 0 && params.out[3] == 4);
	CHECK_INT(run(p, "surface"), CUDA_SUCCESS);
	CHECK(params.out[0] == 6 && params.out[1] == 0x10b2 && params.out[2] == 3 &&
		params.out[3] == 0);
	finished(p);
}

TEST(surfaces_convert_and_reduce)
{
	struct obd_program *p = loaded(KERNEL("reduce",
		"mov.u32 %r1, 1; mov.u32 %r2, 8; shl.b32 %r3, %r1, %r0; mov.u64 %d4, -5; mov.u32 "
		"%r5, 0;\n"
		"sured.b.add.2d.u32.trap [%d3, {%r2, %r1}], %r0;\n"
		"sured.b.or.2d.b32.trap [%d3, {%r5, %r5}], %r3;\n"
		"sured.p.max.2d.u32.zero [%d3, {%r1, %r5}], %r0;\n"
		"sured.b.min.2d.s64.trap [%d3, {%r2, %r5}], %d4;\n"
		"sured.p.add.2d.b32.zero [%d3, {%r0, %r2}], %r1;\n") KERNEL("formatted",
		"mov.u32 %r1, 0; mov.u32 %r2, 300; mov.u32 %r3, -1;\n"
		"sust.p.1d.v4.b32.zero [%d3, {%r0}], {%r0, %r2, %r3, %r1};") KERNEL("vectors",
		"shl.b32 %r1, %r0, 4; mov.u32 %r2, 3;\n"
		"sust.b.a1d.v4.b32.trap [%d3, {%r2, %r1}], {%r0, %r1, %r2, %r0};\n"
		"suld.b.a1d.v2.b64.trap {%d4, %d5}, [%d3, {%r2, %r1}];\n"
		"st.global.v2.u64 [%d1], {%d4, %d5};"));
	uint32_t *words = take(4096);
	uint8_t *bytes = take(128);
	struct obd_texture s = made(words, OBD_TEXEL_U32, 1, 4, 2, 1);

	s.kind = OBD_IS_SURFACE;
	words[1] = 7;
	words[2] = words[3] = 0x01010101;
	params.b = obd_textures_add(table, &s);
	CHECK_INT(run(p, "reduce"), CUDA_SUCCESS);
	CHECK(words[0] == ~0u && words[1] == 31 && words[4 + 2] == 31 * 32 / 2);
	CHECK(words[2] == -5u && words[3] == ~0u && words[4] == 0 && words[7] == 0);
	s = made(bytes, OBD_TEXEL_U8, 4, 31, 1, 1);
	s.kind = OBD_IS_SURFACE;
	params.b = obd_textures_add(table, &s);
	CHECK_INT(run(p, "formatted"), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++) /* the last lane writes nothing */
		CHECK(i < 31 ? bytes[4 * i] == i && bytes[4 * i + 1] == 255 &&
					bytes[4 * i + 2] == 255 && bytes[4 * i + 3] == 0
			     : bytes[4 * i + 1] == 0);
	s = made(words, OBD_TEXEL_U32, 1, 128, 1, 1);
	s.kind = OBD_IS_SURFACE;
	s.layered = true;
	s.n_layers = s.levels[0].depth = 4;
	memset(words, 0, 4096);
	params.b = obd_textures_add(table, &s);
	words = (uint32_t *)(void *)((char *)words + 3 * s.levels[0].slice);
	CHECK_INT(run(p, "vectors"), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 32; i++)
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t want = k == 1 ? i * 16 : k == 2 ? 3 : i;

			CHECK_INT(words[4 * i + k], want);
			CHECK_INT(params.out[4 * i + k], want);
		}
	finished(p);
}

static bool nothing_lives(void *user, uintptr_t address, size_t size)
{
	(void)user;
	return address - (uintptr_t)params.out < 1024 && size <= 16;
}

static void fails(struct obd_program *p, const char *kernel, CUresult result, const char *text)
{
	CHECK_INT(run(p, kernel), result);
	if (!strstr(fault.text, text))
		fprintf(stderr, "%s\n", fault.text);
	CHECK(strstr(fault.text, text) != NULL);
}

TEST(wrong_handles_and_places_are_faults)
{
	const char *text = KERNEL("fetch",
		"setp.eq.u32 %p0, %r0, 9; selp.b64 %d4, %d3, %d2, %p0;\n"
		"tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%d4, {%r0}];\n" STORE_R)
		KERNEL("load", "shl.b32 %r1, %r0, 2; suld.b.1d.b32.trap %r4, [%d3, {%r1}];")
			KERNEL("odd", "mov.u32 %r1, 2; suld.b.1d.b32.clamp %r4, [%d3, {%r1}];");
	struct obd_program *p = loaded(text);
	char *memory = take(65536 + 4096);
	struct obd_texture t = made(memory, OBD_TEXEL_U32, 1, 32, 1, 1), s = t;
	char *pages = (char *)(((uintptr_t)memory + 4095) & ~(uintptr_t)4095);

	s.kind = OBD_IS_SURFACE;
	params.a = params.b = obd_textures_add(table, &t);
	CHECK_INT(run(p, "fetch"), CUDA_SUCCESS);
	params.b = 12345;
	fails(p, "fetch", CUDA_ERROR_ILLEGAL_ADDRESS,
		"Invalid texture handle 0x3039: the context has no such texture, by thread "
		"(9,0,0)");
	params.b = 0;
	fails(p, "fetch", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid texture handle 0x0");
	params.b = obd_textures_add(table, &s);
	fails(p, "fetch", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid texture handle");
	CHECK_INT(run(p, "load"), CUDA_SUCCESS);
	free(obd_textures_swap(table, params.b, NULL));
	fails(p, "load", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid surface handle");
	s.levels[0].width = 20;
	params.b = obd_textures_add(table, &s);
	fails(p, "load", CUDA_ERROR_ILLEGAL_ADDRESS,
		"Invalid surface read at (80, 0, 0), by thread (20,0,0)");
	fails(p, "odd", CUDA_ERROR_MISALIGNED_ADDRESS, "Misaligned surface read at (2, 0, 0)");
	s.levels[0].width = 0; /* narrower than the access */
	params.b = obd_textures_add(table, &s);
	CHECK_INT(run(p, "odd"), CUDA_SUCCESS);
	t.refused = "for a reason";
	params.b = obd_textures_add(table, &t);
	fails(p, "fetch", CUDA_ERROR_ILLEGAL_ADDRESS, "Invalid texture access: for a reason");
	t.refused = NULL;
	/* memory that is no longer mapped, and with the memory check memory that was freed */
	t.levels[0].base = (uintptr_t)pages;
	params.a = params.b = obd_textures_add(table, &t);
	CHECK_INT(mprotect(pages, 4096, PROT_NONE), 0);
	CHECK_INT(run(p, "fetch"), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(mprotect(pages, 4096, PROT_READ | PROT_WRITE), 0);
	CHECK_INT(run(p, "fetch"), CUDA_SUCCESS);
	device_end(p);
	env.check = env.check_texture = nothing_lives;
	static char whole[16384];

	snprintf(whole, sizeof whole, "%s%s", HEAD, text);
	CHECK_INT(obd_program_load(whole, strlen(whole), &env, &p, load_log, sizeof load_log),
		CUDA_SUCCESS);
	fails(p, "fetch", CUDA_ERROR_ILLEGAL_ADDRESS, "its memory was freed");
	finished(p);
}

TEST(references_are_bound_by_name)
{
	struct obd_program *p = loaded(
		".visible .global .texref image;\n.global .surfref screen;\n"
		".global .samplerref how;\n" KERNEL("fetch",
			"tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [image, {%r0}];\n" STORE_R)
			KERNEL("moved",
				"mov.u64 %d4, image; tex.1d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%d4, "
				"{%r0}];\n"
				"shl.b32 %r1, %r0, 2; sust.b.1d.b32.trap [screen, {%r1}], %r4;\n"
				"mov.u64 %d5, how; istypep.samplerref %p0, %d5; selp.u32 %r5, 1, "
				"0, %p0;\n" STORE_R));
	uint32_t *words = take(256);
	struct obd_texture t = made(words, OBD_TEXEL_U32, 1, 32, 1, 1),
			   s = made(words + 32, OBD_TEXEL_U32, 1, 32, 1, 1);
	uint64_t image = obd_program_ref(p, "image"), screen = obd_program_ref(p, "screen");

	s.kind = OBD_IS_SURFACE;
	CHECK(image && screen && image != screen && obd_program_ref(p, "imag") == 0);
	fails(p, "fetch", CUDA_ERROR_ILLEGAL_ADDRESS, "the texture reference is not bound");
	for (uint32_t i = 0; i < 32; i++)
		words[i] = i * i;
	free(obd_textures_swap(table, image, &t));
	CHECK_INT(run(p, "fetch"), CUDA_SUCCESS);
	CHECK(params.out[4 * 31] == 961 && params.out[0] == 0);
	fails(p, "moved", CUDA_ERROR_ILLEGAL_ADDRESS, "the surface reference is not bound");
	free(obd_textures_swap(table, screen, &s));
	CHECK_INT(run(p, "moved"), CUDA_SUCCESS);
	CHECK(words[32 + 30] == 900 && params.out[4 * 5 + 1] == 1);
	obd_program_free(p);
	CHECK(obd_textures_find(table, image) == NULL);
	finished(NULL);
}

/* A kernel of another program may still read what a program's handle stood for. */
TEST(textures_outlive_their_program)
{
	struct obd_program *p = loaded(".global .texref image;\n" KERNEL("k", STORE_R));
	uint64_t handle = obd_program_ref(p, "image");
	const struct obd_texture *found = obd_textures_find(table, handle);
	struct obd_texture *ended;

	CHECK(found != NULL);
	obd_textures_drop(obd_textures_ended(table));
	obd_program_free(p);
	CHECK(obd_textures_find(table, handle) == NULL);
	ended = obd_textures_ended(table);
	CHECK(ended == found && ended->next_ended == NULL && ended->refused != NULL);
	CHECK(obd_textures_ended(table) == NULL);
	obd_textures_drop(ended);
}

static void form(const char *statement, bool valid, const char *text)
{
	static char module[4096];
	struct obd_program *p = NULL;

	snprintf(module, sizeof module, "%s.global .samplerref how;\n%s%s\nret; }\n", HEAD,
		".visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b) {\n" PROLOGUE,
		statement);
	CHECK_INT(obd_program_load(module, strlen(module), &env, &p, load_log, sizeof load_log),
		valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX);
	if (valid)
		CHECK(strstr(obd_program_kernel(p, "k")->refused, text) != NULL);
	else if (!strstr(load_log, text))
		fprintf(stderr, "%s", load_log);
	CHECK(valid || strstr(load_log, text) != NULL);
	obd_program_free(p);
}

TEST(forms_that_are_not_taken)
{
	env = device_env();
	form("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d2, how, {%f0}];", true,
		"a sampler apart from the texture");
	form("tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d2, {%r0, %r0, %r0, %r0}];", true,
		"this geometry");
	form("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d2, {%f0, %f0}], %f1;", true,
		"a depth comparison");
	form("suq.memory_layout.b32 %r1, [%d2];", true, "this query");
	form("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d2, {%f0}];", false, "too few elements");
	form("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d2];", false, "expected coordinates");
	form("tex.1d.v4.f32.f32 {%f1, %f2, %f3}, [%d2, {%f0}];", false, "too few elements");
	form("tex.1d.v2.f32.f32 {%f1, %f2}, [%d2, {%f0}];", false, "the result must be");
	form("tex.1d.v4.f32.u32 {%f1, %f2, %f3, %f4}, [%d2, {%r0}];", false, "coordinates");
	form("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d2, %f0, %f0, %f0];", false, "in [ ]");
	form("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%r1, [%d2, {%f0}];", false, "a predicate");
	form("sust.p.1d.b64.trap [%d2, {%r0}], %d1;", false, "wrong type");
	form("suld.b.1d.b128.trap %r0, [%d2, {%r0}];", false, "wrong type");
	form("suld.b.cube.b32.trap %r0, [%d2, {%r0}];", false, ".cube");
	form("sured.b.xor.1d.b32.trap [%d2, {%r0}], %r1;", false, "the operation must be");
	form("sured.b.add.1d.u16.trap [%d2, {%r0}], %r1;", false, "32 or 64 bits");
	form("txq.width.b32 %r1, %d2;", false, "expected a texture");
	CHECK_INT(obd_textures_find(NULL, 1) != NULL, 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
