/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_ipc: memory and events that this session exports to others of the same tenant, or has mapped
 * of theirs. The supervisor keeps the exported objects (server/supervisor/broker.h); a request to it
 * waits at most OBS_IPC_WAIT_MS. One per process. Any thread that executes records; the loop
 * delivers the supervisor's answers.
 */
#ifndef OBS_WORKER_IPC_H
#define OBS_WORKER_IPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "server/common/handoff.h"
#include "server/common/ipc.h"
#include "server/worker/session.h"

#define OBS_IPC_WAIT_MS    5000
#define OBS_IPC_RANGES_MAX 2048u  /* exported allocations */
#define OBS_IPC_OPEN_MAX   4096u  /* mapped allocations of other sessions */
#define OBS_IPC_PARTS_MAX  16384u /* mappings of one */

/*
 * Whether the session can share: it has a supervisor, and its driver can export memory. Called
 * while the worker is warm, before memory is granted.
 */
bool obs_ipc_offered(const struct obs_session *session);
void obs_ipc_start(struct obs_session *session);
/* Loop: an answer of the supervisor. Takes or closes the descriptors. */
void obs_ipc_answered(const struct obs_handoff *message, int fds[OBS_HANDOFF_FDS]);

/*
 * Sends a request and waits for the answer, which replaces *ipc. fd: sent with it, -1; the caller
 * keeps it. *ret_fd: the descriptor of the answer, which the caller closes; -1. ret_fd may be NULL.
 * `none`: the error if there is no such object. CUDA_ERROR_OUT_OF_MEMORY: too many objects.
 * CUDA_ERROR_TIMEOUT: no answer.
 */
CUresult obs_ipc_ask(struct obs_ipc *ipc, CUresult none, int fd, int *ret_fd);

/* Exports memory of the driver; ret_id names it. */
CUresult obs_ipc_memory(CUmemGenericAllocationHandle handle, uint64_t bytes, uint64_t ret_id[2]);
/* Fetches exported memory: ret_ticket is for the import (server/layers/imports.h). */
CUresult obs_ipc_fetch(
	const uint64_t id[2], uint64_t *ret_ticket, uint64_t *ret_bytes, uint32_t *ret_device);

/* Exports an allocation in the session's range. The same allocation has the same id. */
CUresult obs_ipc_range(
	uint64_t addr, uint64_t size, uint64_t ret_id[2], uint64_t *ret_offset, uint64_t *ret_span);
/* The allocation at addr was freed: takes its export back. */
void obs_ipc_range_freed(uint64_t addr);
/* Maps another session's allocation, whose mappings have `span` bytes together. */
CUresult obs_ipc_map(const uint64_t id[2], uint64_t addr, uint64_t span, uint32_t *ret_device);
CUresult obs_ipc_unmap(uint64_t addr);

#endif
