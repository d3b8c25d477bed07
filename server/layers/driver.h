/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A CUDA driver as a table of functions: the system's libcuda.so.1, the software device or the null
 * driver, with the layers around it that layers.h lists. Opened once per worker; never closed,
 * which drivers do not support well.
 */
#ifndef OBS_DRIVER_LIB_H
#define OBS_DRIVER_LIB_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cause.h"
#include "protocol/obs_driver.h"

#define OBS_DRIVER_SOFT_FILE "liboutboard-softdevice.so"

struct obs_driver_lib {
	/* what the server calls: the driver inside all layers */
	struct obs_driver table;
	struct obs_driver bare, faulty; /* the driver itself; with the fault layer */
	char name[240];                 /* "null", or the path that was opened */
	int version;                    /* cuDriverGetVersion */
	int n_devices;
	bool null;
	bool soft;     /* the server's own software device */
	bool gpu;      /* a GPU's driver was asked for; the software device is refused */
	bool ptx_only; /* runs no cubin */
};

/*
 * Why the driver cannot run the function, in one line; empty when it does not say. Only the
 * software device does.
 */
void obs_driver_why(
	const struct obs_driver_lib *lib, CUfunction function, char *ret_text, size_t size);
/*
 * which: soft, gpu, dryrun, null, or a library's name. Loading opens the library, which may need the
 * server's privileges; starting initialises it, and must be done without them. obs_driver_open does
 * both. OB_ERR_DRIVER: *ret_cause says what is wrong and what to do.
 */
enum ob_err obs_driver_load(
	const char *which, struct obs_driver_lib *ret, struct ob_cause *ret_cause);
enum ob_err obs_driver_start(struct obs_driver_lib *lib, struct ob_cause *ret_cause);
enum ob_err obs_driver_open(
	const char *which, struct obs_driver_lib *ret, struct ob_cause *ret_cause);

/*
 * The software device's events of several processes: the descriptor that a handle names, which
 * stays the event's; -1 for other drivers, whose handles name none. And the handle with which the
 * driver opens a descriptor of this process.
 */
int obs_driver_event_fd(const struct obs_driver_lib *lib, const CUipcEventHandle *handle);
void obs_driver_event_set_fd(const struct obs_driver_lib *lib, CUipcEventHandle *handle, int fd);

#endif
