/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "server/common/options.h"
#include "server/layers/hold.h"
#include "server/layers/layers.h"
#include "server/layers/quota.h"

/* The software device makes a dry run when this names a GPU (softdevice/config.h). */
#define DRYRUN_MODEL "OUTBOARD_DRYRUN"

/* Calls of which a driver may have only an older version that does the same. */
static const char *const older_names[][2] = {
	{ "cuEventElapsedTime_v2", "cuEventElapsedTime" },
	{ "cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxReset" },
	{ "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease" },
};

static void *find(void *handle, const char *name)
{
	void *entry = dlsym(handle, name);

	for (size_t i = 0; !entry && i < ob_count(older_names); i++)
		if (strcmp(name, older_names[i][0]) == 0)
			entry = dlsym(handle, older_names[i][1]);
	return entry;
}

/*
 * Opens the software device, which lies beside this program as installed (bin/ and lib/) or as
 * built.
 */
static void *open_soft(struct obs_driver_lib *lib, struct ob_cause *ret_cause)
{
	static const char *const places[] = { "", "../lib/", "../lib/outboard/", "../softdevice/" };
	char dir[200];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
	char *slash;
	void *handle;

	dir[n > 0 ? n : 0] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		slash[1] = '\0';
	for (size_t i = 0; i < ob_count(places); i++) {
		if (snprintf(lib->name, sizeof lib->name, "%s%s%s", dir, places[i],
			    OBS_DRIVER_SOFT_FILE) >= (int)sizeof lib->name ||
			access(lib->name, R_OK) != 0)
			continue;
		handle = dlopen(lib->name, RTLD_NOW | RTLD_LOCAL);
		if (!handle)
			ob_cause_set(ret_cause, OB_ERR_DRIVER, "%s", dlerror());
		return handle;
	}
	ob_cause_set(ret_cause, OB_ERR_DRIVER,
		"%s is neither beside outboard-server nor in ../lib; name it with --driver PATH",
		OBS_DRIVER_SOFT_FILE);
	return NULL;
}

static enum ob_err bind(struct obs_driver_lib *lib, const char *which, struct ob_cause *ret_cause)
{
	void *handle;
	int missing;

	if (strcmp(which, "null") == 0) {
		snprintf(lib->name, sizeof lib->name, "null");
		lib->null = true;
		lib->bare = obs_null_driver;
		return OB_ERR_NONE;
	}
	if (strcmp(which, OBS_DRIVER_GPU) == 0)
		which = OBS_DRIVER_SYSTEM;
	if (strcmp(which, "soft") == 0) {
		unsetenv(DRYRUN_MODEL);
		handle = open_soft(lib, ret_cause);
	} else if (strcmp(which, OBS_DRIVER_DRYRUN) == 0) {
		setenv(DRYRUN_MODEL, OBS_DRYRUN_USUAL, 0);
		handle = open_soft(lib, ret_cause);
		if (handle)
			snprintf(lib->name, sizeof lib->name, "%s", OBS_DRIVER_DRYRUN);
	} else {
		snprintf(lib->name, sizeof lib->name, "%s", which);
		handle = dlopen(which, RTLD_NOW | RTLD_LOCAL);
		if (!handle)
			ob_cause_set(ret_cause, OB_ERR_DRIVER, "%s", dlerror());
	}
	if (!handle)
		return OB_ERR_DRIVER;
	if (!dlsym(handle, "cuInit"))
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"%s is not a CUDA driver: it has no cuInit", lib->name);
	missing = obs_driver_bind(&lib->bare, find, handle);
	if (missing)
		ob_debug("%s lacks %d of %d calls", lib->name, missing, OBS_DRIVER_CALLS);
	return OB_ERR_NONE;
}

static int device_take(uint64_t bytes)
{
	return obs_quota_host(OBS_HOLD_DEVICE, bytes) == CUDA_SUCCESS;
}

static void device_give(uint64_t bytes)
{
	obs_hold_give(OBS_HOLD_DEVICE, bytes);
}

/*
 * Word n of the software device's export table; NULL: there is none. Other drivers do not have the
 * table.
 */
static const void *soft_word(const struct obs_driver *drv, size_t n)
{
	const void *const *table = NULL;
	CUuuid id;

	memcpy(id.bytes, "outboard-softdev", sizeof id.bytes);
	if (drv->cuGetExportTable((const void **)&table, &id) != CUDA_SUCCESS || !table)
		return NULL;
	return (uintptr_t)table[0] / sizeof *table > n ? table[n] : NULL;
}

/*
 * True if the driver runs no cubin, which only the software device says. Also has the software
 * device's memory counted.
 */
static bool ask_ptx_only(const struct obs_driver *drv)
{
	const void *only = soft_word(drv, 1), *counting = soft_word(drv, 2);
	void (*count)(int (*take)(uint64_t), void (*give)(uint64_t));
	int (*answer)(void);

	memcpy(&answer, &only, sizeof answer);
	memcpy(&count, &counting, sizeof count);
	if (count)
		count(device_take, device_give);
	return answer && answer() != 0;
}

void obs_driver_why(
	const struct obs_driver_lib *lib, CUfunction function, char *ret_text, size_t size)
{
	const void *word = lib->null ? NULL : soft_word(&lib->bare, 3);
	void (*answer)(CUfunction function, char *ret, size_t size);

	ret_text[0] = '\0';
	memcpy(&answer, &word, sizeof answer);
	if (answer)
		answer(function, ret_text, size);
}

int obs_driver_event_fd(const struct obs_driver_lib *lib, const CUipcEventHandle *handle)
{
	const void *word = lib->null ? NULL : soft_word(&lib->bare, 4);
	int (*answer)(const CUipcEventHandle *handle);

	memcpy(&answer, &word, sizeof answer);
	return answer ? answer(handle) : -1;
}

void obs_driver_event_set_fd(const struct obs_driver_lib *lib, CUipcEventHandle *handle, int fd)
{
	const void *word = lib->null ? NULL : soft_word(&lib->bare, 5);
	void (*set)(CUipcEventHandle * handle, int fd);

	memcpy(&set, &word, sizeof set);
	if (set)
		set(handle, fd);
}

enum ob_err obs_driver_load(
	const char *which, struct obs_driver_lib *ret, struct ob_cause *ret_cause)
{
	enum ob_err err;

	*ret = (struct obs_driver_lib){ .soft = strcmp(which, "soft") == 0 ||
			strcmp(which, OBS_DRIVER_DRYRUN) == 0,
		.gpu = strcmp(which, OBS_DRIVER_GPU) == 0 };
	err = bind(ret, which, ret_cause);
	if (!err)
		obs_layers_wrap(&ret->table, &ret->faulty, &ret->bare);
	return err;
}

enum ob_err obs_driver_start(struct obs_driver_lib *lib, struct ob_cause *ret_cause)
{
	const struct obs_driver *drv = &lib->table;
	CUresult result;

	result = drv->cuInit(0);
	if (result == CUDA_SUCCESS)
		result = drv->cuDeviceGetCount(&lib->n_devices);
	if (result == CUDA_SUCCESS)
		result = drv->cuDriverGetVersion(&lib->version);
	if (result != CUDA_SUCCESS || lib->n_devices < 1)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"%s finds no usable device (CUDA error %d)", lib->name,
			result ? (int)result : CUDA_ERROR_NO_DEVICE);
	/* Not one of the program's calls: bypass the layers. */
	lib->ptx_only = !lib->null && ask_ptx_only(&lib->bare);
	if (lib->ptx_only && lib->gpu)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"the %s that the loader finds is the software device, not a GPU's driver: "
			"check LD_LIBRARY_PATH",
			OBS_DRIVER_SYSTEM);
	return OB_ERR_NONE;
}

enum ob_err obs_driver_open(
	const char *which, struct obs_driver_lib *ret, struct ob_cause *ret_cause)
{
	enum ob_err err = obs_driver_load(which, ret, ret_cause);

	return err ? err : obs_driver_start(ret, ret_cause);
}
