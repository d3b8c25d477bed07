/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The devices that `outboard msm`, `ntt` and `kzg` work on: their options --device, --driver,
 * --threads and --stats, the context (compute/engine/outboard.h) that is opened for them, and what is said
 * of it afterwards. The caller owns the struct, zeroed but for `verb`; main thread only.
 */
#ifndef OBX_DEVICES_H
#define OBX_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "compute/engine/outboard.h"

struct obx_devices {
	const char *verb;
	const char *list;   /* --device: NULL or "auto", or as options.devices */
	const char *driver; /* --driver: the CUDA driver library; NULL: libcuda.so.1 */
	uint64_t threads;   /* --threads: of the CPU; 0: all */
	bool stats;         /* --stats */
	struct outboard *context;
	/* the first that failed and was made good by another; status 0: none */
	struct outboard_error attempt;
};

/* The lines of a usage text that tell of these options; ends with a new line. */
#define OBX_DEVICES_USAGE                                                                        \
	"--device D: auto (where it is done first, the default), cpu, gpu, or a list such as "   \
	"gpu:0,cpu:4. --driver F: another CUDA driver library than\n"                            \
	"libcuda.so.1. --threads N: of the CPU, default all. --stats: what each device did, on " \
	"stderr.\n"

/*
 * One of its options with the value behind it: taken; else false, and *ret_code is not 0 where what
 * is wrong with the value was said.
 */
bool obx_devices_take(struct obx_devices *d, const char *option, const char *value, int *ret_code);
/*
 * Opens the context. cpu_seconds: what the work takes the CPU, by a guess: for less than GPUs take
 * to be opened, auto leaves them alone. False: said why, and
 * *ret_code is the exit code.
 */
bool obx_devices_open(struct obx_devices *d, double cpu_seconds, int *ret_code);
/*
 * Seconds on this machine's CPU, roughly: `products` sums of n points; `transforms` of 2^log_n
 * elements.
 */
double obx_devices_guess_msm(const struct obx_devices *d, uint64_t n, uint64_t products);
double obx_devices_guess_ntt(const struct obx_devices *d, unsigned log_n, uint64_t transforms);
/*
 * Waits for a call that was started with a ticket, whose status of starting it is, and notes what
 * failed meanwhile. Its outcome; frees the ticket.
 */
int obx_devices_wait(struct obx_devices *d, int started, struct outboard_ticket *ticket,
	struct outboard_error *error);
/* Prints why a call failed. OBX_EXIT_UNWELL. */
int obx_devices_refused(const struct obx_devices *d, const struct outboard_error *error);
/*
 * After the work: says on stderr which devices failed meanwhile, and with --stats what each of them
 * did. ret_names, of OBX_DEVICES_NAMES bytes: those that did the work, "gpu:0,cpu:4".
 */
#define OBX_DEVICES_NAMES 1024
void obx_devices_report(const struct obx_devices *d, char *ret_names);
/* One line: pieces, seconds, memory. */
void obx_devices_print_stats(FILE *out, const struct outboard_device *stats);
/* "devices": [...] of a JSON object, with a comma behind it. */
void obx_devices_print_json(struct outboard *context);
void obx_devices_close(struct obx_devices *d);

/* struct outboard_call's progress: arg is a struct obx_progress. */
int obx_devices_progress(void *arg, double done);

#endif
