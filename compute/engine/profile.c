/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/engine/profile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "compute/msm/profile.h"

static const char *const op_names[OUTBOARD_OP_COUNT] = { "msm", "ntt", "kzg", "rqa" };

/* Exponent of the growth beyond the measured sizes: the time is proportional to size^growth. */
static double growth(uint32_t operation)
{
	return operation == OUTBOARD_OP_RQA ? 2 : 1;
}

double obv_curve_seconds(const struct obv_curve *curve, uint32_t operation, double size)
{
	double at = size > 1 ? log2(size) : 0;
	int below = -1, above = -1;

	for (int i = 0; i < OBV_PROFILE_LOGS; i++) {
		if (!(curve->seconds[i] > 0))
			continue;
		if (i <= at)
			below = i;
		else if (above < 0)
			above = i;
	}
	if (below < 0 && above < 0)
		return 0;
	if (below < 0)
		return curve->seconds[above];
	if (above < 0)
		return curve->seconds[below] * exp2((at - below) * growth(operation));
	return curve->seconds[below] *
		pow(curve->seconds[above] / curve->seconds[below], (at - below) / (above - below));
}

/* Estimated seconds on one CPU thread. */
static double guess_cpu(uint32_t operation, double n)
{
	switch (operation) {
	case OUTBOARD_OP_MSM:
		return 1e-4 + n * 2.2e-4 / (12 + log2(n));
	case OUTBOARD_OP_NTT:
		return 1e-6 + n * (1 + log2(n)) * 1.2e-8;
	case OUTBOARD_OP_KZG:
		return n * 0.035;
	default:
		return 1e-6 + n * n / 2 / 3e9;
	}
}

/* Estimated seconds on one multiprocessor, without the overhead of the call. */
static double guess_gpu(uint32_t operation, double n)
{
	switch (operation) {
	case OUTBOARD_OP_MSM:
		return n * 4e-6;
	case OUTBOARD_OP_NTT:
		return n * (1 + log2(n)) * 8e-9;
	case OUTBOARD_OP_KZG:
		return n * 0.02;
	default:
		return n * n / 2 / 5e9;
	}
}

void obv_curves_guess(struct obv_curves *curves, const struct obv_traits *t)
{
	double units = t->units ? t->units : 1;

	curves->measured = false;
	for (uint32_t op = 0; op < OUTBOARD_OP_COUNT; op++)
		for (int i = 0; i < OBV_PROFILE_LOGS; i++) {
			double n = (double)(1u << i);

			/*
			 * A product or a transform takes about twelve launches, whatever its size.
			 */
			curves->op[op].seconds[i] = t->kind == OUTBOARD_GPU
				? 2e-4 + 12 * t->link + guess_gpu(op, n) / units
				: guess_cpu(op, n) / units;
		}
}

void obv_curve_expect(struct obv_curve *curve,
	double (*expect)(void *device, uint32_t operation, double size), void *device,
	uint32_t operation)
{
	for (int i = 0; i < OBV_PROFILE_LOGS; i++) {
		double seconds = expect(device, operation, (double)(1u << i));

		if (seconds > 0)
			curve->seconds[i] = seconds;
	}
}

uint64_t obv_curve_threshold(
	const struct obv_curve *device, const struct obv_curve *cpu, uint32_t operation)
{
	for (int i = 0; i < OBV_PROFILE_LOGS; i++) {
		double n = (double)(1u << i);

		if (obv_curve_seconds(device, operation, n) < obv_curve_seconds(cpu, operation, n))
			return (uint64_t)1 << i;
	}
	return UINT64_MAX;
}

static uint64_t hash_line(uint64_t hash, const char *text)
{
	return ob_hash(ob_hash(hash, text, strlen(text)), "\n", 1);
}

void obv_profile_machine(const struct obv_curves *curves, unsigned n, char ret_key[17])
{
	char host[256] = "";
	uint64_t h = OB_HASH_START;

	/* Machines may share a home directory, so the host name is part of the key. */
	gethostname(host, sizeof(host) - 1);
	h = hash_line(h, host);
	for (unsigned i = 0; i < n; i++)
		h = hash_line(h, curves[i].key);
	snprintf(ret_key, 17, "%016llx", (unsigned long long)h);
}

bool obv_profile_path(const char *machine, char *ret_path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	/* A relative path must be ignored (XDG Base Directory Specification). */
	if (cache && cache[0] == '/')
		n = snprintf(ret_path, size, "%s/outboard/profile-%s", cache, machine);
	else if (home && home[0] == '/')
		n = snprintf(ret_path, size, "%s/.cache/outboard/profile-%s", home, machine);
	else
		return false;
	return n > 0 && (size_t)n < size;
}

static struct obv_curves *find(struct obv_curves *curves, unsigned n, const char *key)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(curves[i].key, key) == 0)
			return &curves[i];
	return NULL;
}

static bool read_measure(struct obv_curves *c, const char *line)
{
	char name[8];
	unsigned log;
	double seconds;

	if (sscanf(line, "%7s %u %lf", name, &log, &seconds) != 3 || log >= OBV_PROFILE_LOGS ||
		!(seconds > 0 && seconds < 1e6))
		return false;
	for (unsigned op = 0; op < OUTBOARD_OP_COUNT; op++) {
		if (strcmp(name, op_names[op]) != 0)
			continue;
		if (c)
			c->op[op].seconds[log] = seconds;
		return true;
	}
	return false;
}

static bool read_lines(char *text, const char *machine, struct obv_curves *curves, unsigned n,
	const char **ret_why)
{
	struct obv_curves *read = calloc(n, sizeof(*read)), *at = NULL;
	bool known = false, whole = true;
	char *rest = text, *line;

	*ret_why = read ? "the profile is damaged: run outboard_calibrate again, or remove it"
			: "no memory for the profile";
	for (unsigned i = 0; read && i < n; i++)
		memcpy(read[i].key, curves[i].key, sizeof(read[i].key));
	line = strsep(&rest, "\n");
	if (read && (!line || strcmp(line, "outboard-profile 1") != 0)) {
		*ret_why = "this file is not a profile, or is of another version: run "
			   "outboard_calibrate again, or remove it";
		whole = false;
	}
	while (read && whole && (line = strsep(&rest, "\n")) != NULL) {
		if (strncmp(line, "machine ", 8) == 0) {
			known = strcmp(line + 8, machine) == 0;
			if (!known)
				break;
		} else if (strncmp(line, "device ", 7) == 0) {
			at = find(read, n, line + 7);
			if (at)
				at->measured = true;
		} else if (*line) {
			whole = known && read_measure(at, line);
		}
	}
	if (whole && !known)
		*ret_why = "the profile belongs to another machine or to other devices: run "
			   "outboard_calibrate";
	for (unsigned i = 0; read && whole && known && i < n; i++)
		for (unsigned op = 0; read[i].measured && op < OUTBOARD_OP_COUNT; op++) {
			bool any = false;

			for (unsigned log = 0; log < OBV_PROFILE_LOGS; log++)
				any |= read[i].op[op].seconds[log] > 0;
			if (any)
				curves[i].op[op] = read[i].op[op];
			curves[i].measured = true;
		}
	whole = read && whole && known;
	free(read);
	return whole;
}

bool obv_profile_read(const char *path, const char *machine, struct obv_curves *curves, unsigned n,
	const char **ret_why)
{
	char *text = malloc(OBV_PROFILE_MAX_BYTES + 1);
	FILE *f = fopen(path, "rbe");
	size_t length;
	bool ok;

	*ret_why = NULL;
	if (!f || !text) {
		if (f || errno != ENOENT)
			*ret_why = "the profile cannot be read";
		if (f)
			fclose(f);
		free(text);
		return false;
	}
	length = fread(text, 1, OBV_PROFILE_MAX_BYTES, f);
	text[length] = 0;
	fclose(f);
	ok = read_lines(text, machine, curves, n, ret_why);
	free(text);
	return ok;
}

/* Creates the missing folders above `path`. */
static bool make_folders(const char *path)
{
	char *copy = strdup(path);
	bool ok = copy;

	for (char *slash = copy ? strchr(copy + 1, '/') : NULL; ok && slash;
		slash = strchr(slash + 1, '/')) {
		*slash = 0;
		ok = mkdir(copy, 0700) == 0 || errno == EEXIST || errno == EROFS || errno == EACCES;
		*slash = '/';
	}
	free(copy);
	return ok;
}

bool obv_profile_write(
	const char *path, const char *machine, const struct obv_curves *curves, unsigned n)
{
	char beside[4096 + 32];
	bool ok;
	FILE *f;
	int saved;

	f = make_folders(path) ? obk_profile_beside(path, beside, sizeof(beside)) : NULL;
	if (!f)
		return false;
	fprintf(f, "outboard-profile %d\nmachine %s\n", OBV_PROFILE_VERSION, machine);
	for (unsigned i = 0; i < n; i++) {
		if (!curves[i].measured)
			continue;
		fprintf(f, "device %s\n", curves[i].key);
		for (unsigned op = 0; op < OUTBOARD_OP_COUNT; op++)
			for (unsigned log = 0; log < OBV_PROFILE_LOGS; log++)
				if (curves[i].op[op].seconds[log] > 0)
					fprintf(f, "%s %u %.6g\n", op_names[op], log,
						curves[i].op[op].seconds[log]);
	}
	ok = !ferror(f);
	ok = fclose(f) == 0 && ok && rename(beside, path) == 0;
	if (!ok) {
		saved = errno;
		unlink(beside);
		errno = saved;
	}
	return ok;
}
