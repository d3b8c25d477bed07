/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_start: the first cuInit: a session with a server, and its devices as this process shall see
 * them. For struct obf_backend.
 */
#ifndef OBC_START_H
#define OBC_START_H

#include "front/front.h"

/*
 * What cuDriverGetVersion says: the API that this library exports. Fixed, because programs ask
 * before there is a server.
 */
#define OBC_DRIVER_VERSION 13000

CUresult obc_start(struct obf_device *ret_devices, int *ret_count);
CUresult obc_alive(void);
/* The process ends: goodbye to the server, the report if one is wanted. Once; in any state. */
void obc_stop(void);
/* In a forked child. */
void obc_forked(void);

#endif
