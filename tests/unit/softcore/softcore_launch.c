/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Grids that device code launches, and clusters: limits, faults, and what is refused. */
#include "tests/unit/softcore/device.h"

#define LAUNCH_HEAD                                                                           \
	".version 8.4\n.target sm_90\n.address_size 64\n"                                     \
	".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param " \
	".align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"                    \
	".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 "  \
	"s);\n"                                                                               \
	".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"                           \
	".visible .entry one(.param .u64 out) { .reg .b64 %d<2>; ld.param.u64 %d0, [out]; "   \
	"red.global.add.u32 [%d0], 1; ret; }\n"                                               \
	".visible .entry bad(.param .u64 out) { .reg .b64 %d<2>; mov.u64 %d0, 16; "           \
	"st.global.u32 [%d0], 1; ret; }\n"                                                    \
	".visible .entry endless(.param .u64 out) { LOOP: bra LOOP; }\n"                      \
	".visible .entry missing(.param .u64 out) { .reg .b64 %d<2>; .reg .b32 %r<2>; "       \
	"ld.param.u64 %d0, [out]; multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%d0]; " \
	"ret; }\n"
#define REGISTERS ".reg .b64 %d<8>; .reg .b32 %r<8>; .reg .pred %p<4>; ld.param.u64 %d0, [out];\n"
/* %d1: the buffer for a launch of `kernel` with one thread, or 0 */
#define BUFFER(kernel)                                                                           \
	"{ .param .b64 f; .param .b64 r; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; " \
	".param .b32 "                                                                           \
	"s;\n"                                                                                   \
	"mov.u64 %d7, " kernel                                                                   \
	"; st.param.b64 [f], %d7; st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 "     \
	"[g+8], 1; st.param.b32 [b], 1; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; "          \
	"st.param.b32 [s], 0;\n"                                                                 \
	"call (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s); ld.param.b64 %d1, [r]; }\n"
/* %r1: the result of the launch of buffer %d1 into a stream, with the kernel's own parameter */
#define LAUNCH(stream)                                                                         \
	"st.b64 [%d1], %d0; { .param .b64 p; .param .b64 s; .param .b32 r; st.param.b64 [p], " \
	"%d1; "                                                                                \
	"st.param.b64 [s], " stream                                                            \
	"; call (r), __cudaCDP2LaunchDeviceV2, (p, s); ld.param.b32 %r1, [r]; }\n"
#define LAUNCHER(name, kernel, stream)                                           \
	".visible .entry " name "(.param .u64 out) {\n" REGISTERS BUFFER(kernel) \
		LAUNCH(stream) "st.global.u32 [%d0+8], %r1; ret; }\n"

static uint32_t *words(size_t n)
{
	uint32_t *p;

	device_env();
	p = device_take(NULL, n * 4, 64);
	CHECK(p != NULL);
	return p;
}

static CUresult run_limited(
	struct obd_program *p, const char *name, uint32_t limit, const void *params)
{
	struct obd_grid g = { .program = p,
		.kernel = obd_program_kernel(p, name),
		.grid = { 1, 1, 1 },
		.block = { 1, 1, 1 },
		.pending_launches = limit,
		.params = params };

	CHECK(g.kernel != NULL);
	if (!pool)
		pool = obd_pool_new(2);
	memset(&fault, 0, sizeof(fault));
	return obd_grid_run(pool, &g, &fault);
}

/*
 * 20 launches: tail grids cannot start before the end of their parent, so those above the limit
 * fail. Grids of other streams can, so none fails.
 */
#define LOOP(name, stream)                                                                      \
	".visible .entry " name "(.param .u64 out) {\n" REGISTERS                               \
	"mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;\n"                                     \
	"NEXT:\n" BUFFER("one") "setp.eq.u64 %p0, %d1, 0; @%p0 bra NONE;\n" LAUNCH(             \
		stream) "add.u32 %r3, %r3, %r1; bra MORE;\nNONE: add.u32 %r4, %r4, 1;\n"        \
			"MORE: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20; @%p1 bra NEXT;\n" \
			"{ .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 "  \
			"%r5, [r]; }\n"                                                         \
			"st.global.u32 [%d0+4], %r3; st.global.u32 [%d0+8], %r4; "              \
			"st.global.u32 [%d0+12], %r5; ret; }\n"

TEST(launches_above_the_limit)
{
	struct obd_program *p =
		device_load_good(LAUNCH_HEAD LOOP("tails", "3") LOOP("others", "4"));
	uint32_t *out = words(4);

	CHECK_INT(run_limited(p, "tails", 8, &out), CUDA_SUCCESS);
	CHECK_INT(out[0], 8);
	CHECK_INT(out[1], 0);
	CHECK_INT(out[2], 12);
	CHECK_INT(out[3], CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	out[0] = 0;
	CHECK_INT(run_limited(p, "others", 8, &out), CUDA_SUCCESS);
	CHECK_INT(out[0], 20);
	CHECK_INT(out[2], 0);
	CHECK_INT(out[3], 0);
	device_end(p);
}

TEST(faults_below_end_the_grid)
{
	struct obd_program *p = device_load_good(LAUNCH_HEAD LAUNCHER("k", "bad", "0")
			LAUNCHER("tail", "bad", "3") LAUNCHER("wait", "endless", "0") LAUNCHER(
				"stream", "one", "4660") LAUNCHER("refused", "missing", "0"));
	uint32_t *out = words(4);
	_Atomic int stop = 1;

	CHECK_INT(device_run(p, "k", 1, 1, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(strstr(fault.text, "kernel bad") != NULL);
	CHECK_INT(device_run(p, "tail", 1, 1, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(device_run_shape(p, "wait", 1, 1, &out, false, &stop), CUDA_ERROR_LAUNCH_TIMEOUT);
	CHECK_INT(device_run(p, "stream", 1, 1, &out), CUDA_SUCCESS);
	CHECK_INT(out[2], CUDA_ERROR_INVALID_HANDLE);
	CHECK_INT(device_run(p, "refused", 1, 1, &out), CUDA_ERROR_NOT_SUPPORTED);
	CHECK(strstr(fault.text, "kernel missing: PTX line 10: instruction multimem") != NULL);
	device_end(p);
}

/*
 * A copy has no buffer: the number of nodes limits it, here in the stream that only starts later.
 */
TEST(copies_without_end)
{
	struct obd_program *p = device_load_good(LAUNCH_HEAD
		".extern .func (.param .b32 r) __cudaCDP2MemsetAsync(.param .b64 p, .param .b32 v, "
		".param .b64 n, .param .b64 s);\n"
		".visible .entry fills(.param .u64 out) {\n" REGISTERS
		"mov.u32 %r2, 0; mov.b64 %d2, 4; mov.b64 %d3, 3; mov.u32 %r3, 1;\n"
		"NEXT: { .param .b64 p; .param .b32 v; .param .b64 n; .param .b64 s; .param .b32 "
		"r;\n"
		"st.param.b64 [p], %d0; st.param.b32 [v], %r3; st.param.b64 [n], %d2; "
		"st.param.b64 [s], %d3;\n"
		"call (r), __cudaCDP2MemsetAsync, (p, v, n, s); ld.param.b32 %r1, [r]; }\n"
		"add.u32 %r2, %r2, 1; setp.eq.u32 %p0, %r1, 0; setp.lt.u32 %p1, %r2, 1000000;\n"
		"and.pred %p0, %p0, %p1; @%p0 bra NEXT;\n"
		"st.global.u32 [%d0+4], %r1; st.global.u32 [%d0+8], %r2; ret; }\n");
	uint32_t *out = words(4);

	CHECK_INT(device_run(p, "fills", 1, 1, &out), CUDA_SUCCESS);
	CHECK_INT(out[0], 0x01010101);
	CHECK_INT(out[1], CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	CHECK_INT(out[2], 1u << 18); /* with the grid itself, and the call that failed */
	device_end(p);
}

/* No block takes a whole turn, so the request is seen before a block starts. */
TEST(short_blocks_are_stopped)
{
	struct obd_program *p = device_load_good(
		LAUNCH_HEAD LAUNCHER("again", "again", "0") LAUNCHER("later", "later", "3"));
	uint32_t *out = words(4);
	_Atomic int stop = 1;

	CHECK_INT(
		device_run_shape(p, "one", 1000, 1, &out, false, &stop), CUDA_ERROR_LAUNCH_TIMEOUT);
	CHECK(out[0] < 1000);
	CHECK_INT(
		device_run_shape(p, "again", 1, 1, &out, false, &stop), CUDA_ERROR_LAUNCH_TIMEOUT);
	CHECK_INT(
		device_run_shape(p, "later", 1, 1, &out, false, &stop), CUDA_ERROR_LAUNCH_TIMEOUT);
	device_end(p);
}

/*
 * 41 grids, each of which waits for the one below it. One thread runs them all, so those below the
 * 16th are waited for in vain, and run nevertheless.
 */
TEST(waits_nested_too_deeply)
{
	struct obd_program *p = device_load_good(LAUNCH_HEAD
		".extern .func (.param .b32 r) cudaDeviceSynchronize();\n"
		".visible .entry nest(.param .u64 out) {\n" REGISTERS
		"atom.global.add.u32 %r2, [%d0], 1; setp.ge.u32 %p0, %r2, 40; @%p0 ret;\n" BUFFER(
			"nest")
			LAUNCH("0") "{ .param .b32 r; call (r), cudaDeviceSynchronize, (); "
				    "ld.param.b32 %r3, [r]; }\n"
				    "red.global.max.u32 [%d0+4], %r3; setp.eq.u32 %p1, %r3, "
				    "0; @%p1 red.global.add.u32 [%d0+8], 1; ret; }\n");
	uint32_t *out = words(4);

	pool = obd_pool_new(1);
	CHECK_INT(device_run(p, "nest", 1, 1, &out), CUDA_SUCCESS);
	CHECK_INT(out[0], 41);
	CHECK_INT(out[1], 68);
	CHECK(out[2] >= 16 && out[2] < 40);
	device_end(p);
}

/* A buffer that is not launched is freed; other memory is no buffer. */
TEST(buffers_are_checked)
{
	struct obd_program *p = device_load_good(
		LAUNCH_HEAD ".visible .entry k(.param .u64 out) {\n" REGISTERS BUFFER("one")
			BUFFER("one") "st.global.u64 [%d0+8], %d1; mov.u64 %d1, %d0;\n" LAUNCH(
				"0") "st.global.u32 [%d0+16], %r1; ret; }\n"
				     ".visible .entry wrong(.param .u64 out) {\n" REGISTERS BUFFER(
					     "16") "st.global.u64 [%d0+8], %d1; ret; }\n");
	uint32_t *out = words(8);

	CHECK_INT(device_run(p, "k", 1, 1, &out), CUDA_SUCCESS);
	CHECK(out[2] != 0);
	CHECK_INT(out[4], CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(device_run(p, "wrong", 1, 1, &out), CUDA_SUCCESS);
	CHECK(out[2] == 0 && out[3] == 0);
	device_end(p);
}

TEST(refuses_graphs_and_multimem)
{
	struct obd_program *p = device_load_good(LAUNCH_HEAD
		".extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 g, .param .b64 s);\n"
		".visible .entry graph(.param .u64 out) { .param .b64 g; .param .b64 s; .param "
		".b32 r; "
		"call (r), cudaGraphLaunch, (g, s); ret; }\n");

	CHECK(strstr(obd_program_kernel(p, "graph")->refused,
		      "it calls cudaGraphLaunch: graphs cannot be launched") != NULL);
	CHECK(strstr(obd_program_kernel(p, "missing")->refused,
		      "instruction multimem is not supported") != NULL);
	CHECK(obd_program_kernel(p, "one")->refused == NULL);
	device_end(p);
}

/* ---- clusters ---- */

#define CLUSTER(name, sizes, body)                                                     \
	".visible .entry " name "(.param .u64 out) .explicitcluster "                  \
	".reqnctapercluster " sizes " {\n" REGISTERS "mov.u32 %r0, %cluster_ctarank; " \
	"setp.eq.u32 %p0, %r0, 0;\n" body "\nret; }\n"

TEST(clusters_fail_by_name)
{
	struct obd_program *p = device_load_good(LAUNCH_HEAD
			/* block 0 waits for more threads than it has, block 1 for block 0 */
			CLUSTER("stuck", "2, 1, 1",
				"@%p0 bar.sync 1, 64; barrier.cluster.arrive; "
				"barrier.cluster.wait;")
		/* there is no block 5 */
		CLUSTER("outside", "2, 1, 1",
			".shared .b32 v; mov.u32 %r1, v; mapa.shared::cluster.u32 %r1, %r1, 5;\n"
			"ld.shared::cluster.u32 %r2, [%r1];") CLUSTER("beyond", "2, 1, 1",
			".shared .b32 v; mov.u32 %r1, v; mapa.shared::cluster.u32 %r1, %r1, 1;\n"
			"add.u32 %r1, %r1, 65536; ld.shared.u32 %r2, [%r1];")
			CLUSTER("large", "17, 1, 1", ""));
	const struct obd_kernel *k = obd_program_kernel(p, "stuck");
	uint32_t *out = words(4);

	CHECK(k->explicit_cluster && k->cluster[0] == 2 && k->cluster[2] == 1);
	CHECK_INT(device_run(p, "stuck", 4, 32, &out), CUDA_ERROR_LAUNCH_FAILED);
	CHECK(strstr(fault.text, "deadlock") != NULL);
	CHECK_INT(device_run(p, "outside", 4, 32, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(device_run(p, "beyond", 4, 32, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(device_run(p, "stuck", 3, 32, &out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	CHECK_INT(device_run(p, "large", 17, 32, &out), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	device_end(p);
}

/*
 * 4096 bytes of shared memory in each of two blocks. %r1: their address; %r2: that in the other
 * block.
 */
#define BOUNDS                                                                               \
	".shared .align 16 .b8 v[4096]; mov.u32 %r1, v; xor.b32 %r3, %r0, 1;\n"              \
	"mapa.shared::cluster.u32 %r2, %r1, %r3; mov.u32 %r3, 77; st.shared.u32 [v], %r3;\n" \
	"st.shared.u32 [v+4092], %r3; mov.u32 %r5, 0;\n"                                     \
	"barrier.cluster.arrive; barrier.cluster.wait;\n"

/* Does the access stay in the shared memory of one block? Such a load has the result 77. */
static const struct {
	const char *access;
	bool good;
} bounds[] = {
	{ "ld.shared::cluster.u32 %r5, [%r1];", true },
	{ "ld.shared::cluster.u32 %r5, [%r2+4092];", true },
	{ "ld.shared::cluster.v2.u32 {%r4, %r5}, [%r2+4088];", true },
	{ "ld.volatile.shared::cluster.v4.u32 {%r4, %r4, %r4, %r5}, [%r2+4080];", true },
	{ "atom.shared::cluster.add.u32 %r5, [%r2+4092], 0;", true },
	/* the register alone is beyond the end, or before the beginning */
	{ "add.u32 %r1, %r1, 4096; ld.shared::cluster.u32 %r5, [%r1+-4096];", true },
	{ "sub.u32 %r1, %r1, 4096; ld.shared::cluster.u32 %r5, [%r1+4096];", true },
	{ "add.u32 %r2, %r2, 8192; ld.shared::cluster.u32 %r5, [%r2+-4100];", true },
	{ "sub.u32 %r2, %r2, 64; ld.shared::cluster.u32 %r5, [%r2+64];", true },
	/* a pointer may be beyond the end until it is used */
	{ "add.u32 %r2, %r2, 8192; cvt.u64.u32 %d2, %r2; cvta.shared::cluster.u64 %d3, %d2;\n"
	  "ld.u32 %r5, [%d3+-8192];",
		true },
	/* the other block's memory begins 16 MiB behind that of the block with one rank less */
	{ "@%p0 ld.shared::cluster.u32 %r5, [%r1+33554432]; @!%p0 mov.u32 %r5, 77;", true },
	{ "ld.shared::cluster.u32 %r5, [%r1+4096];", false },
	{ "ld.shared::cluster.u32 %r5, [%r2+4096];", false },
	{ "ld.shared::cluster.u32 %r5, [%r2+-4];", false },
	{ "st.shared::cluster.u32 [%r1+65536], %r3;", false },
	{ "st.shared::cluster.u32 [%r2+65536], %r3;", false },
	{ "st.shared::cluster.v2.u32 [%r2+4096], {%r3, %r3};", false },
	/* the first byte is inside; the last would be outside */
	{ "st.shared::cluster.u64 [%r2+4092], %d0;", false },
	{ "ld.shared::cluster.v4.u32 {%r4, %r4, %r4, %r5}, [%r2+4088];", false },
	{ "ld.volatile.shared::cluster.v2.u32 {%r4, %r5}, [%r2+4092];", false },
	{ "atom.shared::cluster.add.u64 %d3, [%r2+4092], 1;", false },
	{ "red.shared::cluster.add.u32 [%r2+4096], 1;", false },
	{ "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2+4096];", false },
};

TEST(accesses_stay_in_the_block)
{
	for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
		char text[4096];

		snprintf(text, sizeof(text), "%s%s%s%s", LAUNCH_HEAD,
			".visible .entry k(.param .u64 out) .explicitcluster "
			".reqnctapercluster 2, 1, 1 {\n" REGISTERS
			"mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %p0, %r0, 0;\n" BOUNDS,
			bounds[i].access,
			"\nbarrier.cluster.arrive; barrier.cluster.wait;\n"
			"red.global.add.u32 [%d0], %r5; ret; }\n");
		struct obd_program *p = device_load_good(text);
		uint32_t *out = words(1);
		CUresult r = device_run(p, "k", 2, 1, &out);

		if ((r == CUDA_SUCCESS) != bounds[i].good)
			fprintf(stderr, "%s\n%s\n", bounds[i].access, fault.text);
		CHECK_INT(r, bounds[i].good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS);
		CHECK_INT(*out, bounds[i].good ? 154 : 0);
		device_end(p);
	}
}

/*
 * The bytes of st.async and red.async are counted by the mbarrier, whatever the qualifiers. Without
 * a space both addresses are generic.
 */
TEST(asynchronous_stores_complete)
{
	static const char *const stores[] = {
		"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r3, [%r2];",
		"st.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], "
		"%r3, [%r2];",
		"st.async.mbarrier::complete_tx::bytes.u32 [%d1], %r3, [%d2];",
		"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
		"[%r1], %r3, [%r2];",
		"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u32 [%d1], %r3, [%d2];",
	};

	for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
		char text[4096];

		snprintf(text, sizeof(text), "%s%s%s%s", LAUNCH_HEAD,
			".visible .entry k(.param .u64 out) {\n" REGISTERS
			".shared .align 8 .b64 bar; .shared .b32 x; mov.u32 %r1, x; mov.u32 %r2, "
			"bar;\n"
			"cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; cvt.u64.u32 %d2, %r2;\n"
			"cvta.shared.u64 %d2, %d2; mov.u32 %r3, 0; st.shared.u32 [x], %r3;\n"
			"mov.u32 %r3, 77; mbarrier.init.shared.b64 [%r2], 1;\n"
			"mbarrier.arrive.expect_tx.shared.b64 %d3, [%r2], 4;\n",
			stores[i],
			"\nmbarrier.test_wait.shared.b64 %p1, [%r2], %d3; selp.u32 %r4, 1, 0, "
			"%p1;\n"
			"ld.shared.u32 %r5, [x]; st.global.v2.u32 [%d0], {%r4, %r5}; ret; }\n");
		struct obd_program *p = device_load_good(text);
		uint32_t *out = words(2);

		CHECK_INT(device_run(p, "k", 1, 1, &out), CUDA_SUCCESS);
		CHECK_INT(out[0], 1);
		CHECK_INT(out[1], 77);
		device_end(p);
	}
}

/* More clusters than a worker holds at once; each adds its ranks by generic addresses. */
TEST(many_clusters)
{
	struct obd_program *p = device_load_good(LAUNCH_HEAD CLUSTER("k", "3, 1, 1",
		".shared .b32 v; mov.u32 %r1, 0; st.shared.u32 [v], %r1; mov.u64 %d1, v;\n"
		"cvta.shared.u64 %d2, %d1; mapa.u64 %d3, %d2, 0; getctarank.u64 %r5, %d3;\n"
		"isspacep.shared::cluster %p1, %d3; isspacep.shared::cta %p2, %d3;\n"
		"isspacep.global %p3, %d3; selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 10, 0, %p2;\n"
		"add.u32 %r6, %r6, %r7; selp.u32 %r7, 100, 0, %p3; add.u32 %r6, %r6, %r7;\n"
		"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
		"mad.lo.u32 %r4, %r6, 1000, %r0; add.u32 %r4, %r4, %r5; atom.add.u32 %r4, [%d3], "
		"%r4;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; @!%p0 bra DONE;\n"
		"ld.shared.u32 %r1, [v]; mov.u32 %r2, %clusterid.x; mul.wide.u32 %d4, %r2, 4;\n"
		"add.u64 %d4, %d4, %d0; st.global.u32 [%d4], %r1; DONE:"));
	uint32_t *out = words(500);

	CHECK_INT(device_run(p, "k", 1500, 1, &out), CUDA_SUCCESS);
	/* ranks 0 + 1 + 2; block 0 sees its own memory, the others that of a block beside them */
	for (uint32_t i = 0; i < 500; i++)
		CHECK_INT(out[i], 13003);
	device_end(p);
}

/*
 * Bulk copies to shared memory of the other block, completed on its mbarrier; to a block that there
 * is not; and across the end of the other block's memory.
 */
#define BULK(name, rank, offset)                                                              \
	CLUSTER(name, "2, 1, 1",                                                              \
		".shared .align 16 .b8 x[16]; .shared .align 16 .b8 y[16]; .shared .align 8 " \
		".b64 m;\n"                                                                   \
		"mov.u32 %r1, x; add.u32 %r2, %r0, 70; st.shared.u32 [%r1+12], %r2;\n"        \
		"mov.u32 %r3, m; mbarrier.init.shared.b64 [%r3], 1;\n"                        \
		"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"                   \
		"barrier.cluster.arrive; barrier.cluster.wait; " rank "\n"                    \
		"mov.u32 %r4, y; mapa.shared::cluster.u32 %r5, %r4, %r7;\n"                   \
		"mapa.shared::cluster.u32 %r6, %r3, %r7;\n"                                   \
		"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "     \
		"[%r5" offset "], [%r1], 16, [%r6]; mov.u32 %r7, 0;\n"                        \
		"WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], %r7; @!%p1 bra "  \
		"WAIT;\n"                                                                     \
		"ld.shared.u32 %r2, [%r4+12]; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d1, "   \
		"%d0;\n"                                                                      \
		"st.global.u32 [%d1], %r2; barrier.cluster.arrive; barrier.cluster.wait;")

TEST(bulk_copies_to_other_blocks)
{
	struct obd_program *p =
		device_load_good(LAUNCH_HEAD BULK("swap", "xor.b32 %r7, %r0, 1;", "") BULK("nobody",
			"mov.u32 %r7, 2;", "") BULK("far", "xor.b32 %r7, %r0, 1;", "+65536"));
	uint32_t *out = words(4);

	CHECK_INT(device_run(p, "swap", 2, 1, &out), CUDA_SUCCESS);
	CHECK_INT(out[0], 71);
	CHECK_INT(out[1], 70);
	CHECK_INT(device_run(p, "nobody", 2, 1, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_INT(device_run(p, "far", 2, 1, &out), CUDA_ERROR_ILLEGAL_ADDRESS);
	device_end(p);
}

/*
 * Each block waits until all have started. Blocks that are not of a cooperative launch can do so if
 * there are no more than the workers hold at once: 64 each.
 */
static const char all_start_text[] =
	HEAD ".visible .entry k(.param .u64 p)\n{\n	.reg .b32 %r<8>;\n	.reg .b64 "
	     "%d<2>;\n	.reg .pred %p<2>;\n"
	     "	ld.param.u64 %d0, [p];\n	mov.u32 %r0, %nctaid.x;\n	mov.u32 %r3, "
	     "0;\n	red.global.add.u32 [%d0], 1;\n"
	     "WAIT:\n	ld.volatile.global.u32 %r2, [%d0];\n	setp.ge.u32 %p0, %r2, "
	     "%r0;\n	@%p0 ret;\n	nanosleep.u32 100;\n	add.u32 %r3, %r3, "
	     "1;\n	setp.lt.u32 %p1, %r3, 50000;\n	@%p1 bra WAIT;\n"
	     "	red.global.add.u32 [%d0+4], 1;\n	ret;\n}\n";

TEST(all_blocks_start)
{
	struct obd_program *p = device_load_good(all_start_text);
	uint32_t *out = device_take(NULL, 8, 256);
	uint64_t params = (uintptr_t)out;

	for (int run = 0; run < 5; run++) {
		memset(out, 0, 8);
		CHECK_INT(device_run(p, "k", 128, 1, &params), CUDA_SUCCESS);
		CHECK_INT(out[0], 128);
		CHECK_INT(out[1], 0);
	}
	device_end(p);
}

/*
 * Block n waits for block n - 1. One thread stores: where several threads of a warp store to one
 * place, CUDA leaves open how many writes there are, and a late one would undo what the next block
 * has stored.
 */
static const char in_order_text[] =
	HEAD ".visible .entry k(.param .u64 p)\n{\n	.reg .b32 %r<8>;\n	.reg .b64 "
	     "%d<2>;\n	.reg .pred %p<2>;\n"
	     "	ld.param.u64 %d0, [p];\n	mov.u32 %r0, %ctaid.x;\n	mov.u32 %r2, "
	     "%tid.x;\n	setp.ne.u32 %p1, %r2, 0;\nWAIT:\n	"
	     "ld.volatile.global.u32 %r1, [%d0];\n	setp.ne.u32 %p0, %r1, %r0;\n	@%p0 "
	     "bra WAIT;\n	bar.sync 0;\n	@%p1 ret;\n	add.u32 %r1, %r1, 1;\n	"
	     "st.volatile.global.u32 [%d0], %r1;\n	ret;\n}\n";

TEST(blocks_that_wait_for_earlier_ones)
{
	struct obd_program *p = device_load_good(in_order_text);
	uint32_t *out = device_take(NULL, 4, 256);
	uint64_t params = (uintptr_t)out;

	for (unsigned threads = 1; threads <= 8; threads++) {
		pool = obd_pool_new(threads);
		CHECK(pool != NULL);
		*out = 0;
		CHECK_INT(device_run(p, "k", 400, 32, &params), CUDA_SUCCESS);
		CHECK_INT(*out, 400);
		obd_pool_free(pool);
		pool = NULL; /* device_run would use it */
	}
	device_end(p);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
