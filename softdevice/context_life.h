/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Creating and destroying contexts. When a context is destroyed, running work first gets time to
 * finish and is then aborted. After that everything that belongs to the context is freed. Any
 * thread.
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
