/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obi_image over images that nvcc built from kernels.cu: every container and codec must yield the
 * same kernels. Arguments: the cubins and PTX, then the fatbins. Without them only the cases that
 * need no toolkit run.
 */
#include "image/image.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_files;
static char **files;

static uint8_t *slurp(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	CHECK(file != NULL);
	CHECK_INT(fseek(file, 0, SEEK_END), 0);
	long size = ftell(file);
	CHECK(size > 0);
	rewind(file);
	/*
	 * exactly as long as the file, so that a sanitizer detects a read past its end; PTX gets
	 * the NUL that the API requires
	 */
	uint8_t *data = malloc((size_t)size + 1);
	CHECK(data != NULL);
	CHECK_INT(fread(data, 1, (size_t)size, file), size);
	data[size] = 0;
	fclose(file);
	*ret_size = (size_t)size;
	return data;
}

static void expect_kernel(const struct obi_symbols *symbols, const char *name, uint32_t n,
	const struct obi_param *params, uint32_t bytes, uint32_t shared)
{
	const struct obi_kernel *kernel = obi_symbols_kernel(symbols, name);

	CHECK(kernel != NULL);
	CHECK_STR(kernel->name, name);
	CHECK_INT(kernel->n_params, n);
	for (uint32_t i = 0; i < n; i++) {
		CHECK_INT(kernel->params[i].offset, params[i].offset);
		CHECK_INT(kernel->params[i].size, params[i].size);
	}
	CHECK_INT(kernel->param_bytes, bytes);
	CHECK_INT(kernel->static_shared, shared);
}

static void expect_variable(const struct obi_symbols *symbols, const char *name, uint64_t size,
	bool is_const, bool is_managed)
{
	const struct obi_variable *variable = obi_symbols_variable(symbols, name);

	CHECK(variable != NULL);
	CHECK_INT(variable->size, size);
	CHECK_INT(variable->is_const, is_const);
	CHECK_INT(variable->is_managed, is_managed);
}

static void expect_symbols(const struct obi_symbols *symbols, bool is_cubin)
{
	static const struct obi_param mixed[] = { { 0, 1 }, { 8, 40 }, { 0x30, 2 }, { 0x40, 16 },
		{ 0x50, 8 } };
	static const struct obi_param bounded[] = { { 0, 4 }, { 4, 1 } }, pointer[] = { { 0, 8 } };
	static const struct obi_param wide[] = { { 0, 5000 }, { 5000, 8 } },
				      fixed[] = { { 0, 8 }, { 8, 1 } };

	CHECK_INT(symbols->n_kernels, 6);
	expect_kernel(symbols, "mixed", 5, mixed, 0x58, 77 * 4);
	expect_kernel(symbols, "bounded", 2, bounded, 5, 0);
	expect_kernel(symbols, "calls", 1, pointer, 8, 33 * 4);
	expect_kernel(symbols, "nothing", 0, NULL, 0, 0);
	expect_kernel(symbols, "wide", 2, wide, 5008, 0);
	expect_kernel(symbols, "fixed", 2, fixed, 9, 0);
	CHECK_INT(obi_symbols_kernel(symbols, "bounded")->max_threads, 128);
	CHECK_INT(obi_symbols_kernel(symbols, "mixed")->max_threads, 0);
	bool exact = symbols->arch >= 90;
	CHECK_INT(obi_symbols_kernel(symbols, "fixed")->reqntid[0], exact ? 32 : 0);
	CHECK_INT(obi_symbols_kernel(symbols, "fixed")->reqntid[1], exact ? 2 : 0);
	CHECK_INT(obi_symbols_kernel(symbols, "fixed")->reqntid[2], exact ? 1 : 0);
	CHECK((obi_symbols_kernel(symbols, "mixed")->registers > 0) == is_cubin);
	expect_variable(symbols, "counter", 4, false, false);
	expect_variable(symbols, "table", 400, false, false);
	expect_variable(symbols, "constants", 16, true, false);
	expect_variable(symbols, "hidden", 4, false, false);
	expect_variable(symbols, "managed", 4, false, true);
	CHECK_INT(symbols->n_variables, 5);
	CHECK(symbols->prints);
	CHECK(obi_symbols_kernel(symbols, "mixe") == NULL);
	CHECK(obi_symbols_variable(symbols, "") == NULL);
	CHECK_INT(symbols->ptx_version >= 70, !is_cubin);
}

/* The symbols of refs.ptx. */
static void expect_refs(const struct obi_symbols *symbols)
{
	CHECK_INT(symbols->n_refs, 4);
	CHECK_STR(symbols->refs[0].name, "image"); /* sorted */
	CHECK_STR(obi_symbols_ref(symbols, "image", false)->name, "image");
	CHECK(obi_symbols_ref(symbols, "unused", false) != NULL);
	CHECK(obi_symbols_ref(symbols, "listed", false) != NULL);
	CHECK(obi_symbols_ref(symbols, "screen", true) != NULL);
	CHECK(obi_symbols_ref(symbols, "screen", false) == NULL);
	CHECK(obi_symbols_ref(symbols, "image", true) == NULL);
	CHECK(obi_symbols_ref(symbols, "counter", false) == NULL);
	CHECK(obi_symbols_ref(symbols, "imag", false) == NULL);
	/* a reference is no variable */
	CHECK_INT(symbols->n_variables, 1);
	expect_variable(symbols, "counter", 4, false, false);
	CHECK_INT(symbols->variable_bytes, 4);
	CHECK(obi_symbols_kernel(symbols, "fetch") != NULL);
}

/* Opens one file and checks each of its entries' symbols. */
static void check_file(const char *path)
{
	size_t size;
	uint8_t *data = slurp(path, &size);
	struct obi_image image;

	CHECK_INT(obi_image_open_bounded(data, size, &image), OB_ERR_NONE);
	CHECK(image.n_entries >= 1);
	for (size_t i = 0; i < image.n_entries; i++) {
		struct obi_symbols symbols;
		const uint8_t *payload;
		size_t payload_size;
		bool owned;

		CHECK_INT(obi_entry_payload(&image.entries[i], &payload, &payload_size, &owned),
			OB_ERR_NONE);
		CHECK_INT(owned, image.entries[i].codec != OBI_RAW);
		CHECK_INT(obi_symbols_read(payload, payload_size, &symbols), OB_ERR_NONE);
		if (strstr(path, "refs"))
			expect_refs(&symbols);
		else
			expect_symbols(&symbols, image.entries[i].kind == OBI_ELF);
		CHECK_INT(symbols.arch, image.entries[i].arch);
		if (image.entries[i].kind == OBI_ELF)
			CHECK_RANGE(obi_elf_size(payload, payload_size), payload_size - 7,
				payload_size);
		obi_symbols_fini(&symbols);
		if (owned)
			free((void *)payload);
	}
	obi_image_fini(&image);
	free(data);
}

TEST(files)
{
	if (!n_files)
		TEST_SKIP("no files were given: the build has no nvcc");
	for (int i = 0; i < n_files; i++)
		check_file(files[i]);
}

/*
 * Truncated or changed input must not make the readers access other memory. Effective under a
 * sanitizer.
 */
TEST(damage)
{
	unsigned opened = 0;

	if (!n_files)
		TEST_SKIP("no files were given: the build has no nvcc");
	for (int i = 0; i < n_files; i++) {
		size_t size;
		uint8_t *data = slurp(files[i], &size);
		unsigned seed = 12345;

		for (unsigned round = 0; round < 400; round++) {
			struct obi_image image;
			size_t cut = size;

			seed = seed * 1103515245u + 12345;
			if (round % 2)
				cut = (seed >> 4) % size;
			uint8_t *copy = malloc(cut ? cut : 1);
			memcpy(copy, data, cut);
			for (unsigned k = 0; k < round % 5 && cut; k++) {
				seed = seed * 1103515245u + 12345;
				/* mostly the headers, where the lengths are */
				copy[(seed >> 3) %
					(k % 2                       ? cut
							: cut < 4096 ? cut
								     : 4096)] ^=
					(uint8_t)(seed >> 17);
			}
			if (!obi_image_open_bounded(copy, cut, &image)) {
				opened++;
				for (size_t e = 0; e < image.n_entries; e++) {
					struct obi_symbols symbols;
					const uint8_t *payload;
					size_t payload_size;
					bool owned;

					if (obi_entry_payload(&image.entries[e], &payload,
						    &payload_size, &owned))
						continue;
					if (!obi_symbols_read(payload, payload_size, &symbols))
						obi_symbols_fini(&symbols);
					if (owned)
						free((void *)payload);
				}
				obi_image_fini(&image);
			}
			free(copy);
		}
		free(data);
	}
	CHECK(opened > 0);
}

TEST(wrapper)
{
	static const char ptx[] = "// made by hand\n.version 7.8\n.target sm_75, "
				  "debug\n.address_size 64\n.visible .entry k() { ret; }\n";
	struct ob_fatbin_wrapper wrapper = { .magic = 0x466243b1, .version = 1, .data = ptx };
	struct obi_image image;

	CHECK_INT(obi_image_open(&wrapper, &image), OB_ERR_NONE);
	CHECK(image.is_wrapper);
	CHECK(!image.is_fatbin);
	CHECK_INT(image.n_entries, 1);
	CHECK_INT(image.entries[0].arch, 75);
	CHECK_INT(image.entries[0].size, sizeof(ptx) - 1);
	obi_image_fini(&image);
	wrapper.data = NULL;
	CHECK_INT(obi_image_open(&wrapper, &image), OB_ERR_IMAGE_DAMAGED);
	CHECK_INT(obi_image_open("nonsense", &image), OB_ERR_IMAGE_UNKNOWN);
	CHECK_INT(obi_image_open("", &image), OB_ERR_IMAGE_UNKNOWN);
	CHECK_INT(obi_image_open("\x7fTileIR", &image), OB_ERR_IMAGE_TILE_IR);
	CHECK_INT(obi_image_open_bounded("\x7fTileIR", 7, &image), OB_ERR_IMAGE_UNKNOWN);
	CHECK_INT(obi_image_open(NULL, &image), OB_ERR_ARGUMENT);
}

static const struct obi_entry *pick(struct obi_entry *entries, size_t n, uint32_t cc, bool ptx_only)
{
	struct obi_image image = { .n_entries = n, .entries = entries };

	return obi_image_select(&image, cc, ptx_only);
}

TEST(select)
{
	struct obi_entry e[] = {
		{ .kind = OBI_PTX, .arch = 50 },
		{ .kind = OBI_ELF, .arch = 80 },
		{ .kind = OBI_ELF, .arch = 86 },
		{ .kind = OBI_ELF, .arch = 90, .arch_specific = true },
		{ .kind = OBI_PTX, .arch = 90 },
		{ .kind = OBI_ELF, .arch = 100, .arch_family = true },
		{ .kind = OBI_PTX, .arch = 121, .arch_specific = true },
	};
	char text[256];

	CHECK(pick(e, 7, 80, false) == &e[1]);
	CHECK(pick(e, 7, 89, false) == &e[2]);
	CHECK(pick(e, 7, 90, false) == &e[3]);
	CHECK(pick(e, 7, 90, true) == &e[4]);
	CHECK(pick(e, 7, 75, false) == &e[0]);
	CHECK(pick(e, 7, 103, false) == &e[5]);
	CHECK(pick(e, 7, 120, false) == &e[4]);
	CHECK(pick(e, 7, 121, true) == &e[6]);
	CHECK(pick(e, 7, 130, true) == &e[4]);
	CHECK(pick(e + 5, 2, 130, true) == &e[6]);
	CHECK(pick(e + 5, 2, 130, false) == NULL);
	CHECK(pick(e + 5, 2, 120, true) == NULL);
	CHECK(pick(e + 1, 3, 70, false) == NULL);
	CHECK(pick(e + 1, 2, 90, false) == NULL);
	CHECK(pick(e + 1, 3, 90, true) == NULL);
	struct obi_image image = { .n_entries = 3, .entries = e + 1 };
	obi_image_describe(&image, text, sizeof(text));
	CHECK_STR(text, "sm_80, sm_86, sm_90a (no PTX)");
	image.entries = e;
	obi_image_describe(&image, text, sizeof(text));
	CHECK_STR(text, "PTX for compute_50, sm_80, sm_86");
	obi_image_describe(&image, text, 8);
	CHECK_INT(strlen(text), 7);
}

static enum ob_err scan_text(const char *text, struct obi_symbols *ret)
{
	size_t size = strlen(text) + 64;
	char *head = malloc(size);

	if (!head)
		abort();
	snprintf(head, size, ".version 8.0\n.target sm_90a\n.address_size 64\n%s", text);
	enum ob_err err = obi_symbols_read(head, strlen(head), ret);
	free(head);
	return err;
}

TEST(ptx_forms)
{
	struct obi_symbols s;
	const struct obi_kernel *k;

	CHECK_INT(
		scan_text("/* .entry no(.param .u32 x) {} */ .extern .shared .align 16 .b8 "
			  "dynamic[];\n"
			  ".shared .align 8 .b8 used[24]; .shared .align 4 .b8 unused[4096];\n"
			  ".extern .global .u32 elsewhere; .visible .global .align 16 .v4 .f32 "
			  "vec[2][3] = {1, 2, {3}}, other;\n"
			  ".func deep() { ld.shared.u32 %r1, [used+4]; }\n"
			  ".func (.reg .u32 r) middle(.reg .u64 a) { .shared .b16 own[5]; call "
			  "deep, (); }\n"
			  ".visible .entry a(.param .u64 .ptr .global .align 64 p, .param .align 4 "
			  ".b8 s[3], .param .u16 h, .param .v4 .f32 v)\n"
			  ".maxntid 16, 4\n.minnctapersm 2\n{ .reg .b32 %r<4>; { .shared .f64 d; } "
			  "call (r), middle, (p); ret; }\n"
			  ".weak .entry b .reqntid 0x20 { ret; }\n.visible .entry declared(.param "
			  ".u32 x);\n",
			&s),
		OB_ERR_NONE);
	CHECK_INT(s.n_kernels, 2);
	k = obi_symbols_kernel(&s, "a");
	CHECK_INT(k->n_params, 4);
	CHECK_INT(k->params[1].offset, 8);
	CHECK_INT(k->params[1].size, 3);
	CHECK_INT(k->params[2].offset, 12);
	CHECK_INT(k->params[3].offset, 16);
	CHECK_INT(k->param_bytes, 32);
	CHECK_INT(k->max_threads, 64);
	/* 8 bytes of its own, then 10 of middle, then 24 of used, each aligned to 16 */
	CHECK_RANGE(k->static_shared, 8 + 10 + 24, 3 * 32);
	k = obi_symbols_kernel(&s, "b");
	CHECK_INT(k->reqntid[0], 32);
	CHECK_INT(k->reqntid[1], 1);
	CHECK_INT(k->static_shared, 0);
	CHECK_INT(s.n_variables, 2);
	CHECK_INT(obi_symbols_variable(&s, "vec")->size, 96);
	CHECK_INT(obi_symbols_variable(&s, "other")->size, 16);
	CHECK(!s.prints);
	CHECK_INT(s.arch, 90);
	CHECK_INT(s.ptx_version, 80);
	obi_symbols_fini(&s);
}

/*
 * Invalid PTX is not reported here but by the compiler. Symbols before the error are found, the
 * invalid one is not.
 */
static bool plain(const char *module)
{
	struct obi_symbols s;
	char text[1024];
	bool is;

	snprintf(text, sizeof text, ".version 8.0\n.target sm_90\n.address_size 64\n%s", module);
	CHECK_INT(obi_symbols_read(text, strlen(text), &s), OB_ERR_NONE);
	is = s.plain;
	obi_symbols_fini(&s);
	return is;
}

static bool plain_body(const char *body)
{
	char text[512];

	snprintf(text, sizeof text, ".visible .entry k(.param .u64 p) { %s ret; }\n", body);
	return plain(text);
}

/*
 * Compiled ordinary code counts as plain. One unknown word makes the module not plain, so that the
 * server must be asked.
 */
TEST(ptx_references)
{
	struct obi_symbols s;

	CHECK_INT(scan_text(".visible .global .texref a = { addr_mode_0 = wrap, width = 5 }, b;\n"
			    ".global .surfref s[1], one; .extern .global .texref far;\n"
			    ".global .samplerref sampler; .global .texref many[3];\n"
			    ".tex .u32 old; .global .b64 last;\n",
			  &s),
		OB_ERR_NONE);
	CHECK_INT(s.n_refs, 6);
	CHECK(obi_symbols_ref(&s, "a", false) && obi_symbols_ref(&s, "b", false));
	CHECK(obi_symbols_ref(&s, "s", true) && obi_symbols_ref(&s, "one", true));
	CHECK(obi_symbols_ref(&s, "far", false) && obi_symbols_ref(&s, "old", false));
	CHECK(!obi_symbols_ref(&s, "sampler", false) && !obi_symbols_ref(&s, "many", false));
	CHECK_INT(s.n_variables, 1);
	CHECK(obi_symbols_variable(&s, "last"));
	obi_symbols_fini(&s);
	CHECK_INT(scan_text("", &s), OB_ERR_NONE);
	CHECK(s.n_refs == 0 && !obi_symbols_ref(&s, "a", false));
	obi_symbols_fini(&s);
}

TEST(ptx_plain)
{
	static const char *const known[] = {
		"",
		".reg .b32 %r<4>; mov.u32 %r1, %tid.x;",
		"$L__BB0_1: @%p1 bra $L__BB0_1;",
		"@!%p1 bra.uni X; X:",
		"ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];",
		".loc 1 12 3\n add.f32 %f1, %f2, 0f3F800000;",
		"setp.gtu.and.f32 %p1, %f1, %f2, %p3;",
		"{ .param .b64 param0; st.param.b64 [param0+0], %rd1; }",
		".local .align 8 .b8 depot[16384];",
		".shared .align 4 .b8 s[49152]; ld.volatile.shared.u32 %r1, [s];",
		"mad.lo.cc.u32 %r1, %r2, %r3, %r4;",
		"shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;",
		"bar.sync 0;",
		"barrier.sync 0; barrier.sync.aligned 1, 64;",
		"atom.global.add.u32 %r1, [%rd1], 1;",
		";;",
		".pragma \"nounroll\";",
	};
	static const char *const unknown[] = {
		"no_such_instruction;",
		"wmma.mma.sync x;",
		"add.frob.u32 %r1, %r1, 1;",
		"add.f16 %h1, %h2, %h3;",
		"ld.global.b128 %rq1, [%rd1];",
		"ld .global.u32 %r1, [%rd1];",
		".frobnicate 1;",
		".local .align 8 .b8 depot[16385];",
		".shared .align 4 .b8 s[49153]; ld.shared.u32 %r1, [s];",
		"@%p1 frob;",
		"L: frob;",
		"barrier.cluster.arrive;",
		"cp.async.ca.shared.global [%r1], [%rd1], 4;",
		"prototype_0 : .callprototype ()_ (.param .b32 _);",
		"mov.u32. %r1, 0;",
		"0;",
		".loc 1 2 3, function_name f, inlined_at 1 2 3",
		"st.global.u32.u32.extra [%rd1], 1;",
		"tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1}];",
	};
	struct obi_symbols s;

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (!plain_body(known[i]))
			TEST_FAIL("not plain: %s", known[i]);
	for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
		if (plain_body(unknown[i]))
			TEST_FAIL("plain: %s", unknown[i]);
	CHECK(plain(".visible .global .align 4 .u32 x = 5; .const .b8 c[61440]; .extern "
		    ".shared .align 16 .b8 d[];\n"
		    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b); "
		    ".file 1 \"a.cu\"\n.section .debug_str { .b8 0 }\n"));
	CHECK_INT(scan_text("", &s), OB_ERR_NONE);
	CHECK(!s.plain); /* a target that not every device has */
	obi_symbols_fini(&s);
	CHECK(!plain(".const .b8 c[61441];"));
	CHECK(!plain(".extern .global .u32 elsewhere;"));
	CHECK(!(plain(".extern .func elsewhere();")));
	CHECK(!(plain(".visible .global .attribute(.managed) .u32 x;")));
	CHECK(!plain(".visible .global .texref t;"));
	CHECK(!(plain(".visible .global .u64 p = generic(x);")));
	CHECK(!plain("frobnicate"));
	CHECK(!plain(".alias a, b;"));
	CHECK(!(plain(".visible .entry k(.param .align 4 .b8 p[4100]) { ret; }")));
	CHECK(!(plain(".visible .entry k() { ret;")));
}

TEST(ptx_broken)
{
	static const char *bad[] = {
		".entry",
		".entry k(",
		".entry k(.param .u32",
		".entry k(.param .align 3 .b8 x[4]) {}",
		".entry k(.param x) {}",
		".func f(",
		".global .u32 ",
		".global .u32 x[",
		".entry k(.param .b8 x[0xffffffffffffffff][2]) {}",
	};
	struct obi_symbols s;
	char text[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), ".entry good(.param .u64 p) { ret; }\n%s", bad[i]);
		CHECK_INT(scan_text(text, &s), OB_ERR_NONE);
		CHECK_INT(s.n_kernels, 1);
		CHECK(obi_symbols_kernel(&s, "good") != NULL);
		obi_symbols_fini(&s);
	}
	/* a body without its end: the kernel is found; its code is not checked here */
	CHECK_INT(scan_text(".entry k(.param .u32 x) { ret;", &s), OB_ERR_NONE);
	CHECK_INT(obi_symbols_kernel(&s, "k")->param_bytes, 4);
	obi_symbols_fini(&s);
}

TEST(ptx_limits)
{
	struct obi_symbols s;
	char text[128];

	CHECK_INT(scan_text(".entry k(.param .b8 x[0xffffffffffffffff]) {}", &s), OB_ERR_LIMIT);
	/* the largest parameter block, and one byte more */
	snprintf(text, sizeof(text), ".entry k(.param .align 4 .b8 x[%u]) {}", OBI_PARAM_BYTES_MAX);
	CHECK_INT(scan_text(text, &s), OB_ERR_NONE);
	CHECK_INT(s.kernels[0].param_bytes, OBI_PARAM_BYTES_MAX);
	obi_symbols_fini(&s);
	snprintf(text, sizeof(text), ".entry k(.param .b8 x[%u]) {}", OBI_PARAM_BYTES_MAX + 1);
	CHECK_INT(scan_text(text, &s), OB_ERR_LIMIT);
	CHECK_INT(obi_symbols_read("plain text", 10, &s), OB_ERR_IMAGE_UNKNOWN);
}

int main(int argc, char **argv)
{
	n_files = argc - 1;
	files = argv + 1;
	return test_main(1, argv); /* the arguments are files */
}
