/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* outboard msm: MSMs over G1 of BLS12-381 on data from files, on the CPU and GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "compute/command/answer.h"
#include "compute/command/devices.h"
#include "compute/command/input.h"
#include "compute/command/kernel_bench.h"
#include "compute/command/msm_files.h"
#include "compute/command/msm_profile.h"
#include "compute/msm/tune_measure.h"
#include "tools/command.h"

#define NAME          "msm"
#define BENCH_MAX_LOG 24

struct options {
	const char *points, *scalars, *out;
	uint64_t seed, n, batch, to, table, seconds;
	bool json, verify, trust, canonical, hex, uncompressed, le;
	struct obx_devices device;
};

static int refused(const struct obk_fault *fault)
{
	fprintf(stderr, "outboard msm: %s\n", fault->text);
	return OBX_EXIT_UNWELL;
}

static size_t encode(const struct options *o, uint8_t *out, const struct obk_g1_affine *p)
{
	if (o->uncompressed)
		obk_g1_encode_uncompressed(out, p);
	else
		obk_g1_encode_compressed(out, p);
	return o->uncompressed ? OBK_G1_UNCOMPRESSED_BYTES : OBK_G1_COMPRESSED_BYTES;
}

static int print_results(
	const struct options *o, const struct obk_g1_affine *sums, size_t n, double ms)
{
	size_t each = o->uncompressed ? OBK_G1_UNCOMPRESSED_BYTES : OBK_G1_COMPRESSED_BYTES;
	uint8_t *bytes = malloc(o->batch * each);
	int code = bytes ? 0 : OBX_EXIT_UNWELL;
	struct obx_answer answer;

	if (!bytes)
		return refused(&(struct obk_fault){ .text = "no memory for the results" });
	obx_answer_begin(&answer, o->json, &o->device);
	if (o->json) {
		ob_json_uint(&answer.json, "points", n);
		ob_json_fixed(&answer.json, "ms", ms, 3);
		obx_answer_verified(&answer, o->verify);
	}
	obx_answer_array(&answer, "results");
	for (size_t i = 0; i < o->batch; i++) {
		encode(o, bytes + i * each, &sums[i]);
		obx_answer_bytes(&answer, NULL, bytes + i * each, each);
	}
	obx_answer_array_end(&answer);
	obx_answer_end(&answer);
	if (o->out && !obx_list_write(o->out, bytes, o->batch, each, o->hex))
		code = OBX_EXIT_UNWELL;
	free(bytes);
	return code;
}

static int verify(const struct options *o, const struct obx_list *points,
	enum obk_point_format format, const uint8_t *scalars, bool be,
	const struct obk_g1_affine *sums)
{
	struct obx_progress bar;
	struct obk_g1_affine again;
	struct obk_pool *pool;
	bool fine = true;

	pool = obx_devices_pool(&o->device);
	if (!pool)
		return OBX_EXIT_USAGE;
	for (size_t i = 0; i < o->batch && fine; i++) {
		obx_progress_begin(&bar, "verifying");
		fine = obx_msm_second_way(points, format,
			scalars + i * points->n * OBK_SCALAR_BYTES, be, pool, &bar, &again);
		obx_progress_end(&bar);
		if (fine && !obk_g1_affine_equal(&again, &sums[i])) {
			fprintf(stderr,
				"outboard msm: product %zu: a second algorithm gave a different "
				"point: this machine or this program is at fault; "
				"try\nOUTBOARD_OPT=-all, and report it\n",
				i);
			fine = false;
		}
	}
	obk_pool_free(pool);
	return fine ? 0 : OBX_EXIT_UNWELL;
}

static int compute(struct options *o, const struct obx_list *points, enum obk_point_format format,
	const struct obx_list *scalars, bool be)
{
	struct outboard_points p = { .points = points->bytes,
		.count = points->n,
		.table_bytes = o->table << 20,
		.format = format == OBK_POINT_COMPRESSED ? OUTBOARD_POINT_COMPRESSED
							 : OUTBOARD_POINT_UNCOMPRESSED,
		.trust = o->trust ? OUTBOARD_TRUST_CURVE : OUTBOARD_CHECK };
	struct obk_g1_affine *sums = malloc(o->batch * sizeof(*sums));
	struct outboard_msm m = { .scalars = scalars->bytes,
		.count = points->n,
		.batch = o->batch,
		.canonical = o->canonical,
		.result = sums,
		.scalar_format = be ? OUTBOARD_SCALAR_BE : OUTBOARD_SCALAR_LE,
		.result_format = OUTBOARD_POINT_MONTGOMERY };
	struct obx_progress bar;
	struct outboard_ticket *ticket = NULL;
	struct outboard_call call = {
		.ticket = &ticket, .progress = obx_devices_progress, .arg = &bar
	};
	struct outboard_error error = { .text = "no memory for the results" };
	struct outboard_bases *bases = NULL;
	int status = sums ? outboard_bases_new(o->device.context, &p, &bases, &error)
			  : OUTBOARD_NO_MEMORY,
	    code;
	uint64_t from = ob_clock_ns();
	double ms;

	if (status == OUTBOARD_OK) {
		obx_progress_begin(&bar, "summing up");
		status = outboard_msm_run(bases, &m, &call, &error);
		status = obx_devices_wait(&o->device, status, ticket, &error);
		obx_progress_end(&bar);
	}
	ms = (double)(ob_clock_ns() - from) / 1e6;
	outboard_bases_free(bases);
	code = status != OUTBOARD_OK ? obx_devices_refused(&o->device, &error)
		: o->verify          ? verify(o, points, format, scalars->bytes, be, sums)
				     : 0;
	if (!code)
		code = print_results(o, sums, points->n, ms);
	free(sums);
	return code;
}

static int run(struct options *o)
{
	struct obx_list points, scalars;
	enum obk_point_format format;
	int code = OBX_EXIT_UNWELL;
	bool text;

	if (!o->points || !o->scalars)
		return obx_usage_error(NAME, "--points and --scalars are needed");
	if (!obx_points_read(o->points, &points, &format))
		return OBX_EXIT_UNWELL;
	if (obx_scalars_read(o->scalars, &scalars, &text)) {
		if (scalars.n != points.n * o->batch)
			fprintf(stderr,
				"outboard msm: %s has %zu points and %s %zu scalars: --batch %zu "
				"needs %zu\n",
				o->points, points.n, o->scalars, scalars.n, (size_t)o->batch,
				points.n * (size_t)o->batch);
		else if (obx_devices_open(&o->device,
				 obx_devices_guess_msm(&o->device, points.n, o->batch), &code))
			code = compute(o, &points, format, &scalars, text || !o->le);
		free(scalars.bytes);
	}
	free(points.bytes);
	obx_devices_close(&o->device);
	return code;
}

/* splitmix64: the same numbers everywhere */
static uint64_t any(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* points[i] = (k + i d) G. */
static bool make_points(struct obk_g1_affine *points, size_t n, uint64_t k, uint64_t d)
{
	enum { BLOCK = 4096 };
	struct obk_g1 *sums = malloc(BLOCK * sizeof(*sums)), run, t;
	struct obk_fp *scratch = malloc(2 * BLOCK * sizeof(*scratch));
	struct obk_g1_affine step;

	obk_g1_mul(&run, &obk_g1_generator, &k, 64);
	obk_g1_mul(&t, &obk_g1_generator, &d, 64);
	obk_g1_to_affine(&step, &t);
	for (size_t at = 0; sums && scratch && at < n; at += BLOCK) {
		size_t count = ob_min(n - at, BLOCK);

		for (size_t i = 0; i < count; i++) {
			sums[i] = run;
			obk_g1_add_affine(&run, &run, &step);
		}
		obk_g1_to_affine_batch(points + at, sums, count, scratch);
	}
	free(scratch);
	free(sums);
	return sums && scratch;
}

/* Makes random scalars below r, and their sum weighted with the points' logarithms. */
static void make_scalars(
	uint8_t *scalars, size_t n, uint64_t k, uint64_t d, uint64_t *state, struct obk_fr *ret_log)
{
	struct obk_fr log, step, s;

	obk_fr_from_plain(&log, (uint64_t[4]){ k });
	obk_fr_from_plain(&step, (uint64_t[4]){ d });
	*ret_log = obk_fr_zero;
	for (size_t i = 0; i < n; i++) {
		obk_fr_from_plain(
			&s, (uint64_t[4]){ any(state), any(state), any(state), any(state) });
		obk_fr_to_bytes(scalars + i * OBK_SCALAR_BYTES, &s);
		obk_fr_mul(&s, &s, &log);
		obk_fr_add(ret_log, ret_log, &s);
		obk_fr_add(&log, &log, &step);
	}
}

static void print_made(const struct options *o, const char *sum)
{
	struct ob_json json;

	if (!o->json) {
		printf("%zu points; their sum is\n0x%s\n", (size_t)o->n, sum);
		return;
	}
	ob_json_begin(&json, stdout, OB_JSON_SPACED);
	ob_json_object(&json, NULL);
	ob_json_uint(&json, "points", o->n);
	ob_json_textf(&json, "sum", "0x%s", sum);
	ob_json_end(&json);
	putchar('\n');
}

static int gen(struct options *o)
{
	uint64_t state = o->seed, k = any(&state), d = any(&state), plain[4];
	size_t each = o->uncompressed ? OBK_G1_UNCOMPRESSED_BYTES : OBK_G1_COMPRESSED_BYTES;
	struct obk_g1_affine *points = malloc(o->n * sizeof(*points)), sum;
	uint8_t *bytes = malloc(o->n * each), *scalars = malloc(o->n * OBK_SCALAR_BYTES),
		out[OBK_G1_UNCOMPRESSED_BYTES];
	char text[2 * OBK_G1_UNCOMPRESSED_BYTES + 1];
	int code = OBX_EXIT_UNWELL;
	struct obk_fr log;
	struct obk_g1 t;

	if (!points || !bytes || !scalars || !make_points(points, o->n, k, d)) {
		fprintf(stderr, "outboard msm: no memory for %zu points\n", (size_t)o->n);
		goto out;
	}
	for (size_t i = 0; i < o->n; i++)
		encode(o, bytes + i * each, &points[i]);
	make_scalars(scalars, o->n, k, d, &state, &log);
	if (!obx_list_write(o->points, bytes, o->n, each, o->hex) ||
		!obx_list_write(o->scalars, scalars, o->n, OBK_SCALAR_BYTES, o->hex))
		goto out;
	obk_fr_to_plain(plain, &log);
	obk_g1_mul(&t, &obk_g1_generator, plain, 255);
	obk_g1_to_affine(&sum, &t);
	ob_text_hex(out, encode(o, out, &sum), text);
	print_made(o, text);
	code = 0;
out:
	free(scalars);
	free(bytes);
	free(points);
	return code;
}

struct bench {
	const struct obx_kernel_bench *b;
	struct outboard_bases *bases[OBX_SIDES];
	struct outboard_msm msm;
	uint8_t sum[OBX_SIDES][OBK_G1_COMPRESSED_BYTES];
};

static bool bench_work(void *arg, enum obx_side side)
{
	struct bench *b = arg;
	struct outboard_msm m = b->msm;
	struct outboard_error error;

	m.result = b->sum[side];
	if (outboard_msm_run(b->bases[side], &m, NULL, &error) == OUTBOARD_OK)
		return true;
	obx_devices_refused(&b->b->asked, &error);
	return false;
}

static bool bench_size(struct obx_kernel_bench *b, struct bench *work,
	const struct obk_g1_affine *points, unsigned log_n)
{
	struct outboard_points p = { .points = points,
		.count = (uint64_t)1 << log_n,
		.format = OUTBOARD_POINT_MONTGOMERY,
		.trust = OUTBOARD_TRUST_SUBGROUP,
		.table_bytes = b->table << 20 };
	struct outboard_error error;
	bool fine = true;
	char name[16];

	work->msm.count = p.count;
	for (unsigned side = 0; side < OBX_SIDES && fine; side++) {
		fine = !b->side[side] ||
			outboard_bases_new(b->side[side], &p, &work->bases[side], &error) ==
				OUTBOARD_OK;
		if (!fine)
			obx_devices_refused(&b->asked, &error);
	}
	snprintf(name, sizeof name, "2^%u", log_n);
	fine = fine && obx_kernel_bench_row(b, name, (double)p.count, true, bench_work, work);
	if (fine && b->side[OBX_GPU])
		obx_kernel_bench_plan(b, work->bases[OBX_GPU], p.count);
	for (unsigned side = 0; side < OBX_SIDES; side++) {
		outboard_bases_free(work->bases[side]);
		work->bases[side] = NULL;
	}
	if (fine && b->side[OBX_GPU] &&
		memcmp(work->sum[OBX_CPU], work->sum[OBX_GPU], sizeof work->sum[0]) != 0) {
		obx_kernel_bench_differ(b, name);
		fine = false;
	}
	return fine;
}

static const struct ob_option bench_options[] = {
	OBX_KERNEL_BENCH_SIZES(struct obx_kernel_bench_alone, b, BENCH_MAX_LOG, "8", "16"),
	OBX_KERNEL_BENCH_OPTIONS(struct obx_kernel_bench_alone, b),
	{ 0 },
};

static int bench_main(int argc, char **argv);

static const struct ob_command bench_command = {
	.name = "outboard msm bench",
	.summary = "time MSMs by the CPU and a GPU, and compare the sums",
	.about = "Times MSMs of 2^from to 2^to points by the CPU and a GPU, compares the sums, and "
		 "prints how the GPU computed them.",
	.options = bench_options,
	.main = bench_main,
};

static int bench_main(int argc, char **argv)
{
	struct obx_kernel_bench b = { .verb = NAME,
		.what = "multi-scalar products over G1 of BLS12-381, bases loaded before",
		.from = 8,
		.to = 16,
		.runs = 5 };
	int code = obx_kernel_bench_parse(&bench_command, &b, &b, argc, argv);
	size_t n = (size_t)1 << b.to;
	struct obk_g1_affine *points = code != OB_OPTIONS_GO ? NULL : malloc(n * sizeof(*points));
	uint8_t *scalars = code != OB_OPTIONS_GO ? NULL : malloc(n * OBK_SCALAR_BYTES);
	struct bench work = { .b = &b,
		.msm = { .scalar_format = OUTBOARD_SCALAR_BE, .scalars = scalars } };
	uint64_t state = 1;
	struct obk_fr log;
	bool fine = true;

	if (code != OB_OPTIONS_GO)
		return code;
	code = OBX_EXIT_UNWELL;
	if (!points || !scalars || !make_points(points, n, 12345, 67891)) {
		refused(&(struct obk_fault){ .text = "no memory for the points" });
		goto out;
	}
	make_scalars(scalars, n, 1, 1, &state, &log);
	code = obx_kernel_bench_open(&b);
	for (unsigned log_n = b.from; log_n <= b.to && fine && !code; log_n++)
		fine = bench_size(&b, &work, points, log_n);
	if (!code)
		code = fine ? obx_kernel_bench_show(&b) : OBX_EXIT_UNWELL;
	obx_kernel_bench_close(&b);
out:
	free(scalars);
	free(points);
	return code;
}

static const struct ob_option options[] = {
	{ OB_OPTION("points", OB_FILE, struct options, points), .arg = "FILE",
		.help = "points: 48 bytes compressed or 96 uncompressed (ZCash, IETF), told apart "
			"by "
			"the first byte" },
	{ OB_OPTION("scalars", OB_FILE, struct options, scalars), .arg = "FILE",
		.help = "scalars: 32 bytes, the highest first" },
	{ OB_OPTION("out", OB_FILE, struct options, out), .arg = "FILE",
		.help = "write the sum there, raw" },
	{ OB_OPTION("batch", OB_NUMBER, struct options, batch), .arg = "N", .min = 1,
		.max = OBK_MSM_MAX_BATCH, .fallback = "1",
		.help = "N products: the file holds N times as many scalars as there are points" },
	{ OB_OPTION("table", OB_NUMBER, struct options, table), .arg = "MIB",
		.max = OBX_TABLE_MAX_MIB,
		.help = "memory for shifted copies of the points, on each device, in MiB: a batch "
			"becomes faster" },
	{ OB_OPTION("verify", OB_FLAG, struct options, verify),
		.help = "compute again in a second way, more slowly, and compare" },
	{ OB_OPTION("json", OB_FLAG, struct options, json), .help = "print one JSON object" },
	{ .name = "Formats", .kind = OB_HEADING },
	{ OB_OPTION("uncompressed", OB_FLAG, struct options, uncompressed),
		.help = "write points with both coordinates" },
	{ OB_OPTION("hex", OB_FLAG, struct options, hex), .help = "write files as text" },
	{ OB_OPTION("le", OB_FLAG, struct options, le),
		.help = "raw scalars have their lowest byte first" },
	{ OB_OPTION("canonical", OB_FLAG, struct options, canonical),
		.help = "refuse scalars at or above the group's order r; otherwise they are used "
			"as integers" },
	{ OB_OPTION("trust", OB_FLAG, struct options, trust),
		.help = "do not check that points are in the group of order r (they are on the "
			"curve in any case)" },
	{ .name = "gen, tune and calibrate", .kind = OB_HEADING },
	{ OB_OPTION("n", OB_NUMBER, struct options, n), .arg = "N", .min = 1,
		.max = OBK_MSM_MAX_POINTS, .help = "gen: points" },
	{ OB_OPTION("seed", OB_NUMBER, struct options, seed), .arg = "N", .max = UINT64_MAX,
		.fallback = "1", .help = "gen: seed of the random numbers" },
	{ OB_OPTION("to", OB_NUMBER, struct options, to), .arg = "N", .min = 6,
		.max = OBK_TUNE_LARGEST, .fallback = OB_VALUE_TEXT(OBK_TUNE_LARGEST),
		.help = "tune: measure up to 2^N points" },
	{ OB_OPTION("seconds", OB_NUMBER, struct options, seconds), .arg = "N", .min = 1,
		.max = 3600, .fallback = "10", .help = "calibrate: measure for N seconds" },
	OBX_DEVICES_OPTIONS(struct options, device),
	{ 0 },
};

static const struct ob_command gen_command, tune_command, calibrate_command;

static int parse(
	const struct ob_command *command, struct options *ret_options, int argc, char **argv)
{
	*ret_options = (struct options){
		.seed = 1, .batch = 1, .to = OBK_TUNE_LARGEST, .seconds = 10, .device.verb = NAME
	};
	return ob_options_parse(command, ret_options, argc, argv);
}

static int msm_main(int argc, char **argv)
{
	struct options o;
	int code = parse(&obx_msm_command, &o, argc, argv);

	return code == OB_OPTIONS_GO ? run(&o) : code;
}

static int gen_main(int argc, char **argv)
{
	struct options o;
	int code = parse(&gen_command, &o, argc, argv);

	if (code != OB_OPTIONS_GO)
		return code;
	if (!o.n || !o.points || !o.scalars)
		return ob_usage_error(&gen_command, "gen needs --n, --points and --scalars");
	return gen(&o);
}

static int tune_main(int argc, char **argv)
{
	struct options o;
	int code = parse(&tune_command, &o, argc, argv);

	return code == OB_OPTIONS_GO ? obx_msm_tune(&o.device, (unsigned)o.to, o.json) : code;
}

static int calibrate_main(int argc, char **argv)
{
	struct options o;
	int code = parse(&calibrate_command, &o, argc, argv);

	return code == OB_OPTIONS_GO ? obx_msm_calibrate(&o.device, (double)o.seconds, o.json)
				     : code;
}

static const struct ob_command gen_command = {
	.name = "outboard msm gen",
	.summary = "write points with known logarithms and random scalars, print the right sum",
	.usage = "--n N --points FILE --scalars FILE [OPTION]...",
	.options = options,
	.main = gen_main,
};

static const struct ob_command tune_command = {
	.name = "outboard msm tune",
	.summary = "measure which window is best on this CPU",
	.about = "Measures which window is best on this CPU for up to 2^N points, and keeps it in "
		 "XDG_CACHE_HOME/outboard.",
	.options = options,
	.main = tune_main,
};

static const struct ob_command calibrate_command = {
	.name = "outboard msm calibrate",
	.summary = "measure every device",
	.about = "Measures every device, and what a GPU's MSMs depend on, keeps it in "
		 "XDG_CACHE_HOME/outboard and prints from what size on a GPU is preferred.",
	.options = options,
	.main = calibrate_main,
};

const struct ob_command obx_msm_command = {
	.name = "outboard msm",
	.group = OBX_GROUP_COMPUTE,
	.summary = "multi-scalar multiplication of files",
	.usage = "--points FILE --scalars FILE [OPTION]...\nVERB [OPTION]...",
	.about =
		"The sum of scalar times point over G1 of BLS12-381. Files are raw, or text in hex "
		"with one item a line. Long work shows a bar.",
	.options = options,
	.commands = (const struct ob_command *const[]){ &gen_command, &bench_command, &tune_command,
		&calibrate_command, NULL },
	.main = msm_main,
};
