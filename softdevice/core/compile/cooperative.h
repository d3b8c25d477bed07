/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The functions of libcudadevrt for grids whose blocks wait for each other:
 * cudaCGGetIntrinsicHandle, cudaCGSynchronize and others. Numba and CUDA before 11 call them; later
 * headers have them inline. The loading thread only.
 */
#ifndef OBD_CORE_COOPERATIVE_H
#define OBD_CORE_COOPERATIVE_H

#include "softdevice/core/ptx/loader.h"

/* Defines them if the module, which has been parsed, declares one and does not define it. */
void obd_cooperative_define(struct obd_loader *ld);

#endif
