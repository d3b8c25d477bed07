/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The devices for `outboard msm`, `ntt` and `kzg`: their options --device, --driver, --threads and
 * --stats, the context (compute/engine/outboard.h) that is opened for them, and the messages about
 * devices afterwards. The caller owns the struct, zeroed except for `verb`; main thread only.
 */
#ifndef OBX_DEVICES_H
#define OBX_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/options.h"
#include "compute/engine/outboard.h"
#include "compute/pool/pool.h"
#include "compute/pool/pool.h"

struct obx_devices {
	const char *verb;
	const char *list;   /* --device: NULL or "auto", or as options.devices */
	const char *driver; /* --driver: the CUDA driver library; NULL: libcuda.so.1 */
	uint64_t threads;   /* --threads: CPU threads; 0: all */
	bool stats;         /* --stats */
	struct outboard *context;
	/* the first failed attempt that another attempt replaced; status 0: none */
	struct outboard_error attempt;
};

/* The entries of an option table for these options; field: the struct in the verb's settings. */
#define OBX_DEVICES_OPTIONS(settings, field)                                                      \
	{ .name = "Devices", .kind = OB_HEADING },                                                \
		{ OB_OPTION("device", OB_PARSED, settings, field.list), .arg = "D",               \
			.take = obx_devices_take_list, .words = "auto|cpu|gpu",                   \
			.takes = "auto, cpu or gpu, or a list such as gpu:0,cpu:4",               \
			.fallback = "auto",                                                       \
			.help = "auto (where it is done first), cpu, gpu, or a list such as "     \
				"gpu:0,cpu:4" },                                                  \
		{ OB_OPTION("driver", OB_FILE, settings, field.driver), .arg = "FILE",            \
			.fallback = "libcuda.so.1", .help = "the CUDA driver library" },          \
		{ OB_OPTION("threads", OB_NUMBER, settings, field.threads), .arg = "N", .min = 1, \
			.max = OBK_POOL_MAX_THREADS, .fallback = "all",                           \
			.help = "threads of the CPU" },                                           \
	{                                                                                         \
		OB_OPTION("stats", OB_FLAG, settings, field.stats),                               \
			.help = "print on stderr what each device did"                            \
	}

/* Takes the value of --device; target: `list`. */
enum ob_err obx_devices_take_list(
	void *target, const struct ob_option *option, const char *text, struct ob_cause *ret_cause);
/*
 * Opens the context. cpu_seconds: estimated time of the work on the CPU. If it is shorter than the
 * time to open GPUs, auto does not use them. False: a message was printed, and *ret_code is the
 * exit code.
 */
bool obx_devices_open(struct obx_devices *d, double cpu_seconds, int *ret_code);
/*
 * Estimated seconds on this machine's CPU for `products` sums of n points, or for `transforms` of
 * 2^log_n elements.
 */
double obx_devices_guess_msm(const struct obx_devices *d, uint64_t n, uint64_t products);
double obx_devices_guess_ntt(const struct obx_devices *d, unsigned log_n, uint64_t transforms);
/* A pool of the threads asked for. NULL: a message was printed, exit with OBX_EXIT_USAGE. */
struct obk_pool *obx_devices_pool(const struct obx_devices *d);
/*
 * Waits for a call that was started with a ticket; `started` is the status of starting it. Records
 * failed attempts. Returns the status of the call; frees the ticket.
 */
int obx_devices_wait(struct obx_devices *d, int started, struct outboard_ticket *ticket,
	struct outboard_error *error);
/* Prints why a call failed. Returns OBX_EXIT_UNWELL. */
int obx_devices_refused(const struct obx_devices *d, const struct outboard_error *error);
/*
 * To be called after the work: reports on stderr which devices failed, and with --stats what each
 * of them did. ret_names, of OBX_DEVICES_NAMES bytes: the devices that did the work, "gpu:0,cpu:4".
 */
#define OBX_DEVICES_NAMES 1024
void obx_devices_report(const struct obx_devices *d, char *ret_names);
/* One line: pieces, seconds, memory. */
void obx_devices_print_stats(FILE *out, const struct outboard_device *stats);
/* Writes the member "devices": [...] of a JSON object. */
void obx_devices_print_json(struct outboard *context, struct ob_json *json);
void obx_devices_close(struct obx_devices *d);

/* The progress callback of struct outboard_call; arg is a struct obx_progress. */
int obx_devices_progress(void *arg, double done);

#endif
