/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Arithmetic gives the same bits with every instruction set. Each instruction runs over the same
 * operands, once unguarded and once under a guard predicate. A child process for each instruction
 * set prints a hash of the results per instruction; the lines must be equal.
 */
#include "tests/unit/softcore/device.h"

#define ELEMENTS (1u << 17)
#define BLOCK    128u

/* Operands: %f f32, %d f64, %r 32 bits, %q 64 bits, %h 16 bits. 0, 1, 2 are sources, 3 the result. */
static const char *const instructions[] = {
	"add.rn.f16x2 %r3, %r0, %r1",
	"sub.rn.f16x2 %r3, %r0, %r1",
	"mul.rn.f16x2 %r3, %r0, %r1",
	"fma.rn.f16x2 %r3, %r0, %r1, %r2",
	"add.rn.ftz.f16x2 %r3, %r0, %r1",
	"mul.rn.ftz.sat.f16x2 %r3, %r0, %r1",
	"fma.rn.ftz.f16x2 %r3, %r0, %r1, %r2",
	"fma.rn.relu.f16 %h3, %h0, %h1, %h2",
	"add.rn.bf16x2 %r3, %r0, %r1",
	"mul.rn.bf16x2 %r3, %r0, %r1",
	"fma.rn.bf16x2 %r3, %r0, %r1, %r2",
	"fma.rn.relu.bf16 %h3, %h0, %h1, %h2",
	"min.f16x2 %r3, %r0, %r1",
	"max.NaN.f16x2 %r3, %r0, %r1",
	"max.bf16x2 %r3, %r0, %r1",
	"min.NaN.xorsign.abs.bf16x2 %r3, %r0, %r1",
	"ex2.approx.f16x2 %r3, %r0",
	"ex2.approx.f16 %h3, %h0",
	"ex2.approx.ftz.bf16x2 %r3, %r0",
	"tanh.approx.f16x2 %r3, %r0",
	"tanh.approx.bf16 %h3, %h0",
	"ex2.approx.f32 %f3, %f0",
	"ex2.approx.ftz.f32 %f3, %f0",
	"lg2.approx.f32 %f3, %f0",
	"lg2.approx.ftz.f32 %f3, %f0",
	"sin.approx.f32 %f3, %f0",
	"cos.approx.f32 %f3, %f0",
	"tanh.approx.f32 %f3, %f0",
	"rsqrt.approx.f32 %f3, %f0",
	"rcp.approx.ftz.f64 %d3, %d0",
	"rsqrt.approx.ftz.f64 %d3, %d0",
	"cvt.f32.f16 %f3, %h0",
	"cvt.f32.bf16 %f3, %h0",
	"cvt.rn.f16.f32 %h3, %f0",
	"cvt.rz.f16.f32 %h3, %f0",
	"cvt.rm.f16.f32 %h3, %f0",
	"cvt.rp.f16.f32 %h3, %f0",
	"cvt.rn.bf16.f32 %h3, %f0",
	"cvt.rz.bf16.f32 %h3, %f0",
	"cvt.rn.satfinite.f16.f32 %h3, %f0",
	"cvt.rn.f16.f64 %h3, %d0",
	"cvt.rm.f16.f64 %h3, %d0",
	"cvt.rn.f16.s32 %h3, %r0",
	"cvt.rp.f16.u64 %h3, %q0",
	"cvt.rn.bf16.u32 %h3, %r0",
	"cvt.rn.f16x2.f32 %r3, %f0, %f1",
	"cvt.rz.relu.bf16x2.f32 %r3, %f0, %f1",
	"cvt.rna.tf32.f32 %r3, %f0",
	"cvt.rn.satfinite.e4m3x2.f32 %h3, %f0, %f1",
	"cvt.rn.satfinite.e5m2x2.f32 %h3, %f0, %f1",
	"cvt.rn.f16x2.e4m3x2 %r3, %h0",
	"cvt.rn.f16x2.e5m2x2 %r3, %h0",
	"cvt.rn.f32.u32 %f3, %r0",
	"cvt.rm.f32.u32 %f3, %r0",
	"cvt.rp.f32.s64 %f3, %q0",
	"cvt.rz.f32.u64 %f3, %q0",
	"cvt.rn.f64.u64 %d3, %q0",
	"cvt.rni.s32.f32 %r3, %f0",
	"cvt.rmi.u32.f32 %r3, %f0",
	"cvt.rpi.s64.f32 %q3, %f0",
	"cvt.rzi.u64.f64 %q3, %d0",
	"cvt.rzi.s32.f64 %r3, %d0",
	"cvt.rni.s16.f32 %h3, %f0",
	"cvt.sat.u8.s32 %r3, %r0",
	"div.u32 %r3, %r0, %r1",
	"div.s32 %r3, %r0, %r1",
	"rem.u32 %r3, %r0, %r1",
	"rem.s32 %r3, %r0, %r1",
	"div.u64 %q3, %q0, %q1",
	"rem.s64 %q3, %q0, %q1",
};
#define COUNT (sizeof instructions / sizeof instructions[0])

/* Two results of 8 bytes for each element; the register that the instruction writes is stored. */
static void put_kernel(char *text, size_t size, const char *instruction)
{
	const char *d = strstr(instruction, "%");
	bool wide = d[1] == 'd' || d[1] == 'q';
	const char *type = wide ? "b64" : d[1] == 'h' ? "b16" : "b32";

	snprintf(text, size,
		".version 8.6\n.target sm_90\n.address_size 64\n"
		".visible .entry k(.param .u64 in, .param .u64 out) {\n"
		".reg .pred %%p; .reg .b32 %%i, %%t; .reg .b64 %%a, %%o; .reg .f32 %%f<4>;\n"
		".reg .f64 %%d<4>; .reg .b32 %%r<4>; .reg .b64 %%q<4>; .reg .b16 %%h<4>;\n"
		"ld.param.u64 %%a, [in]; ld.param.u64 %%o, [out];\n"
		"mov.u32 %%i, %%ctaid.x; mov.u32 %%t, %%tid.x; mad.lo.u32 %%i, %%i, %u, %%t;\n"
		"mad.wide.u32 %%a, %%i, 24, %%a; mad.wide.u32 %%o, %%i, 16, %%o;\n"
		"ld.global.u64 %%q0, [%%a]; ld.global.u64 %%q1, [%%a+8];\n"
		"ld.global.u64 %%q2, [%%a+16];\n"
		"cvt.u32.u64 %%r0, %%q0; cvt.u32.u64 %%r1, %%q1; cvt.u32.u64 %%r2, %%q2;\n"
		"mov.b32 %%f0, %%r0; mov.b32 %%f1, %%r1; mov.b32 %%f2, %%r2;\n"
		"mov.b64 %%d0, %%q0; mov.b64 %%d1, %%q1; mov.b64 %%d2, %%q2;\n"
		"cvt.u16.u32 %%h0, %%r0; cvt.u16.u32 %%h1, %%r1; cvt.u16.u32 %%h2, %%r2;\n"
		"%s; st.global.%s [%%o], %.2s3;\n"
		"and.b32 %%t, %%i, 5; setp.eq.u32 %%p, %%t, 1;\n"
		"mov.%s %.2s3, 0; @%%p %s; st.global.%s [%%o+8], %.2s3; ret; }\n",
		BLOCK, instruction, type, d, type, d, instruction, type, d);
}

/* Random bits; one operand in four is near another one, and one in eight is a small number. */
static void put_operands(uint64_t *in)
{
	uint64_t x = 88172645463325252ull;

	for (uint32_t i = 0; i < ELEMENTS * 3; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		in[i] = x;
		if (i && x >> 62 == 0)
			in[i] = in[i - 1] ^ (x & 0x8000001f);
		if (x >> 61 == 7) { /* f32 from 2^-8 to 2^8, f16 and f64 of any size */
			in[i] = (x & ~0x7f800000ull) | (((x >> 23 & 15) + 119) << 23);
			in[i] = x & 64 ? in[i] : in[i] & 0xffffffff;
		}
		if (i % 3 == 0)
			in[i] = (in[i] & ~0xffffull) | (i / 3 & 0xffff);
	}
}

static int print_hashes(void)
{
	static char text[8192];
	uint64_t *in, *out;

	device_env();
	in = device_take(NULL, ELEMENTS * 24, 64);
	put_operands(in);
	out = device_take(NULL, ELEMENTS * 16, 64);
	printf("%s\n", obd_core_isa());
	for (size_t k = 0; k < COUNT; k++) {
		void *params[2] = { in, out };
		uint64_t hash = 14695981039346656037ull;
		struct obd_program *p;

		put_kernel(text, sizeof(text), instructions[k]);
		p = device_load_good(text);
		memset(out, 0, ELEMENTS * 16);
		CHECK_INT(device_run(p, "k", ELEMENTS / BLOCK, BLOCK, params), CUDA_SUCCESS);
		for (uint32_t i = 0; i < ELEMENTS * 2; i++)
			hash = (hash ^ out[i]) * 1099511628211ull;
		printf("%s: %016llx\n", instructions[k], (unsigned long long)hash);
		device_end(p);
	}
	return 0;
}

static FILE *child(const char *isa)
{
	char command[128];

	fflush(NULL);
	snprintf(command, sizeof(command), "OUTBOARD_SOFT_ISA=%s /proc/%ld/exe --hashes", isa,
		(long)getpid());
	return popen(command, "r");
}

TEST(instruction_sets_agree)
{
	static const char *const isas[] = { "sse4.1", "avx2", "avx512" };
	static char first[COUNT][128];
	char line[128];

	for (size_t i = 0; i < 3; i++) {
		FILE *f = child(isas[i]);
		size_t n = 0;

		CHECK(f != NULL);
		CHECK(fgets(line, sizeof(line), f) != NULL);
		for (; fgets(line, sizeof(line), f); n++) {
			CHECK(n < COUNT);
			if (i == 0)
				memcpy(first[n], line, sizeof(line));
			CHECK_STR(line, first[n]);
		}
		CHECK_INT(n, COUNT);
		CHECK_INT(pclose(f), 0);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--hashes") == 0)
		return print_hashes();
	return test_main(argc, argv);
}
