/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * cp.async.bulk.tensor and cp.reduce.async.bulk.tensor over maps of cuTensorMapEncodeTiled and of
 * tensormap.replace. The tensor has gaps between its rows; tiles begin before it or end behind it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/groups.h"
#include "tests/ptx/matrix.h"

#define IMAGE 8192u /* bytes of shared memory */
#define RANKS 5u
#define GAP   32u /* bytes behind each row of the tensor */

enum operation { LOAD, STORE, REDUCE };

struct form {
	CUtensorMapDataType type;
	unsigned bits, rank;
	enum operation operation;
	CUtensorMapSwizzle swizzle;
	CUtensorMapFloatOOBfill fill;
	unsigned dims[RANKS], box[RANKS], steps[RANKS];
	int at[RANKS];
	const char *reduction;
	enum pt_element element; /* of a reduction */
};

#define T(name)  CU_TENSOR_MAP_DATA_TYPE_##name
#define NAN_FILL CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
/* clang-format off */
static const struct form forms[] = {
	{ T(UINT8), 8, 1, LOAD, 0, 0, { 300 }, { 64 }, { 1 }, { 17 }, "", 0 },
	{ T(FLOAT32), 32, 1, LOAD, 0, NAN_FILL, { 50 }, { 32 }, { 1 }, { -5 }, "", 0 },
	{ T(FLOAT16), 16, 2, LOAD, CU_TENSOR_MAP_SWIZZLE_128B, 0, { 100, 40 }, { 64, 24 }, { 1, 1 }, { 60, 30 }, "", 0 },
	{ T(BFLOAT16), 16, 2, LOAD, CU_TENSOR_MAP_SWIZZLE_64B, NAN_FILL, { 100, 40 }, { 32, 20 }, { 1, 1 }, { -7, -3 }, "", 0 },
	{ T(UINT16), 16, 2, LOAD, CU_TENSOR_MAP_SWIZZLE_32B, 0, { 64, 33 }, { 16, 40 }, { 1, 2 }, { 8, 1 }, "", 0 },
	{ T(FLOAT64), 64, 3, LOAD, CU_TENSOR_MAP_SWIZZLE_128B, NAN_FILL, { 9, 7, 5 }, { 16, 4, 4 }, { 1, 3, 1 }, { -4, 2, 3 }, "", 0 },
	{ T(INT32), 32, 4, LOAD, 0, 0, { 10, 5, 4, 3 }, { 8, 4, 3, 2 }, { 1, 1, 2, 1 }, { 4, -1, 1, 2 }, "", 0 },
	{ T(UINT64), 64, 5, LOAD, 0, 0, { 6, 5, 4, 3, 3 }, { 4, 3, 2, 2, 2 }, { 1, 1, 1, 1, 2 }, { 3, 3, 3, 2, 1 }, "", 0 },
	{ T(TFLOAT32), 32, 2, LOAD, CU_TENSOR_MAP_SWIZZLE_128B, 0, { 64, 64 }, { 32, 64 }, { 1, 1 }, { 32, 0 }, "", 0 },
	{ T(16U4_ALIGN8B), 4, 2, LOAD, CU_TENSOR_MAP_SWIZZLE_64B, 0, { 160, 20 }, { 128, 16 }, { 1, 1 }, { 50, 10 }, "", 0 },
	{ T(UINT8), 8, 2, LOAD, CU_TENSOR_MAP_SWIZZLE_128B, 0, { 300, 60 }, { 128, 64 }, { 1, 1 }, { 1000, 0 }, "", 0 },
	{ T(UINT32), 32, 1, STORE, 0, 0, { 90 }, { 64 }, { 1 }, { 40 }, "", 0 },
	{ T(FLOAT16), 16, 2, STORE, CU_TENSOR_MAP_SWIZZLE_128B, 0, { 100, 40 }, { 64, 16 }, { 1, 1 }, { 50, -4 }, "", 0 },
	{ T(UINT8), 8, 3, STORE, CU_TENSOR_MAP_SWIZZLE_32B, 0, { 70, 8, 8 }, { 32, 4, 6 }, { 1, 2, 1 }, { -3, 5, 4 }, "", 0 },
	{ T(FLOAT64), 64, 4, STORE, 0, 0, { 9, 4, 4, 4 }, { 4, 3, 2, 2 }, { 1, 1, 1, 1 }, { 6, 2, 0, 1 }, "", 0 },
	{ T(INT64), 64, 5, STORE, 0, 0, { 6, 5, 4, 3, 3 }, { 4, 3, 2, 2, 2 }, { 1, 1, 1, 1, 1 }, { 3, 3, -1, 2, 1 }, "", 0 },
	{ T(UINT32), 32, 2, REDUCE, CU_TENSOR_MAP_SWIZZLE_64B, 0, { 30, 30 }, { 16, 16 }, { 1, 1 }, { 20, 5 }, "add", PT_M_S32 },
	{ T(INT32), 32, 2, REDUCE, 0, 0, { 30, 30 }, { 16, 16 }, { 1, 1 }, { -2, 20 }, "min", PT_M_S32 },
	{ T(INT32), 32, 1, REDUCE, 0, 0, { 60 }, { 48 }, { 1 }, { 20 }, "max", PT_M_S32 },
	{ T(UINT32), 32, 1, REDUCE, 0, 0, { 60 }, { 48 }, { 1 }, { 20 }, "xor", PT_M_S32 },
	{ T(UINT32), 32, 1, REDUCE, 0, 0, { 60 }, { 48 }, { 1 }, { 20 }, "and", PT_M_S32 },
	{ T(UINT32), 32, 3, REDUCE, 0, 0, { 20, 4, 4 }, { 8, 2, 2 }, { 1, 1, 1 }, { 4, 1, 3 }, "or", PT_M_S32 },
	{ T(FLOAT16), 16, 2, REDUCE, CU_TENSOR_MAP_SWIZZLE_128B, 0, { 100, 20 }, { 64, 16 }, { 1, 1 }, { 51, 3 }, "add", PT_M_F16 },
	{ T(BFLOAT16), 16, 2, REDUCE, 0, 0, { 100, 20 }, { 24, 16 }, { 1, 1 }, { -5, 3 }, "max", PT_M_BF16 },
	{ T(FLOAT32), 32, 4, REDUCE, 0, 0, { 20, 4, 4, 3 }, { 8, 2, 2, 2 }, { 1, 1, 1, 1 }, { 15, 1, 3, 1 }, "add", PT_M_F32 },
};
/* clang-format on */
#define N_FORMS  (sizeof forms / sizeof forms[0])

/* Bytes between neighbours along a dimension. */
static uint64_t stride(const struct form *f, unsigned dimension)
{
	uint64_t bytes = (f->dims[0] * f->bits / 8 + 15) / 16 * 16 + GAP;
	if (dimension == 0)
		return f->bits / 8;
	for (unsigned i = 1; i < dimension; i++)
		bytes *= f->dims[i];
	return bytes;
}

static size_t tensor_bytes(const struct form *f)
{
	return f->rank == 1 ? stride(f, 1) : stride(f, f->rank - 1) * f->dims[f->rank - 1];
}

/* Where byte x of the tile is in shared memory: "TMA Swizzle" of the programming guide. */
static size_t swizzled(const struct form *f, size_t x)
{
	static const unsigned parts[] = { 1, 2, 4, 8 };
	size_t n = parts[f->swizzle], line = x / 128, part = x / 16 % 8;
	return line * 128 + (part / n * n + (part % n ^ line % n)) * 16 + x % 16;
}

struct walk {
	unsigned i[RANKS];
	size_t number;
};

/*
 * Steps through the tile in units of bytes, or of elements that are larger. Returns whether there
 * is another one: its place in shared memory, and in the tensor or -1.
 */
static bool step(const struct form *f, struct walk *w, size_t *ret_tile, long *ret_tensor)
{
	unsigned per = f->bits < 8 ? 8 / f->bits : 1, size = f->bits < 8 ? 1 : f->bits / 8;
	long at = 0;
	bool in = true;
	if (w->i[f->rank - 1] * (f->rank == 1 ? per : f->steps[f->rank - 1]) >= f->box[f->rank - 1])
		return false;
	for (unsigned d = 0; d < f->rank; d++) {
		long x = f->at[d] + (long)w->i[d] * (d ? (long)f->steps[d] : (long)per);
		in = in && x >= 0 && x < (long)f->dims[d];
		at += d ? x * (long)stride(f, d) : x / (long)per * (long)size;
	}
	*ret_tile = swizzled(f, w->number++ * size);
	*ret_tensor = in ? at : -1;
	for (unsigned d = 0; d < f->rank; d++) {
		w->i[d]++;
		if (d + 1 == f->rank || w->i[d] * (d ? f->steps[d] : per) < f->box[d])
			break;
		w->i[d] = 0;
	}
	return true;
}

/* clang-format off */
static void add_head(struct pt_text *t, const char *name, const char *attributes)
{
	pt_text_add(t, ".visible .entry %s(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n%s{\n"
		"	.shared .align 1024 .b8 image[8192];\n	.shared .align 8 .b64 bar;\n%s"
		"	mov.u32 %%r1, image;\n	mov.u32 %%r2, bar;\n	setp.ne.u32 %%q1, %%t, 0;\n	mad.lo.u32 %%r3, %%t, 256, %%r1;\n",
		name, attributes, PT_PROLOGUE);
	for (unsigned i = 0; i < RANKS; i++)
		pt_text_add(t, "	ld.global.u32 %%r%u, [%%p2+%u];\n", 20 + i, i * 4);
}

/* Thread t moves 256 bytes at %l1. */
static void add_image(struct pt_text *t, bool out)
{
	pt_text_add(t, "	mad.wide.u32 %%l1, %%t, 256, %%p1;\n");
	for (unsigned i = 0; i < 256; i += 16)
		pt_text_add(t, out ? "	ld.shared.v4.u32 {%%r5, %%r6, %%r7, %%r8}, [%%r3+%u];\n	st.global.v4.u32 [%%l1+%u], {%%r5, %%r6, %%r7, %%r8};\n"
			: "	ld.global.v4.u32 {%%r5, %%r6, %%r7, %%r8}, [%%l1+%u];\n	st.shared.v4.u32 [%%r3+%u], {%%r5, %%r6, %%r7, %%r8};\n", i, i);
}

static void add_coordinates(struct pt_text *t, unsigned rank)
{
	pt_text_add(t, "{");
	for (unsigned i = 0; i < rank; i++)
		pt_text_add(t, "%s%%r%u", i ? ", " : "", 20 + i);
	pt_text_add(t, "}");
}

static char *form_text(const struct form *f)
{
	struct pt_text t = { 0 };
	add_head(&t, "tile", "");
	add_image(&t, false);
	pt_text_add(&t, "	cvt.u32.u64 %%r4, %%p3;\n	@%%q1 bra READY;\n	mbarrier.init.shared.b64 [%%r2], 1;\n"
		"	fence.proxy.tensormap::generic.acquire.gpu [%%p0], 128;\nREADY:\n	fence.proxy.async;\n	bar.sync 0;\n	@%%q1 bra WAIT;\n");
	if (f->operation == LOAD) {
		pt_text_add(&t, "	prefetch.tensormap [%%p0];\n	cp.async.bulk.prefetch.tensor.%ud.L2.global.tile [%%p0, ", f->rank);
		add_coordinates(&t, f->rank);
		pt_text_add(&t, "];\n	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r2], %%r4;\n"
			"	cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r1], [%%p0, ", f->rank);
		add_coordinates(&t, f->rank);
		pt_text_add(&t, "], [%%r2];\nWAIT:\n	mov.u32 %%r9, 0;\nL:\n"
			"	mbarrier.try_wait.parity.shared::cta.b64 %%q2, [%%r2], %%r9;\n	@!%%q2 bra L;\n");
		add_image(&t, true);
	} else {
		if (f->operation == STORE)
			pt_text_add(&t, "	cp.async.bulk.tensor.%ud.global.shared::cta.bulk_group [%%p0, ", f->rank);
		else
			pt_text_add(&t, "	cp.reduce.async.bulk.tensor.%ud.global.shared::cta.%s.tile.bulk_group [%%p0, ", f->rank, f->reduction);
		add_coordinates(&t, f->rank);
		pt_text_add(&t, "], [%%r1];\n	cp.async.bulk.commit_group;\n	cp.async.bulk.wait_group.read 0;\n	cp.async.bulk.wait_group 0;\nWAIT:\n");
	}
	pt_text_add(&t, "	ret;\n}\n");
	return t.p;
}
/* clang-format on */

static CUdeviceptr put_map(struct pt_run *run, const struct form *f, CUdeviceptr tensor)
{
	CUtensorMap map;
	cuuint64_t dims[RANKS], strides[RANKS] = { 0 };
	for (unsigned i = 0; i < f->rank; i++) {
		dims[i] = f->dims[i];
		if (i)
			strides[i - 1] = stride(f, i);
	}
	if (!run->d->tensor_map)
		pt_run_fail(run, "the driver has no cuTensorMapEncodeTiled");
	if (!pt_run_ok(run))
		return 0;
	CUresult r = run->d->tensor_map(&map, f->type, f->rank, (void *)(uintptr_t)tensor, dims,
		strides, f->box, f->steps, CU_TENSOR_MAP_INTERLEAVE_NONE, f->swizzle,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, f->fill);
	if (r)
		pt_run_fail(run, "cuTensorMapEncodeTiled: error %d", (int)r);
	return pt_run_put(run, &map, sizeof map);
}

static void fill_bytes(struct pt_run *run, const struct form *f, uint8_t *to, size_t n)
{
	unsigned size = f->bits < 8 ? 1 : f->bits / 8;
	for (size_t i = 0; i < n; i += size) {
		uint64_t v = pt_rng_next(&run->rng);
		if (f->operation == REDUCE && !pt_element_integer(f->element))
			v = pt_element_encode(
				f->element, (int64_t)pt_rng_below(&run->rng, 65) - 32);
		memcpy(to + i, &v, size);
	}
}

static uint64_t outside(const struct form *f)
{
	return !f->fill         ? 0
		: f->bits == 16 ? 0x7fff
		: f->bits == 32 ? 0x7fffffff
				: 0x7fffffffffffffff;
}

/* The integer with this encoding, which is one of those that fill_bytes makes. */
static int64_t decode(enum pt_element t, uint64_t bits)
{
	if (t == PT_M_S32)
		return (int32_t)(uint32_t)bits;
	for (int64_t v = -64; v <= 64; v++)
		if (pt_element_encode(t, v) == bits)
			return v;
	return 0;
}

static uint64_t reduced(const struct form *f, uint64_t old, uint64_t value)
{
	int64_t a = decode(f->element, old), b = decode(f->element, value);
	int64_t v = !strcmp(f->reduction, "add") ? a + b
		: !strcmp(f->reduction, "min")   ? (a < b ? a : b)
		: !strcmp(f->reduction, "max")   ? (a > b ? a : b)
		: !strcmp(f->reduction, "and")   ? (a & b)
		: !strcmp(f->reduction, "or")    ? (a | b)
						 : (a ^ b);
	return f->element == PT_M_S32 ? (uint32_t)v : pt_element_encode(f->element, v);
}

/* Applies the copy to the images. Returns the bytes of the tile. */
static unsigned expect(const struct form *f, uint8_t *tile, uint8_t *tensor)
{
	unsigned size = f->bits < 8 ? 1 : f->bits / 8;
	struct walk w = { 0 };
	size_t x;
	long at;
	while (step(f, &w, &x, &at)) {
		uint64_t v = outside(f), old = 0;
		if (f->operation == LOAD) {
			memcpy(tile + x, at < 0 ? (const void *)&v : tensor + at, size);
		} else if (at >= 0) {
			v = 0;
			memcpy(&v, tile + x, size);
			memcpy(&old, tensor + at, size);
			v = f->operation == REDUCE ? reduced(f, old, v) : v;
			memcpy(tensor + at, &v, size);
		}
	}
	return (unsigned)w.number * size;
}

static bool run_tile(struct pt_run *run)
{
	const struct form *f = &forms[run->c->arg[0]];
	static uint8_t tensor[1 << 16], tile[IMAGE], got[1 << 16];
	size_t n = tensor_bytes(f);
	fill_bytes(run, f, tensor, n);
	fill_bytes(run, f, tile, IMAGE);
	CUdeviceptr t = pt_run_put(run, tensor, n), image = pt_run_put(run, tile, IMAGE),
		    at = pt_run_put(run, f->at, sizeof f->at), map = put_map(run, f, t);
	unsigned bytes = expect(f, tile, tensor);
	pt_run_line(run, "tile", 1, 32, map, image, at, bytes);
	pt_run_get(run, t, got, n);
	pt_run_same32(
		run, "tensor word", (uint32_t *)(void *)got, (uint32_t *)(void *)tensor, n / 4);
	pt_run_get(run, image, got, IMAGE);
	return pt_run_same32(
		run, "tile word", (uint32_t *)(void *)got, (uint32_t *)(void *)tile, IMAGE / 4);
}

/* ---- multicast: block 0 of a cluster fills the memory of blocks 0 and 2 ---- */

static const struct form cast_form = { T(FLOAT16), 16, 2, LOAD, CU_TENSOR_MAP_SWIZZLE_128B, 0,
	{ 100, 40 }, { 64, 24 }, { 1, 1 }, { 60, 30 }, "", 0 };

static char *cast_text(void)
{
	struct pt_text t = { 0 };
	add_head(&t, "tile", ".explicitcluster .reqnctapercluster 4, 1, 1\n");
	pt_text_add(&t, "	mad.wide.u32 %%p1, %%r62, 8192, %%p1;\n");
	add_image(&t, false);
	pt_text_add(&t,
		"	cvt.u32.u64 %%r4, %%p3;\n	and.b32 %%r10, %%r62, 1;\n	"
		"setp.ne.u32 "
		"%%q3, %%r10, 0;\n	setp.ne.u32 %%q4, %%r62, 0;\n	or.pred %%q4, %%q4, %%q1;\n"
		"	mov.b16 %%h1, 5;\n	@%%q1 bra READY;\n	mbarrier.init.shared.b64 "
		"[%%r2], 1;\n	@%%q3 bra READY;\n	mbarrier.arrive.expect_tx.shared::cta.b64 "
		"_, [%%r2], %%r4;\nREADY:\n	fence.proxy.async;\n"
		"	barrier.cluster.arrive;\n	barrier.cluster.wait;\n	@%%q4 bra WAIT;\n"
		"	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
		"bytes.multicast::cluster [%%r1], [%%p0, {%%r20, %%r21}], [%%r2], %%h1;\n"
		"WAIT:\n	@%%q3 bra DONE;\n	mov.u32 %%r9, 0;\nL:\n"
		"	mbarrier.try_wait.parity.shared::cta.b64 %%q2, [%%r2], %%r9;\n	@!%%q2 "
		"bra L;\nDONE:\n");
	add_image(&t, true);
	pt_text_add(&t, "	barrier.cluster.arrive;\n	barrier.cluster.wait;\n	ret;\n}\n");
	return t.p;
}

static bool run_cast(struct pt_run *run)
{
	const struct form *f = &cast_form;
	static uint8_t tensor[1 << 16], tiles[4 * IMAGE], got[4 * IMAGE];
	unsigned bytes = 0;
	size_t n = tensor_bytes(f);
	fill_bytes(run, f, tensor, n);
	fill_bytes(run, f, tiles, sizeof tiles);
	CUdeviceptr t = pt_run_put(run, tensor, n), image = pt_run_put(run, tiles, sizeof tiles),
		    at = pt_run_put(run, f->at, sizeof f->at), map = put_map(run, f, t);
	for (unsigned i = 0; i < 4; i += 2)
		bytes = expect(f, tiles + i * IMAGE, tensor);
	pt_run_line(run, "tile", 4, 32, map, image, at, bytes);
	pt_run_get(run, image, got, sizeof got);
	return pt_run_same32(
		run, "word", (uint32_t *)(void *)got, (uint32_t *)(void *)tiles, sizeof got / 4);
}

/* ---- a map that the kernel makes from zeros ---- */

#define FIELD(name, type, value) \
	"	tensormap.replace.tile." name ".shared::cta.b1024." type " [%%r1], " value ";\n"

/* Fields whose number is 0 are not set. */
static void add_fields(struct pt_text *t, const struct form *f)
{
	unsigned type = f->type == T(BFLOAT16) ? 10 : 0; /* else u8 */
	pt_text_add(t, FIELD("global_address", "b64", "%%p1"));
	if (f->rank > 1)
		pt_text_add(t, FIELD("rank", "b32", "%u") FIELD("global_stride", "b64", "0, %u"),
			f->rank - 1, (unsigned)stride(f, 1));
	for (unsigned i = 0; i < f->rank; i++)
		pt_text_add(t,
			FIELD("box_dim", "b32", "%u, %u") FIELD("global_dim", "b32", "%u, %u")
				FIELD("element_stride", "b32", "%u, 1"),
			i, f->box[i], i, f->dims[i], i);
	if (type)
		pt_text_add(t,
			FIELD("elemtype", "b32", "%u") FIELD("interleave_layout", "b32", "0")
				FIELD("swizzle_mode", "b32", "%u") FIELD("fill_mode", "b32", "%u"),
			type, (unsigned)f->swizzle, (unsigned)f->fill);
}

static char *made_text(const struct form *f)
{
	struct pt_text t = { 0 };
	add_head(&t, "make", "");
	pt_text_add(&t,
		"	mov.u32 %%r5, 0;\n	setp.ge.u32 %%q2, %%t, 8;\n	mad.lo.u32 "
		"%%r4, %%t, 16, %%r1;\n	@!%%q2 st.shared.v4.u32 [%%r4], {%%r5, %%r5, "
		"%%r5, %%r5};\n	bar.sync 0;\n	@%%q1 bra COPY;\n");
	add_fields(&t, f);
	pt_text_add(&t,
		"COPY:\n	bar.warp.sync -1;\n	tensormap.cp_fenceproxy.global.shared::cta."
		"tensormap::generic.release.gpu.sync.aligned [%%p0], [%%r1], 128;\n	ret;\n}\n");
	char *tile = form_text(f);
	pt_text_add(&t, "%s", tile);
	free(tile);
	return t.p;
}

static bool run_made(struct pt_run *run)
{
	const struct form *f = &forms[run->c->arg[0]];
	static uint8_t tensor[1 << 16], tile[IMAGE], got[IMAGE];
	size_t n = tensor_bytes(f);
	fill_bytes(run, f, tensor, n);
	fill_bytes(run, f, tile, IMAGE);
	CUdeviceptr t = pt_run_put(run, tensor, n), image = pt_run_put(run, tile, IMAGE),
		    at = pt_run_put(run, f->at, sizeof f->at),
		    map = pt_run_put(run, NULL, sizeof(CUtensorMap));
	unsigned bytes = expect(f, tile, tensor);
	pt_run_line(run, "make", 1, 32, map, t, at, 0);
	pt_run_line(run, "tile", 1, 32, map, image, at, bytes);
	pt_run_get(run, image, got, IMAGE);
	return pt_run_same32(
		run, "tile word", (uint32_t *)(void *)got, (uint32_t *)(void *)tile, IMAGE / 4);
}

static void add_case(
	struct pt_suite *s, bool (*run)(struct pt_run *), const char *name, char *text, int form)
{
	struct pt_case *c = pt_case_add(s, run, name, text);
	c->target = "sm_90a";
	c->arg[0] = form;
	free(text);
}

void pt_group_tensor(struct pt_suite *s)
{
	static const char *const operations[] = { "cp.async.bulk.tensor load",
		"cp.async.bulk.tensor store", "cp.reduce.async.bulk.tensor" };
	for (size_t i = 0; i < N_FORMS; i++) {
		const struct form *f = &forms[i];
		char *name = pt_format("%s, %ud, type %d, swizzle %d %s", operations[f->operation],
			f->rank, (int)f->type, (int)f->swizzle, f->reduction);
		add_case(s, run_tile, name, form_text(f), (int)i);
		free(name);
	}
	add_case(s, run_cast, "cp.async.bulk.tensor multicast", cast_text(), 0);
	add_case(s, run_made, "tensormap.replace and cp_fenceproxy", made_text(&forms[3]), 3);
	add_case(s, run_made, "tensormap.replace, one dimension of bytes", made_text(&forms[0]), 0);
}
