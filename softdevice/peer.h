/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Access between devices, for struct obf_backend: their memory is that of one process, so kernels
 * can always access all of it. No state; any thread.
 */
#ifndef OBD_PEER_H
#define OBD_PEER_H

#include "front/backend.h"

CUresult obd_peer_query(int device, int peer, int ret[OBF_PEER_ATTRS]);
CUresult obd_peer_access(struct obf_ctx *ctx, struct obf_ctx *peer, bool enable);

#endif
