/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Times the kernels on a GPU: rates of the arithmetic, multi-scalar products and transforms, with
 * data in host memory and in device memory. Every product is compared with its known result, and
 * every transform is checked by its inverse.
 *
 *     obk-gpu-bench [-l LIBRARY] [-g GPU] [-r REPEATS] [-m LOG LOG] [-n LOG LOG] [-t SIZE] [-w]
 *
 * -m, -n: log2 of the smallest and the largest product and transform (10 24, 12 24). -t: memory for
 * tables of bases (48G). -w: times every window, to choose among them.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/text.h"
#include "compute/msm/gpu.h"
#include "compute/ntt/gpu.h"

#define BLOCK       4096
#define MAX_REPEATS 100

extern const unsigned char obk_micro_image_start[], obk_micro_image_end[];
static const char *const micro_names[] = { "micro_fp", "micro_fr", "micro_add", "micro_wide" };
static const struct obk_gpu_image micro = { "the rates", obk_micro_image_start, obk_micro_image_end,
	4, micro_names };

/*
 * Target times on an H200 in ms: products of 2^8, 2^10, ... points and transforms of 2^12, 2^14,
 * ... elements. 0: no target.
 */
static const double msm_aim[] = { 0.10, 0.12, 0.15, 0.35, 0.65, 2.1, 6.5, 24, 88, 325 },
		    ntt_aim[] = { 0.012, 0, 0.03, 0, 0.27, 1.1, 4.6, 19 };

static struct obk_gpu *gpu;
static struct obk_pool *pool;
static struct obk_fault fault;
static unsigned repeats = 5;
static size_t table_bytes = (size_t)48 << 30;

static struct obk_g1_affine *points;
static uint64_t (*scalars)[4]; /* pinned */

static void need(enum ob_err err)
{
	if (err) {
		fprintf(stderr, "obk-gpu-bench: %s\n", fault.text);
		exit(1);
	}
}

static unsigned number(const char *text)
{
	uint64_t n;

	if (!ob_text_parse_number(text, 0, 1 << 20, &n)) {
		fprintf(stderr, "obk-gpu-bench: %s is not a number up to 2^20\n", text);
		exit(2);
	}
	return (unsigned)n;
}

static double now_ms(void)
{
	return (double)ob_clock_ns() / 1e6;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *ms)
{
	qsort(ms, repeats, sizeof(*ms), ascending);
	return ms[repeats / 2];
}

static uint64_t random64(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1d;
}

/* Point i is (i + 1) G. */
static void make_block(void *arg, size_t block, unsigned thread)
{
	size_t n = *(size_t *)arg, first = block * BLOCK,
	       count = n - first < BLOCK ? n - first : BLOCK;
	uint64_t k[1] = { first + 1 }, state = (first + 1) * 0x9e3779b97f4a7c15;
	struct obk_g1 *sum = malloc(count * sizeof(*sum));
	struct obk_fp *scratch = malloc(2 * count * sizeof(*scratch));

	(void)thread;
	if (!sum || !scratch)
		abort();
	obk_g1_mul(&sum[0], &obk_g1_generator, k, 64);
	for (size_t i = 1; i < count; i++)
		obk_g1_add_affine(&sum[i], &sum[i - 1], &obk_g1_generator);
	obk_g1_to_affine_batch(points + first, sum, count, scratch);
	for (size_t i = first; i < first + count; i++) {
		for (unsigned j = 0; j < 4; j++)
			scalars[i][j] = random64(&state);
		scalars[i][3] >>= 2;
	}
	free(sum);
	free(scratch);
}

/* (sum of s_i (i + 1)) G */
static void expected(size_t n, struct obk_g1_affine *ret)
{
	struct obk_fr sum = obk_fr_zero;
	uint64_t plain[4];
	struct obk_g1 p;

	for (size_t i = 0; i < n; i++) {
		struct obk_fr s, k;

		obk_fr_from_plain(&s, scalars[i]);
		obk_fr_from_plain(&k, (uint64_t[4]){ i + 1 });
		obk_fr_mul(&s, &s, &k);
		obk_fr_add(&sum, &sum, &s);
	}
	obk_fr_to_plain(plain, &sum);
	obk_g1_mul(&p, &obk_g1_generator, plain, 256);
	obk_g1_to_affine(ret, &p);
}

static double time_product(const struct obk_msm_gpu_bases *bases, size_t n, unsigned window,
	CUdeviceptr device, const struct obk_g1_affine *want)
{
	struct obk_msm_job job = {
		.count = n, .scalars = scalars, .batch = 1, .window = window, .pool = pool
	};
	double ms[MAX_REPEATS];
	struct obk_g1_affine have;

	/* the first run allocates memory and is not counted */
	for (unsigned i = 0; i <= repeats; i++) {
		double start = now_ms();

		need(obk_msm_gpu_run(bases, &job, device, &have, &fault));
		ms[i ? i - 1 : 0] = now_ms() - start;
		if (!obk_g1_affine_equal(&have, want)) {
			fprintf(stderr, "obk-gpu-bench: a product of %zu points is wrong\n", n);
			exit(1);
		}
	}
	return median(ms);
}

static void bench_product(unsigned log_n, CUdeviceptr device, bool windows)
{
	size_t n = (size_t)1 << log_n;
	struct obk_msm_bases_args args = {
		.points = points, .count = n, .trust = OBK_TRUST_SUBGROUP, .pool = pool
	};
	struct obk_g1_affine want;

	expected(n, &want);
	for (unsigned table = 0; table < 2; table++) {
		struct obk_msm_gpu_bases *bases;
		struct obk_msm_gpu_info info;
		double start = now_ms(), made, from_host, from_device;

		args.table_bytes = table ? table_bytes : 0;
		need(obk_msm_gpu_bases_new(gpu, &args, &bases, &fault));
		made = now_ms() - start;
		obk_msm_gpu_bases_info(bases, &info);
		for (unsigned c = windows && !table ? 6 : 0; c <= (windows && !table ? 20 : 0);
			c++) {
			char method[64];
			unsigned at = (log_n - 8) / 2;

			from_host = time_product(bases, n, c, 0, &want);
			from_device = time_product(bases, n, c, device, &want);
			if (info.multiples)
				snprintf(method, sizeof(method), "all multiples, c = %u",
					info.window);
			else if (info.window)
				snprintf(method, sizeof(method), "%u copies, c = %u", info.shifts,
					info.window);
			else if (c)
				snprintf(method, sizeof(method), "one copy, c = %u", c);
			else
				snprintf(method, sizeof(method), "one copy");
			printf("| 2^%u | %s | %.2f | %.1f | %.3f | %.3f | ", log_n, method,
				(double)info.bytes / 1e9, made, from_host, from_device);
			if (table && log_n >= 8 && log_n % 2 == 0 &&
				at < sizeof(msm_aim) / sizeof(msm_aim[0]))
				printf("%.2f |\n", msm_aim[at]);
			else
				printf("|\n");
			fflush(stdout);
		}
		obk_msm_gpu_bases_free(bases);
		if (table && info.shifts == 1)
			break;
	}
}

static void bench_products(unsigned low, unsigned high, bool windows)
{
	size_t n = (size_t)1 << high;
	struct obk_gpu_buffer device;
	CUstream stream;
	void *pinned;

	points = malloc(n * sizeof(*points));
	need(obk_gpu_pinned_new(gpu, n * sizeof(*scalars), &pinned, &fault));
	scalars = pinned;
	if (!points)
		exit(1);
	obk_pool_run(pool, (n + BLOCK - 1) / BLOCK, make_block, &n);
	need(obk_gpu_take(gpu, n * sizeof(*scalars), &device, &fault));
	need(obk_gpu_stream_take(gpu, &stream, &fault));
	need(obk_gpu_write(gpu, stream, device.at, scalars, n * sizeof(*scalars), &fault));
	need(obk_gpu_wait(gpu, stream, &fault));
	printf("\nMulti-scalar products, median of %u\n\n| points | bases | GB | made in ms | ms, "
	       "scalars of the host | ms, of the device | aim, H200 |\n"
	       "|---|---|---|---|---|---|---|\n",
		repeats);
	for (unsigned log_n = low; log_n <= high;
		log_n += log_n < high && log_n + 2 > high ? high - log_n : 2)
		bench_product(log_n, device.at, windows);
	obk_gpu_stream_give(gpu, stream);
	obk_gpu_give(gpu, &device);
	obk_gpu_pinned_free(gpu, pinned);
	free(points);
}

static void bench_transform(struct obk_ntt_gpu *domain, unsigned log_n, struct obk_fr *data,
	CUdeviceptr device, CUstream stream)
{
	struct obk_ntt_job job = { .log_n = log_n, .batch = 1, .order = OBK_NTT_NR, .pool = pool };
	size_t n = (size_t)1 << log_n;
	struct obk_fr probe[4];
	double ms[MAX_REPEATS], on_device[2], host;
	unsigned at = (log_n - 12) / 2;

	for (unsigned i = 0; i < 4; i++)
		probe[i] = data[n / 4 * i];
	for (unsigned order = 0; order < 2; order++) {
		job.order = order ? OBK_NTT_NN : OBK_NTT_NR;
		for (unsigned i = 0; i <= repeats; i++) {
			double start = now_ms();

			need(obk_ntt_gpu_run_device(domain, &job, device, stream, &fault));
			need(obk_gpu_wait(gpu, stream, &fault));
			ms[i ? i - 1 : 0] = now_ms() - start;
		}
		on_device[order] = median(ms);
	}
	job.order = OBK_NTT_NR;
	for (unsigned i = 0; i <= repeats; i++) {
		double start = now_ms();

		need(obk_ntt_gpu_run(domain, &job, data, &fault));
		ms[i ? i - 1 : 0] = now_ms() - start;
		job.direction = OBK_NTT_INVERSE;
		job.order = OBK_NTT_RN;
		need(obk_ntt_gpu_run(domain, &job, data, &fault));
		job.direction = OBK_NTT_FORWARD;
		job.order = OBK_NTT_NR;
		for (unsigned j = 0; j < 4; j++) {
			if (!obk_fr_equal(&probe[j], &data[n / 4 * j])) {
				fprintf(stderr,
					"obk-gpu-bench: a transform of %zu elements is wrong\n", n);
				exit(1);
			}
		}
	}
	host = median(ms);
	printf("| 2^%u | %.4f | %.4f | %.3f | ", log_n, on_device[0], on_device[1], host);
	if (log_n >= 12 && log_n % 2 == 0 && at < sizeof(ntt_aim) / sizeof(ntt_aim[0]) &&
		ntt_aim[at] > 0)
		printf("%.3f |\n", ntt_aim[at]);
	else
		printf("|\n");
	fflush(stdout);
}

static void bench_transforms(unsigned low, unsigned high)
{
	size_t n = (size_t)1 << high;
	struct obk_ntt_gpu *domain;
	struct obk_gpu_buffer device;
	CUstream stream;
	struct obk_fr *data;
	uint64_t state = 7;
	void *pinned;

	need(obk_ntt_gpu_new(gpu, &domain, &fault));
	need(obk_gpu_pinned_new(gpu, n * sizeof(*data), &pinned, &fault));
	data = pinned;
	for (size_t i = 0; i < n; i++)
		data[i] = (struct obk_fr){ { random64(&state), random64(&state), random64(&state),
			random64(&state) >> 2 } };
	need(obk_gpu_take(gpu, n * sizeof(*data), &device, &fault));
	need(obk_gpu_stream_take(gpu, &stream, &fault));
	need(obk_gpu_write(gpu, stream, device.at, data, n * sizeof(*data), &fault));
	printf("\nTransforms, median of %u\n\n| elements | ms on the device, NR | NN | ms host to "
	       "host, NR | aim on an H200's memory |\n"
	       "|---|---|---|---|---|\n",
		repeats);
	for (unsigned log_n = low; log_n <= high;
		log_n += log_n < high && log_n + 2 > high ? high - log_n : 2)
		bench_transform(domain, log_n, data, device.at, stream);
	obk_gpu_stream_give(gpu, stream);
	obk_gpu_give(gpu, &device);
	obk_gpu_pinned_free(gpu, pinned);
	obk_ntt_gpu_free(domain);
}

/* Returns 10^9 operations per second; each thread does `each` operations per step. */
static double rate(unsigned kernel, unsigned each, CUdeviceptr points_at, CUdeviceptr data,
	unsigned blocks, unsigned n, CUstream stream)
{
	const CUfunction *functions;
	double ms[MAX_REPEATS];
	void *two[] = { &n, &data }, *three[] = { &n, &points_at, &data };

	need(obk_gpu_load(gpu, &micro, &functions, &fault));
	for (unsigned i = 0; i <= repeats; i++) {
		double start = now_ms();

		need(obk_gpu_launch(gpu, stream, functions[kernel], blocks, 1, 128, 0,
			points_at ? three : two, &fault));
		need(obk_gpu_wait(gpu, stream, &fault));
		ms[i ? i - 1 : 0] = now_ms() - start;
	}
	return (double)blocks * 128 * n * each / median(ms) / 1e6;
}

static void bench_rates(unsigned steps)
{
	unsigned blocks = obk_gpu_info(gpu)->processors * 3;
	size_t bytes = (size_t)blocks * 128 * sizeof(struct obk_g1);
	struct obk_gpu_buffer data, at;
	struct obk_g1_affine some[256];
	struct obk_g1 sum, *seed = calloc(1, bytes);
	CUstream stream;

	if (!seed)
		exit(1);
	obk_g1_from_affine(&sum, &obk_g1_generator);
	for (unsigned i = 0; i < 256; i++) {
		obk_g1_double(&sum, &sum);
		obk_g1_to_affine(&some[i], &sum);
	}
	for (unsigned i = 0; i < blocks * 128; i++)
		seed[i] = sum;
	need(obk_gpu_take(gpu, bytes, &data, &fault));
	need(obk_gpu_take(gpu, sizeof(some), &at, &fault));
	need(obk_gpu_stream_take(gpu, &stream, &fault));
	need(obk_gpu_write(gpu, stream, at.at, some, sizeof(some), &fault));
	need(obk_gpu_write(gpu, stream, data.at, seed, bytes, &fault));
	printf("\nRates with %u blocks of 128 threads, 10^9 a second\n\n", blocks);
	printf("- mixed additions of points: %.3f\n",
		rate(2, 1, at.at, data.at, blocks, steps, stream));
	printf("- products of 381 bits: %.2f\n", rate(0, 1, 0, data.at, blocks, steps * 8, stream));
	printf("- products of 255 bits: %.2f\n",
		rate(1, 1, 0, data.at, blocks, steps * 16, stream));
	printf("- 32 x 32 + 64 bits: %.1f\n", rate(3, 8, 0, data.at, blocks, steps * 128, stream));
	obk_gpu_stream_give(gpu, stream);
	obk_gpu_give(gpu, &data);
	obk_gpu_give(gpu, &at);
	free(seed);
}

static void print_machine(const struct obk_gpu_driver *driver)
{
	const struct obk_gpu_info *info = obk_gpu_info(gpu);
	struct utsname name;

	uname(&name);
	printf("GPU %u: %s, sm_%u%u, %u SMs, %u MHz, %.1f GB; driver for CUDA %d.%d in %s; %s %s; "
	       "%u threads of the CPU\n",
		info->ordinal, info->name, info->major, info->minor, info->processors,
		info->clock_khz / 1000, (double)info->memory / 1e9, driver->version / 1000,
		driver->version % 1000 / 10, driver->path, name.sysname, name.release,
		obk_pool_threads(pool));
}

int main(int argc, char **argv)
{
	unsigned msm[2] = { 10, 24 }, ntt[2] = { 12, 24 }, steps = 256;
	const struct obk_gpu_driver *driver;
	struct obk_gpu_stats stats;
	const char *path = NULL;
	unsigned ordinal = 0;
	bool windows = false;
	uint64_t size;
	int option;

	while ((option = getopt(argc, argv, "l:g:r:m:n:t:s:w")) >= 0) {
		unsigned *range = option == 'm' ? msm : ntt;

		switch (option) {
		case 'l':
			path = optarg;
			break;
		case 'g':
			ordinal = number(optarg);
			break;
		case 'r':
			repeats = number(optarg);
			break;
		case 's':
			steps = number(optarg);
			break;
		case 't':
			if (!ob_text_parse_size(optarg, &size)) {
				fprintf(stderr, "obk-gpu-bench: %s is not a size like 48G\n",
					optarg);
				return 2;
			}
			table_bytes = (size_t)size;
			break;
		case 'w':
			windows = true;
			break;
		case 'm':
		case 'n':
			range[0] = number(optarg);
			range[1] = optind < argc ? number(argv[optind++]) : range[0];
			break;
		default:
			fprintf(stderr,
				"obk-gpu-bench [-l LIBRARY] [-g GPU] [-r REPEATS] [-m LOG LOG] [-n "
				"LOG LOG] [-t SIZE] [-s STEPS] [-w]\n");
			return 2;
		}
	}
	if (repeats < 1 || repeats > MAX_REPEATS || msm[0] > msm[1] || msm[1] > 26 ||
		ntt[0] > ntt[1] || ntt[1] > OBK_NTT_MAX_LOG_N || ntt[0] < 2) {
		fprintf(stderr,
			"obk-gpu-bench: sizes are 2^0..2^26, from the smaller to the larger, 2^2 "
			"for transforms; repeats 1..%d\n",
			MAX_REPEATS);
		return 2;
	}
	need(obk_gpu_driver_open(path, &driver, &fault));
	need(obk_gpu_open(driver, ordinal, &gpu, &fault));
	need(obk_pool_new(0, &pool));
	need(obk_gpu_enter(gpu, &fault));
	print_machine(driver);
	bench_rates(steps);
	bench_transforms(ntt[0], ntt[1]);
	bench_products(msm[0], msm[1], windows);
	obk_gpu_stats(gpu, &stats);
	printf("\nDevice memory: %.2f GB at most, %llu buffers taken, %llu of them used again; "
	       "%llu launches\n",
		(double)stats.high_water / 1e9, (unsigned long long)stats.taken,
		(unsigned long long)stats.reused, (unsigned long long)stats.launches);
	obk_gpu_leave(gpu);
	obk_gpu_close(gpu);
	obk_pool_free(pool);
	return 0;
}
