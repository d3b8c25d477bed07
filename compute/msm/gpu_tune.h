/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What was measured on GPUs: the weights of compute/msm/gpu_model.h, the fastest windows for some sizes,
 * and the amount of work worth processing together. There is one profile for each combination of
 * the device's name, compute capability, multiprocessors and driver, the link to it, and these
 * kernels. It is kept in this process and on disk beside the profile of the CPU
 * (compute/msm/tune.h). The link is that of struct obk_gpu_driver: launches and uploads cost more
 * on a card behind a server than on the same card in this machine.
 *
 *     outboard msm gpu profile 1
 *     for NVIDIA H200; compute capability 9.0, 132 multiprocessors; driver 13000; link 8c1d...; ...
 *     group 67108864
 *     entry 4.1e-10                        and the other weights, in seconds
 *     windows 0 0 0 ...                    by log2 of the size
 *     check ...
 *
 * A file for another device or version is ignored; a damaged file is ignored with a warning.
 * Without a profile, and with OUTBOARD_OPT=-tune, an estimate from the device's multiprocessors and
 * clock is used. None of the functions below measures; compute/msm/gpu_measure.h does. They may be
 * called from any thread.
 */
#ifndef OBK_MSM_GPU_TUNE_H
#define OBK_MSM_GPU_TUNE_H

#include "compute/gpu/gpu.h"
#include "compute/msm/gpu_model.h"
#include "compute/msm/profile.h"

#define OBK_MSM_GPU_TUNE_VERSION     1
/* profiles that a process keeps; devices beyond this number use estimates */
#define OBK_MSM_GPU_TUNE_MAX_DEVICES 64

/* A line that identifies the device, the link to it and the kernels. */
void obk_msm_gpu_tune_key(const struct obk_gpu_info *info, const struct obk_gpu_driver *driver,
	char ret_key[OBK_PROFILE_MAX_KEY]);
/* The path of the profile; false: there is no folder for it. */
bool obk_msm_gpu_tune_path(const struct obk_gpu *gpu, char *ret_path, size_t size);
/*
 * From the profile that this process has for this device or for one with the same key, else the
 * estimate.
 */
void obk_msm_gpu_tuning_get(const struct obk_gpu *gpu, struct obk_msm_gpu_tuning *ret_tuning);
/*
 * Replaces the profile that this process has for all devices with this key; does not write to disk.
 * OB_ERR_LIMIT.
 */
enum ob_err obk_msm_gpu_tuning_set(const struct obk_gpu *gpu,
	const struct obk_msm_gpu_tuning *tuning, struct obk_fault *fault);
/* As obk_msm_gpu_tuning_set, but keeps windows that were measured. */
enum ob_err obk_msm_gpu_tuning_set_weights(const struct obk_gpu *gpu,
	const struct obk_msm_gpu_tuning *tuning, struct obk_fault *fault);
/* Sets one window, if there is a profile. log: obk_tune_log of the size. */
void obk_msm_gpu_tuning_set_window(const struct obk_gpu *gpu, unsigned log, unsigned window);
/*
 * Marks the key as being measured until the matching end call for the same device. False: another
 * thread is measuring it.
 */
bool obk_msm_gpu_tune_begin(const struct obk_gpu *gpu);
void obk_msm_gpu_tune_end(const struct obk_gpu *gpu);
/*
 * Loads the profile of this device from disk, if there is one and this process has none.
 * OB_ERR_ARGUMENT if it is damaged; else OB_ERR_NONE. Does nothing with OUTBOARD_OPT=-tune.
 */
enum ob_err obk_msm_gpu_tune_load(const struct obk_gpu *gpu, struct obk_fault *fault);
/* Removes all profiles of this process from memory. */
void obk_msm_gpu_tune_clear(void);
/*
 * Writes this process's profile to disk. OB_ERR_IO: it cannot be written, or there is no folder for
 * it.
 */
enum ob_err obk_msm_gpu_tune_store(const struct obk_gpu *gpu, struct obk_fault *fault);

#endif
