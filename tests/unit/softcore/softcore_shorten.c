/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The passes that make code shorter (softdevice/core/compile/shorten.h): kernels of random
 * statements compute the same with and without them, and faults name the same thread and address.
 */
#include <stdarg.h>

#include "base/opt.h"
#include "softdevice/core/code.h"
#include "softdevice/core/compile/builder.h"
#include "softdevice/core/ops.h"
#include "tests/unit/softcore/device.h"

#define THREADS  96u
#define BLOCKS   2u
#define CELLS    8192u /* of the input; indices are below 1024 */
#define STORES   24u   /* of each thread */
#define TEXT_MAX 65536u

static char text[TEXT_MAX];
static size_t text_size;
static uint64_t state;
/* numbers of the registers %v and %q that have a value here */
static unsigned values[512], n_values, predicates[512], n_predicates;
static unsigned fresh, labels, stores;

static unsigned pick(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 20) % n;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	text_size += (size_t)vsnprintf(text + text_size, TEXT_MAX - text_size, format, list);
	va_end(list);
	CHECK(text_size < TEXT_MAX);
}

/* A register that is written once, or one of the four that are written often. */
static const char *source(void)
{
	static char names[8][16];
	static unsigned next;
	char *name = names[next++ % 8];

	if (pick(3) == 0)
		snprintf(name, 16, "%%m%u", pick(4));
	else
		snprintf(name, 16, "%%v%u", values[pick(n_values)]);
	return name;
}

static void put_arithmetic(void)
{
	static const char *const operations[] = { "add.u32", "sub.u32", "mul.lo.u32", "and.b32",
		"xor.b32", "min.s32", "max.u32" };
	const char *operation = operations[pick(7)], *a = source(), *b = source();

	if (pick(4) == 0) {
		put("%s %%m%u, %s, %s;\n", operation, pick(4), a, b);
		return;
	}
	put("%s %%v%u, %s, %s;\n", operation, fresh, a, b);
	values[n_values++] = fresh++;
}

/*
 * A load at base + index * size, or at the sum of that and another invariant value. The index or
 * the address may change between its use and the load.
 */
static void put_load(void)
{
	static const char *const sizes[] = { "u32", "f32", "s32", "u8", "u16", "u64" };
	unsigned size = pick(6), bytes = size < 3 ? 4 : size == 3 ? 1 : size == 4 ? 2 : 8;
	unsigned factor = pick(4) ? bytes : 4, a = fresh++;
	const char *kind = pick(2) ? "s32" : "u32";

	put("and.b32 %%m4, %s, 1023;\n", source());
	if (kind[0] == 's')
		put("sub.u32 %%m4, %%m4, 512;\n");
	if (bytes > factor || (factor % bytes))
		factor = bytes;
	put("mul.wide.%s %%w%u, %%m4, %u;\nadd.s64 %%w%u, %%w%u, %%base;\n", kind, a, factor, a + 1,
		a);
	if (pick(4) == 0)
		put("mov.u32 %%m4, %s;\n", source());
	if (pick(4) == 0) {
		put("@%%q%u bra L%u;\nand.b32 %%m5, %s, 1023;\nmul.wide.u32 %%w%u, %%m5, "
		    "%u;\nadd.s64 %%w%u, %%w%u, %%base;\nL%u:\n",
			predicates[pick(n_predicates)], labels, source(), a, factor, a + 1, a,
			labels);
		labels++;
	}
	fresh = a + 2;
	if (pick(3) == 0) {
		put("add.s64 %%w%u, %%w%u, %%stride;\n", fresh, fresh - 1);
		fresh++;
	}
	if (bytes == 8) {
		put("ld.global.u64 %%w%u, [%%w%u+%u];\ncvt.u32.u64 %%v%u, %%w%u;\n", fresh,
			fresh - 1, 8 * pick(4), fresh + 1, fresh);
		fresh++;
	} else {
		put("ld.global.%s %%v%u, [%%w%u+%u];\n", size == 1 ? "b32" : sizes[size], fresh,
			fresh - 1, bytes * pick(4));
	}
	put("xor.b32 %%m%u, %%m%u, %%v%u;\n", pick(4), pick(4), fresh);
	values[n_values++] = fresh++;
}

static void put_store(void)
{
	unsigned a = fresh;

	if (stores >= STORES - 1)
		return;
	put("add.u32 %%v%u, %%index, %u;\nmul.wide.u32 %%w%u, %%v%u, 4;\nadd.s64 %%w%u, %%out, "
	    "%%w%u;\nst.global.u32 [%%w%u], %s;\n",
		a, stores++ * THREADS * BLOCKS, a, a, a + 1, a, a + 1, source());
	fresh += 2;
}

static void put_compare(void)
{
	static const char *const tests[] = { "eq.u32", "ne.s32", "lt.s32", "ge.u32", "gt.s32",
		"le.u32" };

	put("setp.%s %%q%u, %s, %s;\n", tests[pick(6)], fresh, source(), source());
	predicates[n_predicates++] = fresh++;
	put("@%%q%u add.u32 %%m%u, %%m%u, 1;\n", fresh - 1, pick(4), pick(4));
	if (pick(2)) {
		put("%s.pred %%q%u, %%q%u, %%q%u;\n", pick(2) ? "or" : "and", fresh,
			predicates[n_predicates - 1], predicates[pick(n_predicates)]);
		predicates[n_predicates++] = fresh++;
		put("@%%q%u add.u32 %%m%u, %%m%u, %%index;\n", fresh - 1, pick(4), pick(4));
	}
}

/* What all threads share, and the index of a thread. */
static void put_shared(void)
{
	static const char axes[] = "xyz";
	char axis = axes[pick(3)];

	switch (pick(3)) {
	case 0:
		put("ld.param.u32 %%v%u, [n];\nadd.u32 %%v%u, %%v%u, %u;\n", fresh, fresh + 1,
			fresh, pick(9));
		break;
	case 1:
		put("mov.u32 %%v%u, %%ntid.%c;\nshl.b32 %%v%u, %%v%u, %u;\n", fresh, axis,
			fresh + 1, fresh, pick(4));
		break;
	default:
		put("mov.u32 %%v%u, %%ntid.%c;\nmov.u32 %%v%u, %%ctaid.%c;\nmov.u32 %%v%u, "
		    "%%tid.%c;\nmad.lo.u32 %%v%u, %%v%u, %%v%u, %%v%u;\n",
			fresh, axis, fresh + 1, axis, fresh + 2, axis, fresh + 3, fresh + 1, fresh,
			fresh + 2);
		fresh += 2;
	}
	values[n_values++] = fresh + 1;
	fresh += 2;
}

static void put_statements(unsigned n, unsigned depth);

/* Statements that some threads skip, or that are repeated. */
static void put_block(unsigned depth)
{
	unsigned label = labels++, v = n_values, q = n_predicates;
	bool loop = pick(3) == 0;

	if (loop)
		put("mov.u32 %%c%u, 0;\nL%u:\n", depth, label);
	else
		put("@%s%%q%u bra L%u;\n", pick(2) ? "!" : "", predicates[pick(n_predicates)],
			label);
	put_statements(2 + pick(6), depth + 1);
	if (loop)
		put("add.u32 %%c%u, %%c%u, 1;\nsetp.lt.u32 %%loop, %%c%u, %u;\n@%%loop bra L%u;\n",
			depth, depth, depth, 2 + pick(3), label);
	else
		put("L%u:\n", label);
	n_values = v;
	n_predicates = q;
}

static void put_statements(unsigned n, unsigned depth)
{
	while (n--) {
		switch (pick(9)) {
		case 0:
		case 1:
			put_arithmetic();
			break;
		case 2:
		case 3:
			put_load();
			break;
		case 4:
			put_compare();
			break;
		case 5:
			put_store();
			break;
		case 6:
			put_shared();
			break;
		case 7:
			put("@%%q%u add.u32 %%m%u, %s, %s;\n", predicates[pick(n_predicates)],
				pick(4), source(), source());
			break;
		default:
			if (depth < 3)
				put_block(depth);
		}
	}
}

static void make_kernel(unsigned seed)
{
	state = seed * 0x9e3779b97f4a7c15ull + 1;
	text_size = n_values = n_predicates = labels = stores = 0;
	fresh = 1;
	put(HEAD ".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {\n"
		 ".reg .b32 %%v<2000>, %%m<6>, %%c<4>, %%index; .reg .b64 %%w<2000>, %%out, %%in, "
		 "%%base, %%stride;\n.reg .pred %%q<2000>, %%loop;\n"
		 "ld.param.u64 %%in, [in]; cvta.to.global.u64 %%base, %%in; ld.param.u64 %%out, "
		 "[out];\nld.param.u32 %%v0, [n]; mul.wide.s32 %%stride, %%v0, 8;\n"
		 "mov.u32 %%m0, %%ctaid.x; mov.u32 %%m1, %%ntid.x; mov.u32 %%m2, %%tid.x;\n"
		 "mad.lo.s32 %%index, %%m0, %%m1, %%m2; mov.u32 %%m3, 7; mov.u32 %%m4, 0; mov.u32 "
		 "%%m5, 0;\n"
		 "setp.lt.s32 %%q0, %%index, 100;\n");
	values[n_values++] = 0;
	predicates[n_predicates++] = 0;
	put_statements(40, 0);
	for (int i = 1; i < 4; i++)
		put("xor.b32 %%m0, %%m0, %%m%d;\n", i);
	put("mul.wide.u32 %%w0, %%index, 4;\nadd.s64 %%w0, %%w0, %%out;\n"
	    "st.global.u32 [%%w0+%u], %%m0;\nret;\n}\n",
		(STORES - 1) * THREADS * BLOCKS * 4);
}

static void run_kernel(uint32_t *out, const uint32_t *in)
{
	struct {
		uint64_t out, in;
		uint32_t n;
	} params = { (uintptr_t)out, (uintptr_t)(in + CELLS / 2), 17 };
	struct obd_program *p = device_load_good(text);

	memset(out, 0, STORES * THREADS * BLOCKS * sizeof(*out));
	CHECK_INT(device_run(p, "k", BLOCKS, THREADS, &params), CUDA_SUCCESS);
	device_end(p);
}

TEST(random_kernels_compute_the_same)
{
	size_t bytes = STORES * THREADS * BLOCKS * sizeof(uint32_t);
	uint32_t *in, *out, *want = malloc(bytes);

	device_env();
	in = device_take(NULL, CELLS * sizeof(*in), 64);
	out = device_take(NULL, bytes, 64);
	for (uint32_t i = 0; i < CELLS; i++)
		in[i] = i * 2654435761u;
	for (unsigned seed = 1; seed <= 400 / TEST_SLOWER; seed++) {
		size_t used = window_used;

		make_kernel(seed);
		ob_opt_set(OB_OPT_INVARIANT, false);
		ob_opt_set(OB_OPT_FUSE, false);
		run_kernel(out, in);
		memcpy(want, out, bytes);
		for (unsigned on = 1; on < 4; on++) {
			ob_opt_set(OB_OPT_INVARIANT, on & 1);
			ob_opt_set(OB_OPT_FUSE, on & 2);
			run_kernel(out, in);
			if (memcmp(out, want, bytes) != 0)
				fprintf(stderr, "seed %u, switches %u:\n%s", seed, on, text);
			CHECK(memcmp(out, want, bytes) == 0);
		}
		window_used = used;
	}
	free(want);
}

/* ---- what the passes are for ---- */

#define SAXPY                                                                             \
	".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {\n"           \
	".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p;\n"                              \
	"ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.u32 %r0, [n];\n"       \
	"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"             \
	"mad.lo.s32 %r4, %r1, %r2, %r3; add.s32 %r4, %r4, %r0;\n"                         \
	"cvta.to.global.u64 %d2, %d1; mul.wide.s32 %d3, %r4, 4; add.s64 %d4, %d2, %d3;\n" \
	"ld.global.u32 %r5, [%d4]; cvta.to.global.u64 %d5, %d0; add.s64 %d6, %d5, %d3;\n" \
	"st.global.u32 [%d6], %r5; ret; }\n"

struct copy_params {
	uint64_t out, in;
	uint32_t n;
};

/* The number of instructions that one warp executes for the kernel above. */
static uint64_t copy_length(bool invariant, bool fuse, uint32_t *out, const uint32_t *in)
{
	struct copy_params params = { (uintptr_t)out, (uintptr_t)in, 0 };

	ob_opt_set(OB_OPT_INVARIANT, invariant);
	ob_opt_set(OB_OPT_FUSE, fuse);
	struct obd_program *p = device_load_good(HEAD SAXPY);
	uint64_t before = obd_core_lane_instructions();

	CHECK_INT(device_run(p, "k", 1, 32, &params), CUDA_SUCCESS);
	before = (obd_core_lane_instructions() - before) / 32;
	device_end(p);
	for (uint32_t i = 0; i < 32; i++)
		CHECK_INT(out[i], i + 5);
	return before;
}

TEST(each_pass_makes_code_shorter)
{
	uint32_t *in, *out;

	device_env();
	in = device_take(NULL, 128, 64);
	out = device_take(NULL, 128, 64);
	for (uint32_t i = 0; i < 32; i++)
		in[i] = i + 5;
	uint64_t none = copy_length(false, false, out, in),
		 first = copy_length(true, false, out, in),
		 second = copy_length(false, true, out, in),
		 both = copy_length(true, true, out, in);

	CHECK(first < none);
	CHECK(second < none);
	CHECK(both < first && both < second);
	/* the index, its sum with n, a load, a store, ret */
	CHECK_INT(both, 5);
}

#define VECTORS                                                                           \
	".visible .entry k(.param .u64 out, .param .u64 in, .param .u32 n) {\n"           \
	".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>;\n"                            \
	"ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in];\n"                              \
	"mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"             \
	"mad.lo.s32 %r4, %r1, %r2, %r3; shl.b32 %r4, %r4, 2; mul.wide.s32 %d3, %r4, 4;\n" \
	"add.s64 %d4, %d1, %d3; ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d4];\n"          \
	"add.s64 %d6, %d0, %d3; st.global.v4.f32 [%d6], {%f3, %f2, %f1, %f0}; ret; }\n"

/* The elements of a vector stay together: one handler loads or stores them all. */
TEST(vectors_stay_whole)
{
	ob_opt_set(OB_OPT_INVARIANT, true);
	ob_opt_set(OB_OPT_FUSE, true);
	struct obd_program *p = device_load_good(HEAD VECTORS);
	const struct obd_func *f = p->funcs[0];
	unsigned n_loads = 0, n_stores = 0;

	for (uint32_t i = 0; i < f->n_code; i++) {
		CHECK(f->code[i].op != OBD_OP_ld32_i && f->code[i].op != OBD_OP_st32_i);
		n_loads += f->code[i].op == OBD_OP_ld32_g;
		n_stores += f->code[i].op == OBD_OP_st32_g;
	}
	CHECK_INT(n_loads, 4);
	CHECK_INT(n_stores, 4);
	device_end(p);
}

/* A sum of two bases takes a register, for which there is none. */
TEST(as_many_registers_as_there_are)
{
	const unsigned spare = 26;
	bool full = false;

	ob_opt_set(OB_OPT_INVARIANT, true);
	for (unsigned n = OBD_MAX_REGISTERS - spare; n < OBD_MAX_REGISTERS && !full; n++) {
		struct obd_program *p = NULL;
		CUresult r[2];

		text_size = 0;
		put(HEAD ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
			 ".reg .b32 %%r<4>; .reg .b64 %%d<6>; .reg .b32 %%z<%u>;\n"
			 "ld.param.u64 %%d0, [in]; ld.param.u64 %%d1, [out]; mov.u32 %%r3, "
			 "%%tid.x;\n"
			 "mul.wide.s32 %%d2, %%r3, 4; add.s64 %%d3, %%d0, %%d2;\n"
			 "add.s64 %%d4, %%d1, %%d3; ld.global.u32 %%r0, [%%d4];\n"
			 "st.global.u32 [%%d4], %%r0; ret; }\n",
			n);
		for (int fuse = 0; fuse < 2; fuse++) {
			ob_opt_set(OB_OPT_FUSE, fuse);
			r[fuse] = device_load(text, &p);
			if (r[fuse] == CUDA_SUCCESS)
				device_end(p);
		}
		CHECK_INT(r[1], r[0]);
		full = r[0] != CUDA_SUCCESS;
	}
	CHECK(full);
}

/* ---- faults ---- */

static void check_fault(struct copy_params params, uint32_t thread, uint64_t address, bool write)
{
	for (unsigned on = 0; on < 4; on++) {
		ob_opt_set(OB_OPT_INVARIANT, on & 1);
		ob_opt_set(OB_OPT_FUSE, on & 2);
		struct obd_program *p = device_load_good(HEAD SAXPY);

		CHECK_INT(device_run(p, "k", 1, 32, &params), CUDA_ERROR_ILLEGAL_ADDRESS);
		CHECK_INT(fault.thread[0], thread);
		CHECK_INT(fault.address, address);
		CHECK_INT(fault.is_write, write);
		CHECK_INT(fault.access_bytes, 4);
		device_end(p);
	}
}

TEST(a_row_that_leaves_the_device)
{
	device_env();
	uint64_t end = (uintptr_t)window + WINDOW_BYTES, inside = (uintptr_t)window;

	check_fault((struct copy_params){ inside, end - 20, 0 }, 5, end, false);
	check_fault((struct copy_params){ end - 40, inside, 0 }, 10, end, true);
}

/* Lane 16 has the least index: its address is far from that of lane 15. */
TEST(an_index_that_wraps_around)
{
	device_env();
	uint64_t inside = (uintptr_t)window, base = inside - 0x7ffffff0ull * 4;

	check_fault(
		(struct copy_params){ base, base, 0x7ffffff0u }, 16, base - (1ull << 33), false);
}

/* A signal reports the address of the vector access, which must become the lane's. */
TEST(a_row_of_an_unmapped_page)
{
	device_env();
	char *page = device_take(NULL, 8192, 4096);
	uint64_t hole = (uintptr_t)page + 4096;

	CHECK_INT(mprotect(page + 4096, 4096, PROT_NONE), 0);
	check_fault((struct copy_params){ (uintptr_t)page, hole - 64, 0 }, 16, hole, false);
	check_fault((struct copy_params){ hole - 64, (uintptr_t)page, 0 }, 16, hole, true);
	CHECK_INT(mprotect(page + 4096, 4096, PROT_READ | PROT_WRITE), 0);
}

static bool check_none(void *user, uintptr_t address, size_t size)
{
	(void)user;
	(void)address;
	(void)size;
	return false;
}

/* The memory checker sees each access: also one to a row at address 0. */
TEST(checked_rows)
{
	struct obd_env env = device_env();
	struct copy_params params = { 0, 0, 0 };

	env.check = check_none;
	for (unsigned on = 0; on < 4; on++) {
		struct obd_program *p = NULL;

		ob_opt_set(OB_OPT_INVARIANT, on & 1);
		ob_opt_set(OB_OPT_FUSE, on & 2);
		CHECK_INT(obd_program_load(HEAD SAXPY, strlen(HEAD SAXPY), &env, &p, load_log,
				  sizeof(load_log)),
			CUDA_SUCCESS);
		params.in = on & 1 ? 0 : (uintptr_t)window + WINDOW_BYTES / 2;
		CHECK_INT(device_run(p, "k", 1, 32, &params), CUDA_ERROR_ILLEGAL_ADDRESS);
		CHECK_INT(fault.address, params.in);
		CHECK_INT(fault.thread[0], 0);
		CHECK_INT(device_run(p, "k", 1, 20, &params), CUDA_ERROR_ILLEGAL_ADDRESS);
		CHECK_INT(fault.address, params.in);
		device_end(p);
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
