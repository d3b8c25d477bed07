/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/opt.h"
#include "base/text.h"
#include "compute/curve/lanes.h"
#include "compute/msm/job.h"
#include "compute/msm/tune.h"

#define MAX_KEY 256
#define HALVES  OBK_TUNE_HALVES

static const struct obk_profile_kind kind = { "outboard msm profile", OBK_TUNE_VERSION, "msm",
	"outboard msm tune" };
/*
 * Single bytes, so that a product that runs during a change reads either the old or the new value.
 */
static _Atomic uint8_t windows[HALVES][OBK_TUNE_LOGS]; /* [halves - 1][log n]; 0: unknown */
static _Atomic uint8_t endomorphism;                   /* log n + 1; 0: unknown */

unsigned obk_tune_log(size_t n)
{
	unsigned log_n = n ? 63 - (unsigned)__builtin_clzll(n) : 0;

	/* the nearer power of two */
	if (log_n && n - ((size_t)1 << log_n) > (size_t)1 << (log_n - 1))
		log_n++;
	return log_n < OBK_TUNE_LOGS ? log_n : OBK_TUNE_LOGS - 1;
}

unsigned obk_tune_window(unsigned halves, size_t n)
{
	return ob_opt_on(OB_OPT_TUNE)
		? atomic_load_explicit(&windows[halves - 1][obk_tune_log(n)], memory_order_relaxed)
		: 0;
}

size_t obk_tune_endomorphism(size_t otherwise)
{
	unsigned limit = ob_opt_on(OB_OPT_TUNE)
		? atomic_load_explicit(&endomorphism, memory_order_relaxed)
		: 0;

	return limit ? (size_t)1 << (limit - 1) : otherwise;
}

static void profile_set(const uint8_t w[HALVES][OBK_TUNE_LOGS], unsigned limit)
{
	for (unsigned h = 0; h < HALVES; h++)
		for (unsigned i = 0; i < OBK_TUNE_LOGS; i++)
			windows[h][i] = w[h][i];
	endomorphism = (uint8_t)limit;
}

void obk_tune_set(const uint8_t w[HALVES][OBK_TUNE_LOGS], unsigned limit)
{
	profile_set(w, limit + 1);
}

void obk_tune_clear(void)
{
	static const uint8_t none[HALVES][OBK_TUNE_LOGS];

	profile_set(none, 0);
}

/* A line with the processor's model and the implementation of point addition. */
static void make_key(char key[MAX_KEY])
{
	char model[128] = "unknown", line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !at)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(model, sizeof(model), "%.120s", at + 1 + strspn(at + 1, " "));
		break;
	}
	if (f)
		fclose(f);
	snprintf(key, MAX_KEY, "%s; %s; %s", model, obk_lanes_choose()->name, obk_fp_now.name);
}

bool obk_tune_path(char *ret_path, size_t size)
{
	char key[MAX_KEY];

	make_key(key);
	return obk_profile_path(&kind, key, ret_path, size);
}

/* ---- the file ---- */

/* Parses "name n n n ..." with `count` numbers; false if the line is different. */
static bool take_numbers(
	const char *text, const char *name, unsigned count, unsigned most, uint8_t *ret)
{
	size_t length = strlen(name);

	if (strncmp(text, name, length) != 0)
		return false;
	text += length;
	for (unsigned i = 0; i < count; i++) {
		unsigned long v;
		char *end;

		if (text[0] != ' ' || text[1] < '0' || text[1] > '9')
			return false;
		v = strtoul(text + 1, &end, 10);
		if (v > most || (v == 1 && most == OBK_MSM_MAX_WINDOW))
			return false;
		ret[i] = (uint8_t)v;
		text = end;
	}
	return *text == '\n';
}

static enum ob_err take_lines(const char *line, const char *path, struct obk_fault *fault)
{
	uint8_t w[HALVES][OBK_TUNE_LOGS], limit;

	if (!take_numbers(line, "endomorphism", 1, OBK_TUNE_LOGS, &limit))
		return obk_profile_damaged(&kind, path, fault);
	for (unsigned h = 0; h < HALVES; h++) {
		line = obk_profile_next(line);
		if (!line ||
			!take_numbers(line, h ? "halves" : "whole", OBK_TUNE_LOGS,
				OBK_MSM_MAX_WINDOW, w[h]))
			return obk_profile_damaged(&kind, path, fault);
	}
	profile_set(w, limit);
	return OB_ERR_NONE;
}

enum ob_err obk_tune_load(const char *path, struct obk_fault *fault)
{
	char lines[OBK_PROFILE_MAX_BYTES + 1], key[MAX_KEY];
	enum ob_err err;

	make_key(key);
	err = obk_profile_read(&kind, key, path, lines, fault);
	return err ? err : take_lines(lines, path, fault);
}

enum ob_err obk_tune_load_default(struct obk_fault *fault)
{
	char path[OBK_PROFILE_MAX_PATH];

	if (!ob_opt_on(OB_OPT_TUNE) || !obk_tune_path(path, sizeof(path)))
		return OB_ERR_NONE;
	return obk_tune_load(path, fault) == OB_ERR_ARGUMENT ? OB_ERR_ARGUMENT : OB_ERR_NONE;
}

enum ob_err obk_tune_store(const char *path, struct obk_fault *fault)
{
	char lines[OBK_PROFILE_MAX_BYTES], key[MAX_KEY];
	size_t n;

	make_key(key);
	n = obk_profile_append(lines, 0, "endomorphism %u\n", (unsigned)endomorphism);
	for (unsigned h = 0; h < HALVES; h++) {
		n = obk_profile_append(lines, n, "%s", h ? "halves" : "whole");
		for (unsigned i = 0; i < OBK_TUNE_LOGS; i++)
			n = obk_profile_append(lines, n, " %u", (unsigned)windows[h][i]);
		n = obk_profile_append(lines, n, "\n");
	}
	return obk_profile_write(&kind, key, path, lines, fault);
}

void obk_tune_print(FILE *out)
{
	unsigned limit = endomorphism ? endomorphism - 1u : 0;
	char key[MAX_KEY];

	make_key(key);
	fprintf(out,
		"%s\nthe endomorphism is used up to %zu points\nwindows by size (whole "
		"scalars/halves):",
		key, endomorphism ? (size_t)1 << limit : 0);
	for (unsigned i = 0; i < OBK_TUNE_LOGS; i++)
		fprintf(out, " 2^%u:%u/%u", i, (unsigned)windows[0][i], (unsigned)windows[1][i]);
	putc('\n', out);
}

void obk_tune_print_json(FILE *out)
{
	unsigned limit = endomorphism ? endomorphism - 1u : 0;
	struct ob_json json;
	char key[MAX_KEY];

	make_key(key);
	ob_json_begin(&json, out, OB_JSON_SPACED);
	ob_json_object(&json, NULL);
	ob_json_text(&json, "for", key);
	ob_json_uint(&json, "endomorphism_up_to", endomorphism ? (size_t)1 << limit : 0);
	ob_json_array(&json, "windows");
	for (unsigned i = 0; i < OBK_TUNE_LOGS; i++) {
		ob_json_object(&json, NULL);
		ob_json_uint(&json, "log_n", i);
		ob_json_uint(&json, "whole", windows[0][i]);
		ob_json_uint(&json, "halves", windows[1][i]);
		ob_json_end(&json);
	}
	ob_json_end(&json);
	ob_json_end(&json);
	putc('\n', out);
}
