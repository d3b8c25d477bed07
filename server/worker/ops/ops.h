/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the operations share beyond the generated prototypes. */
#ifndef OBS_OPS_H
#define OBS_OPS_H

#include "server/worker/context.h"
#include "server/worker/end.h"
#include "server/worker/exec.h"
#include "server/worker/record.h"
#include "server/worker/reply.h"

/*
 * obs_handle.extra of a module:
 *
 *   63               32 31          30                  0
 *   | first function   | variables |  bytes charged      |
 *
 * The first function is 1 + its index in session->functions, 0: the module has none. It is the
 * head of a list that goes on in the functions' own `extra`, so that unloading visits the module's
 * functions only. `variables`: the module's variables may be among the session's extra addresses.
 */
#define OBS_MODULE_VARIABLES (1u << 31)
_Static_assert(OBP_IMAGE_MAX < OBS_MODULE_VARIABLES, "the bytes charged fit");

static inline uint64_t obs_module_bytes(const struct obs_handle *module)
{
	return module->extra & (OBS_MODULE_VARIABLES - 1);
}

/* Removes what the module has in the session's tables, and gives back what was charged for it. */
void obs_module_forget(struct obs_session *session, uint64_t id, const struct obs_handle *module);

/* The module ends, and its texture and surface references with it. */
void obs_texrefs_forget(struct obs_session *session, uint64_t module);

/* The driver's context for the id of a peer copy; 0 is the current one. False: told. */
bool obs_peer_context(
	struct obs_exec *x, const struct obp_record *rec, uint64_t id, CUcontext *ret);

/*
 * May there be one more module? CUDA_ERROR_OUT_OF_MEMORY if not, or x->refused. Executor. For
 * streams, events, functions and other handles obs_handle_room (protocol/obs_dispatch.h) says so.
 */
CUresult obs_module_room(struct obs_exec *x);

/* Ends the graphs of a context that is about to end. Executor. */
void obs_graphs_forget(struct obs_exec *x, const struct obs_context *context);

#endif
