/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Asynchronous calls, cancelled calls, calls without enough memory; files that a calibration
 * writes.
 */
#include <malloc.h>
#include <math.h>
#include <sys/resource.h>

#include "api.h"

static void ended(void *arg, int status, const struct outboard_error *error)
{
	(void)error;
	*(int *)arg = status + 100;
}

TEST(tickets)
{
	struct outboard *ob = open_list("cpu:1");
	uint8_t have[4][48], want[48];
	struct outboard_ticket *ticket[4];
	struct outboard_bases *bases;
	struct outboard_error error = { 0 };
	int end[4] = { 0 };
	double progress;

	make_points(ob);
	expected(ob, 0, N, want);
	bases = upload(ob, points, N, OUTBOARD_POINT_COMPRESSED);
	for (unsigned i = 0; i < 4; i++) {
		struct outboard_msm m = { .scalars = scalars, .count = N, .result = have[i] };
		struct outboard_call call = {
			.ticket = &ticket[i], .finished = ended, .arg = &end[i]
		};

		CHECK_INT(outboard_msm_run(bases, &m, &call, &error), OUTBOARD_OK);
	}
	outboard_bases_free(bases); /* the calls keep a reference until they end */
	outboard_cancel(ticket[3]);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(outboard_wait(ticket[i], 60, &error), OUTBOARD_OK);
		CHECK(outboard_poll(ticket[i], &progress) == 1 && progress == 1);
		CHECK(memcmp(have[i], want, 48) == 0);
		CHECK_INT(end[i], 100);
	}
	CHECK_INT(outboard_wait(ticket[3], 60, &error), OUTBOARD_CANCELLED);
	CHECK_INT(end[3], 100 + OUTBOARD_CANCELLED);
	for (unsigned i = 0; i < 4; i++)
		outboard_ticket_free(ticket[i]);
	CHECK_INT(outboard_wait(NULL, 0, &error), OUTBOARD_ARGUMENT);
	outboard_ticket_free(NULL);
	outboard_close(ob);
}

#define MANY 131072 /* points: a second of work for one thread */

static int stop_at_once(void *arg, double done)
{
	*(double *)arg = done;
	return 1;
}

/* MANY points: (1 .. N) G, repeated. */
static struct outboard_bases *many_points(struct outboard *ob, uint8_t (*numbers)[32])
{
	struct outboard_points args = {
		.count = MANY, .format = OUTBOARD_POINT_MONTGOMERY, .trust = OUTBOARD_TRUST_SUBGROUP
	};
	uint8_t(*p)[96] = malloc(MANY * sizeof(*p)), (*ones)[32] = calloc(N, sizeof(*ones));
	struct outboard_bases *bases;
	struct outboard_msm m = { .scalars = ones,
		.count = 1,
		.batch = N,
		.result = p,
		.result_format = OUTBOARD_POINT_MONTGOMERY };

	CHECK(p && ones);
	bases = upload(ob, generator, 1, OUTBOARD_POINT_COMPRESSED);
	for (unsigned i = 0; i < N; i++)
		put(ones[i], i + 1);
	CHECK_INT(outboard_msm_run(bases, &m, NULL, NULL), OUTBOARD_OK);
	outboard_bases_free(bases);
	for (unsigned i = N; i < MANY; i++)
		memcpy(p[i], p[i % N], sizeof(*p));
	for (unsigned i = 0; i < MANY; i++) {
		put(numbers[i], 0x9e3779b97f4a7c15u * (i + 1));
		for (unsigned k = 1; k < 4; k++)
			memcpy(numbers[i] + 8 * k, numbers[i], 8);
	}
	args.points = p;
	CHECK_INT(outboard_bases_new(ob, &args, &bases, NULL), OUTBOARD_OK);
	free(p);
	free(ones);
	return bases;
}

/*
 * A running call can be ended by its ticket, its callback or its timeout. Nothing is written, and
 * the device executes the next call.
 */
TEST(a_product_under_way_stops)
{
	static uint8_t numbers[MANY][32];
	const uint8_t untouched[48] = { 7 };
	uint8_t have[48], want[48], short_sum[48];
	struct outboard *ob = open_list("cpu:1");
	struct outboard_bases *bases;
	struct outboard_error error = { 0 };
	double told, progress;
	unsigned again = 0;
	int status;

	alarm(TIMEOUT_S);
	make_points(ob);
	expected(ob, 0, N, want);
	bases = many_points(ob, numbers);
	for (unsigned way = 0; way < 3; way++) {
		struct outboard_ticket *ticket = NULL;
		struct outboard_call call = { .ticket = &ticket };
		struct outboard_msm m = { .scalars = numbers, .count = MANY, .result = have };

		if (way == 0)
			call.progress = stop_at_once;
		if (way == 1)
			call.timeout = 0.05;
		call.arg = &told;
		memcpy(have, untouched, sizeof(have));
		CHECK_INT(outboard_msm_run(bases, &m, &call, &error), OUTBOARD_OK);
		if (way == 2) {
			while (!outboard_poll(ticket, &progress) && progress <= 0)
				waiting_look();
			outboard_cancel(ticket);
		}
		status = outboard_wait(ticket, -1, &error);
		/* this thread was not scheduled until the product was done: repeat */
		if (way && status == OUTBOARD_OK && again++ < 10) {
			outboard_ticket_free(ticket);
			way--;
			continue;
		}
		CHECK_INT(status, way == 1 ? OUTBOARD_TIMEOUT : OUTBOARD_CANCELLED);
		CHECK(outboard_poll(ticket, &progress) == 1 && progress < 0.9);
		CHECK(memcmp(have, untouched, sizeof(have)) == 0);
		outboard_ticket_free(ticket);
		m = (struct outboard_msm){ .scalars = scalars, .count = N, .result = short_sum };
		CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_OK);
		CHECK(memcmp(short_sum, want, sizeof(want)) == 0);
	}
	outboard_bases_free(bases);
	outboard_close(ob);
}

#define LOG_LARGE 20

TEST(a_transform_under_way_stops)
{
	struct outboard *ob = open_list("cpu:1");
	struct outboard_ntt_shape shape = { .log_n = LOG_LARGE,
		.format = OUTBOARD_SCALAR_MONTGOMERY };
	size_t bytes = (size_t)32 << LOG_LARGE;
	uint8_t *data = calloc(1, bytes);
	struct outboard_ntt *ntt = NULL;
	struct outboard_error error = { 0 };
	bool midway = false;

	alarm(TIMEOUT_S);
	CHECK(data != NULL);
	CHECK_INT(outboard_ntt_new(ob, &shape, &ntt, &error), OUTBOARD_OK);
	for (unsigned attempt = 0; !midway; attempt++) {
		struct outboard_ticket *ticket = NULL;
		struct outboard_call call = { .ticket = &ticket };
		struct outboard_device device;

		for (size_t i = 0; i < bytes; i += 32)
			data[i] = 1;
		CHECK_INT(
			outboard_ntt_run(ntt, data, 1, OUTBOARD_HOST, &call, &error), OUTBOARD_OK);
		do
			CHECK_INT(outboard_device_get(ob, 0, &device), OUTBOARD_OK);
		while (device.queued);
		let_pass(1000 * (attempt % 200 + 1),
			"a cancelled transform is tried again, a bit later in its course");
		outboard_cancel(ticket);
		if (outboard_wait(ticket, -1, &error) == OUTBOARD_CANCELLED)
			for (size_t i = 0; i < bytes && !midway; i += 32)
				midway = data[i] != 1;
		outboard_ticket_free(ticket);
	}
	CHECK(midway);
	shape.log_n = 1;
	memset(data, 0, 64);
	data[0] = 5;
	data[32] = 3;
	CHECK_INT(outboard_ntt_once(ob, &shape, data, 1, &error), OUTBOARD_OK);
	CHECK(data[0] == 8 && data[32] == 2);
	outboard_ntt_free(ntt);
	outboard_close(ob);
	free(data);
}

/*
 * Returns the address space in use, in pages, after it has not changed for a tenth of a second:
 * threads still free memory after a call's end.
 */
static unsigned long pages_at_rest(void)
{
	unsigned long pages = 0, now = 0;

	for (unsigned same = 0; same < 10; same = now == pages ? same + 1 : 0) {
		FILE *f;

		pages = now;
		malloc_trim(0);
		f = fopen("/proc/self/statm", "re");
		CHECK(f && fscanf(f, "%lu", &now) == 1);
		fclose(f);
		let_pass(10000, "threads drop what they drop after a call's end");
	}
	return now;
}

/*
 * With little address space left, a call returns an error and does not change its results. The
 * context remains usable.
 */
#define LONG 1000000 /* samples; the counters of a run do not fit into 8 MiB */

TEST(lack_of_memory_is_told_and_passes)
{
	static uint8_t numbers[MANY][32];
	const uint8_t untouched[48] = { 7 };
	uint8_t have[48], want[48];
	size_t bytes = (size_t)32 << LOG_LARGE;
	uint8_t *data = calloc(1, bytes);
	struct outboard *ob;
	struct outboard_ntt_shape shape = { .log_n = LOG_LARGE,
		.format = OUTBOARD_SCALAR_MONTGOMERY };
	struct outboard_msm m = { .scalars = numbers, .count = MANY, .result = have };
	struct outboard_series series = {
		.data = calloc(LONG, sizeof(double)), .length = LONG, .channels = 1
	};
	struct outboard_series_set *set = NULL;
	struct outboard_rqa_options *options = NULL;
	double values[64];
	struct outboard_bases *bases;
	struct outboard_error error = { 0 };
	struct rlimit limit;
	unsigned long pages;

	if (TEST_SANITIZED)
		TEST_SKIP("a sanitizer's allocator ends the program instead");
	/* no arenas per thread, because they reserve address space */
	mallopt(M_ARENA_MAX, 1);
	alarm(TIMEOUT_S);
	ob = open_list("cpu:1");
	make_points(ob);
	expected(ob, 0, N, want);
	bases = many_points(ob, numbers);
	CHECK_INT(outboard_series_new(ob, &series, 1, &set, &error), OUTBOARD_OK);
	CHECK_INT(outboard_rqa_options_new(NULL, &options, &error), OUTBOARD_OK);
	pages = pages_at_rest();
	limit = (struct rlimit){ pages * (size_t)sysconf(_SC_PAGESIZE) + ((size_t)8 << 20),
		RLIM_INFINITY };
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
	memcpy(have, untouched, sizeof(have));
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_NO_MEMORY);
	CHECK(strstr(error.text, "cpu:1") && strstr(error.text, "split the product"));
	CHECK(memcmp(have, untouched, sizeof(have)) == 0);
	data[0] = 1;
	CHECK_INT(outboard_ntt_once(ob, &shape, data, 1, &error), OUTBOARD_NO_MEMORY);
	CHECK(strstr(error.text, "roots") && strstr(error.text, "free some") && data[0] == 1 &&
		data[32] == 0);
	CHECK_INT(outboard_rqa_run(set, 0, OUTBOARD_NO_ITEM, options, values, NULL, &error),
		OUTBOARD_NO_MEMORY);
	CHECK(error.item == OUTBOARD_NO_ITEM); /* the error is not caused by a series */
	/* a small call succeeds; once the limit is lifted, a large one does */
	m = (struct outboard_msm){ .scalars = scalars, .count = N, .result = have };
	CHECK_INT(outboard_msm_run(bases, &m, NULL, &error), OUTBOARD_OK);
	CHECK(memcmp(have, want, sizeof(have)) == 0);
	limit.rlim_cur = RLIM_INFINITY;
	CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
	CHECK_INT(outboard_ntt_once(ob, &shape, data, 1, &error), OUTBOARD_OK);
	CHECK(data[32] == 1 && data[bytes - 32] == 1);
	outboard_rqa_options_free(options);
	outboard_series_free(set);
	outboard_bases_free(bases);
	outboard_close(ob);
	free((void *)(uintptr_t)series.data);
	free(data);
}

TEST(calibration_is_kept_and_found_again)
{
	char folder[] = "/tmp/outboard-api-XXXXXX", file[64], command[96];
	struct outboard_options o = { .devices = "cpu:1", .profile = file };
	struct outboard_error error = { 0 };
	struct outboard_device before, after;
	struct outboard *ob = NULL;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(file, sizeof(file), "%s/profile", folder);
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_OK);
	CHECK_INT(outboard_device_get(ob, 0, &before), OUTBOARD_OK);
	CHECK_INT(outboard_calibrate(ob, -1, &error), OUTBOARD_ARGUMENT);
	CHECK_INT(outboard_calibrate(ob, 0.2, &error), OUTBOARD_OK);
	CHECK_INT(outboard_device_get(ob, 0, &before), OUTBOARD_OK);
	outboard_close(ob);
	CHECK_INT(access(file, R_OK), 0);
	CHECK_INT(outboard_open(&o, &ob, &error), OUTBOARD_OK);
	CHECK_INT(outboard_device_get(ob, 0, &after), OUTBOARD_OK);
	CHECK(fabs(after.score / before.score - 1) < 1e-3);
	outboard_close(ob);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK_INT(system(command), 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
