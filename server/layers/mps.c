/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/layers/mps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "protocol/load.h"
#include "protocol/obs_driver.h"

#define PERCENT_VARIABLE "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

static struct {
	uint32_t share;      /* of this process, in millionths; 0: MPS is not used */
	bool confirmed;      /* the driver said so */
	struct ob_cause why; /* it is not used */
} mps;

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

/* An operator's own value may be lower than the share, and must not be higher. */
static enum ob_err percent_put(uint32_t share, struct ob_cause *ret_cause)
{
	uint32_t percent = (share + OBS_MPS_PERCENT_UNIT - 1) / OBS_MPS_PERCENT_UNIT;
	const char *set = getenv(PERCENT_VARIABLE);
	char text[16], *end;
	double value;

	if (set && *set) {
		value = strtod(set, &end);
		if (*end || !(value > 0 && value <= percent))
			return ob_cause_set(ret_cause, OB_ERR_DRIVER,
				PERCENT_VARIABLE
				" is '%s', which is not a number from 1 to the %u of the server's "
				"--share: unset it, or lower it",
				set, percent);
		return OB_ERR_NONE;
	}
	snprintf(text, sizeof text, "%u", percent);
	return setenv(PERCENT_VARIABLE, text, 1) == 0
		? OB_ERR_NONE
		: ob_cause_set(ret_cause, OB_ERR_DRIVER, "no memory for MPS's settings");
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

void obs_mps_refuse(const struct ob_cause *cause)
{
	mps.share = 0;
	mps.why = *cause;
}

enum ob_err obs_mps_begin(uint32_t share, struct ob_cause *ret_cause)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
	enum ob_err err;

	if (share >= OBP_SHARE_ALL)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"it keeps the share of the server's --share, which is not below 1");
	err = directory && *directory ? ask(directory, ret_cause) : ask_usual(ret_cause);
	if (!err)
		err = percent_put(share, ret_cause);
	if (!err)
		mps.share = share;
	return err;
}

bool obs_mps_begun(void)
{
	return mps.share != 0;
}

enum ob_err obs_mps_confirm(const struct obs_driver *drv, int n_devices, struct ob_cause *ret_cause)
{
	for (int i = 0; i < n_devices; i++) {
		int enabled = 0;
		CUresult result =
			drv->cuDeviceGetAttribute(&enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, i);

		if (result != CUDA_SUCCESS)
			return ob_cause_set(ret_cause, OB_ERR_DRIVER,
				"the driver does not say whether it uses MPS on device %d (CUDA "
				"error %d): it may be too old",
				i, (int)result);
		if (!enabled)
			return ob_cause_set(ret_cause, OB_ERR_DRIVER,
				"a control daemon answers, but the driver does not use MPS on "
				"device %d: see the daemon's log, and whether this server's user "
				"may use it",
				i);
	}
	mps.confirmed = true;
	return OB_ERR_NONE;
}

enum ob_err obs_mps_check(uint32_t share, struct ob_cause *ret_cause)
{
	if (!mps.share || !mps.confirmed) {
		*ret_cause = mps.why;
		return OB_ERR_DRIVER;
	}
	if (mps.share != share)
		return ob_cause_set(ret_cause, OB_ERR_DRIVER,
			"MPS keeps the share of the server's --share, which is %u millionths, and "
			"this session's is %u",
			mps.share, share);
	return OB_ERR_NONE;
}
