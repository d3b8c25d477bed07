/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Access between devices of the server, for struct obf_backend. Any thread. */
#ifndef OBC_PEER_H
#define OBC_PEER_H

#include "front/backend.h"

/* Asks the server once for each pair. */
CUresult obc_peer_query(int device, int peer, int ret[OBF_PEER_ATTRS]);
CUresult obc_peer_access(struct obf_ctx *ctx, struct obf_ctx *peer, bool enable);

#endif
