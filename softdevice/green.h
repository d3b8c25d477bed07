/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Green contexts of the software device: it splits its multiprocessors by CUDA's documented rules.
 * Its multiprocessors are threads of one pool, and a green context limits nothing. For struct
 * obf_backend. No state; any thread.
 */
#ifndef OBD_GREEN_H
#define OBD_GREEN_H

#include "front/backend.h"

CUresult obd_green_split(const struct obf_split *split, struct obf_split_made *ret);
CUresult obd_green_create(const struct obf_green *green, const struct obf_sm_share *share);
void obd_green_destroy(const struct obf_green *green);

#endif
