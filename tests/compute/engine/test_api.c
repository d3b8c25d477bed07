/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Tests the library through outboard.h only. installed.py also compiles this file as C++. */
#include <math.h>
#include <pthread.h>

#include "api.h"

static const uint8_t infinity[48] = { 0xc0 };

TEST(products_by_handle_on_one_and_several_devices)
{
	const char *const lists[] = { "cpu:1", "cpu:1,cpu:1", "cpu:2,cpu:1,cpu:1" };
	uint8_t want[48], part[48], have[48];

	for (unsigned l = 0; l < 3; l++) {
		struct outboard *ob = open_list(lists[l]);
		struct outboard_bases *bases;
		struct outboard_msm m = { .scalars = scalars, .count = N, .result = have };

		make_points(ob);
		bases = upload(ob, points, N, OUTBOARD_POINT_COMPRESSED);
		CHECK_INT(outboard_bases_count(bases), N);
		CHECK(outboard_bases_bytes(bases) >= N * 96);
		expected(ob, 0, N, want);
		for (uint32_t strategy = OUTBOARD_AUTO; strategy <= OUTBOARD_DYNAMIC; strategy++) {
			struct outboard_call call = { .strategy = strategy + 1 };

			memset(have, 0, sizeof(have));
			CHECK_INT(outboard_msm_run(bases, &m, &call, NULL), OUTBOARD_OK);
			CHECK(memcmp(have, want, 48) == 0);
		}
		expected(ob, 5, 10, part);
		m = (struct outboard_msm){
			.scalars = scalars[5], .offset = 5, .count = 10, .result = have
		};
		CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
		CHECK(memcmp(have, part, 48) == 0);
		outboard_bases_free(bases);
		outboard_close(ob);
	}
}

TEST(formats_of_points_and_scalars)
{
	struct outboard *ob = open_list("cpu:1");
	uint8_t plain[8][96], mont[8][96], be[8][32], a[48], b[48], c[48];
	struct outboard_bases *bases, *second, *third;
	struct outboard_msm m;

	make_points(ob);
	bases = upload(ob, points, 8, OUTBOARD_POINT_COMPRESSED);
	for (unsigned i = 0; i < 8; i++) {
		uint8_t one[32] = { 1 };

		m = (struct outboard_msm){ .scalars = one,
			.offset = i,
			.count = 1,
			.result = plain[i],
			.result_format = OUTBOARD_POINT_UNCOMPRESSED };
		CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
		m.result = mont[i];
		m.result_format = OUTBOARD_POINT_MONTGOMERY;
		CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
		for (unsigned k = 0; k < 32; k++)
			be[i][k] = scalars[i][31 - k];
	}
	second = upload(ob, plain, 8, OUTBOARD_POINT_UNCOMPRESSED);
	third = upload(ob, mont, 8, OUTBOARD_POINT_MONTGOMERY);
	m = (struct outboard_msm){ .scalars = scalars, .count = 8, .result = a };
	CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
	m.result = b;
	CHECK_INT(outboard_msm_run(second, &m, NULL, NULL), OUTBOARD_OK);
	m = (struct outboard_msm){
		.scalars = be, .count = 8, .scalar_format = OUTBOARD_SCALAR_BE, .result = c
	};
	CHECK_INT(outboard_msm_run(third, &m, NULL, NULL), OUTBOARD_OK);
	CHECK(memcmp(a, b, 48) == 0 && memcmp(a, c, 48) == 0);
	outboard_bases_free(bases);
	outboard_bases_free(second);
	outboard_bases_free(third);
	outboard_close(ob);
}

TEST(bad_points_are_named)
{
	struct outboard *ob = open_list("cpu:2");
	/* (0, 2) is on the curve but not in G1. */
	static uint8_t outside[3][96] = { { 0x40 } };
	struct outboard_points args = { .points = points, .count = N };
	struct outboard_bases *bases = NULL;
	struct outboard_error error = { 0 };

	make_points(ob);
	points[1234][47] ^= 1;
	points[1300][47] ^= 1;
	CHECK_INT(outboard_bases_new(ob, &args, &bases, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(error.item, 1234);
	CHECK(strstr(error.text, "1234") != NULL && bases == NULL);
	outside[1][0] = outside[2][0] = 0x40;
	memset(outside[2], 0, 96);
	outside[2][95] = 2;
	args = (struct outboard_points){
		.points = outside, .count = 3, .format = OUTBOARD_POINT_UNCOMPRESSED
	};
	CHECK_INT(outboard_bases_new(ob, &args, &bases, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(error.item, 2);
	CHECK(strstr(error.text, "subgroup") != NULL);
	args.trust = OUTBOARD_TRUST_CURVE;
	CHECK_INT(outboard_bases_new(ob, &args, &bases, &error), OUTBOARD_OK);
	outboard_bases_free(bases);
	args.format = 9;
	CHECK_INT(outboard_bases_new(ob, &args, &bases, &error), OUTBOARD_ARGUMENT);
	args = (struct outboard_points){ .points = points, .count = OUTBOARD_MAX_POINTS + 1ull };
	CHECK_INT(outboard_bases_new(ob, &args, &bases, &error), OUTBOARD_LIMIT);
	args = (struct outboard_points){ .count = 1 };
	CHECK_INT(outboard_bases_new(ob, &args, &bases, &error), OUTBOARD_ARGUMENT);
	args = (struct outboard_points){ .points = points, .count = 1, .stride = 47 };
	CHECK_INT(outboard_bases_new(ob, &args, &bases, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_bases_new(ob, NULL, &bases, NULL), OUTBOARD_ARGUMENT);
	outboard_close(ob);
}

TEST(bad_products_are_named)
{
	struct outboard *ob = open_list("cpu:1,cpu:1");
	struct outboard_bases *bases;
	struct outboard_error error = { 0 };
	uint8_t have[3][48];
	struct outboard_msm m = { .scalars = scalars, .count = 0, .batch = 3, .result = have };
	struct outboard_call call = { .timeout = NAN };

	make_points(ob);
	bases = upload(ob, points, 100, OUTBOARD_POINT_COMPRESSED);
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_OK);
	CHECK(memcmp(have[0], infinity, 48) == 0 && memcmp(have[2], infinity, 48) == 0);
	m.count = 101;
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_ARGUMENT);
	CHECK(strstr(error.text, "100") != NULL);
	m = (struct outboard_msm){
		.scalars = scalars, .offset = UINT64_MAX, .count = 2, .result = have
	};
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_ARGUMENT);
	m = (struct outboard_msm){
		.scalars = scalars, .count = 1, .batch = OUTBOARD_MAX_BATCH + 1, .result = have
	};
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_LIMIT);
	m = (struct outboard_msm){ .scalars = scalars, .count = 1 };
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_ARGUMENT);
	m = (struct outboard_msm){ .count = 1, .result = have };
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_ARGUMENT);
	memset(scalars[77], 0xff, 32);
	m = (struct outboard_msm){
		.scalars = scalars, .count = 100, .canonical = 1, .result = have
	};
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(error.item, 77);
	m.canonical = 0;
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_OK);
	m.memory = OUTBOARD_ON(0);
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_ARGUMENT);
	m.memory = 0;
	m.reserved[1] = 1;
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_ARGUMENT);
	m.reserved[1] = 0;
	CHECK_INT(outboard_msm_run(bases, &m, &call, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_msm_run(NULL, &m, NULL, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_msm_run(bases, NULL, NULL, NULL), OUTBOARD_ARGUMENT);
	outboard_bases_free(bases);
	outboard_bases_free(NULL);
	outboard_close(ob);
	outboard_close(NULL);
}

TEST(contexts_and_devices)
{
	struct outboard_error error = { 0 };
	struct outboard_options o = {
		.devices = "gpu:0,tpu:1", .driver = "/nowhere/libcuda.so", .profile = ""
	};
	struct outboard_device d;
	struct outboard *ob = NULL;

	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_NO_DEVICE);
	CHECK(strstr(error.text, "/nowhere/libcuda.so") != NULL && ob == NULL);
	o.devices = "gpu";
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_NO_DEVICE);
	o.devices = "tpu:1";
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_ARGUMENT);
	CHECK(strstr(error.text, "tpu") != NULL);
	o.devices = "cpu:0";
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_ARGUMENT);
	o.devices = "cpu:2000";
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_LIMIT);
	o.devices = "";
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_ARGUMENT);
	o = (struct outboard_options){ .devices = "cpu:1", .strategy = 17 };
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_ARGUMENT);
	o = (struct outboard_options){ .devices = "cpu:1", .backoff = -1 };
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_open(NULL, NULL, &error), OUTBOARD_ARGUMENT);
	/* Automatic choice of devices: without a driver, only the CPU. */
	o = (struct outboard_options){
		.threads = 1, .driver = "/nowhere/libcuda.so", .profile = ""
	};
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_OK);
	CHECK_INT(outboard_device_count(ob), 1);
	CHECK_INT(outboard_device_get(ob, 0, &d), OUTBOARD_OK);
	CHECK_STR(d.name, "cpu:1");
	CHECK(d.kind == OUTBOARD_CPU && d.units == 1 && d.memory > 0 && d.score > 0 && d.what[0]);
	CHECK_INT(outboard_device_get(ob, 1, &d), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_threshold(ob, 0, OUTBOARD_OP_MSM), 1);
	CHECK_INT(outboard_set_strategy(ob, 9), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_set_strategy(ob, OUTBOARD_EQUAL), OUTBOARD_OK);
	outboard_close(ob);
	CHECK_STR(outboard_status_name(OUTBOARD_TIMEOUT), "timeout");
	CHECK_STR(outboard_status_name(-1), "?");
}

TEST(transforms_there_and_back)
{
	struct outboard *ob = open_list("cpu:1,cpu:1");
	struct outboard_ntt_shape shape = { .log_n = 6, .order = OUTBOARD_NR },
				  back = { .log_n = 6, .order = OUTBOARD_RN, .inverse = 1 };
	static uint8_t data[10][64][32], before[10][64][32], seven[32] = { 7 };
	struct outboard_ntt *ntt = NULL, *inverse = NULL;
	struct outboard_call call = { .strategy = OUTBOARD_EQUAL + 1 };
	struct outboard_error error = { 0 };

	for (unsigned i = 0; i < 640; i++)
		put(data[i / 64][i % 64], i * 0x9e3779b97f4a7c15u);
	memcpy(before, data, sizeof(data));
	shape.coset = back.coset = seven;
	CHECK_INT(outboard_ntt_new(ob, &shape, &ntt, &error), OUTBOARD_OK);
	CHECK_INT(outboard_ntt_new(ob, &back, &inverse, &error), OUTBOARD_OK);
	CHECK_INT(outboard_ntt_run(ntt, data, 10, OUTBOARD_HOST, &call, &error), OUTBOARD_OK);
	CHECK(memcmp(data, before, sizeof(data)) != 0);
	CHECK_INT(outboard_ntt_run(inverse, data, 10, OUTBOARD_HOST, &call, &error), OUTBOARD_OK);
	CHECK(memcmp(data, before, sizeof(data)) == 0);
	CHECK_INT(outboard_ntt_run(ntt, data, 0, OUTBOARD_HOST, NULL, &error), OUTBOARD_OK);
	memset(data[3][5], 0xff, 32);
	CHECK_INT(outboard_ntt_run(ntt, data, 10, OUTBOARD_HOST, NULL, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(error.item, 3 * 64 + 5);
	CHECK_INT(outboard_ntt_run(ntt, NULL, 1, OUTBOARD_HOST, NULL, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_ntt_run(ntt, data, (uint64_t)1 << 40, OUTBOARD_HOST, NULL, &error),
		OUTBOARD_LIMIT);
	CHECK_INT(outboard_ntt_run(ntt, data, 1, OUTBOARD_ON(7), NULL, &error), OUTBOARD_ARGUMENT);
	outboard_ntt_free(ntt);
	outboard_ntt_free(inverse);
	/* The transform of two elements is their sum and their difference. */
	memset(data, 0, 64);
	data[0][0][0] = 5;
	data[0][1][0] = 3;
	shape = (struct outboard_ntt_shape){ .log_n = 1 };
	CHECK_INT(outboard_ntt_once(ob, &shape, data, 1, &error), OUTBOARD_OK);
	CHECK(data[0][0][0] == 8 && data[0][1][0] == 2 && data[0][1][31] == 0);
	shape.log_n = OUTBOARD_MAX_LOG_N + 1;
	CHECK_INT(outboard_ntt_new(ob, &shape, &ntt, &error), OUTBOARD_LIMIT);
	seven[0] = 0;
	shape = (struct outboard_ntt_shape){ .log_n = 1, .coset = seven };
	CHECK_INT(outboard_ntt_new(ob, &shape, &ntt, &error), OUTBOARD_ARGUMENT);
	outboard_close(ob);
}

TEST(kzg_by_handle)
{
	struct outboard *ob = open_list("cpu:1,cpu:1");
	struct outboard_call call = { .strategy = OUTBOARD_EQUAL + 1 };
	struct outboard_kzg *kzg = NULL;
	struct outboard_error error = { 0 };
	enum { BLOBS = 3 };
	static uint8_t blobs[BLOBS * OUTBOARD_BLOB_BYTES], commitments[BLOBS * 48],
		proofs[BLOBS * 48], cells[OUTBOARD_CELLS * OUTBOARD_CELL_BYTES],
		again[OUTBOARD_CELLS * OUTBOARD_CELL_BYTES],
		damaged[OUTBOARD_CELLS * OUTBOARD_CELL_BYTES], cell_proofs[OUTBOARD_CELLS * 48],
		half[64 * 48];
	uint64_t indices[64], rising[OUTBOARD_CELLS];
	uint8_t z[32] = { 0 }, y[32], proof[48];
	int valid = -1;

	alarm(200); /* setups take seconds under a sanitizer */
	CHECK_INT(outboard_kzg_load_file(ob, "/nowhere", NULL, &kzg, &error), OUTBOARD_IO);
	CHECK_INT(outboard_kzg_load(ob, "nonsense", 8, NULL, &kzg, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_kzg_load_file(ob, TEST_SETUP, NULL, &kzg, &error), OUTBOARD_OK);
	for (unsigned i = 0; i < BLOBS * 4096; i++)
		blobs[i * 32 + 31] = (uint8_t)(i * 7 + i / 4096),
			       blobs[i * 32 + 5] = (uint8_t)(i >> 3);
	CHECK_INT(outboard_kzg_commit(kzg, blobs, BLOBS, commitments, &call, &error), OUTBOARD_OK);
	CHECK(memcmp(commitments, commitments + 48, 48) != 0);
	CHECK_INT(outboard_kzg_prove_blobs(kzg, blobs, commitments, BLOBS, proofs, &call, &error),
		OUTBOARD_OK);
	CHECK_INT(outboard_kzg_verify_blobs(
			  kzg, blobs, commitments, proofs, BLOBS, &valid, &call, &error),
		OUTBOARD_OK);
	CHECK_INT(valid, 1);
	CHECK_INT(outboard_kzg_verify_blobs(
			  kzg, blobs, commitments + 48, proofs, 1, &valid, NULL, &error),
		OUTBOARD_OK);
	CHECK_INT(valid, 0);
	CHECK_INT(outboard_kzg_verify_blobs(kzg, NULL, NULL, NULL, 0, &valid, NULL, &error),
		OUTBOARD_OK);
	CHECK_INT(valid, 1);
	CHECK_INT(outboard_kzg_prove(kzg, blobs, z, proof, y, NULL, &error), OUTBOARD_OK);
	CHECK_INT(outboard_kzg_verify(kzg, commitments, z, y, proof, &valid, NULL, &error),
		OUTBOARD_OK);
	CHECK_INT(valid, 1);
	CHECK_INT(outboard_kzg_cells(kzg, blobs, 1, cells, cell_proofs, NULL, &error), OUTBOARD_OK);
	for (unsigned i = 0; i < 64; i++) {
		indices[i] = 64 + i;
		memcpy(half + i * 48, commitments, 48);
	}
	CHECK_INT(outboard_kzg_recover(kzg, indices, cells + 64 * OUTBOARD_CELL_BYTES, 64, again,
			  NULL, NULL, &error),
		OUTBOARD_OK);
	CHECK(memcmp(cells, again, sizeof(cells)) == 0);
	CHECK_INT(outboard_kzg_verify_cells(kzg, half, indices, cells + 64 * OUTBOARD_CELL_BYTES,
			  cell_proofs + 64 * 48, 64, &valid, &call, &error),
		OUTBOARD_OK);
	CHECK_INT(valid, 1);
	CHECK_INT(outboard_kzg_recover(kzg, indices, cells, 63, again, NULL, NULL, &error),
		OUTBOARD_ARGUMENT);
	/*
	 * with one damaged cell: 65 and 128 cells are refused and nothing is written; 64 cells give
	 * another blob
	 */
	for (uint64_t i = 0; i < OUTBOARD_CELLS; i++)
		rising[i] = i;
	memcpy(damaged, cells, sizeof(cells));
	damaged[5 * OUTBOARD_CELL_BYTES + 31] ^= 1;
	memset(again, 0xa5, sizeof(again));
	for (uint64_t n = 65; n <= OUTBOARD_CELLS; n += 63) {
		CHECK_INT(outboard_kzg_recover(kzg, rising, damaged, n, again, NULL, NULL, &error),
			OUTBOARD_ARGUMENT);
		CHECK(strstr(error.text, "do not belong to one blob") != NULL);
		CHECK(again[0] == 0xa5 && !memcmp(again, again + 1, sizeof(again) - 1));
	}
	CHECK_INT(outboard_kzg_recover(kzg, rising, damaged, 64, again, NULL, NULL, &error),
		OUTBOARD_OK);
	CHECK(memcmp(damaged, again, 64 * OUTBOARD_CELL_BYTES) == 0);
	CHECK(memcmp(cells, again, sizeof(cells)) != 0);
	memset(blobs + 2 * OUTBOARD_BLOB_BYTES + 9 * 32, 0xff, 32);
	CHECK_INT(outboard_kzg_commit(kzg, blobs, BLOBS, commitments, &call, &error),
		OUTBOARD_ARGUMENT);
	CHECK_INT(error.item, 2 * 4096 + 9);
	CHECK(strstr(error.text, "blob 2") != NULL);
	CHECK_INT(outboard_kzg_commit(kzg, NULL, 1, commitments, NULL, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(
		outboard_kzg_commit(NULL, blobs, 1, commitments, NULL, &error), OUTBOARD_ARGUMENT);
	outboard_kzg_free(kzg);
	outboard_close(ob);
}

/* ---- recurrence quantification ---- */

#define SERIES 30
#define LENGTH 120

struct gathered {
	pthread_mutex_t lock;
	unsigned rows, failed, stop_after;
	int seen[SERIES][2][2][3]; /* series, m, tau, eps */
	double det;
};

static int gather(void *arg, const struct outboard_rqa_row *rows, uint32_t count)
{
	struct gathered *g = (struct gathered *)arg;

	/* the library calls this function from one thread at a time */
	CHECK(pthread_mutex_trylock(&g->lock) == 0);
	for (uint32_t i = 0; i < count; i++) {
		const struct outboard_rqa_row *r = &rows[i];

		g->rows++;
		g->seen[r->series][r->m - 1][r->tau - 1][(int)(r->eps * 10 + 0.5) - 1]++;
		if (r->status != OUTBOARD_OK) {
			CHECK(r->values == NULL && r->reason != NULL);
			g->failed++;
		} else {
			CHECK(r->reason == NULL && r->values[outboard_rqa_measure_find("RR")] > 0);
			if (r->series == 3 && r->m == 2 && r->tau == 1 && r->eps > 0.15 &&
				r->eps < 0.25)
				g->det = r->values[outboard_rqa_measure_find("det")];
		}
	}
	pthread_mutex_unlock(&g->lock);
	return g->stop_after && g->rows >= g->stop_after;
}

TEST(series_once_sweeps_streamed)
{
	static double data[SERIES][LENGTH];
	static struct gathered g;
	struct outboard *ob = open_list("cpu:1,cpu:1");
	struct outboard_series series[SERIES];
	struct outboard_series_set *set = NULL;
	struct outboard_rqa_options *options = NULL;
	uint32_t m[2] = { 1, 2 }, tau[2] = { 1, 2 }, lmin[1] = { 2 };
	double eps[3] = { 0.1, 0.2, 0.3 }, values[64];
	struct outboard_rqa_grid grid = { .m = m,
		.tau = tau,
		.lmin = lmin,
		.eps = eps,
		.m_count = 2,
		.tau_count = 2,
		.lmin_count = 1,
		.eps_count = 3 };
	struct outboard_call call = { .strategy = OUTBOARD_EQUAL + 1 };
	struct outboard_error error = { 0 };

	memset(series, 0, sizeof(series));
	for (unsigned s = 0; s < SERIES; s++) {
		for (unsigned i = 0; i < LENGTH; i++)
			data[s][i] = sin(0.3 * i + s) + 0.2 * sin(1.7 * i * (s + 1));
		series[s].data = data[s];
		series[s].length = LENGTH;
		series[s].channels = 1;
	}
	data[11][50] = NAN;
	CHECK_INT(outboard_series_new(ob, series, SERIES, &set, &error), OUTBOARD_OK);
	memset(data, 0, sizeof(data)); /* the library has its own copy */
	CHECK_INT(outboard_rqa_options_new("nobody", &options, &error), OUTBOARD_ARGUMENT);
	CHECK(strstr(error.text, "pyrqa") != NULL);
	CHECK_INT(outboard_rqa_options_new(NULL, &options, &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_set(options, "norm", "l9", &error), OUTBOARD_ARGUMENT);
	CHECK(strstr(error.text, "l1|l2|max") != NULL);
	CHECK_INT(outboard_rqa_options_set(options, "none", "1", &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_rqa_options_set(options, "m", "0", &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_rqa_options_set(options, "want", "vertical,sideways", &error),
		OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_rqa_options_set(options, "want", "vertical,trend", &error), OUTBOARD_OK);
	pthread_mutex_init(&g.lock, NULL);
	CHECK_INT(outboard_rqa_sweep(set, options, &grid, gather, &g, &call, &error), OUTBOARD_OK);
	CHECK_INT(g.rows, SERIES * 12);
	CHECK_INT(g.failed, 12);
	for (unsigned i = 0; i < SERIES * 12; i++)
		CHECK_INT((&g.seen[0][0][0][0])[i], 1);
	/* A single run gives the same number. */
	CHECK_INT(outboard_rqa_options_set(options, "m", "2", &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_set(options, "eps", "0.2", &error), OUTBOARD_OK);
	CHECK(outboard_rqa_measure_count() <= 64);
	CHECK_INT(outboard_rqa_run(set, 3, OUTBOARD_NO_ITEM, options, values, NULL, &error),
		OUTBOARD_OK);
	CHECK(values[outboard_rqa_measure_find("DET")] == g.det);
	CHECK_INT(outboard_rqa_run(set, 11, OUTBOARD_NO_ITEM, options, values, NULL, &error),
		OUTBOARD_ARGUMENT);
	CHECK_INT(error.item, 11);
	CHECK_INT(outboard_rqa_run(set, SERIES, OUTBOARD_NO_ITEM, options, values, NULL, &error),
		OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_rqa_options_set(options, "kind", "cross", &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_run(set, 3, 4, options, values, NULL, &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_set(options, "kind", "auto", &error), OUTBOARD_OK);
	/* A callback that ends the sweep. */
	memset(g.seen, 0, sizeof(g.seen));
	g.rows = g.failed = 0;
	g.stop_after = 20;
	CHECK_INT(outboard_rqa_sweep(set, options, &grid, gather, &g, NULL, &error),
		OUTBOARD_CANCELLED);
	CHECK(g.rows >= 20 && g.rows < SERIES * 12);
	grid.m_count = 0;
	CHECK_INT(outboard_rqa_sweep(set, options, &grid, gather, &g, NULL, &error),
		OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_rqa_sweep(set, options, NULL, gather, &g, NULL, &error),
		OUTBOARD_ARGUMENT);
	outboard_rqa_options_free(options);
	outboard_series_free(set);
	series[2].channels = 65;
	CHECK_INT(outboard_series_new(ob, series, SERIES, &set, &error), OUTBOARD_LIMIT);
	CHECK_INT(error.item, 2);
	CHECK_INT(outboard_series_new(ob, NULL, 0, &set, &error), OUTBOARD_ARGUMENT);
	outboard_close(ob);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
