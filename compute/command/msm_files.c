/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/opt.h"
#include "compute/command/input.h"
#include "compute/command/msm_files.h"

#define NAME           "msm"
/* In a text file an item has two digits per byte, perhaps 0x, and a line end. */
#define MAX_FILE_BYTES (OBK_MSM_MAX_POINTS * (2 * OBK_G1_UNCOMPRESSED_BYTES + 4))
#define LOOK_AT        4096

static uint8_t *read_all(const char *path, size_t *ret_bytes)
{
	FILE *f = fopen(path, "rbe");
	struct stat info;
	uint8_t *data = NULL;

	if (!f || fstat(fileno(f), &info) != 0) {
		fprintf(stderr, "outboard msm: %s cannot be read: %s\n", path, strerror(errno));
	} else if (!S_ISREG(info.st_mode) || info.st_size == 0) {
		fprintf(stderr, "outboard msm: %s is %s: it needs at least one item\n", path,
			S_ISREG(info.st_mode) ? "empty" : "not a regular file");
	} else if ((size_t)info.st_size > MAX_FILE_BYTES) {
		fprintf(stderr,
			"outboard msm: %s has more than %zu items, the maximum of one product: "
			"split it\n",
			path, OBK_MSM_MAX_POINTS);
	} else {
		*ret_bytes = (size_t)info.st_size;
		data = malloc(*ret_bytes + 1);
		if (!data || fread(data, 1, *ret_bytes, f) != *ret_bytes) {
			fprintf(stderr, "outboard msm: %s cannot be read: %s\n", path,
				data ? "it was truncated while it was read" : "no memory");
			free(data);
			data = NULL;
		}
	}
	if (f)
		fclose(f);
	return data;
}

static bool is_blank(uint8_t c)
{
	return c == '\n' || c == '\r' || c == ' ' || c == '\t' || c == ',';
}

/* Whether the beginning of the file has only digits and white space. */
static bool is_text(const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n && i < LOOK_AT; i++) {
		if (!is_blank(data[i]) && data[i] != 'x' &&
			!strchr("0123456789abcdefABCDEF", data[i]))
			return false;
		if (!data[i])
			return false;
	}
	return true;
}

/* Finds the next word of the text from *at on, without 0x; returns its length, 0 at the end. */
static size_t next_word(const uint8_t *data, size_t n, size_t *at, size_t *ret_start)
{
	size_t start;

	while (*at < n && is_blank(data[*at]))
		++*at;
	start = *at;
	while (*at < n && !is_blank(data[*at]))
		++*at;
	if (*at - start > 2 && data[start] == '0' &&
		(data[start + 1] == 'x' || data[start + 1] == 'X'))
		start += 2;
	*ret_start = start;
	return *at - start;
}

/*
 * Decodes a word of at most 2 x each digits to `each` bytes, with zeros in front; exact: no digit
 * may be missing.
 */
static bool take_word(const uint8_t *word, size_t length, uint8_t *out, size_t each, bool exact)
{
	char digits[2 * OBK_G1_UNCOMPRESSED_BYTES];
	size_t bytes;

	if (length > 2 * each || (exact && length != 2 * each))
		return false;
	memset(digits, '0', 2 * each - length);
	memcpy(digits + 2 * each - length, word, length);
	/* reject 0x inside the word: the decoder would skip it */
	return memchr(word, 'x', length) == NULL &&
		obx_input_hex(digits, 2 * each, out, each, &bytes) && bytes == each;
}

static bool take_text(const char *path, const char *what, const uint8_t *data, size_t n,
	size_t each, bool exact, struct obx_list *ret)
{
	size_t at = 0, start, length, words = 0;

	while (next_word(data, n, &at, &start))
		words++;
	if (words == 0 || words > OBK_MSM_MAX_POINTS) {
		fprintf(stderr, "outboard msm: %s has %zu %ss; a product takes 1 to %zu\n", path,
			words, what, OBK_MSM_MAX_POINTS);
		return false;
	}
	*ret = (struct obx_list){ .bytes = malloc(words * each), .n = words, .each = each };
	if (!ret->bytes) {
		fprintf(stderr, "outboard msm: no memory for %zu %ss\n", words, what);
		return false;
	}
	at = 0;
	for (size_t i = 0; (length = next_word(data, n, &at, &start)) != 0; i++) {
		if (!take_word(data + start, length, ret->bytes + i * each, each, exact)) {
			fprintf(stderr, "outboard msm: %s: %s %zu is not %s%zu hex digits\n", path,
				what, i, exact ? "" : "up to ", 2 * each);
			free(ret->bytes);
			return false;
		}
	}
	return true;
}

static bool take_raw(const char *path, const char *what, uint8_t *data, size_t n, size_t each,
	struct obx_list *ret)
{
	if (n % each) {
		fprintf(stderr,
			"outboard msm: %s has %zu bytes: %s %zu of %zu bytes each lacks %zu; the "
			"file is cut short or of another form\n",
			path, n, what, n / each, each, each - n % each);
		return false;
	}
	*ret = (struct obx_list){ .bytes = data, .n = n / each, .each = each };
	return true;
}

bool obx_points_read(const char *path, struct obx_list *ret, enum obk_point_format *ret_format)
{
	size_t n, each, at = 0, start, length;
	uint8_t *data = read_all(path, &n);
	bool fine, text;

	if (!data)
		return false;
	text = is_text(data, n);
	length = text ? next_word(data, n, &at, &start) : 0;
	each = (text ? length <= 2 * OBK_G1_COMPRESSED_BYTES : data[0] & 0x80)
		? OBK_G1_COMPRESSED_BYTES
		: OBK_G1_UNCOMPRESSED_BYTES;
	*ret_format =
		each == OBK_G1_COMPRESSED_BYTES ? OBK_POINT_COMPRESSED : OBK_POINT_UNCOMPRESSED;
	fine = text ? take_text(path, "point", data, n, each, true, ret)
		    : take_raw(path, "point", data, n, each, ret);
	if (text || !fine)
		free(data);
	return fine;
}

bool obx_scalars_read(const char *path, struct obx_list *ret, bool *ret_text)
{
	size_t n;
	uint8_t *data = read_all(path, &n);
	bool fine;

	if (!data)
		return false;
	*ret_text = is_text(data, n);
	fine = *ret_text ? take_text(path, "scalar", data, n, OBK_SCALAR_BYTES, false, ret)
			 : take_raw(path, "scalar", data, n, OBK_SCALAR_BYTES, ret);
	if (*ret_text || !fine)
		free(data);
	return fine;
}

bool obx_list_write(const char *path, const uint8_t *bytes, size_t n, size_t each, bool text)
{
	FILE *f;
	bool fine;

	if (!text)
		return obx_output_file(NAME, path, bytes, n * each);
	f = fopen(path, "we");
	fine = f != NULL;
	for (size_t i = 0; i < n && fine; i++) {
		for (size_t j = 0; j < each; j++)
			fprintf(f, "%02x", bytes[i * each + j]);
		fine = fputc('\n', f) != EOF;
	}
	if (f && fclose(f) != 0)
		fine = false;
	if (!fine)
		fprintf(stderr, "outboard msm: %s cannot be written: %s\n", path, strerror(errno));
	return fine;
}

/* ---- the independent implementation ---- */

#define DIGITS 255
#define SLICE  4096 /* points between two updates of the bar */

struct second {
	const struct obk_g1_affine *points;
	const uint8_t *scalars;
	size_t n;
	bool be;
	struct obk_g1 sums[OBK_SCALAR_BYTES]; /* [byte], the lowest first */
	struct obx_progress *progress;
	pthread_mutex_t lock; /* guards done and the bar */
	double done;
};

/*
 * Adds (byte `byte` of the scalar) P for all points, with one bucket for each value of that byte.
 */
static void second_body(void *arg, size_t byte, unsigned thread)
{
	struct second *s = arg;
	struct obk_g1 bucket[DIGITS + 1], run, sum;

	(void)thread;
	for (unsigned d = 0; d <= DIGITS; d++)
		obk_g1_set_infinity(&bucket[d]);
	for (size_t i = 0; i < s->n; i++) {
		unsigned d = s->scalars[i * OBK_SCALAR_BYTES +
			(s->be ? OBK_SCALAR_BYTES - 1 - byte : byte)];

		if (d)
			obk_g1_add_affine(&bucket[d], &bucket[d], &s->points[i]);
		if (i % SLICE == SLICE - 1) {
			pthread_mutex_lock(&s->lock);
			s->done += (double)SLICE / (double)s->n / OBK_SCALAR_BYTES;
			obx_progress_step(s->progress, s->done);
			pthread_mutex_unlock(&s->lock);
		}
	}
	obk_g1_set_infinity(&run);
	obk_g1_set_infinity(&sum);
	for (unsigned d = DIGITS; d > 0; d--) {
		obk_g1_add(&run, &run, &bucket[d]);
		obk_g1_add(&sum, &sum, &run);
	}
	s->sums[byte] = sum;
}

/* Decodes without compute/msm; all points have been accepted before. */
static struct obk_g1_affine *decode(const struct obx_list *points, enum obk_point_format format)
{
	struct obk_g1_affine *p = malloc(points->n * sizeof(*p));

	for (size_t i = 0; p && i < points->n; i++) {
		const uint8_t *in = points->bytes + i * points->each;
		struct obk_fault fault;
		enum ob_err err = format == OBK_POINT_COMPRESSED
			? obk_g1_decode_compressed(&p[i], in, i, &fault)
			: obk_g1_decode_uncompressed(&p[i], in, i, &fault);

		if (err) {
			fprintf(stderr, "outboard msm: %s\n", fault.text);
			free(p);
			return NULL;
		}
	}
	if (!p)
		fprintf(stderr, "outboard msm: no memory to verify with %zu points\n", points->n);
	return p;
}

bool obx_msm_second_way(const struct obx_list *points, enum obk_point_format format,
	const uint8_t *scalars, bool be, struct obk_pool *pool, struct obx_progress *progress,
	struct obk_g1_affine *ret)
{
	struct second s = { .scalars = scalars, .n = points->n, .be = be, .progress = progress };
	struct obk_g1_affine *p;
	bool adx = ob_opt_on(OB_OPT_ADX), fine;
	struct obk_g1 sum;

	/*
	 * use the reference implementation of the field from here on; no other thread computes now
	 */
	ob_opt_set(OB_OPT_ADX, false);
	obk_fp_choose();
	p = decode(points, format);
	if (p) {
		s.points = p;
		pthread_mutex_init(&s.lock, NULL);
		obk_pool_run(pool, OBK_SCALAR_BYTES, second_body, &s);
		pthread_mutex_destroy(&s.lock);
		obk_g1_set_infinity(&sum);
		for (unsigned byte = OBK_SCALAR_BYTES; byte-- > 0;) {
			for (unsigned i = 0; i < 8; i++)
				obk_g1_double(&sum, &sum);
			obk_g1_add(&sum, &sum, &s.sums[byte]);
		}
		obk_g1_to_affine(ret, &sum);
	}
	fine = p != NULL;
	free(p);
	ob_opt_set(OB_OPT_ADX, adx);
	obk_fp_choose();
	return fine;
}
