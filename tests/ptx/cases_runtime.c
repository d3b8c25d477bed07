/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The device runtime: printf, malloc, free, assert; and the errors that make a context unusable.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/run.h"

static void emit_string(struct pt_text *t, const char *name, const char *s)
{
	pt_text_add(t, ".global .align 1 .b8 %s[%zu] = {", name, strlen(s) + 1);
	for (const char *p = s; *p; p++)
		pt_text_add(t, "%u, ", (unsigned char)*p);
	pt_text_add(t, "0};\n");
}

/* clang-format off */
static const char vprintf_declaration[] =
        ".extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);\n";
/* clang-format on */

/* Kinds: i 32 bits, l 64 bits, d a double, s a string in device memory. */
struct argument {
	char kind;
	int64_t integer;
	double real;
	const char *string;
};

#define MAX_PRINT_ARGUMENTS 6
#define I(v)                      \
	{                         \
		'i', (v), 0, NULL \
	}
#define L(v)                               \
	{                                  \
		'l', (int64_t)(v), 0, NULL \
	}
#define D(v)                      \
	{                         \
		'd', 0, (v), NULL \
	}
#define S(v)                   \
	{                      \
		's', 0, 0, (v) \
	}

static const struct print {
	const char *format;
	struct argument arguments[MAX_PRINT_ARGUMENTS];
} prints[] = {
	{ "no arguments, 100%%\n", { { 0 } } },
	{ "int %d|%5d|%-5d|%05d|%+d|% i\n", { I(-7), I(42), I(42), I(42), I(3), I(8) } },
	{ "unsigned %u|%x|%X|%#x|%o|%08x\n",
		{ I(-1), I(48879), I(48879), I(255), I(8), I(0xabc) } },
	{ "long %lld|%llu|%llx|%ld|%20lld|%zu\n",
		{ L(-1234567890123), L(UINT64_MAX), L(0x123456789abcdef), L(INT64_MIN), L(5),
			L(77) } },
	{ "double %f|%.3f|%10.2e|%g|%G|%5.0f\n",
		{ D(3.25), D(-2.0005), D(12345.678), D(1e-10), D(1e20), D(2.5) } },
	{ "special %f|%g|%e|%+.1f|%a\n",
		{ D(__builtin_inf()), D(-__builtin_inf()), D(0), D(-0.0), D(0.75) } },
	{ "char %c%c string %s|%10s|%-6.2s|\n",
		{ I('o'), I('k'), S("hello"), S("right"), S("truncated") } },
	{ "mixed %d %lld %c %f %s %x\n", { I(1), L(2), I('3'), D(4), S("five"), I(6) } },
	{ "star %*d|%.*f|%-*d|\n", { I(6), I(42), I(2), D(3.14159), I(5), I(9) } },
	{ "narrow %hd|%hu|%hx\n", { I(70000), I(70000), I(-2) } },
	{ "pointer %p\n", { L(0x123456) } },
	{ "two\nlines %d\n", { I(2) } },
};
#define N_PRINTS (sizeof prints / sizeof prints[0])

static unsigned argument_bytes(const struct argument *a)
{
	return a->kind == 'i' ? 4 : 8;
}

static char *print_text(const struct print *p)
{
	struct pt_text t = { 0 };
	char name[32];
	unsigned offset = 0, count = 0;
	pt_text_add(&t, "%s", vprintf_declaration);
	emit_string(&t, "format", p->format);
	for (unsigned i = 0; i < MAX_PRINT_ARGUMENTS && p->arguments[i].kind; i++) {
		snprintf(name, sizeof name, "string%u", i);
		if (p->arguments[i].kind == 's')
			emit_string(&t, name, p->arguments[i].string);
	}
	pt_text_add(&t, "%s",
		PT_ENTRY("print") "{\n	.local .align 8 .b8 buffer[64];\n" PT_PROLOGUE
				  "	mov.u64 %l1, buffer;\n");
	for (unsigned i = 0; i < MAX_PRINT_ARGUMENTS && p->arguments[i].kind; i++) {
		const struct argument *a = &p->arguments[i];
		unsigned bytes = argument_bytes(a);
		uint64_t bits = (uint64_t)a->integer;
		if (a->kind == 'd')
			memcpy(&bits, &a->real, sizeof bits);
		offset = (offset + bytes - 1) / bytes * bytes;
		if (a->kind == 's')
			pt_text_add(&t,
				"	mov.u64 %%l2, string%u;\n	cvta.global.u64 %%l2, "
				"%%l2;\n",
				i);
		else
			pt_text_add(&t, "	mov.b64 %%l2, 0x%" PRIx64 ";\n", bits);
		if (bytes == 4)
			pt_text_add(&t,
				"	cvt.u32.u64 %%r1, %%l2;\n	st.local.b32 [%%l1+%u], "
				"%%r1;\n",
				offset);
		else
			pt_text_add(&t, "	st.local.b64 [%%l1+%u], %%l2;\n", offset);
		offset += bytes;
		count++;
	}
	pt_text_add(&t, "	%s\n", count ? "cvta.local.u64 %l1, %l1;" : "mov.u64 %l1, 0;");
	pt_text_add(&t,
		"	mov.u64 %%l3, format;\n	cvta.global.u64 %%l3, %%l3;\n	{\n	.param "
		".b64 x;\n	.param .b64 y;\n"
		"	.param .b32 z;\n	st.param.b64 [x], %%l3;\n"
		"	st.param.b64 [y], %%l1;\n	call.uni (z), vprintf, (x, y);\n"
		"	ld.param.b32 %%r2, [z];\n	}\n	st.global.u32 [%%p0], %%r2;\n	"
		"ret;\n}\n");
	return t.p;
}

static bool run_print(struct pt_run *run)
{
	uint32_t got = 0, want = 0;
	CUdeviceptr a = pt_run_put(run, NULL, 4);
	pt_run_line(run, "print", 1, 1, a, 0, 0, 0);
	pt_run_get(run, a, &got, 4);
	while (want < MAX_PRINT_ARGUMENTS && prints[run->c->arg[0]].arguments[want].kind)
		want++;
	return pt_run_same32(run, "vprintf's result", &got, &want, 1);
}

/* The reference: the C library formats the same text, one conversion at a time. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static unsigned print_conversion(
	char *to, size_t size, const char *spec, const struct argument *a, int *ret_len)
{
	unsigned stars = 0, used = 0;
	int star[2] = { 0, 0 };
	for (const char *p = spec; *p; p++)
		stars += *p == '*';
	for (; used < stars; used++)
		star[used] = (int)a[used].integer;
	const struct argument *v = &a[used];
	if (v->kind == 'd' && stars == 1)
		*ret_len = snprintf(to, size, spec, star[0], v->real);
	else if (v->kind == 'd')
		*ret_len = snprintf(to, size, spec, v->real);
	else if (v->kind == 's')
		*ret_len = snprintf(to, size, spec, v->string);
	else if (v->kind == 'l')
		*ret_len = snprintf(to, size, spec, v->integer);
	else if (stars)
		*ret_len = snprintf(to, size, spec, star[0], (int)v->integer);
	else
		*ret_len = snprintf(to, size, spec, (int)v->integer);
	return used + 1;
}
#pragma GCC diagnostic pop

static char *expected_print(const struct print *p)
{
	struct pt_text t = { 0 };
	const struct argument *a = p->arguments;
	for (const char *f = p->format; *f;) {
		if (*f != '%') {
			pt_text_raw(&t, f++, 1);
			continue;
		}
		if (f[1] == '%') {
			pt_text_raw(&t, "%", 1);
			f += 2;
			continue;
		}
		size_t n = strcspn(f, "diuoxXcspfeEgGaA") + 1;
		char spec[32], out[128];
		int len = 0;
		snprintf(spec, sizeof spec, "%.*s", (int)n, f);
		a += print_conversion(out, sizeof out, spec, a, &len);
		pt_text_raw(&t, out, (size_t)len);
		f += n;
	}
	return t.p;
}

static bool check_print(struct pt_run *run, const char *out, const char *err)
{
	(void)err;
	char *want = expected_print(&prints[run->c->arg[0]]);
	bool same = !strcmp(out, want);
	if (!same)
		pt_run_fail(run, "expected \"%s\" got \"%.200s\"", want, out);
	free(want);
	return same;
}

/* Many threads print in divergent code. Each line must be whole and appear once, in any order. */
static char *crowd_text(void)
{
	struct pt_text t = { 0 };
	pt_text_add(&t, "%s", vprintf_declaration);
	emit_string(&t, "format", "thread %d of block %d says %s\n");
	emit_string(&t, "word", "hello");
	pt_text_add(&t, "%s",
		PT_ENTRY("print") "{\n	.local .align 8 .b8 buffer[16];\n" PT_PROLOGUE
				  "	and.b32 %r1, %t, 3;\n	setp.eq.u32 %q1, %r1, 1;\n"
				  "	@%q1 bra OUT;\n	mov.u64 %l1, buffer;\n"
				  "	st.local.v2.b32 [%l1], {%t, %r62};\n	mov.u64 %l2, "
				  "word;\n"
				  "	cvta.global.u64 %l2, %l2;\n"
				  "	st.local.b64 [%l1+8], %l2;\n	cvta.local.u64 %l1, %l1;\n"
				  "	mov.u64 %l3, format;\n"
				  "	cvta.global.u64 %l3, %l3;\n	{\n	.param .b64 x;\n"
				  "	.param .b64 y;\n	.param .b32 z;\n"
				  "	st.param.b64 [x], %l3;\n	st.param.b64 [y], %l1;\n"
				  "	call (z), vprintf, (x, y);\n	}\n"
				  "OUT:\n	ret;\n}\n");
	return t.p;
}

static bool run_crowd(struct pt_run *run)
{
	pt_run_line(run, "print", 4, 72, 0, 0, 0, 0);
	return pt_run_ok(run);
}

static bool check_crowd(struct pt_run *run, const char *out, const char *err)
{
	(void)err;
	size_t lines = 0;
	for (const char *p = out; *p; p++)
		lines += *p == '\n';
	for (unsigned i = 0; i < 4 * 72; i++) {
		char line[64];
		snprintf(line, sizeof line, "thread %u of block %u says hello\n", i % 72, i / 72);
		const char *found = strstr(out, line);
		bool wanted = i % 72 % 4 != 1;
		if ((found != NULL) != wanted || (found && found != out && found[-1] != '\n'))
			return pt_run_fail(
				run, "\"%.40s\" %s", line, wanted ? "is missing" : "was printed");
	}
	return lines == 4 * 54 ? true : pt_run_fail(run, "%zu lines", lines);
}

/*
 * The heap: blocks do not overlap, outlive the kernel and can be freed by another kernel; a request
 * that is too large gives null.
 */
/* clang-format off */
static const char heap_text[] =
        ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
        ".func (.param .b64 r) get(.param .b64 n)\n{\n	.reg .b64 %l<2>;\n	ld.param.b64 %l0, [n];\n"
        "	{\n	.param .b64 x;\n"
        "	.param .b64 y;\n	st.param.b64 [x], %l0;\n	call.uni (y), malloc, (x);\n"
        "	ld.param.b64 %l1, [y];\n	}\n"
        "	st.param.b64 [r], %l1;\n	ret;\n}\n"
        PT_ENTRY("take") "{\n" PT_PROLOGUE
        "	and.b32 %r1, %t, 7;\n	mad.lo.u32 %r1, %r1, 24, 8;\n	cvt.u64.u32 %l1, %r1;\n"
        "	{\n	.param .b64 x;\n	.param .b64 y;\n	st.param.b64 [x], %l1;\n"
        "	call (y), get, (x);\n	ld.param.b64 %l2, [y];\n	}\n"
        "	mad.wide.u32 %l3, %i, 8, %p0;\n	st.global.u64 [%l3], %l2;\n	mov.u32 %r2, 0;\n"
        "	setp.eq.u64 %q1, %l2, 0;\n	@%q1 ret;\n"
        "L:\n	cvt.u64.u32 %l4, %r2;\n	add.u64 %l4, %l2, %l4;\n	st.u32 [%l4], %i;\n	add.u32 %r2, %r2, 4;\n"
        "	setp.lt.u32 %q2, %r2, %r1;\n	@%q2 bra L;\n	ret;\n}\n"
        PT_ENTRY("look") "{\n" PT_PROLOGUE
        "	and.b32 %r1, %t, 7;\n	mad.lo.u32 %r1, %r1, 24, 8;\n	mad.wide.u32 %l3, %i, 8, %p0;\n"
        "	ld.global.u64 %l2, [%l3];\n"
        "	mov.u32 %r2, 0;\n	mov.u32 %r3, 0;\n"
        "L:\n	cvt.u64.u32 %l4, %r2;\n	add.u64 %l4, %l2, %l4;\n	ld.u32 %r4, [%l4];\n	setp.eq.u32 %q1, %r4, %i;\n"
        "	@%q1 add.u32 %r3, %r3, 4;\n	add.u32 %r2, %r2, 4;\n	setp.lt.u32 %q2, %r2, %r1;\n	@%q2 bra L;\n"
        "	setp.eq.u32 %q3, %r3, %r1;\n	selp.u32 %r5, 1, 0, %q3;\n"
        "	mad.wide.u32 %l5, %i, 4, %p1;\n	st.global.u32 [%l5], %r5;\n"
        "	{\n	.param .b64 x;\n	st.param.b64 [x], %l2;\n	call free, (x);\n	}\n	ret;\n}\n"
        PT_ENTRY("huge") "{\n" PT_PROLOGUE
        "	mov.u64 %l1, 0x10000000000;\n	{\n	.param .b64 x;\n	.param .b64 y;\n"
        "	st.param.b64 [x], %l1;\n"
        "	call (y), malloc, (x);\n	ld.param.b64 %l2, [y];\n	}\n	st.global.u64 [%p0], %l2;\n"
        "	mov.u64 %l3, 0;\n	{\n	.param .b64 x;\n	st.param.b64 [x], %l3;\n"
        "	call free, (x);\n	}\n	ret;\n}\n";
/* clang-format on */

static bool run_heap(struct pt_run *run)
{
	enum { BLOCKS = 6, THREADS = 80, N = BLOCKS * THREADS };
	uint64_t p[N], huge = 1;
	uint32_t good[N], want[N];
	CUdeviceptr a = pt_run_put(run, NULL, sizeof p), b = pt_run_put(run, NULL, sizeof good);
	pt_run_line(run, "take", BLOCKS, THREADS, a, 0, 0, 0);
	pt_run_get(run, a, p, sizeof p);
	for (unsigned i = 0; i < N && pt_run_ok(run); i++) {
		if (!p[i] || p[i] % 16)
			pt_run_fail(run, "malloc gave 0x%" PRIx64, p[i]);
	}
	pt_run_line(run, "look", BLOCKS, THREADS, a, b, 0, 0);
	pt_run_get(run, b, good, sizeof good);
	for (unsigned i = 0; i < N; i++)
		want[i] = 1;
	pt_run_same32(run, "block of thread", good, want, N);
	pt_run_line(run, "huge", 1, 1, a, 0, 0, 0);
	pt_run_get(run, a, &huge, 8);
	if (pt_run_ok(run) && huge)
		pt_run_fail(run, "malloc of 1 TiB gave 0x%" PRIx64, huge);
	return pt_run_ok(run);
}

/*
 * Statements that make the context unusable, and the error. %l1 is the parameter p0, a valid
 * buffer; %q1 is true in one thread. Loads are volatile: ptxas removes others, as nothing uses them.
 */
static const struct fault {
	const char *name, *text;
	CUresult want;
} faults[] = {
	{ "trap", "	trap;\n", CUDA_ERROR_LAUNCH_FAILED },
	{ "load from null", "	mov.u64 %l2, 0;\n	ld.volatile.global.u32 %r1, [%l2];\n",
		CUDA_ERROR_ILLEGAL_ADDRESS },
	{ "store far away", "	mov.u64 %l2, 0xdead00000000;\n	st.global.u32 [%l2], %r1;\n",
		CUDA_ERROR_ILLEGAL_ADDRESS },
	{ "generic store far away",
		"	mov.u64 %l2, 0x7ead00000000beef;\n	st.u8 [%l2], %r1;\n",
		CUDA_ERROR_ILLEGAL_ADDRESS },
	{ "atomic on null", "	mov.u64 %l2, 16;\n	atom.global.add.u32 %r1, [%l2], 1;\n",
		CUDA_ERROR_ILLEGAL_ADDRESS },
	{ "vector load far away",
		"	mov.u64 %l2, 0x30;\n	ld.volatile.global.v4.u32 {%r1, %r2, %r3, %r4}, "
		"[%l2];\n",
		CUDA_ERROR_ILLEGAL_ADDRESS },
	{ "misaligned load", "	ld.volatile.global.u32 %r1, [%l1+2];\n",
		CUDA_ERROR_MISALIGNED_ADDRESS },
	{ "misaligned store of 8 bytes", "	st.global.u64 [%l1+4], %l1;\n",
		CUDA_ERROR_MISALIGNED_ADDRESS },
	{ "misaligned vector", "	st.global.v4.u32 [%l1+8], {%r1, %r2, %r3, %r4};\n",
		CUDA_ERROR_MISALIGNED_ADDRESS },
	{ "misaligned shared load",
		"	mov.u32 %r2, room;\n	ld.volatile.shared.u64 %l3, [%r2+4];\n",
		CUDA_ERROR_MISALIGNED_ADDRESS },
	{ "misaligned atomic", "	atom.global.add.u64 %l3, [%l1+4], 1;\n",
		CUDA_ERROR_MISALIGNED_ADDRESS },
	{ "shared store out of bounds",
		"	mov.u32 %r2, 0x00f00000;\n	st.shared.u32 [%r2], %r1;\n",
		CUDA_ERROR_ILLEGAL_ADDRESS },
	{ "call of address 0",
		"	mov.u64 %l2, 0;\n	{\nP: .callprototype _ ();\n	call %l2, P;\n	}\n"
		"	st.global.u64 [%l1], %l2;\n",
		CUDA_ERROR_UNKNOWN },
};
#define N_FAULTS (sizeof faults / sizeof faults[0])

static bool after_fault(struct pt_run *run, CUresult want)
{
	CUdeviceptr p = 0;
	CUresult again = run->d->ctx_sync(), alloc = run->d->mem_alloc(&p, 64);
	if (run->error != want && !(want == CUDA_ERROR_UNKNOWN && run->error))
		return false; /* run->message already contains the error */
	if (again != run->error || alloc != run->error)
		return pt_run_fail(run, "after error %d later calls gave %d and %d",
			(int)run->error, (int)again, (int)alloc);
	free(run->message);
	run->message = NULL;
	return true;
}

static bool run_fault(struct pt_run *run)
{
	const struct fault *f = &faults[run->c->arg[0]];
	CUdeviceptr a = pt_run_put(run, NULL, 4096);
	pt_run_line(run, "fault", 2, 64, a, 0, 0, 0);
	if (pt_run_ok(run))
		return pt_run_fail(run, "no error, expected %d", (int)f->want);
	return after_fault(run, f->want);
}

static char *fault_text(const struct fault *f)
{
	return pt_format("%s%s%s",
		PT_ENTRY("fault") "{\n	.shared .align 16 .b8 room[64];\n" PT_PROLOGUE
				  "	mov.u64 %l1, %p0;\n	setp.eq.u32 %q1, %i, 37;\n"
				  "	mov.u32 %r1, 1;\n"
				  "	mov.u32 %r2, 2;\n	mov.u32 %r3, 3;\n"
				  "	mov.u32 %r4, 4;\n	@!%q1 bra OUT;\n",
		f->text, "OUT:\n	ret;\n}\n");
}

static char *assert_text(void)
{
	struct pt_text t = { 0 };
	pt_text_add(&t,
		".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param "
		".b64 n, .param .b64 s);\n");
	emit_string(&t, "message", "answer == 42");
	emit_string(&t, "file", "deep_thought.cu");
	emit_string(&t, "function", "void think(int)");
	pt_text_add(&t, "%s",
		PT_ENTRY("fault") "{\n" PT_PROLOGUE
				  "	setp.ne.u32 %q1, %i, 101;\n	@%q1 bra OUT;\n"
				  "	mov.u64 %l1, message;\n	mov.u64 %l2, file;\n"
				  "	mov.u64 %l3, function;\n	cvta.global.u64 %l1, %l1;\n"
				  "	cvta.global.u64 %l2, %l2;\n"
				  "	cvta.global.u64 %l3, %l3;\n	{\n	.param .b64 a;\n"
				  "	.param .b64 b;\n	.param .b32 c;\n"
				  "	.param .b64 d;\n	.param .b64 e;\n"
				  "	st.param.b64 [a], %l1;\n	st.param.b64 [b], %l2;\n"
				  "	st.param.b32 [c], 75;\n	st.param.b64 [d], %l3;\n	"
				  "st.param.b64 [e], 1;\n"
				  "	call.uni __assertfail, (a, b, c, d, e);\n	"
				  "}\nOUT:\n	ret;\n}\n");
	return t.p;
}

static bool run_assert(struct pt_run *run)
{
	pt_run_line(run, "fault", 2, 64, 0, 0, 0, 0);
	if (pt_run_ok(run))
		return pt_run_fail(run, "no error, expected %d", CUDA_ERROR_ASSERT);
	return after_fault(run, CUDA_ERROR_ASSERT);
}

static bool check_assert(struct pt_run *run, const char *out, const char *err)
{
	static const char want[] = "deep_thought.cu:75: void think(int): block: [1,0,0], thread: "
				   "[37,0,0] Assertion `answer == 42` failed.";
	(void)out;
	return strstr(err, want) ? true : pt_run_fail(run, "stderr: \"%.300s\"", err);
}

/* Texts that are not PTX: loading fails without other effects. */
static const struct {
	const char *name, *text;
	CUresult want;
} refusals[] = {
	{ "empty text", "", CUDA_ERROR_INVALID_PTX },
	{ "no PTX at all", "int main(void) { return 0; }", CUDA_ERROR_INVALID_PTX },
	{ "version of the future",
		".version 99.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n",
		CUDA_ERROR_UNSUPPORTED_PTX_VERSION },
	{ "no semicolon", PT_HEADER ".visible .entry k() { .reg .b32 %r; mov.b32 %r, 1 ret; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "no closing brace", PT_HEADER ".visible .entry k() { ret;\n", CUDA_ERROR_INVALID_PTX },
	{ "unknown opcode",
		PT_HEADER ".visible .entry k() { .reg .b32 %r; frobnicate.b32 %r, 1; ret; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "unknown register", PT_HEADER ".visible .entry k() { mov.b32 %r, 1; ret; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "unknown label", PT_HEADER ".visible .entry k() { bra NOWHERE; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "label twice", PT_HEADER ".visible .entry k() { L: bra L; L: ret; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "too few operands",
		PT_HEADER ".visible .entry k() { .reg .b32 %r; add.u32 %r, 1; ret; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "operand of the wrong size",
		PT_HEADER ".visible .entry k() { .reg .b64 %r; add.u32 %r, %r, 1; ret; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "type that the opcode lacks",
		PT_HEADER ".visible .entry k() { .reg .b32 %r; and.f32 %r, %r, %r; ret; }\n",
		CUDA_ERROR_INVALID_PTX },
	{ "entry twice", PT_HEADER ".visible .entry k() { ret; }\n.visible .entry k() { ret; }\n",
		CUDA_ERROR_INVALID_PTX },
};
#define N_REFUSALS (sizeof refusals / sizeof refusals[0])

static bool run_refusal(struct pt_run *run)
{
	CUmodule module;
	CUresult r = pt_driver_load(run->d, refusals[run->c->arg[0]].text, &module);
	if (!r)
		run->d->module_unload(module);
	/* a driver may find by the first bytes that this is not an image of any kind */
	if (r != refusals[run->c->arg[0]].want &&
		!(r == CUDA_ERROR_INVALID_IMAGE && run->c->arg[0] < 2))
		return pt_run_fail(run, "cuModuleLoadDataEx gave %d, expected %d", (int)r,
			(int)refusals[run->c->arg[0]].want);
	return true;
}

static void add_refusals(struct pt_suite *s)
{
	for (size_t i = 0; i < N_REFUSALS; i++) {
		char *name = pt_format("refused: %s", refusals[i].name);
		pt_case_add(s, run_refusal, name, NULL)->arg[0] = (int)i;
		free(name);
	}
}

static void add_faults(struct pt_suite *s)
{
	for (size_t i = 0; i < N_FAULTS; i++) {
		char *name = pt_format("fault: %s", faults[i].name), *text = fault_text(&faults[i]);
		struct pt_case *c = pt_case_add(s, run_fault, name, text);
		c->child = true;
		c->arg[0] = (int)i;
		free(name);
		free(text);
	}
	char *text = assert_text();
	struct pt_case *c = pt_case_add(s, run_assert, "__assertfail", text);
	c->child = true;
	c->check = check_assert;
	free(text);
}

void pt_group_runtime(struct pt_suite *s)
{
	for (size_t i = 0; i < N_PRINTS; i++) {
		char *name = pt_format(
			"vprintf %.*s", (int)strcspn(prints[i].format, "\n%"), prints[i].format);
		char *text = print_text(&prints[i]);
		struct pt_case *c = pt_case_add(s, run_print, name, text);
		c->child = true;
		c->check = check_print;
		c->arg[0] = (int)i;
		free(name);
		free(text);
	}
	char *text = crowd_text();
	struct pt_case *c = pt_case_add(s, run_crowd, "vprintf from many threads", text);
	c->child = true;
	c->check = check_crowd;
	free(text);
	pt_case_add(s, run_heap, "malloc and free", heap_text);
	add_faults(s);
	add_refusals(s);
}
