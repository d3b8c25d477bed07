/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Making and ending contexts. Work that runs when a context ends is given time to end, then stopped;
 * then all that belongs to the context goes. Any thread.
 */
#ifndef OBD_CONTEXT_LIFE_H
#define OBD_CONTEXT_LIFE_H

#include "front/front.h"

/* The front end's backend table (front/backend.h). */
CUresult obd_ctx_create(struct obf_ctx *front);
CUresult obd_ctx_destroy(struct obf_ctx *front);
void obd_ctx_release(struct obf_ctx *front);
CUresult obd_ctx_synchronize(struct obf_ctx *front);
CUresult obd_ctx_limit(struct obf_ctx *front, CUlimit limit, bool set, size_t *value);

#endif
