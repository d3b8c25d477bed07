/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/mps.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"

#define MEMORY_TEXT (OBS_MPS_DEVICES_MAX * 32u)
#define MIB         (1ull << 20)

static uint32_t used;

uint32_t obs_mps_share(void)
{
	return used;
}

/* The daemon listens on the Unix socket `control`; nothing is sent to it. */
static enum ob_err ask(const char *directory, struct ob_cause *ret_cause)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	OB_CLEANUP(ob_closep)
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;

	if (snprintf(address.sun_path, sizeof address.sun_path, "%s/control", directory) >=
		(int)sizeof address.sun_path)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"CUDA_MPS_PIPE_DIRECTORY is longer than a socket's path can be");
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
		error = errno;
	/* another kind of socket than STREAM: something listens */
	if (error == 0 || error == EPROTOTYPE || error == EAGAIN)
		return OB_ERR_NONE;
	return ob_cause_set_system(ret_cause, OB_ERR_DRIVER, error,
		"no MPS control daemon answers at %s (start nvidia-cuda-mps-control -d, or set "
		"CUDA_MPS_PIPE_DIRECTORY)",
		address.sun_path);
}

/* NVIDIA's kernel driver has a folder for each GPU; 1 if it says nothing. */
static unsigned devices_count(void)
{
	DIR *folder = opendir("/proc/driver/nvidia/gpus");
	unsigned n = 0;

	for (const struct dirent *entry; folder && (entry = readdir(folder));)
		n += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return ob_min(ob_max(n, 1u), OBS_MPS_DEVICES_MAX);
}

static bool settings_put(uint32_t share, uint64_t memory)
{
	char percent[16], limits[MEMORY_TEXT] = "";
	unsigned devices = devices_count();
	size_t n = 0;

	snprintf(percent, sizeof percent, "%u",
		(share + OBS_MPS_PERCENT_UNIT - 1) / OBS_MPS_PERCENT_UNIT);
	for (unsigned i = 0; memory && i < devices && n < sizeof limits; i++)
		n += (size_t)snprintf(limits + n, sizeof limits - n, "%s%u=%lluM", i ? "," : "", i,
			(unsigned long long)((memory + MIB - 1) / MIB));
	return setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1) == 0 &&
		(!memory || setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limits, 1) == 0);
}

/*
 * Anybody may make a folder in /tmp: only root's counts, as in server/common/sandbox_seccomp.c,
 * which lets workers connect to the daemon.
 */
static enum ob_err ask_usual(struct ob_cause *ret_cause)
{
	struct stat folder;

	if (lstat(OBS_MPS_DIRECTORY, &folder) == 0 &&
		(!S_ISDIR(folder.st_mode) || folder.st_uid != 0))
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"%s is not root's: set CUDA_MPS_PIPE_DIRECTORY if it is your MPS control "
			"daemon's",
			OBS_MPS_DIRECTORY);
	return ask(OBS_MPS_DIRECTORY, ret_cause);
}

enum ob_err obs_mps_begin(uint32_t share, uint64_t memory, struct ob_cause *ret_cause)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
	enum ob_err err =
		directory && *directory ? ask(directory, ret_cause) : ask_usual(ret_cause);

	if (err)
		return err;
	if (!settings_put(share, memory))
		return ob_cause_set(ret_cause, OB_ERR_DRIVER, "no memory for MPS's settings");
	used = share;
	return OB_ERR_NONE;
}
