/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Matrix instructions: the device's choice of rounding, which the PTX manual leaves open, and
 * faults. Also pairs of f32.
 */
#include <math.h>

#include "softdevice/core/half.h"
#include "tests/unit/softcore/device.h"

#define REGISTERS ".reg .b64 %d<8>; .reg .b32 %r<40>; .reg .pred %p<4>; .reg .f32 %f<16>;\n"

static uint32_t state = 1;

static uint32_t next(void)
{
	state = state * 1664525 + 1013904223;
	return state >> 8;
}

static uint32_t *words(size_t n)
{
	uint32_t *p;

	device_env();
	p = device_take(NULL, n * 4, 64);
	CHECK(p != NULL);
	return p;
}

/* m16n8k16: lane l has words 16 l of x: A at 0, B at 4, C at 6; its D goes to word 16 l + 8 of y. */
static const char product_text[] = HEAD
	".visible .entry k(.param .u64 x, .param .u64 y) {\n" REGISTERS
	"mov.u32 %r0, %tid.x; ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];\n"
	"mad.wide.u32 %d0, %r0, 64, %d0; mad.wide.u32 %d1, %r0, 64, %d1;\n"
	"ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d0]; ld.global.v2.b32 {%r5, %r6}, [%d0+16];\n"
	"ld.global.v2.b32 {%r7, %r8}, [%d0+24];\n"
	"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r9, %r10}, {%r1, %r2, %r3, %r4}, "
	"{%r5, %r6}, {%r7, %r8};\n"
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
	"%r4}, {%r5, %r6}, {%r7, %r8};\n"
	"st.global.v2.b32 [%d1], {%r9, %r10}; st.global.v4.f32 [%d1+16], {%f1, %f2, %f3, %f4};\n"
	"ret; }\n";

/* Bits of any kind, or numbers of similar size, whose sums are rounded. */
static uint32_t random_halves(bool any)
{
	uint32_t v = next() << 16 ^ next();

	return any ? v : (v & 0x83ff83ff) | 0x38003800 | (v & 0x04000400);
}

static double half_of(const uint32_t *x, uint32_t lane, uint32_t word, uint32_t e)
{
	return obd_small_to_f64(&obd_format_f16, x[lane * 16 + word] >> (e * 16) & 0xffff);
}

static double reference(const uint32_t *x, uint32_t row, uint32_t column)
{
	uint32_t lane = row % 8 * 4 + column / 2;
	double sum = half_of(x, lane, 6 + row / 8, column % 2);

	for (uint32_t k = 0; k < 16; k++)
		sum += half_of(x, row % 8 * 4 + k % 8 / 2, row / 8 + k / 8 * 2, k % 2) *
			half_of(x, column * 4 + k % 8 / 2, 4 + k / 8, k % 2);
	return sum;
}

TEST(sums_of_halves_are_rounded_once)
{
	struct obd_program *p = device_load_good(product_text);
	uint32_t *x = words(512), *y = words(512);
	void *params[] = { x, y };

	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < 512; i++)
			x[i] = random_halves(round % 2 && i % 3 == 0);
		CHECK_INT(device_run(p, "k", 1, 32, params), CUDA_SUCCESS);
		for (uint32_t i = 0; i < 128; i++) {
			uint32_t row = i / 8, column = i % 8, lane = row % 8 * 4 + column / 2;
			double sum = reference(x, row, column);
			uint32_t half = y[lane * 16 + row / 8] >> (column % 2 * 16) & 0xffff,
				 single = y[lane * 16 + 4 + row / 8 * 2 + column % 2];

			CHECK_INT(half, obd_round_to(&obd_format_f16, sum, OBD_RN, false));
			CHECK_INT(single, obd_round_to(&obd_format_f32, sum, OBD_RN, false));
		}
	}
	device_end(p);
}

/* The code of one statement in a kernel with an address and 128 bytes of shared memory. */
static CUresult run_one(const char *statement, unsigned threads, void *address)
{
	char text[1024];
	struct obd_program *p;
	CUresult r;

	snprintf(text, sizeof(text), "%s%s\nret; }\n",
		HEAD ".visible .entry k(.param .u64 x) {\n" REGISTERS
		     ".shared .align 16 .b8 s[128];\n"
		     "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [x]; mov.u32 %r1, s;\n"
		     "mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r5, 0;\n"
		     "setp.lt.u32 %p0, %r0, 9;\n",
		statement);
	p = device_load_good(text);
	r = device_run(p, "k", 1, threads, &address);
	device_end(p);
	return r;
}

TEST(wrong_uses_are_faults)
{
	static const char mma[] =
		"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r2, %r3}, {%r2, %r3}, {%r4}, "
		"{%r2, %r3};",
			  load[] = "wmma.load.a.sync.aligned.row.m16n16k16.u8 {%r2, %r3}, [%d0], "
				   "16;",
			  far[] = "wmma.load.a.sync.aligned.row.m16n16k16.u8 {%r2, %r3}, [%d0], "
				  "0x40000000;",
			  shared[] = "wmma.load.a.sync.aligned.row.m16n16k16.shared.u8 {%r2, %r3}, "
				     "[%r1+65536], 16;",
			  bulk[] = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], "
				   "[%r1+65536], 144;",
			  odd[] = "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 24;";
	uint32_t *x = words(512);

	CHECK_INT(run_one(mma, 32, x), CUDA_SUCCESS);
	CHECK_INT(run_one(mma, 31, x), CUDA_ERROR_ILLEGAL_INSTRUCTION);
	CHECK_INT(run_one("@%p0 movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r3;", 9, x),
		CUDA_ERROR_ILLEGAL_INSTRUCTION);
	CHECK_INT(run_one(load, 32, x), CUDA_SUCCESS);
	CHECK_INT(run_one(load, 32, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(run_one(far, 32, x), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(run_one(shared, 32, x), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(run_one(bulk, 32, x), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(run_one(odd, 32, x), CUDA_ERROR_MISALIGNED_ADDRESS);
	CHECK_INT(run_one(odd, 32, x + 1), CUDA_ERROR_MISALIGNED_ADDRESS);
}

/* Lanes that arrive on different paths wait for each other. */
TEST(parted_lanes_meet_at_a_matrix)
{
	struct obd_program *p = device_load_good(
		HEAD ".visible .entry k(.param .u64 x) {\n" REGISTERS
		     "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [x]; mad.wide.u32 %d0, %r0, 4, %d0;\n"
		     "and.b32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 2; shl.b32 %r2, %r0, 17;\n"
		     "@%p0 bra SIDE; mad.lo.u32 %r2, %r0, 2, %r2; bra MEET;\n"
		     "SIDE: shl.b32 %r3, %r0, 1; add.u32 %r2, %r2, %r3;\n"
		     "MEET: movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2;\n"
		     "st.global.b32 [%d0], %r4; ret; }\n");
	uint32_t *x = words(32);
	void *params[] = { x };

	CHECK_INT(device_run(p, "k", 1, 32, params), CUDA_SUCCESS);
	/* each lane has two copies of twice its number; the words are halves of an 8 x 8 matrix */
	for (uint32_t lane = 0; lane < 32; lane++)
		for (uint32_t e = 0; e < 2; e++) {
			uint32_t row = lane % 4 * 2 + e, column = lane / 4;

			CHECK_INT(x[lane] >> (16 * e) & 0xffff, (row * 4 + column / 2) * 2);
		}
	device_end(p);
}

/* A form that the device lacks refuses the kernel. */
TEST(marks_forms_that_are_missing)
{
	static const char *const forms[] = {
		"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32"
		".ue8m0 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, "
		"%f3}, %r0, {0, 0}, %r1, {0, 0};",
		"wmma.load.a.sync.aligned.row.m4n4k4.f16 {%r0}, [%d0], 16;",
		"ldmatrix.sync.aligned.m32n8.x1.trans.shared.b8 {%r0, %r1}, [%r2];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::"
		"complete_tx::bytes [%r0], [%d0, {%r1, %r1, %r1, %r1, %r1}], [%r2];",
		"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::"
		"bytes [%r0], [%d0, {%r1, %r1, %r1}], [%r2], {%r1};",
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		char text[1024];
		struct obd_program *p;

		snprintf(text, sizeof(text),
			"%s%s\nret; }\n.visible .entry bad() { call f, (); ret; }\n"
			".visible .entry good() { ret; }\n",
			HEAD ".func f() {\n" REGISTERS, forms[i]);
		p = device_load_good(text);
		CHECK(strstr(obd_program_kernel(p, "bad")->refused, "not supported") != NULL);
		CHECK(obd_program_kernel(p, "good")->refused == NULL);
		device_end(p);
	}
}

/*
 * For sm_100 and later; the target is that of the test's device, and is not compared. x: a pair in words 4 l and 4 l + 1 of lane l, and another in the next
 * two.
 */
static const char pair_text[] =
	".version 8.7\n.target sm_90\n.address_size 64\n"
	".visible .entry k(.param .u64 x, .param .u64 y) {\n" REGISTERS
	"mov.u32 %r0, %tid.x; ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];\n"
	"mad.wide.u32 %d0, %r0, 16, %d0; mad.wide.u32 %d1, %r0, 40, %d1;\n"
	"ld.global.v2.b64 {%d2, %d3}, [%d0];\n"
	"add.rn.f32x2 %d4, %d2, %d3; st.global.b64 [%d1], %d4;\n"
	"sub.f32x2 %d4, %d2, %d3; st.global.b64 [%d1+8], %d4;\n"
	"mul.rn.ftz.f32x2 %d4, %d2, %d3; st.global.b64 [%d1+16], %d4;\n"
	"fma.rn.f32x2 %d4, %d2, %d3, %d2; st.global.b64 [%d1+24], %d4;\n"
	"add.rp.f32x2 %d2, %d2, %d3; st.global.b64 [%d1+32], %d2; ret; }\n";

TEST(pairs_of_floats)
{
	struct obd_program *p = device_load_good(pair_text);
	float *x = (float *)(void *)words(128), *y = (float *)(void *)words(320);
	void *params[] = { x, y };

	for (uint32_t i = 0; i < 128; i++)
		x[i] = (float)(int32_t)(next() - 0x800000) / 333.0f;
	CHECK_INT(device_run(p, "k", 1, 32, params), CUDA_SUCCESS);
	for (uint32_t i = 0; i < 64; i++) {
		float a = x[i / 2 * 4 + i % 2], b = x[i / 2 * 4 + 2 + i % 2],
		      *r = y + i / 2 * 10 + i % 2;
		double sum = (double)a + (double)b;

		CHECK(r[0] == a + b);
		CHECK(r[2] == a - b);
		CHECK(r[4] == a * b);
		CHECK(r[6] == fmaf(a, b, a));
		CHECK_INT(obd_f32_bits(r[8]), obd_round_to(&obd_format_f32, sum, OBD_RP, false));
	}
	device_end(p);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
