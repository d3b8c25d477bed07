/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The data for devices that decide cells by approximate distances first: the device's sums,
 * computed here, are within the slack of the CPU's, and the method is off where it would decide too
 * few cells.
 */
#include <math.h>

#include "compute/rqa/gpu.h"
#include "compute/rqa/internal.h"
#include "tests/test.h"

#define MOST   120
#define STRIDE (MOST + 8)

static uint64_t seed = 11;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

struct case_of {
	double data[2 * MOST];
	struct obk_rqa_series x;
	struct obk_rqa_options o;
	struct obk_rqa_matrix matrix;
	float planes[3 * STRIDE], slack;
};

static void case_init(struct case_of *c, uint64_t length, uint32_t channels)
{
	memset(c, 0, sizeof *c);
	c->x = (struct obk_rqa_series){
		.name = "x", .data = c->data, .length = length, .channels = channels
	};
	obk_rqa_options_preset(OBK_RQA_PRESET_ACCRQA, &c->o);
	c->o.want = 0;
	c->o.norm = OBK_RQA_NORM_L2;
	c->o.precision = OBK_RQA_PRECISION_F64;
}

static bool case_near(struct case_of *c)
{
	struct obk_rqa_error error;
	bool near;

	CHECK_INT(obk_rqa_matrix_init(&c->matrix, &c->x, NULL, &c->o, &error), OBK_RQA_OK);
	c->matrix.plot[0].limit =
		obk_rqa_limit(OBK_RQA_NORM_L2, c->o.test, c->matrix.plot[0].f64, c->o.radius);
	memset(c->planes, 0, sizeof c->planes);
	near = obk_rqa_gpu_near(&c->matrix.plot[0], c->planes, STRIDE, &c->slack);
	CHECK(!near || c->slack > 0);
	return near;
}

/* Computes d^2 as the CPU does, in the precision of the plot. */
static double square(const struct obk_rqa_plot *plot, uint64_t i, uint64_t j)
{
	double sum = 0;
	float sum_f32 = 0;

	for (uint32_t l = 0; l < plot->m; l++)
		for (uint32_t c = 0; c < plot->channels; c++)
			if (plot->f64) {
				const double *x = plot->x.channel[c];
				double gap = x[i + l * plot->tau] - x[j + l * plot->tau];

				sum = sum + gap * gap;
			} else {
				const float *x = plot->x.channel[c];
				volatile float gap = x[i + l * plot->tau] - x[j + l * plot->tau],
					       product = gap * gap;

				sum_f32 = sum_f32 + product;
			}
	return plot->f64 ? sum : (double)sum_f32;
}

/* Computes the approximate limit - d^2 as kernel_near.cuh does. */
static float nearly(const struct case_of *c, uint64_t i, uint64_t j)
{
	const struct obk_rqa_plot *plot = &c->matrix.plot[0];
	const float *lengths = c->planes + plot->channels * STRIDE;
	volatile float first = (float)plot->limit - lengths[i], sum = first - lengths[j];

	for (uint32_t l = 0; l < plot->m; l++)
		for (uint32_t k = 0; k < plot->channels; k++)
			sum = fmaf(2 * c->planes[k * STRIDE + i + l * plot->tau],
				c->planes[k * STRIDE + j + l * plot->tau], sum);
	return sum;
}

static bool whole(const struct obk_rqa_plot *plot, uint64_t i)
{
	return !plot->x.valid || plot->x.valid[i / 64] >> (i & 63) & 1;
}

/*
 * Checks that no cell beyond the slack has the wrong sign. Returns the largest |t - (limit - d^2)|
 * of cells near the limit, to which the bound applies, as a share of the slack.
 */
static double share_of_slack(const struct case_of *c)
{
	const struct obk_rqa_plot *plot = &c->matrix.plot[0];
	double most = 0;

	for (uint64_t i = 0; i < plot->x.n; i++)
		for (uint64_t j = 0; j < plot->x.n; j++) {
			double d2 = square(plot, i, j), t = (double)nearly(c, i, j);

			if (!whole(plot, i) || !whole(plot, j))
				continue;
			if (fabs(t) > (double)c->slack)
				CHECK((t > 0) == (d2 <= plot->limit));
			if (d2 < 2 * plot->limit)
				most = fmax(most, fabs(t - (plot->limit - d2)));
		}
	return most / (double)c->slack;
}

TEST(nothing_is_further_off_than_the_slack)
{
	static struct case_of c;
	double most = 0;
	unsigned on = 0, rounds = 400 / TEST_SLOWER;

	for (unsigned round = 0; round < rounds; round++) {
		double offset = round % 3 ? pow(10, below(10)) : 0,
		       scale = pow(10, (int)below(7) - 3);
		double share;

		case_init(&c, 40 + below(MOST - 40), 1 + below(2));
		c.o.m = 1 + below(round % 4 ? 3 : 7);
		c.o.tau = 1 + below(4);
		c.o.test = (int)below(2);
		c.o.precision = below(2) ? OBK_RQA_PRECISION_F32 : OBK_RQA_PRECISION_F64;
		c.o.missing = round % 4 == 3;
		for (unsigned t = 0; t < c.x.length * c.x.channels; t++)
			c.data[t] = offset +
				scale *
					(round % 2 ? (double)below(40) * 0.05
						   : (double)below(1u << 30) * 0x1p-29);
		if (c.o.missing)
			c.data[below((unsigned)c.x.length)] = NAN;
		c.o.radius = scale * 0.05 * (1 + below(20)) * sqrt(c.o.m);
		if (case_near(&c)) {
			share = share_of_slack(&c);
			CHECK(share <= 1);
			most = fmax(most, share);
			on++;
		}
		obk_rqa_matrix_fini(&c.matrix);
	}
	fprintf(stderr, "%u of %u near, at most %.3f of the slack\n", on, rounds, most);
	CHECK(on > rounds / 2);
	CHECK(most > 0.01); /* a slack that is far too wide is an error, too */
}

static bool near_of(struct case_of *c)
{
	bool near = case_near(c);

	obk_rqa_matrix_fini(&c->matrix);
	return near;
}

TEST(it_is_off_where_it_decides_too_little)
{
	static struct case_of c;

	case_init(&c, 100, 1);
	for (unsigned t = 0; t < 100; t++)
		c.data[t] = (double)t * 0.01;
	c.o.radius = 0.2;
	CHECK(near_of(&c));
	c.o.radius = 1e-4; /* too small for floats near 1 */
	CHECK(!near_of(&c));
	c.o.radius = 0;
	CHECK(!near_of(&c));
	c.o.radius = INFINITY;
	CHECK(!near_of(&c));
	c.o.radius = 1e200;
	CHECK(!near_of(&c));
	c.o.radius = 0.2;
	c.data[50] = 1e6; /* a distant sample costs the others their precision */
	CHECK(!near_of(&c));
	c.data[50] = 1e300; /* exceeds the range of float */
	CHECK(!near_of(&c));
	c.o.radius = 1e299;
	CHECK(!near_of(&c));
}

/*
 * A gap is a 0 in the planes and does not affect the range. Nor do samples that are only in vectors
 * with gaps.
 */
TEST(gaps_do_not_turn_it_off)
{
	static struct case_of c;

	case_init(&c, 100, 1);
	for (unsigned t = 0; t < 100; t++)
		c.data[t] = 1e6 + (double)t * 0.01;
	c.o.radius = 0.2;
	c.o.m = 2;
	c.o.tau = 3;
	c.o.missing = 1;
	CHECK(near_of(&c));
	c.data[40] = c.data[46] = NAN;
	c.data[43] = -1e7;
	CHECK(case_near(&c));
	CHECK(share_of_slack(&c) <= 1);
	CHECK(c.planes[40] == 0 && c.planes[43] == 0);
	obk_rqa_matrix_fini(&c.matrix);
	c.data[46] = 1e6;
	CHECK(!near_of(&c));
	for (unsigned t = 0; t < 100; t++)
		c.data[t] = NAN;
	CHECK(near_of(&c)); /* without vectors there is nothing to turn it off */
}

/* Planes with floats that are not finite cannot occur in practice. */
TEST(a_sample_that_is_not_finite_turns_it_off)
{
	static struct case_of c;

	case_init(&c, 100, 1);
	for (unsigned t = 0; t < 100; t++)
		c.data[t] = (double)t * 0.01;
	c.o.radius = 0.2;
	c.o.precision = OBK_RQA_PRECISION_F32;
	CHECK(case_near(&c));
	((float *)c.matrix.plot[0].x.channel[0])[7] = INFINITY;
	CHECK(!obk_rqa_gpu_near(&c.matrix.plot[0], c.planes, STRIDE, &c.slack));
	((float *)c.matrix.plot[0].x.channel[0])[7] = NAN;
	CHECK(!obk_rqa_gpu_near(&c.matrix.plot[0], c.planes, STRIDE, &c.slack));
	obk_rqa_matrix_fini(&c.matrix);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
