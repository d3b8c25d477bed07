/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What was measured of GPUs: the weights of compute/msm/gpu_model.h, the fastest windows of some
 * sizes, and how much work is worth doing together. One profile for each device's name, compute
 * capability, multiprocessors and driver, the link to it, and these kernels, kept in this process
 * and on disk beside the processor's (compute/msm/tune.h). The link is struct obk_gpu_driver's: the
 * same card here and behind a server takes launches and bytes at other prices.
 *
 *     outboard msm gpu profile 1
 *     for NVIDIA H200; compute capability 9.0, 132 multiprocessors; driver 13000; link 8c1d...; kernels 5d1f...
 *     group 67108864
 *     entry 4.1e-10                        and the other weights, in seconds
 *     windows 0 0 0 ...                    by log of the size
 *     check ...
 *
 * A file of another device or version is not looked at; a damaged one is ignored with a sentence.
 * Without a profile, and with OUTBOARD_OPT=-tune, products go by a guess from the device's
 * multiprocessors and clock. Measuring happens in the functions below that say so, never in
 * obk_msm_gpu_run: the service calls them to calibrate, and with a large handle's first product
 * where that one has no time limit (compute/engine/device_gpu.c). Any thread; measuring takes the device's
 * time and should have it to itself. Functions enter the device themselves.
 */
#ifndef OBK_MSM_GPU_TUNE_H
#define OBK_MSM_GPU_TUNE_H

#include "compute/msm/gpu.h"
#include "compute/msm/gpu_model.h"
#include "compute/msm/profile.h"

#define OBK_MSM_GPU_TUNE_VERSION     1
/* different ones that a process keeps profiles of; more go by guesses */
#define OBK_MSM_GPU_TUNE_MAX_DEVICES 64

/* The device, the way to it and the kernels, on one line. */
void obk_msm_gpu_tune_key(const struct obk_gpu_info *info, const struct obk_gpu_driver *driver,
	char ret_key[OBK_PROFILE_MAX_KEY]);
/* The profile's path; false: there is no place for it. */
bool obk_msm_gpu_tune_path(const struct obk_gpu *gpu, char *ret_path, size_t size);
/*
 * By the profile that this process keeps of this device or one with the same key, else the guess.
 */
void obk_msm_gpu_tuning_get(const struct obk_gpu *gpu, struct obk_msm_gpu_tuning *ret_tuning);
/* In place of what this process keeps of all devices with the key; not on disk. OB_ERR_LIMIT. */
enum ob_err obk_msm_gpu_tuning_set(const struct obk_gpu *gpu,
	const struct obk_msm_gpu_tuning *tuning, struct obk_fault *fault);
/* The same, but windows that were timed stay as they are. */
enum ob_err obk_msm_gpu_tuning_set_weights(const struct obk_gpu *gpu,
	const struct obk_msm_gpu_tuning *tuning, struct obk_fault *fault);
/* One window alone, where there is a profile. log: obk_tune_log's of the size. */
void obk_msm_gpu_tuning_set_window(const struct obk_gpu *gpu, unsigned log, unsigned window);
/*
 * Marks the key as being measured, until the end, which the same device's caller says; false:
 * another thread is at it.
 */
bool obk_msm_gpu_tune_begin(const struct obk_gpu *gpu);
void obk_msm_gpu_tune_end(const struct obk_gpu *gpu);
/*
 * From disk, where there is a profile of this device and this process has none. OB_ERR_ARGUMENT if
 * it is damaged; else OB_ERR_NONE. Nothing with -tune.
 */
enum ob_err obk_msm_gpu_tune_load(const struct obk_gpu *gpu, struct obk_fault *fault);
/* This process forgets all profiles. */
void obk_msm_gpu_tune_clear(void);
/*
 * What this process keeps, to disk. OB_ERR_IO: it cannot be written, or there is no place for it.
 */
enum ob_err obk_msm_gpu_tune_store(const struct obk_gpu *gpu, struct obk_fault *fault);

/*
 * Measures the device and keeps the result in this process. At most about `seconds` on it: products
 * rise in size until the next would not fit, so a slow device is known by a few small ones; memory
 * that runs out ends it likewise. Windows that were timed before stay. The pool sums up what is
 * left for the CPU. Nothing is done while another thread measures such a device. Errors as for
 * products; then the profile stays as it was.
 */
enum ob_err obk_msm_gpu_tune_measure(
	struct obk_gpu *gpu, struct obk_pool *pool, double seconds, struct obk_fault *fault);
/*
 * Times windows around the model's for products of the first n points, where there is no table, and
 * keeps the fastest of those timed within `seconds` in this process. Nothing is done, and *ret_done
 * is false, if nothing was measured, if by what was it takes longer, if that size was done before
 * and `again` is not set, if there is a table, or while another thread measures such a device.
 */
enum ob_err obk_msm_gpu_tune_window(const struct obk_msm_gpu_bases *bases, size_t n,
	struct obk_pool *pool, double seconds, bool again, bool *ret_done, struct obk_fault *fault);

/* How `batch` products of the first n points (1..the bases') would be done now. */
struct obk_msm_gpu_how {
	struct obk_plan plan;
	/* worked on together; points of a product, fewer than n where memory is short */
	size_t products, count;
	double seconds; /* expected of all */
	bool measured;  /* by a profile, else by a guess */
};

/*
 * The same for a handle of `count` points that is not there yet, with the largest table by
 * table_bytes: ret_info as obk_msm_gpu_bases_info.
 */
enum ob_err obk_msm_gpu_how_new(struct obk_gpu *gpu, size_t count, bool order_r, size_t table_bytes,
	size_t n, size_t batch, struct obk_msm_gpu_info *ret_info, struct obk_msm_gpu_how *ret_how,
	struct obk_fault *fault);
enum ob_err obk_msm_gpu_how(const struct obk_msm_gpu_bases *bases, size_t n, size_t batch,
	struct obk_msm_gpu_how *ret_how, struct obk_fault *fault);

#endif
