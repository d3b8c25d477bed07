/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_config: the settings of the software device. They are read from the environment once, when
 * the driver is initialised.
 *
 *   OUTBOARD_SOFT_DEVICES   1..8, default 1
 *   OUTBOARD_SOFT_MEMORY    bytes of each device, "4G", at least 16M. Default: half of the
 *                           machine's memory, divided by the number of devices, from 1 to 64 GiB
 *                           each
 *   OUTBOARD_SOFT_CC        compute capability, "13.0" (default), 5.0 to 13.0. The default is the
 *                           one at which most code runs (docs/COMPATIBILITY.md)
 *   OUTBOARD_SOFT_BASE      start of the window of device addresses, hexadecimal, a multiple of
 *                           2 MiB
 *   OUTBOARD_SOFT_MEMCHECK  1: every access of a kernel is checked against the live allocations
 *   OUTBOARD_SOFT_SMS       1..256 multiprocessors to report, default 16
 *   OUTBOARD_SOFT_THREADS   1..1024 threads that run blocks, default one per core
 *   OUTBOARD_SOFT_UUID      "GPU-" and the UUID of the first device; its second byte counts up for
 *                           the others. Default: made of the machine's id and the host's name. A
 *                           server of a pool sets it by its name in the pool, too
 *   OUTBOARD_DRYRUN         a model (model.h), "h100": a dry run. The device has the name, the
 *                           capability, the size and the limits of that GPU, accepts machine code
 *                           for it, and executes no kernel
 *   OUTBOARD_DRYRUN_TIME    0: kernels of a dry run take no time. Default 1: as long as a simple
 *                           model says (dry.h)
 *
 * Owned by the process. It is written once, while the devices are started; afterwards any thread
 * may read it.
 */
#ifndef OBD_CONFIG_H
#define OBD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "softdevice/model.h"

#define OBD_DEVICE_MAX       8u
#define OBD_SM_MAX           256u
#define OBD_THREAD_MAX       1024u
#define OBD_MEMORY_MIN       (16ull << 20)
#define OBD_MEMORY_MAX       (1ull << 40)
/* of the default */
#define OBD_MEMORY_USUAL_MIN (1ull << 30)
#define OBD_MEMORY_USUAL_MAX (64ull << 30)

struct obd_config {
	unsigned devices;
	uint64_t memory; /* bytes of each device */
	unsigned cc;     /* 90 for 9.0 */
	uint64_t base;   /* 0: OBD_WINDOW_BASE */
	bool memcheck;
	unsigned sms;
	unsigned threads; /* 0: one per core */
	uint8_t uuid[16]; /* of the first device */
	/* of a dry run; NULL: kernels are executed */
	const struct obd_model *model;
	bool dry_time; /* kernels of a dry run take time */
};

extern struct obd_config obd_config;

/*
 * False: a variable has an invalid value. A line in the log names the variable and the allowed
 * values.
 */
bool obd_config_read(void);

#endif
