/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/gpu_model.h"

#include <math.h>
#include <string.h>

#include "compute/gpu/gpu.h"
#include "compute/msm/gpu_shape.h"

#define GROUP_ENTRIES  ((size_t)1 << 27) /* most entries of products that are processed together */
#define GROUP_PRODUCTS ((size_t)16384)   /* most rows in a grid */
#define MAX_COPIES     64
#define ENTRY_LIMIT    ((size_t)1 << 31)

const char *const obk_msm_gpu_weight_names[OBK_MSM_WEIGHTS] = { "trip", "launch", "byte", "entry",
	"gather", "bucket", "step", "row" };

/* ---- counts ---- */

/*
 * Additions that a thread makes one after the other when the device is not full; gpu.c cuts the
 * work in this way. A step is an addition by four SIMD lanes.
 */
#define CHUNK       4
#define CHUNK_STEPS 10.8 /* the same with one SIMD lane each */
#define REST_STEPS  6    /* the last five levels of folding, in one launch */
#define TREE_STEPS  8
#define TREE_SUMS   1.44 /* full additions, in units of additions from the table */
#define JOIN_STEPS  2    /* per level: most buckets begin and end in the same chunk */

static void count_multiples(const struct obk_msm_gpu_work *w, size_t threads, double *counts)
{
	size_t parts = 1, each = w->plan.windows, left;

	while (each > CHUNK && w->n * w->products * parts < threads) {
		each = (each + 1) / 2;
		parts = (w->plan.windows + each - 1) / each;
	}
	counts[OBK_MSM_LAUNCH] = 3;
	counts[OBK_MSM_STEP] = CHUNK_STEPS;
	for (left = w->n * parts; left > 1; left = (left + OBK_MSM_TREE - 1) / OBK_MSM_TREE) {
		counts[OBK_MSM_LAUNCH]++;
		counts[OBK_MSM_STEP] += TREE_STEPS;
	}
	counts[OBK_MSM_GATHER] = (double)w->n * (double)w->products *
		((double)w->plan.windows + TREE_SUMS * (double)parts);
	counts[OBK_MSM_ROW] = (double)w->products;
}

static void count_buckets(const struct obk_msm_gpu_work *w, size_t threads, double *counts)
{
	/*
	 * chunks are computed for 32 windows, so that the comparison of windows depends only on
	 * what they change
	 */
	double scalars = (double)w->n * (double)w->products, entries = scalars * w->plan.windows,
	       chunks = fmin(8 * scalars, 2.5 * (double)threads);
	double joins = ceil(log2(fmax(2, chunks)) / 2),
	       folds = w->plan.window > 6 ? w->plan.window - 6 : 0;

	counts[OBK_MSM_LAUNCH] = 9 + joins + folds;
	counts[OBK_MSM_STEP] = CHUNK_STEPS + JOIN_STEPS * joins + folds + REST_STEPS;
	counts[OBK_MSM_ENTRY] = entries;
	counts[OBK_MSM_BUCKET] = (double)w->products * w->plan.sets * w->plan.buckets;
	counts[OBK_MSM_ROW] = (double)w->products * w->plan.sets * w->plan.window;
}

void obk_msm_gpu_counts(
	const struct obk_msm_gpu_work *w, size_t threads, double ret_counts[OBK_MSM_WEIGHTS])
{
	memset(ret_counts, 0, OBK_MSM_WEIGHTS * sizeof(*ret_counts));
	if (!w->n || !w->products)
		return;
	ret_counts[OBK_MSM_TRIP] = 1;
	if (!w->resident)
		ret_counts[OBK_MSM_BYTE] = (double)w->n * (double)w->products * OBK_SCALAR_BYTES;
	(w->multiples ? count_multiples : count_buckets)(w, threads, ret_counts);
}

double obk_msm_gpu_seconds(
	const struct obk_msm_gpu_tuning *tuning, const struct obk_msm_gpu_work *work)
{
	double counts[OBK_MSM_WEIGHTS], sum = 0;

	obk_msm_gpu_counts(work, tuning->threads, counts);
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		sum += counts[i] * tuning->weights.of[i];
	return sum;
}

/* ---- weights ---- */

/* Cycles of a warp at the multiplier, and of four SIMD lanes alone. */
#define MIXED_CYCLES     10632.0
#define FULL_CYCLES      15336.0
#define ALONE_CYCLES     6200.0 /* 6,052 and six groups of shuffles */
#define LANES            128.0  /* of a multiprocessor, in four partitions */
#define REACHED          0.75   /* fraction of the multiplier's peak rate that is reached */
#define SORT_SHARE       0.15   /* cost of sorting an entry, relative to an addition */
#define BUCKET_FULL_SUMS 2.1

void obk_msm_gpu_guess(const struct obk_gpu_info *info, struct obk_msm_gpu_tuning *ret_tuning)
{
	double clock = info->clock_khz ? info->clock_khz * 1e3 : 1.4e9,
	       cycle = 1 / (REACHED * LANES * info->processors * clock);

	*ret_tuning = (struct obk_msm_gpu_tuning){ .threads = (size_t)info->processors *
			OBK_MSM_RESIDENT * OBK_MSM_THREADS,
		.weights.of = {
			[OBK_MSM_TRIP] = 1.5e-5,
			[OBK_MSM_LAUNCH] = 2.5e-6,
			[OBK_MSM_BYTE] = 1 / 20e9,
			[OBK_MSM_ENTRY] = (1 + SORT_SHARE) * MIXED_CYCLES * cycle,
			[OBK_MSM_GATHER] = MIXED_CYCLES * cycle,
			[OBK_MSM_BUCKET] = BUCKET_FULL_SUMS * FULL_CYCLES * cycle,
			[OBK_MSM_STEP] = ALONE_CYCLES / clock,
			[OBK_MSM_ROW] = 8e-7,
		} };
}

#define PULL      1e-3 /* weight of the previous proportions, in squares of relative errors */
#define SORT_MOST 4    /* upper limit for an entry, in additions */
#define LEAST     0.02 /* lower limit, relative to the estimate, so that no cost is ever 0 */

static bool solve(double a[OBK_MSM_WEIGHTS][OBK_MSM_WEIGHTS + 1], double x[OBK_MSM_WEIGHTS])
{
	const unsigned n = OBK_MSM_WEIGHTS;

	for (unsigned i = 0; i < n; i++) {
		unsigned best = i;

		for (unsigned r = i + 1; r < n; r++)
			best = fabs(a[r][i]) > fabs(a[best][i]) ? r : best;
		if (!(fabs(a[best][i]) > 0))
			return false;
		for (unsigned j = 0; j <= n && best != i; j++) {
			double t = a[i][j];

			a[i][j] = a[best][j];
			a[best][j] = t;
		}
		for (unsigned r = i + 1; r < n; r++) {
			double by = a[r][i] / a[i][i];

			for (unsigned j = i; j <= n; j++)
				a[r][j] -= by * a[i][j];
		}
	}
	for (unsigned i = n; i-- > 0;) {
		x[i] = a[i][n];
		for (unsigned j = i + 1; j < n; j++)
			x[i] -= a[i][j] * x[j];
		x[i] /= a[i][i];
	}
	return true;
}

/*
 * The ratio of the samples' times to those that the weights give, excluding the weights in `fixed`:
 * the mean of the logarithms.
 */
static double pace(const struct obk_msm_gpu_tuning *tuning, unsigned fixed,
	const struct obk_msm_gpu_sample *samples, size_t n)
{
	double sum = 0;

	for (size_t s = 0; s < n; s++) {
		double counts[OBK_MSM_WEIGHTS], known = 0, open = 0;

		obk_msm_gpu_counts(&samples[s].work, tuning->threads, counts);
		for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
			*(fixed >> i & 1 ? &known : &open) += counts[i] * tuning->weights.of[i];
		sum += log(fmax(samples[s].seconds - known, samples[s].seconds / 16) / open);
	}
	return exp(sum / (double)n);
}

/* x: weights as multiples of those in `unit`; known[i]: must not be changed. */
static bool least_squares(const double unit[OBK_MSM_WEIGHTS], const bool known[OBK_MSM_WEIGHTS],
	size_t threads, const struct obk_msm_gpu_sample *samples, size_t n,
	double x[OBK_MSM_WEIGHTS])
{
	double a[OBK_MSM_WEIGHTS][OBK_MSM_WEIGHTS + 1] = { 0 };

	for (size_t s = 0; s < n; s++) {
		double c[OBK_MSM_WEIGHTS], want = 1;

		obk_msm_gpu_counts(&samples[s].work, threads, c);
		for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++) {
			c[i] *= unit[i] / samples[s].seconds;
			want -= known[i] ? c[i] * x[i] : 0;
		}
		for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++) {
			for (unsigned j = 0; j < OBK_MSM_WEIGHTS && !known[i]; j++)
				a[i][j] += known[j] ? 0 : c[i] * c[j];
			a[i][OBK_MSM_WEIGHTS] += known[i] ? 0 : c[i] * want;
		}
	}
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++) {
		a[i][i] += known[i] ? 1 : PULL;
		a[i][OBK_MSM_WEIGHTS] += known[i] ? x[i] : PULL;
	}
	return solve(a, x);
}

/* Whether the weight belongs to a count that some sample has. */
static bool told(
	unsigned weight, size_t threads, const struct obk_msm_gpu_sample *samples, size_t n)
{
	double counts[OBK_MSM_WEIGHTS];
	bool any = false;

	for (size_t s = 0; s < n && !any; s++) {
		obk_msm_gpu_counts(&samples[s].work, threads, counts);
		any = counts[weight] > 0;
	}
	return any;
}

void obk_msm_gpu_fit(struct obk_msm_gpu_tuning *tuning, unsigned fixed,
	const struct obk_msm_gpu_sample *samples, size_t n)
{
	double unit[OBK_MSM_WEIGHTS], x[OBK_MSM_WEIGHTS],
		*w = tuning->weights.of, by = n ? pace(tuning, fixed, samples, n) : 1;
	bool known[OBK_MSM_WEIGHTS], again = n > 0;

	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++) {
		known[i] = fixed >> i & 1;
		unit[i] = w[i] * (known[i] ? 1 : by);
		x[i] = 1;
	}
	while (again) {
		again = false;
		if (!least_squares(unit, known, tuning->threads, samples, n, x))
			return;
		for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++) {
			if (known[i] || x[i] >= LEAST)
				continue;
			x[i] = LEAST;
			known[i] = again = true;
		}
	}
	/* both kinds of additions are related: without sorting, an entry still costs an addition */
	if (!(fixed >> OBK_MSM_GATHER & 1) && !told(OBK_MSM_GATHER, tuning->threads, samples, n))
		x[OBK_MSM_GATHER] = x[OBK_MSM_ENTRY];
	if (!(fixed >> OBK_MSM_ENTRY & 1) && !told(OBK_MSM_ENTRY, tuning->threads, samples, n))
		x[OBK_MSM_ENTRY] = x[OBK_MSM_GATHER];
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		w[i] = unit[i] * x[i];
	if (!(fixed >> OBK_MSM_GATHER & 1))
		w[OBK_MSM_GATHER] = fmin(
			fmax(w[OBK_MSM_GATHER], w[OBK_MSM_ENTRY] / SORT_MOST), w[OBK_MSM_ENTRY]);
	tuning->measured = tuning->measured || n > 0;
}

/* ---- choices ---- */

struct obk_plan obk_msm_gpu_multiples_plan(unsigned bits)
{
	return obk_plan_shape(bits, 255, (255 + bits - 1) / bits);
}

size_t obk_msm_gpu_multiples_bytes(unsigned bits)
{
	return ((size_t)obk_msm_gpu_multiples_plan(bits).windows << (bits - 1)) *
		sizeof(struct obk_g1_affine);
}

static double per_product(const struct obk_msm_gpu_tuning *tuning, const struct obk_plan *plan,
	bool multiples, size_t n, size_t products)
{
	struct obk_msm_gpu_work work = {
		.n = n, .products = products, .plan = *plan, .multiples = multiples
	};

	return obk_msm_gpu_seconds(tuning, &work) / (double)products;
}

void obk_msm_gpu_plan(const struct obk_msm_gpu_tuning *tuning, struct obk_plan *plan,
	unsigned copies, unsigned fixed_window, bool order_r, size_t n, size_t products)
{
	/* halved: 254 bits with a sign, and one more for signed digits */
	unsigned bits = order_r ? 255 : 257;
	double best = 0;

	if (!fixed_window && copies == 1 && products == 1)
		fixed_window = tuning->window[obk_tune_log(n)];
	if (fixed_window) {
		*plan = obk_plan_shape(fixed_window, bits, copies);
		return;
	}
	for (unsigned c = 3; c <= OBK_MSM_GPU_MAX_WINDOW; c++) {
		struct obk_plan p = obk_plan_shape(c, bits, copies);
		double cost = per_product(tuning, &p, false, n, products);

		if (c == 3 || cost < best) {
			best = cost;
			*plan = p;
		}
	}
}

static void try_multiples(const struct obk_msm_gpu_tuning *tuning, size_t n, size_t table_bytes,
	struct obk_msm_gpu_choice *best)
{
	for (unsigned bits = OBK_MSM_GPU_MULTIPLES_MIN_BITS; bits <= OBK_MSM_GPU_MULTIPLES_MAX_BITS;
		bits++) {
		struct obk_plan plan = obk_msm_gpu_multiples_plan(bits);
		double seconds = per_product(tuning, &plan, true, n, 1);

		if (table_bytes / obk_msm_gpu_multiples_bytes(bits) < n)
			return;
		if (seconds <= best->seconds)
			*best = (struct obk_msm_gpu_choice){ .multiples = true,
				.window = bits,
				.shift = bits,
				.copies = 1,
				.bytes = n * obk_msm_gpu_multiples_bytes(bits),
				.seconds = seconds };
	}
}

void obk_msm_gpu_choose(const struct obk_msm_gpu_tuning *tuning, size_t n, bool order_r,
	size_t table_bytes, struct obk_msm_gpu_choice *ret_choice)
{
	const size_t row = n * sizeof(struct obk_g1_affine);
	struct obk_msm_gpu_choice best = { .copies = 1, .bytes = row };
	struct obk_plan plan;

	if (n) {
		obk_msm_gpu_plan(tuning, &plan, 1, 0, order_r, n, 1);
		best.seconds = per_product(tuning, &plan, false, n, 1);
	}
	for (unsigned copies = 2; n && copies <= MAX_COPIES && (copies - 1) * row <= table_bytes &&
		copies * n < ENTRY_LIMIT;
		copies++) {
		for (unsigned c = 2; c <= OBK_MSM_GPU_MAX_WINDOW; c++) {
			double seconds;

			obk_msm_gpu_plan(tuning, &plan, copies, c, order_r, n, 1);
			seconds = per_product(tuning, &plan, false, n, 1);
			if ((plan.windows + plan.sets - 1) / plan.sets == copies &&
				seconds < best.seconds)
				best = (struct obk_msm_gpu_choice){ .window = c,
					.shift = c * plan.sets,
					.copies = copies,
					.bytes = copies * row,
					.seconds = seconds };
		}
	}
	if (n && order_r && n <= OBK_MSM_GPU_MULTIPLES_MAX_POINTS)
		try_multiples(tuning, n, table_bytes, &best);
	*ret_choice = best;
}

size_t obk_msm_gpu_group(
	const struct obk_msm_gpu_tuning *tuning, size_t n, unsigned windows, size_t batch)
{
	size_t entries = tuning->group && tuning->group < GROUP_ENTRIES ? tuning->group
									: GROUP_ENTRIES,
	       most = entries / (n * windows), groups;

	most = most < 1 ? 1 : most > GROUP_PRODUCTS ? GROUP_PRODUCTS : most;
	groups = (batch + most - 1) / most;
	return (batch + groups - 1) / groups;
}
