/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The launch calls of CUDA before 4.0: what a launch takes from the function. The launches
 * themselves are in launch_calls.h.
 */
#ifndef OBF_LAUNCH_OLD_H
#define OBF_LAUNCH_OLD_H

#include "front/front.h"

/*
 * Fills the launch and its parameters (`extra` of cuLaunchKernel) from what was set on the function.
 * ret_extra points into the function's object. CUDA_ERROR_INVALID_VALUE: width or height is below 1.
 * Any thread; blocks only when it allocates that object.
 */
CUresult obf_launch_old_take(
	CUfunction func, int width, int height, struct obf_launch *ret, void *ret_extra[5]);

#endif
