/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures how fast a device issues the instructions that dominate the kernels' time. The targets
 * in obk-gpu-bench and obk-rqa-bench assume these rates.
 *
 *     gpu-rates LIBRARY ROUNDS     ROUNDS: of 64 instructions per thread; 20000 on a GPU
 *
 * Each thread has eight independent chains of one instruction, which hides its latency. The device
 * is filled with threads. Prints medians of seven runs.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "tests/ptx/driver.h"

#define CHAINS  8u
#define TIMES   8u /* instructions of each chain in a round */
#define RUNS    7u
#define THREADS 256u
#define TEXT    16384u

/*
 * The chains are registers called %%xN, %%fN or %%dN. %%a and %%b are kernel parameters, whose
 * values a compiler does not know. PAIR: 64 bits in two registers, %%xN and %%yN.
 */
enum chain { INTEGER, PAIR, SINGLE, DOUBLE };
static const struct {
	const char *name;
	enum chain chain;
	/* a format for the chain's number; for pairs, also for the number of the next chain */
	const char *text;
} kinds[] = {
	{ "IMAD, 32 bits", INTEGER, "mad.lo.u32 %%x%u, %%x%u, %%a, %%b;" },
	{ "IMAD.HI, 32 bits", INTEGER, "mad.hi.u32 %%x%u, %%x%u, %%a, %%b;" },
	/*
	 * ptxas 13.0 compiles these two to one instruction. It compiled mad.wide.u32, with its own
	 * low half as a factor, to three.
	 */
	{ "IMAD.WIDE, 32 x 32 + 64 bits", PAIR,
		"mad.lo.cc.u32 %%x%u, %%a, %%y%u, %%x%u; madc.hi.u32 %%y%u, %%a, %%y%u, %%y%u;" },
	{ "FFMA, 32 bits", SINGLE, "fma.rn.f32 %%f%u, %%f%u, %%fa, %%fb;" },
	{ "DFMA, 64 bits", DOUBLE, "fma.rn.f64 %%d%u, %%d%u, %%da, %%db;" },
	{ "SHF, 64 to 32 bits", INTEGER, "shf.l.wrap.b32 %%x%u, %%x%u, %%a, %%b;" },
};

static void need(CUresult result, const char *what)
{
	if (result) {
		fprintf(stderr, "gpu-rates: %s returned CUDA error %d\n", what, (int)result);
		exit(1);
	}
}

__attribute__((format(printf, 3, 4))) static void add(
	char *text, size_t *at, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text + *at, TEXT - *at, format, args);
	va_end(args);
	if (n < 0 || *at + (size_t)n >= TEXT)
		abort();
	*at += (size_t)n;
}

/* The formats are those of the tables in this file. None takes more numbers than are passed. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
static void kernel_write(unsigned kind, char text[TEXT])
{
	static const char *const starts[] = {
		[INTEGER] = "\tadd.u32 %%x%u, %%t, %%b;\n", [PAIR] = "\tadd.u32 %%x%u, %%t, %%b;\n\tadd.u32 %%y%u, %%t, %%a;\n",
		[SINGLE] = "\tcvt.rn.f32.u32 %%f%u, %%t;\n", [DOUBLE] = "\tcvt.rn.f64.u32 %%d%u, %%t;\n",
	}, *const ends[] = { /* every chain is stored, so that the compiler removes none */
		[INTEGER] = "\tst.global.u32 [%%to+%u], %%x%u;\n", [PAIR] = "\tst.global.v2.u32 [%%to+%u], {%%x%u, %%y%u};\n",
		[SINGLE] = "\tst.global.f32 [%%to+%u], %%f%u;\n", [DOUBLE] = "\tst.global.f64 [%%to+%u], %%d%u;\n",
	};
	enum chain chain = kinds[kind].chain;
	size_t at = 0;

	add(text, &at,
		".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry rate(.param .u64 "
		"out, .param .u32 rounds, .param .u32 p, .param .u32 q)\n{\n"
		"\t.reg .pred %%go;\n\t.reg .u32 %%x<8>, %%y<8>, %%a, %%b, %%n, %%t;\n\t.reg .u64 "
		"%%to;\n\t.reg .f32 %%f<8>, %%fa, %%fb;\n"
		"\t.reg .f64 %%d<8>, %%da, %%db;\n\tld.param.u64 %%to, [out];\n\tld.param.u32 %%n, "
		"[rounds];\n"
		"\tld.param.u32 %%a, [p];\n\tld.param.u32 %%b, [q];\n"
		"\tmov.u32 %%t, %%tid.x;\n\tcvt.rn.f32.u32 %%fa, %%a;\n\tcvt.rn.f32.u32 %%fb, "
		"%%b;\n"
		"\tcvt.rn.f64.u32 %%da, %%a;\n\tcvt.rn.f64.u32 %%db, %%b;\n");
	for (unsigned i = 0; i < CHAINS; i++)
		add(text, &at, starts[chain], i, i);
	add(text, &at, "again:\n");
	for (unsigned k = 0; k < TIMES * CHAINS; k++) {
		unsigned i = k % CHAINS, next = chain == PAIR ? (i + 1) % CHAINS : i;

		add(text, &at, kinds[kind].text, i, next, i, i, next, i);
		add(text, &at, "\n");
	}
	add(text, &at, "\tsub.u32 %%n, %%n, 1;\n\tsetp.ne.u32 %%go, %%n, 0;\n\t@%%go bra again;\n");
	for (unsigned i = 0; i < CHAINS; i++)
		add(text, &at, ends[chain], 8 * i, i, i);
	add(text, &at, "\tret;\n}\n");
}
#pragma GCC diagnostic pop

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct pt_driver d;
	static char text[TEXT];
	int processors = 0, khz = 0;
	CUdeviceptr out;
	uint64_t number;
	unsigned rounds, one = 1, three = 3;
	void *args[] = { &out, &rounds, &one, &three };

	if (argc < 3 || !ob_text_parse_number(argv[2], 1, 1000000, &number)) {
		fprintf(stderr, "gpu-rates LIBRARY ROUNDS\n");
		return 2;
	}
	if (pt_driver_open(&d, argv[1]) != PT_OPEN_OK)
		return 2;
	rounds = (unsigned)number;
	need(d.device_attribute(&processors, (CUdevice_attribute)16, d.device),
		"cuDeviceGetAttribute");
	need(d.device_attribute(&khz, (CUdevice_attribute)13, d.device), "cuDeviceGetAttribute");
	need(d.mem_alloc(&out, 256), "cuMemAlloc");
	printf("%s, %d processors, %d MHz at most\n\n", d.name, processors, khz / 1000);
	puts("| instruction | 10^12 lanes/s | lanes a clock and processor, if that is the clock "
	     "|\n|---|---|---|");
	for (unsigned kind = 0; kind < ob_count(kinds); kind++) {
		unsigned blocks = (unsigned)processors * 8;
		double took[RUNS], rate;
		CUfunction function;
		CUmodule module;

		kernel_write(kind, text);
		if (pt_driver_load(&d, text, &module)) {
			fprintf(stderr, "gpu-rates: %s: %s\n", kinds[kind].name, d.log);
			return 1;
		}
		need(d.module_function(&function, module, "rate"), "cuModuleGetFunction");
		for (unsigned r = 0; r <= RUNS; r++) { /* the first is not counted */
			uint64_t began = ob_clock_ns();

			need(d.launch(function, blocks, 1, 1, THREADS, 1, 1, 0, NULL, args, NULL),
				"cuLaunchKernel");
			need(d.ctx_sync(), "cuCtxSynchronize");
			took[r ? r - 1 : 0] = (double)(ob_clock_ns() - began);
		}
		qsort(took, RUNS, sizeof *took, ascending);
		rate = (double)blocks * THREADS * rounds * TIMES * CHAINS / took[RUNS / 2] / 1e3;
		printf("| %s | %.3f | %.1f |\n", kinds[kind].name, rate,
			khz ? rate * 1e9 / processors / khz : 0);
		fflush(stdout);
		d.module_unload(module);
	}
	return 0;
}
