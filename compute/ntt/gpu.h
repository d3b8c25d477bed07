/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The number-theoretic transform on a GPU (compute/gpu): the same jobs, errors and, bit for bit,
 * results as ntt.h. A domain holds the roots of unity on one device. The caller owns it and frees
 * it before it closes the device. Any number of threads may run transforms with it at once. These
 * functions call obk_gpu_enter themselves. They do not poll the `stop` of a job: work that a device
 * has started runs to its end.
 */
#ifndef OBK_NTT_GPU_H
#define OBK_NTT_GPU_H

#include "compute/gpu/gpu.h"
#include "compute/ntt/ntt.h"

#define OBK_NTT_GPU_MAX_LOG_N 30

struct obk_ntt_gpu;

enum ob_err obk_ntt_gpu_new(
	struct obk_gpu *gpu, struct obk_ntt_gpu **ret_domain, struct obk_fault *fault);
void obk_ntt_gpu_free(struct obk_ntt_gpu *domain);
/*
 * Limits tables made from now on to 2^log roots, 12..23: less memory for large transforms, but up
 * to an eighth more multiplications. Call it before the first transform.
 */
enum ob_err obk_ntt_gpu_limit_roots(
	struct obk_ntt_gpu *domain, unsigned log, struct obk_fault *fault);

/* As obk_ntt_run: copies the data to the device, transforms it and copies it back. */
enum ob_err obk_ntt_gpu_run(struct obk_ntt_gpu *domain, const struct obk_ntt_job *job,
	struct obk_fr *data, struct obk_fault *fault);
/*
 * Transforms device memory, 16-byte aligned, in place and in stream order (NULL: uses its own
 * stream and waits for it before it returns). log_n up to OBK_NTT_GPU_MAX_LOG_N, batch x n up to
 * 2^32; job->pool is ignored.
 */
enum ob_err obk_ntt_gpu_run_device(struct obk_ntt_gpu *domain, const struct obk_ntt_job *job,
	CUdeviceptr data, CUstream stream, struct obk_fault *fault);

#endif
