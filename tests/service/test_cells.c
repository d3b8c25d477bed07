/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Cell proofs as jobs with GPUs that are none: their sums and transforms are the CPU's, they fail when told to, and count. What real ones compute is
 * tests/kernels/test_kzg_gpu.c's matter, with fewer points than a setup has.
 */
#include "base/opt.h"
#include "kernels/kzg/g1_ntt.h"
#include "kernels/kzg/kzg.h"
#include "kernels/kzg/fk20.h"
#include "service/bases.h"
#include "service/engine.h"
#include "tests/unit/test.h"

#define BLOBS 3
#define CELLS_BYTES ((size_t)OUTBOARD_CELLS * OUTBOARD_CELL_BYTES)
#define PROOFS_BYTES ((size_t)OUTBOARD_CELLS * OUTBOARD_COMMITMENT_BYTES)

struct fake {
	_Atomic int failures; /* so many more runs fail */
	int status;           /* with this */
	_Atomic int ran, blobs, window;
};

static struct fake fakes[2];
static uint8_t blobs[BLOBS][OUTBOARD_BLOB_BYTES], cells[BLOBS][CELLS_BYTES], proofs[BLOBS][PROOFS_BYTES];

static void fake_close(void *self)
{
	(void)self;
}

/* Blobs here have few coefficients, so few scalars are not 0. */
static void prove(const struct obv_cells_work *work, size_t blob, struct obk_g1_affine *ret)
{
	static struct obk_g1 sums[OBK_FK20_COLUMNS];
	static struct obk_fp scratch[2 * OBK_FK20_COLUMNS];

	for (size_t i = 0; i < OBK_FK20_COLUMNS; i++) {
		obk_g1_set_infinity(&sums[i]);
		for (size_t j = i * OBK_FK20_TERMS; j < (i + 1) * OBK_FK20_TERMS; j++) {
			const struct obk_fr *k = &work->scalars[blob * OBK_KZG_CELL_POINTS + j];
			uint64_t plain[4];
			struct obk_g1 t;

			if (obk_fr_is_zero(k))
				continue;
			obk_fr_to_plain(plain, k);
			obk_g1_mul(&t, &work->points->points[j], plain, 255);
			obk_g1_add(&sums[i], &sums[i], &t);
		}
	}
	obk_g1_ntt_gather_low(sums, OBK_FK20_LOG_COLUMNS, true, NULL);
	obk_g1_ntt_scatter_low(sums, OBK_FK20_LOG_COLUMNS, false, NULL);
	obk_g1_to_affine_batch(ret, sums, OBK_FK20_COLUMNS, scratch);
}

static int fake_cells(void *self, const struct obv_cells_work *work, struct obk_g1_affine *ret, struct outboard_error *error)
{
	struct fake *f = self;

	f->ran++;
	f->window = (int)work->window;
	if (f->failures > 0) {
		f->failures--;
		return obv_fail(error, f->status, OUTBOARD_NO_ITEM, "told to fail");
	}
	f->blobs += (int)work->blobs;
	CHECK(work->points->count == OBK_KZG_CELL_POINTS && work->pool);
	for (size_t b = 0; b < work->blobs; b++)
		prove(work, b, ret + b * OBK_FK20_COLUMNS);
	return OUTBOARD_OK;
}

static const struct obv_backend_ops fake_ops = { .close = fake_close, .cells = fake_cells };

/* The CPU holds the setup and makes the scalars; it may not step in, for its own table takes long to make. */
static struct outboard *open_devices(void)
{
	const struct outboard_options o = { .profile = "", .backoff = 0.001, .retries = 1, .strategy = OUTBOARD_SINGLE };
	struct obv_backend b[3];
	struct outboard *context = NULL;

	for (unsigned i = 0; i < 2; i++) {
		b[i] = (struct obv_backend){ .ops = &fake_ops, .self = &fakes[i], .kind = OUTBOARD_GPU, .units = i ? 100 : 1000, .clock = 2,
			.operations = 1u << OUTBOARD_OP_KZG };
		snprintf(b[i].name, sizeof(b[i].name), "gpu:%u", i);
	}
	CHECK_INT(obv_device_cpu_open(1, &b[2], NULL), OUTBOARD_OK);
	CHECK_INT(obv_context_new(&o, b, 3, &context, NULL), OUTBOARD_OK);
	return context;
}

/* Between calls: who may be given work. */
static void let(struct outboard *context, bool gpus, bool cpu)
{
	for (unsigned i = 0; i < 3; i++)
		context->device[i].backend.operations = (i < 2 ? gpus : cpu) ? 1u << OUTBOARD_OP_KZG : 0;
}

static struct outboard_kzg *load_setup(struct outboard *context, unsigned window)
{
	const struct outboard_kzg_options o = { .cell_window = window };
	struct outboard_error error = { 0 };
	struct outboard_kzg *kzg = NULL;

	if (outboard_kzg_load_file(context, TEST_SETUP, &o, &kzg, &error) != OUTBOARD_OK)
		fprintf(stderr, "%s\n", error.text);
	CHECK(kzg != NULL);
	return kzg;
}

static struct outboard_device device_of(struct outboard *context, unsigned i)
{
	struct outboard_device d;

	CHECK_INT(outboard_device_get(context, i, &d), OUTBOARD_OK);
	return d;
}

/* Values of c0 x^700 + c1 x^(64 + b) of each: some proofs that are no infinity. The elements' order is that of the roots' bits backwards. */
static void make_blobs(void)
{
	for (size_t b = 0; b < BLOBS; b++) {
		for (size_t i = 0; i < OBK_KZG_BLOB_ELEMENTS; i++) {
			uint64_t at = 0, e;
			struct obk_fr x, y, sum;

			for (unsigned bit = 0; bit < 12; bit++)
				at |= (uint64_t)(i >> bit & 1) << (11 - bit);
			obk_fr_root(&x, 12);
			obk_fr_pow(&x, &x, &at, 1);
			e = 700;
			obk_fr_pow(&y, &x, &e, 1);
			e = 64 + b;
			obk_fr_pow(&sum, &x, &e, 1);
			obk_fr_add(&sum, &sum, &y);
			obk_fr_to_bytes(blobs[b] + i * OBK_KZG_ELEMENT_BYTES, &sum);
		}
	}
}

/* By pairings, which are the CPU's. */
static void check_valid(struct outboard *context, struct outboard_kzg *kzg, uint64_t n)
{
	static uint8_t commitments[OUTBOARD_CELLS][OUTBOARD_COMMITMENT_BYTES];
	static uint64_t indices[OUTBOARD_CELLS];
	struct outboard_error error;
	int valid = 0;

	let(context, false, true);
	for (uint64_t b = 0; b < n; b++) {
		CHECK_INT(outboard_kzg_commit(kzg, blobs[b], 1, commitments[0], NULL, &error), OUTBOARD_OK);
		for (uint64_t i = 0; i < OUTBOARD_CELLS; i++) {
			memcpy(commitments[i], commitments[0], sizeof(commitments[0]));
			indices[i] = i;
		}
		CHECK_INT(outboard_kzg_verify_cells(kzg, commitments[0], indices, cells[b], proofs[b], OUTBOARD_CELLS, &valid, NULL, &error), OUTBOARD_OK);
		CHECK(valid && memcmp(cells[b], blobs[b], OUTBOARD_BLOB_BYTES) == 0);
	}
	memset(cells, 0xaa, sizeof(cells));
	memset(proofs, 0xaa, sizeof(proofs));
	let(context, true, false);
}

static bool untouched(void)
{
	bool fine = true;

	for (size_t i = 0; i < sizeof(cells); i++)
		fine &= ((uint8_t *)cells)[i] == 0xaa;
	for (size_t i = 0; i < sizeof(proofs); i++)
		fine &= ((uint8_t *)proofs)[i] == 0xaa;
	return fine;
}

static void fail_next(int first, int second, int status)
{
	for (unsigned i = 0; i < 2; i++) {
		fakes[i].failures = i ? second : first;
		fakes[i].status = status;
		fakes[i].ran = fakes[i].blobs = 0;
	}
}

/* One test: a setup and the points behind cell proofs take seconds. */
TEST(cell_proofs_on_gpus)
{
	struct outboard_error error = { 0 };
	struct outboard *context;
	struct outboard_kzg *kzg;

	alarm(200);
	ob_opt_set(OB_OPT_GPUCELLS, true);
	context = open_devices();
	kzg = load_setup(context, 10);
	let(context, true, false);
	make_blobs();
	/* a failure is tried again in place */
	fail_next(1, 0, OUTBOARD_DEVICE);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], BLOBS, cells[0], proofs[0], NULL, &error), OUTBOARD_OK);
	CHECK(fakes[0].ran == 2 && fakes[0].blobs == BLOBS && fakes[1].ran == 0 && fakes[0].window == 8);
	CHECK(device_of(context, 0).failures == 1 && device_of(context, 0).pieces >= 1);
	check_valid(context, kzg, BLOBS);
	/* two: another device does it; cells are not asked for */
	fail_next(2, 0, OUTBOARD_DEVICE);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, NULL, proofs[0], NULL, &error), OUTBOARD_OK);
	CHECK(fakes[0].ran == 2 && fakes[1].ran == 1 && fakes[1].blobs == 1 && proofs[0][0] != 0xaa);
	/* too little memory goes elsewhere at once */
	fail_next(1, 0, OUTBOARD_NO_MEMORY);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, cells[0], proofs[0], NULL, &error), OUTBOARD_OK);
	CHECK(fakes[0].ran == 1 && fakes[1].ran == 1);
	check_valid(context, kzg, 1);
	/* nobody can: the device's own word, and nothing is written, nor are the cells that the CPU had made */
	fail_next(1, 1, OUTBOARD_NO_MEMORY);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 2, cells[0], proofs[0], NULL, &error), OUTBOARD_NO_MEMORY);
	CHECK(strstr(error.text, "told to fail") && untouched());
	/* the bad element is named as the CPU names it, before a device is asked */
	fail_next(0, 0, OUTBOARD_DEVICE);
	blobs[1][9 * 32] = 0xff;
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], BLOBS, cells[0], proofs[0], NULL, &error), OUTBOARD_ARGUMENT);
	CHECK(error.item == 4096 + 9 && strcmp(error.text, "blob 1: element 9 of the blob is not below the field's prime r") == 0);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[1], 1, cells[0], proofs[0], NULL, &error), OUTBOARD_ARGUMENT);
	CHECK(error.item == 9 && fakes[0].ran + fakes[1].ran == 0 && untouched());
	/* cells without proofs, and all with the switch off, are the CPU's alone, which here does nothing */
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, cells[0], NULL, NULL, &error), OUTBOARD_UNSUPPORTED);
	ob_opt_set(OB_OPT_GPUCELLS, false);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, cells[0], proofs[0], NULL, &error), OUTBOARD_UNSUPPORTED);
	CHECK(fakes[0].ran + fakes[1].ran == 0 && untouched());
	outboard_kzg_free(kzg);
	outboard_close(context);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
