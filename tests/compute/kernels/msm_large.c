/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 *     msm_large [-t threads] sizes FROM TO
 *         products of 2^FROM .. 2^TO points with known logarithms and random scalars; needs 256
 *         bytes per point and about 1 GB
 *     msm_large [-t threads] [-u LOG] once FROM TO
 *         the same with points given for the call only; needs 128 bytes per point and 2 GB. -u:
 *         only 2^LOG different points, mapped repeatedly: 2^26 points then need 2 GiB, and 96 bytes
 *         for each different one
 *     msm_large [-t threads] groups
 *         more buckets than are processed together
 *     msm_large [-t threads] [-l LIMIT] hard LOG_N
 *         adversarial scalars and bases. -l: none may take more than LIMIT times the processor time
 *         of random ones
 *
 * P_i = (k + i d) G, so the sum of s_i P_i is (sum of s_i log_i mod r) G, which OpenSSL computes.
 * Exits with 1 at the first wrong sum.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "compute/msm/msm.h"
#include "tests/compute/kernels/oracle.h"

#define BLOCK 4096
#define RUNS  3
#define ALL   63

static struct input {
	size_t n, different;
	struct obk_g1_affine *points;
	struct obk_fr log, step; /* logarithm of the first point; difference to the next */
	struct obk_fr *logs; /* all logarithms, if they do not follow from log and step; or NULL */
	uint64_t (*scalars)[4];
	struct obk_pool *pool;
	uint64_t state;
} in;

static void *room(size_t n, size_t each)
{
	void *p = malloc(n * each);

	if (!p) {
		fprintf(stderr, "no memory for %zu items of %zu bytes\n", n, each);
		exit(1);
	}
	return p;
}

/*
 * Returns address space for n points in which the first in.different points are mapped repeatedly.
 */
static void *points_room(size_t n)
{
	size_t bytes = in.different * sizeof(struct obk_g1_affine);
	int fd = memfd_create("points", MFD_CLOEXEC);
	char *all = mmap(NULL, n * sizeof(struct obk_g1_affine), PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd < 0 || all == MAP_FAILED || ftruncate(fd, (off_t)bytes)) {
		perror("points");
		exit(1);
	}
	for (size_t i = 0; i < n / in.different; i++) {
		if (mmap(all + i * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			    0) == MAP_FAILED) {
			perror("points");
			exit(1);
		}
	}
	close(fd);
	return all;
}

static double processor_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void random_scalars(void)
{
	for (size_t i = 0; i < in.n; i++) {
		for (unsigned j = 0; j < 4; j++)
			in.scalars[i][j] = oracle_random(&in.state);
	}
}

/* Makes min(2^different, n) different points. */
static void make(size_t n, unsigned different, bool keep_logs)
{
	struct obk_g1 *sums = room(BLOCK, sizeof(*sums)), run, t;
	struct obk_fp *scratch = room(2 * BLOCK, sizeof(*scratch));
	uint64_t k = oracle_random(&in.state), d = oracle_random(&in.state);
	struct obk_g1_affine step;
	struct obk_fr log;

	in.n = n;
	in.different = n >> different ? (size_t)1 << different : n;
	in.points = points_room(n);
	in.logs = keep_logs ? room(n, sizeof(*in.logs)) : NULL;
	in.scalars = room(n, sizeof(*in.scalars));
	obk_g1_mul(&run, &obk_g1_generator, &k, 64);
	obk_g1_mul(&t, &obk_g1_generator, &d, 64);
	obk_g1_to_affine(&step, &t);
	obk_fr_from_plain(&in.log, (uint64_t[4]){ k });
	obk_fr_from_plain(&in.step, (uint64_t[4]){ d });
	log = in.log;
	for (size_t at = 0; at < in.different; at += BLOCK) {
		size_t count = in.different - at < BLOCK ? in.different - at : BLOCK;

		for (size_t i = 0; i < count; i++) {
			sums[i] = run;
			if (in.logs)
				in.logs[at + i] = log;
			obk_g1_add_affine(&run, &run, &step);
			obk_fr_add(&log, &log, &in.step);
		}
		obk_g1_to_affine_batch(in.points + at, sums, count, scratch);
	}
	random_scalars();
	free(scratch);
	free(sums);
}

static void drop(void)
{
	munmap(in.points, in.n * sizeof(*in.points));
	free(in.logs);
	free(in.scalars);
}

static void expected(uint8_t want[96])
{
	struct obk_fr sum = obk_fr_zero, log = in.log, t;
	uint64_t plain[4];
	uint8_t be[32];

	for (size_t i = 0; i < in.n; i++) {
		if (i % in.different == 0)
			log = in.log;
		obk_fr_from_plain(&t, in.scalars[i]);
		obk_fr_mul(&t, &t, in.logs ? &in.logs[i] : &log);
		obk_fr_add(&sum, &sum, &t);
		obk_fr_add(&log, &log, &in.step);
	}
	obk_fr_to_plain(plain, &sum);
	for (unsigned i = 0; i < 32; i++)
		be[31 - i] = (uint8_t)(plain[i / 8] >> 8 * (i % 8));
	oracle_mul(want, NULL, be);
}

/*
 * Returns the shortest of `runs` runs in ms of processor time. A wrong sum ends the program. once:
 * with bases for each call only.
 */
static double check(
	const char *what, enum obk_trust trust, unsigned window, unsigned runs, bool once)
{
	struct obk_msm_bases_args args = {
		.points = in.points, .count = in.n, .trust = trust, .pool = in.pool
	};
	struct obk_msm_job job = {
		.count = in.n, .scalars = in.scalars, .batch = 1, .window = window, .pool = in.pool
	};
	struct obk_fault fault = { .text = "" };
	struct obk_msm_bases *bases = NULL;
	uint8_t want[96], have[96];
	struct obk_g1_affine sum;
	double best = 1e18;
	enum ob_err err = once ? OB_ERR_NONE : obk_msm_bases_new(&args, &bases, &fault);

	expected(want);
	for (unsigned r = 0; r < runs && !err; r++) {
		double from = processor_ms(), took;

		err = once ? obk_msm_once(&args, &job, &sum, &fault)
			   : obk_msm_run(bases, &job, &sum, &fault);
		took = processor_ms() - from;
		best = took < best ? took : best;
	}
	if (!err)
		obk_g1_encode_uncompressed(have, &sum);
	if (err || memcmp(have, want, 96) != 0) {
		fprintf(stderr, "%s, %zu points: %s\n", what, in.n,
			err ? fault.text : "the sum is wrong");
		exit(1);
	}
	obk_msm_bases_free(bases);
	return best;
}

static void sizes(unsigned from, unsigned to, bool once, unsigned different)
{
	for (unsigned log_n = from; log_n <= to; log_n++) {
		make((size_t)1 << log_n, different, false);
		printf("2^%u: %.1f ms of processor time\n", log_n,
			check("random", OBK_TRUST_SUBGROUP, 0, 1, once));
		fflush(stdout);
		drop();
	}
}

static void groups(void)
{
	make(1500, ALL, false);
	check("windows of 22 bits", OBK_TRUST_CURVE, 22, 1, false);
	check("windows of 21 bits", OBK_TRUST_CURVE, 21, 1, false);
	drop();
}

enum hard {
	RANDOM,
	ZERO,
	ONE,
	MINUS_ONE,
	MODULUS,
	ALL_BITS,
	EQUAL,
	HALF_DIGITS,
	CARRIES,
	SMALL,
	TWO_VALUES,
	ONE_BIT,
	SAME_BASE,
	OPPOSITE,
	HALF_INFINITY,
	SEVEN_BASES,
	SAME_OF_BOTH,
	HARD_KINDS
};

static const char *const hard_names[HARD_KINDS] = { "random", "scalars all 0", "scalars all 1",
	"scalars all r - 1", "scalars r and r + 1", "scalars 2^256 - 1", "scalars all equal",
	"digits of half a window", "carries through every window", "scalars below 256",
	"scalars of two values", "one bit each", "bases all equal", "P and -P by turns",
	"half of the bases infinity", "seven bases repeated", "one base, one scalar" };

static void hard_scalar(enum hard kind, size_t i, uint64_t s[4])
{
	static const uint64_t value[4] = { 0x123456789abcdef0, 77, 0xfedcba9876543210,
		0x1122334455667788 };

	if (kind == ZERO || kind == ONE || kind == SMALL || kind == ONE_BIT) {
		memset(s, 0, 32);
		s[0] = kind == ONE ? 1 : kind == SMALL ? i & 255 : 0;
		if (kind == ONE_BIT)
			s[i / 64 % 4] = (uint64_t)1 << i % 64;
	} else if (kind == MINUS_ONE || kind == MODULUS) {
		memcpy(s, obk_fr_modulus.l, 32);
		s[0] += kind == MODULUS ? i & 1 : (uint64_t)-1;
	} else if (kind == ALL_BITS) {
		memset(s, 0xff, 32);
	} else if (kind == EQUAL || kind == SAME_OF_BOTH || kind == TWO_VALUES) {
		memcpy(s, value, 32);
		s[1] += kind == TWO_VALUES ? i & 1 : 0;
	} else if (kind == HALF_DIGITS) {
		memset(s, i % 2 ? 0x80 : 0x7f, 32);
	} else if (kind == CARRIES) {
		memset(s, 0xff, 32);
		s[3] = 0x0fffffffffffffff;
	}
}

static void hard_base(enum hard kind, size_t i)
{
	size_t from = kind == SAME_BASE || kind == OPPOSITE || kind == SAME_OF_BOTH ? 0
		: kind == SEVEN_BASES                                               ? i % 7
										    : i;

	in.points[i] = in.points[from];
	in.logs[i] = in.logs[from];
	if (kind == OPPOSITE && i % 2) {
		obk_g1_affine_neg(&in.points[i], &in.points[i]);
		obk_fr_neg(&in.logs[i], &in.logs[i]);
	}
	if (kind == HALF_INFINITY && i % 2) {
		memset(&in.points[i], 0, sizeof(in.points[i]));
		in.logs[i] = obk_fr_zero;
	}
}

static int hard(unsigned log_n, double limit)
{
	double random = 0, worst = 0;

	for (unsigned kind = RANDOM; kind < HARD_KINDS; kind++) {
		double ms;

		make((size_t)1 << log_n, ALL, true);
		for (size_t i = 0; i < in.n; i++) {
			hard_scalar((enum hard)kind, i, in.scalars[i]);
			hard_base((enum hard)kind, i);
		}
		ms = check(hard_names[kind], OBK_TRUST_SUBGROUP, 0, limit > 0 ? RUNS : 1, false);
		random = kind == RANDOM ? ms : random;
		worst = ms / random > worst ? ms / random : worst;
		printf("%-30s %10.1f ms %6.2f\n", hard_names[kind], ms, ms / random);
		fflush(stdout);
		drop();
	}
	if (limit > 0 && worst > limit) {
		fprintf(stderr,
			"the worst takes %.2f times as long as random ones, more than %.2f\n",
			worst, limit);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned threads = 0, different = ALL;
	double limit = 0;
	int code = 0;

	for (int c; (c = getopt(argc, argv, "t:l:u:")) != -1;) {
		if (c == '?')
			return 2;
		if (c == 't')
			threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'u')
			different = (unsigned)strtoul(optarg, NULL, 10);
		else
			limit = strtod(optarg, NULL);
	}
	if (optind == argc || different < 7 || obk_pool_new(threads, &in.pool))
		return 2;
	in.state = 2;
	if (strcmp(argv[optind], "groups") == 0)
		groups();
	else if (optind + 1 < argc && strcmp(argv[optind], "hard") == 0)
		code = hard((unsigned)strtoul(argv[optind + 1], NULL, 10), limit);
	else if (optind + 2 < argc)
		sizes((unsigned)strtoul(argv[optind + 1], NULL, 10),
			(unsigned)strtoul(argv[optind + 2], NULL, 10),
			strcmp(argv[optind], "once") == 0, different);
	obk_pool_free(in.pool);
	return code;
}
