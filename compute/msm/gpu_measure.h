/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures GPUs and puts the results into their profiles (compute/msm/gpu_tune.h). The engine does
 * so to calibrate, and at the first product of a large handle if that product has no time limit
 * (compute/engine/device_gpu.c). These functions may be called from any thread and call
 * obk_gpu_enter themselves. Nothing else should use the device while it is measured.
 */
#ifndef OBK_MSM_GPU_MEASURE_H
#define OBK_MSM_GPU_MEASURE_H

#include "compute/msm/gpu_bases.h"

/*
 * Measures the device for about `seconds` at most and keeps the result in this process. The
 * products grow until the next one would take too long, so a slow device is measured with a few
 * small ones; running out of memory ends it in the same way. Windows that were measured before are
 * kept. The pool's threads compute the last sums. Does nothing while another thread measures such a
 * device. Errors as for products; then the profile does not change.
 */
enum ob_err obk_msm_gpu_tune_measure(
	struct obk_gpu *gpu, struct obk_pool *pool, double seconds, struct obk_fault *fault);
/*
 * Measures, for products of the first n points without a table, windows around the one that the
 * model chooses, and keeps the fastest of those measured within `seconds` in this process. Does
 * nothing and sets *ret_done to false if: the device has no profile; the measurement would take
 * longer by that profile; this size was measured before and `again` is false; there is a table; or
 * another thread is measuring such a device.
 */
enum ob_err obk_msm_gpu_tune_window(const struct obk_msm_gpu_bases *bases, size_t n,
	struct obk_pool *pool, double seconds, bool again, bool *ret_done, struct obk_fault *fault);

#endif
