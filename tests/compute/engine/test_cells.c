/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Cell proofs as jobs on fake GPUs. The fakes compute sums and transforms on the CPU, fail on
 * request and count their runs. tests/compute/kernels/test_kzg_gpu.c tests the results of real
 * devices, with fewer points than a setup has.
 */
#include "base/check.h"
#include "base/opt.h"
#include "compute/kzg/g1_ntt.h"
#include "compute/kzg/kzg.h"
#include "compute/kzg/fk20.h"
#include "compute/engine/bases.h"
#include "compute/engine/engine.h"
#include "tests/test.h"

#define BLOBS        3
#define BATCH        64 /* blobs in a batch, as in compute/engine/kzg.c */
#define TWO_BATCHES  (BATCH + 6)
/* three batches: both preparation buffers are used, one of them twice */
#define MANY         (2 * BATCH + 2)
#define CELLS_BYTES  ((size_t)OUTBOARD_CELLS * OUTBOARD_CELL_BYTES)
#define PROOFS_BYTES ((size_t)OUTBOARD_CELLS * OUTBOARD_COMMITMENT_BYTES)

struct fake {
	_Atomic int spared;   /* runs that succeed before the failures */
	_Atomic int failures; /* number of further runs that fail */
	int status;           /* the status with which they fail */
	_Atomic int ran, blobs, most, window;
};

/* While `shut` is set, sums wait, and so does the thread that prepares the next batch. */
struct gate {
	_Atomic bool shut;
	_Atomic int summing, preparing;
	struct outboard *context;
};

static struct fake fakes[2];
static struct gate gate;
static uint8_t blobs[BLOBS][OUTBOARD_BLOB_BYTES], cells[BLOBS][CELLS_BYTES],
	proofs[BLOBS][PROOFS_BYTES];
static uint8_t many_blobs[MANY][OUTBOARD_BLOB_BYTES], many_cells[MANY][CELLS_BYTES],
	many_proofs[MANY][PROOFS_BYTES];
static uint8_t want_cells[MANY][CELLS_BYTES], want_proofs[MANY][PROOFS_BYTES];
static struct obk_g1_affine multiples[256];

static void fake_close(void *self)
{
	(void)self;
}

/* The blobs of this test have few coefficients, so few scalars are not 0. */
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

/* Replaces each sum by a point that depends on all of its scalars. */
static void stand_in(const struct obv_cells_work *work, size_t blob, struct obk_g1_affine *ret)
{
	for (size_t i = 0; i < OBK_FK20_COLUMNS; i++) {
		const struct obk_fr *k =
			&work->scalars[blob * OBK_KZG_CELL_POINTS + i * OBK_FK20_TERMS];
		uint64_t mixed = 0, words[4];

		for (size_t j = 0; j < OBK_FK20_TERMS; j++) {
			memcpy(words, &k[j], sizeof(words));
			for (unsigned w = 0; w < 4; w++)
				mixed = (mixed ^ words[w]) * 0x9e3779b97f4a7c15;
		}
		ret[i] = multiples[mixed >> 56];
	}
}

static int run_fake(struct fake *f, const struct obv_cells_work *work, struct outboard_error *error)
{
	f->window = (int)work->window;
	if (f->ran++ >= f->spared && f->failures > 0) {
		f->failures--;
		return obv_fail(error, f->status, OUTBOARD_NO_ITEM, "told to fail");
	}
	f->blobs += (int)work->blobs;
	f->most = ob_max(f->most, (int)work->blobs);
	CHECK(work->points->count == OBK_KZG_CELL_POINTS && work->pool);
	return OUTBOARD_OK;
}

static int fake_cells(void *self, const struct obv_cells_work *work, struct obk_g1_affine *ret,
	struct outboard_error *error)
{
	int status = run_fake(self, work, error);

	for (size_t b = 0; status == OUTBOARD_OK && b < work->blobs; b++)
		prove(work, b, ret + b * OBK_FK20_COLUMNS);
	return status;
}

static int fake_many_cells(void *self, const struct obv_cells_work *work, struct obk_g1_affine *ret,
	struct outboard_error *error)
{
	int status = run_fake(self, work, error);

	gate.summing++;
	while (gate.shut)
		waiting_look();
	for (size_t b = 0; status == OUTBOARD_OK && b < work->blobs; b++)
		stand_in(work, b, ret + b * OBK_FK20_COLUMNS);
	return status;
}

/*
 * A thread that asks for the CPU's threads and is not a device's thread is preparing the next
 * batch.
 */
static struct obk_pool *gated_pool(void *self)
{
	bool device = false;

	for (unsigned i = 0; gate.shut && i < gate.context->count; i++)
		device |= pthread_equal(pthread_self(), gate.context->device[i].thread) != 0;
	if (gate.shut && !device) {
		gate.preparing++;
		while (gate.shut)
			waiting_look();
	}
	return obv_device_cpu_ops.pool(self);
}

static const struct obv_backend_ops fake_ops = { .close = fake_close, .cells = fake_cells };
static const struct obv_backend_ops fake_many_ops = { .close = fake_close,
	.cells = fake_many_cells };

/*
 * The CPU holds the setup and computes the scalars. It is not used as a fallback, because making
 * its table takes long.
 */
static struct outboard *open_devices(const struct obv_backend_ops *ops, unsigned threads)
{
	const struct outboard_options o = {
		.profile = "", .backoff = 0.001, .retries = 1, .strategy = OUTBOARD_SINGLE
	};
	struct obv_backend b[3];
	struct outboard *context = NULL;

	for (unsigned i = 0; i < 2; i++) {
		b[i] = (struct obv_backend){ .ops = ops,
			.self = &fakes[i],
			.kind = OUTBOARD_GPU,
			.units = i ? 100 : 1000,
			.clock = 2,
			.operations = 1u << OUTBOARD_OP_KZG };
		snprintf(b[i].name, sizeof(b[i].name), "gpu:%u", i);
	}
	CHECK_INT(obv_device_cpu_open(threads, &b[2], NULL), OUTBOARD_OK);
	CHECK_INT(obv_context_new(&o, b, 3, &context, NULL), OUTBOARD_OK);
	return context;
}

/* Sets which devices may be given work. Called between calls. */
static void let(struct outboard *context, bool gpus, bool cpu)
{
	for (unsigned i = 0; i < 3; i++)
		context->device[i].backend.operations =
			(i < 2 ? gpus : cpu) ? 1u << OUTBOARD_OP_KZG : 0;
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

/*
 * Blob b has the values of x^700 + x^(64 + b), so that some proofs are not infinity. The elements
 * are in bit-reversed order of the roots.
 */
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

/* Checks the proofs by pairings, which the CPU computes. */
static void check_valid(struct outboard *context, struct outboard_kzg *kzg, uint64_t n)
{
	static uint8_t commitments[OUTBOARD_CELLS][OUTBOARD_COMMITMENT_BYTES];
	static uint64_t indices[OUTBOARD_CELLS];
	struct outboard_error error;
	int valid = 0;

	let(context, false, true);
	for (uint64_t b = 0; b < n; b++) {
		CHECK_INT(outboard_kzg_commit(kzg, blobs[b], 1, commitments[0], NULL, &error),
			OUTBOARD_OK);
		for (uint64_t i = 0; i < OUTBOARD_CELLS; i++) {
			memcpy(commitments[i], commitments[0], sizeof(commitments[0]));
			indices[i] = i;
		}
		CHECK_INT(outboard_kzg_verify_cells(kzg, commitments[0], indices, cells[b],
				  proofs[b], OUTBOARD_CELLS, &valid, NULL, &error),
			OUTBOARD_OK);
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
		fakes[i].ran = fakes[i].blobs = fakes[i].most = fakes[i].spared = 0;
	}
}

/*
 * One test for all cases, because loading a setup and computing its points for cell proofs take
 * seconds.
 */
TEST(cell_proofs_on_gpus)
{
	struct outboard_error error = { 0 };
	struct outboard *context;
	struct outboard_kzg *kzg;

	alarm(200);
	ob_opt_set(OB_OPT_GPUCELLS, true);
	context = open_devices(&fake_ops, 1);
	kzg = load_setup(context, 10);
	let(context, true, false);
	make_blobs();
	/* after one failure the same device repeats the work */
	fail_next(1, 0, OUTBOARD_DEVICE);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], BLOBS, cells[0], proofs[0], NULL, &error),
		OUTBOARD_OK);
	CHECK(fakes[0].ran == 2 && fakes[0].blobs == BLOBS && fakes[1].ran == 0 &&
		fakes[0].window == 8);
	CHECK(device_of(context, 0).failures == 1 && device_of(context, 0).pieces >= 1);
	check_valid(context, kzg, BLOBS);
	/* after two failures another device does it; cells are not requested */
	fail_next(2, 0, OUTBOARD_DEVICE);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, NULL, proofs[0], NULL, &error), OUTBOARD_OK);
	CHECK(fakes[0].ran == 2 && fakes[1].ran == 1 && fakes[1].blobs == 1 &&
		proofs[0][0] != 0xaa);
	/* too little memory: another device does it at once */
	fail_next(1, 0, OUTBOARD_NO_MEMORY);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, cells[0], proofs[0], NULL, &error),
		OUTBOARD_OK);
	CHECK(fakes[0].ran == 1 && fakes[1].ran == 1);
	check_valid(context, kzg, 1);
	/*
	 * all devices fail: the error has the device's text, and nothing is written, not even the
	 * cells that the CPU had computed
	 */
	fail_next(1, 1, OUTBOARD_NO_MEMORY);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 2, cells[0], proofs[0], NULL, &error),
		OUTBOARD_NO_MEMORY);
	CHECK(strstr(error.text, "told to fail") && untouched());
	/* the error names the bad element as on the CPU, before any device gets work */
	fail_next(0, 0, OUTBOARD_DEVICE);
	blobs[1][9 * 32] = 0xff;
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], BLOBS, cells[0], proofs[0], NULL, &error),
		OUTBOARD_ARGUMENT);
	CHECK(error.item == 4096 + 9 &&
		strcmp(error.text,
			"blob 1: element 9 of the blob is not below the field's prime r") == 0);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[1], 1, cells[0], proofs[0], NULL, &error),
		OUTBOARD_ARGUMENT);
	CHECK(error.item == 9 && fakes[0].ran + fakes[1].ran == 0 && untouched());
	/*
	 * only the CPU computes cells without proofs, and everything with the switch off; in this
	 * context it gets no work
	 */
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, cells[0], NULL, NULL, &error),
		OUTBOARD_UNSUPPORTED);
	ob_opt_set(OB_OPT_GPUCELLS, false);
	CHECK_INT(outboard_kzg_cells(kzg, blobs[0], 1, cells[0], proofs[0], NULL, &error),
		OUTBOARD_UNSUPPORTED);
	CHECK(fakes[0].ran + fakes[1].ran == 0 && untouched());
	outboard_kzg_free(kzg);
	outboard_close(context);
}

/*
 * Each blob has few values that are not 0, and no two blobs are equal. The expected results are
 * computed blob by blob, without batches.
 */
static void make_many(struct outboard_kzg *kzg)
{
	static struct obk_g1 sums[256];
	static struct obk_fp scratch[2 * 256];
	struct outboard_error error;

	obk_g1_set_infinity(&sums[0]);
	for (unsigned i = 0; i < 256; i++)
		obk_g1_add_affine(&sums[i], &sums[i ? i - 1 : 0], &obk_g1_generator);
	obk_g1_to_affine_batch(multiples, sums, 256, scratch);
	fail_next(0, 0, OUTBOARD_DEVICE);
	for (size_t b = 0; b < MANY; b++) {
		many_blobs[b][b * OBK_KZG_ELEMENT_BYTES + 31] = 1;
		many_blobs[b][(4095 - 7 * b) * OBK_KZG_ELEMENT_BYTES + 30] = (uint8_t)(b + 1);
		CHECK_INT(outboard_kzg_cells(kzg, many_blobs[b], 1, want_cells[b], want_proofs[b],
				  NULL, &error),
			OUTBOARD_OK);
		CHECK(memcmp(want_cells[b], many_blobs[b], OUTBOARD_BLOB_BYTES) == 0);
		CHECK(b == 0 || memcmp(want_proofs[b], want_proofs[b - 1], PROOFS_BYTES) != 0);
	}
	CHECK(fakes[0].ran == MANY && fakes[0].most == 1 && fakes[1].ran == 0);
}

static int prove_many(struct outboard_kzg *kzg, uint64_t n, bool with_cells,
	const struct outboard_call *call, struct outboard_error *error)
{
	memset(many_cells, 0xaa, sizeof(many_cells));
	memset(many_proofs, 0xaa, sizeof(many_proofs));
	return outboard_kzg_cells(kzg, many_blobs[0], n, with_cells ? many_cells[0] : NULL,
		many_proofs[0], call, error);
}

/* True if the results from blob `first` on are unchanged. */
static bool many_untouched(size_t first)
{
	bool fine = true;

	for (size_t i = first * CELLS_BYTES; i < sizeof(many_cells); i++)
		fine &= ((uint8_t *)many_cells)[i] == 0xaa;
	for (size_t i = first * PROOFS_BYTES; i < sizeof(many_proofs); i++)
		fine &= ((uint8_t *)many_proofs)[i] == 0xaa;
	return fine;
}

/* True if the first n results are right and the others unchanged. */
static bool many_as_wanted(size_t n)
{
	return memcmp(many_cells, want_cells, n * CELLS_BYTES) == 0 &&
		memcmp(many_proofs, want_proofs, n * PROOFS_BYTES) == 0 && many_untouched(n);
}

/* The device's second batch fails: all batches are repeated, on this device or on another. */
static void check_many_retried(struct outboard_kzg *kzg, uint64_t n, int status)
{
	int batches = (int)((n + BATCH - 1) / BATCH), count = (int)n;
	struct outboard_error error;

	fail_next(1, 0, status);
	fakes[0].spared = 1;
	CHECK_INT(prove_many(kzg, n, true, NULL, &error), OUTBOARD_OK);
	if (status == OUTBOARD_DEVICE)
		CHECK(fakes[0].ran == 2 + batches && fakes[0].blobs == BATCH + count &&
			fakes[1].ran == 0);
	else
		CHECK(fakes[0].ran == 2 && fakes[0].blobs == BATCH && fakes[1].ran == batches &&
			fakes[1].blobs == count);
	CHECK(fakes[0].most == BATCH && many_as_wanted(n));
}

/* The second batch has an invalid blob: the first batch may run, no later one. */
static void check_many_bad(struct outboard_kzg *kzg)
{
	struct outboard_error error;

	fail_next(0, 0, OUTBOARD_DEVICE);
	many_blobs[66][9 * OBK_KZG_ELEMENT_BYTES] = 0xff;
	CHECK_INT(prove_many(kzg, TWO_BATCHES, true, NULL, &error), OUTBOARD_ARGUMENT);
	many_blobs[66][9 * OBK_KZG_ELEMENT_BYTES] = 0;
	CHECK(error.item == 66 * 4096 + 9 &&
		strcmp(error.text,
			"blob 66: element 9 of the blob is not below the field's prime r") == 0);
	CHECK(fakes[0].ran <= 1 && fakes[1].ran == 0 && many_untouched(BATCH));
}

static void wait_for(const _Atomic int *what)
{
	UNTIL(*what != 0);
	CHECK_INT(*what, 1);
}

/* Cancels while the device has the first batch and, with `ahead`, the second is being prepared. */
static void check_many_cancelled(struct outboard *context, struct outboard_kzg *kzg, bool ahead)
{
	struct outboard_ticket *ticket = NULL;
	const struct outboard_call call = { .ticket = &ticket };
	struct outboard_error error;

	fail_next(0, 0, OUTBOARD_DEVICE);
	gate.context = context;
	gate.summing = gate.preparing = 0;
	gate.shut = true;
	CHECK_INT(prove_many(kzg, TWO_BATCHES, true, &call, &error), OUTBOARD_OK);
	wait_for(&gate.summing);
	if (ahead)
		wait_for(&gate.preparing);
	outboard_cancel(ticket);
	gate.shut = false;
	CHECK_INT(outboard_wait(ticket, -1, &error), OUTBOARD_CANCELLED);
	outboard_ticket_free(ticket);
	CHECK(fakes[0].ran == 1 && fakes[1].ran == 0 && gate.preparing == ahead &&
		many_untouched(BATCH));
}

TEST(many_cell_proofs_on_gpus)
{
	struct obv_backend_ops gated = obv_device_cpu_ops;
	struct outboard_error error;
	struct outboard *context;
	struct outboard_kzg *kzg;

	ob_opt_set(OB_OPT_GPUCELLS, true);
	context = open_devices(&fake_many_ops, 2);
	kzg = load_setup(context, 10);
	gated.pool = gated_pool;
	context->device[2].backend.ops = &gated;
	let(context, true, false);
	make_many(kzg);
	for (unsigned ahead = 0; ahead < 2; ahead++) {
		ob_opt_set(OB_OPT_AHEAD, ahead);
		check_many_cancelled(context, kzg, ahead);
		check_many_bad(kzg);
		check_many_retried(kzg, TWO_BATCHES, OUTBOARD_NO_MEMORY);
	}
	check_many_retried(kzg, MANY, OUTBOARD_DEVICE);
	/* nothing fails; cells are not requested */
	fail_next(0, 0, OUTBOARD_DEVICE);
	CHECK_INT(prove_many(kzg, MANY, false, NULL, &error), OUTBOARD_OK);
	CHECK(fakes[0].ran == 3 && fakes[0].blobs == MANY && fakes[1].ran == 0);
	CHECK(memcmp(many_proofs, want_proofs, sizeof(many_proofs)) == 0 &&
		many_cells[0][0] == 0xaa);
	outboard_kzg_free(kzg);
	outboard_close(context);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
