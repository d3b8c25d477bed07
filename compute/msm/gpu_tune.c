/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "compute/msm/gpu_tune.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/opt.h"
#include "compute/msm/gpu_kernels.h"

static const struct obk_profile_kind kind = { "outboard msm gpu profile", OBK_MSM_GPU_TUNE_VERSION,
	"msm-gpu", "outboard msm calibrate" };

/*
 * Devices are identified by their driver and ordinal. Devices with the same key share their tuning.
 */
struct known {
	const struct obk_gpu_driver *driver;
	unsigned ordinal;
	char key[OBK_PROFILE_MAX_KEY];
	bool there; /* tuning is valid */
	bool busy;  /* a thread is measuring this device */
	struct obk_msm_gpu_tuning tuning;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards both variables */
static struct known known[OBK_MSM_GPU_TUNE_MAX_DEVICES];
static unsigned known_count;

static pthread_once_t kernels_once = PTHREAD_ONCE_INIT;
static uint64_t kernels_hash;

/* The hash changes when the kernels change. */
static void hash_kernels(void)
{
	const struct obk_gpu_image *i = &obk_msm_gpu_kernels;

	kernels_hash = ob_hash(OB_HASH_START, i->start, (size_t)(i->end - i->start));
}

void obk_msm_gpu_tune_key(const struct obk_gpu_info *info, const struct obk_gpu_driver *driver,
	char ret_key[OBK_PROFILE_MAX_KEY])
{
	pthread_once(&kernels_once, hash_kernels);
	snprintf(ret_key, OBK_PROFILE_MAX_KEY,
		"%s; compute capability %u.%u, %u multiprocessors; driver %d; link %016llx; "
		"kernels %016llx",
		info->name, info->major, info->minor, info->processors, driver->version,
		(unsigned long long)driver->link, (unsigned long long)kernels_hash);
	for (char *at = ret_key; *at; at++)
		*at = *at == '\n' ? ' ' : *at;
}

static void key_of(const struct obk_gpu *gpu, char ret_key[OBK_PROFILE_MAX_KEY])
{
	obk_msm_gpu_tune_key(obk_gpu_info(gpu), obk_gpu_driver(gpu), ret_key);
}

bool obk_msm_gpu_tune_path(const struct obk_gpu *gpu, char *ret_path, size_t size)
{
	char key[OBK_PROFILE_MAX_KEY];

	key_of(gpu, key);
	return obk_profile_path(&kind, key, ret_path, size);
}

/* The lock is held. NULL: there are as many devices as allowed. */
static struct known *find(const struct obk_gpu *gpu)
{
	struct known *k;

	for (unsigned i = 0; i < known_count; i++)
		if (known[i].driver == obk_gpu_driver(gpu) &&
			known[i].ordinal == obk_gpu_info(gpu)->ordinal)
			return &known[i];
	if (known_count == OBK_MSM_GPU_TUNE_MAX_DEVICES)
		return NULL;
	k = &known[known_count];
	*k = (struct known){ .driver = obk_gpu_driver(gpu), .ordinal = obk_gpu_info(gpu)->ordinal };
	key_of(gpu, k->key);
	for (unsigned i = 0; i < known_count && !k->there; i++)
		if (known[i].there && strcmp(known[i].key, k->key) == 0) {
			k->there = true;
			k->tuning = known[i].tuning;
		}
	known_count++;
	return k;
}

static bool have(const struct obk_gpu *gpu, struct obk_msm_gpu_tuning *ret_tuning)
{
	struct known *k;
	bool there;

	pthread_mutex_lock(&lock);
	k = find(gpu);
	there = k && k->there;
	if (there)
		*ret_tuning = k->tuning;
	pthread_mutex_unlock(&lock);
	return there;
}

void obk_msm_gpu_tuning_get(const struct obk_gpu *gpu, struct obk_msm_gpu_tuning *ret_tuning)
{
	if (!ob_opt_on(OB_OPT_TUNE) || !have(gpu, ret_tuning))
		obk_msm_gpu_guess(obk_gpu_info(gpu), ret_tuning);
}

/* Copies the tuning to all devices with the same key. The lock is held. */
static void share(const struct known *k)
{
	for (unsigned i = 0; i < known_count; i++)
		if (&known[i] != k && strcmp(known[i].key, k->key) == 0) {
			known[i].there = k->there;
			known[i].tuning = k->tuning;
		}
}

static enum ob_err set(const struct obk_gpu *gpu, const struct obk_msm_gpu_tuning *tuning,
	bool keep_windows, struct obk_fault *fault)
{
	struct known *k;

	pthread_mutex_lock(&lock);
	k = find(gpu);
	if (k) {
		uint8_t window[OBK_TUNE_LOGS];

		memcpy(window, keep_windows && k->there ? k->tuning.window : tuning->window,
			sizeof(window));
		k->tuning = *tuning;
		memcpy(k->tuning.window, window, sizeof(window));
		k->there = true;
		share(k);
	}
	pthread_mutex_unlock(&lock);
	if (!k)
		return obk_fault_set(fault, OB_ERR_LIMIT, OBK_FAULT_NO_ITEM,
			"the profile already has the maximum of %d GPUs",
			OBK_MSM_GPU_TUNE_MAX_DEVICES);
	return OB_ERR_NONE;
}

enum ob_err obk_msm_gpu_tuning_set(
	const struct obk_gpu *gpu, const struct obk_msm_gpu_tuning *tuning, struct obk_fault *fault)
{
	return set(gpu, tuning, false, fault);
}

enum ob_err obk_msm_gpu_tuning_set_weights(
	const struct obk_gpu *gpu, const struct obk_msm_gpu_tuning *tuning, struct obk_fault *fault)
{
	return set(gpu, tuning, true, fault);
}

void obk_msm_gpu_tuning_set_window(const struct obk_gpu *gpu, unsigned log, unsigned window)
{
	struct known *k;

	pthread_mutex_lock(&lock);
	k = find(gpu);
	if (k && k->there) {
		k->tuning.window[log] = (uint8_t)window;
		share(k);
	}
	pthread_mutex_unlock(&lock);
}

bool obk_msm_gpu_tune_begin(const struct obk_gpu *gpu)
{
	bool busy = false;
	struct known *k;

	pthread_mutex_lock(&lock);
	k = find(gpu);
	for (unsigned i = 0; k && i < known_count; i++)
		busy |= known[i].busy && strcmp(known[i].key, k->key) == 0;
	if (k && !busy)
		k->busy = true;
	pthread_mutex_unlock(&lock);
	return !busy;
}

void obk_msm_gpu_tune_end(const struct obk_gpu *gpu)
{
	struct known *k;

	pthread_mutex_lock(&lock);
	k = find(gpu);
	if (k)
		k->busy = false;
	pthread_mutex_unlock(&lock);
}

void obk_msm_gpu_tune_clear(void)
{
	pthread_mutex_lock(&lock);
	known_count = 0;
	pthread_mutex_unlock(&lock);
}

/* ---- the file ---- */

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
/* a locale with a decimal point, whatever the locale of the program; 0: it could not be created */
static locale_t plain;

static void make_locale(void)
{
	plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
}

/* Sets it for this thread; returns the previous locale, which the caller must restore. */
static locale_t use_plain(void)
{
	pthread_once(&locale_once, make_locale);
	return uselocale(plain);
}

/* Parses "name number"; false if the line is different. */
static bool take_seconds(const char *line, const char *name, double *ret)
{
	size_t n = strlen(name);
	char *end;

	if (!line || strncmp(line, name, n) != 0 || line[n] != ' ' || line[n + 1] < '0' ||
		line[n + 1] > '9')
		return false;
	*ret = strtod(line + n, &end);
	return *end == '\n' && *ret > 0 && *ret < 1e3;
}

static bool take_group(const char *line, size_t *ret)
{
	char *end;

	if (strncmp(line, "group ", 6) != 0 || line[6] < '0' || line[6] > '9')
		return false;
	*ret = strtoull(line + 6, &end, 10);
	return *end == '\n';
}

static bool take_windows(const char *line, uint8_t window[OBK_TUNE_LOGS])
{
	char *at;

	if (!line || strncmp(line, "windows", 7) != 0)
		return false;
	at = (char *)(uintptr_t)line + 7;
	for (unsigned i = 0; i < OBK_TUNE_LOGS; i++) {
		unsigned long c;

		if (at[0] != ' ' || at[1] < '0' || at[1] > '9')
			return false;
		c = strtoul(at + 1, &at, 10);
		if (c == 1 || c > OBK_MSM_GPU_MAX_WINDOW)
			return false;
		window[i] = (uint8_t)c;
	}
	return *at == '\n';
}

static bool take_lines(const char *line, struct obk_msm_gpu_tuning *t)
{
	if (!take_group(line, &t->group))
		return false;
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++) {
		line = obk_profile_next(line);
		if (!take_seconds(line, obk_msm_gpu_weight_names[i], &t->weights.of[i]))
			return false;
	}
	return take_windows(obk_profile_next(line), t->window);
}

enum ob_err obk_msm_gpu_tune_load(const struct obk_gpu *gpu, struct obk_fault *fault)
{
	char path[OBK_PROFILE_MAX_PATH], lines[OBK_PROFILE_MAX_BYTES + 1], key[OBK_PROFILE_MAX_KEY];
	struct obk_msm_gpu_tuning t;
	locale_t before;
	enum ob_err err;
	bool fine;

	if (!ob_opt_on(OB_OPT_TUNE) || have(gpu, &t) ||
		!obk_msm_gpu_tune_path(gpu, path, sizeof(path)))
		return OB_ERR_NONE;
	key_of(gpu, key);
	err = obk_profile_read(&kind, key, path, lines, fault);
	if (err)
		return err == OB_ERR_ARGUMENT ? err : OB_ERR_NONE;
	obk_msm_gpu_guess(obk_gpu_info(gpu), &t);
	before = use_plain();
	fine = take_lines(lines, &t);
	uselocale(before);
	if (!fine)
		return obk_profile_damaged(&kind, path, fault);
	t.measured = true;
	return obk_msm_gpu_tuning_set(gpu, &t, fault);
}

enum ob_err obk_msm_gpu_tune_store(const struct obk_gpu *gpu, struct obk_fault *fault)
{
	char path[OBK_PROFILE_MAX_PATH], lines[OBK_PROFILE_MAX_BYTES], key[OBK_PROFILE_MAX_KEY];
	struct obk_msm_gpu_tuning t;
	locale_t before;
	size_t n;

	if (!have(gpu, &t))
		return OB_ERR_NONE;
	if (!obk_msm_gpu_tune_path(gpu, path, sizeof(path)))
		return obk_fault_set(fault, OB_ERR_IO, OBK_FAULT_NO_ITEM,
			"there is no folder for the GPU's profile: set XDG_CACHE_HOME or HOME");
	key_of(gpu, key);
	before = use_plain();
	n = obk_profile_append(lines, 0, "group %zu\n", t.group);
	for (unsigned i = 0; i < OBK_MSM_WEIGHTS; i++)
		n = obk_profile_append(
			lines, n, "%s %.6g\n", obk_msm_gpu_weight_names[i], t.weights.of[i]);
	n = obk_profile_append(lines, n, "windows");
	for (unsigned i = 0; i < OBK_TUNE_LOGS; i++)
		n = obk_profile_append(lines, n, " %u", (unsigned)t.window[i]);
	obk_profile_append(lines, n, "\n");
	uselocale(before);
	return obk_profile_write(&kind, key, path, lines, fault);
}
