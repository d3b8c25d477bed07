/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_start: the work of the first cuInit: starts the session and returns the server's devices. For
 * struct obf_backend.
 */
#ifndef OBC_START_H
#define OBC_START_H

#include "front/front.h"

/*
 * The result of cuDriverGetVersion: the version of the API that this library exports. Constant,
 * because programs may ask before there is a session.
 */
#define OBC_DRIVER_VERSION 13000

CUresult obc_start(struct obf_device *ret_devices, int *ret_count);
CUresult obc_alive(void);
/* At exit: the goodbye, and the report if OUTBOARD_STATS asks for it. Called once; in any state. */
void obc_stop(void);
/* In a forked child. */
void obc_forked(void);

#endif
