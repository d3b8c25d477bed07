/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Measures the fastest windows on this machine and puts them into the profile of the process
 * (compute/msm/tune.h). It takes some seconds; nothing else should run on the machine during that
 * time, and no other thread should measure.
 */
#ifndef OBK_TUNE_MEASURE_H
#define OBK_TUNE_MEASURE_H

#include "compute/field/fault.h"
#include "compute/pool/pool.h"

#define OBK_TUNE_LARGEST 16

/*
 * Measures sizes up to 2^largest, at most 2^OBK_TUNE_LARGEST; larger sizes use the result of the
 * largest. progress as in a job. OB_ERR_NO_MEMORY.
 */
enum ob_err obk_tune_measure(struct obk_pool *pool, unsigned largest,
	void (*progress)(void *arg, double done), void *arg, struct obk_fault *fault);
#endif
