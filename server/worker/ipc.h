/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_ipc: memory and events that this session exports to others of the same tenant, or has mapped
 * of theirs. The supervisor keeps the exported objects (ask.h). One per process. Any thread that
 * executes records.
 */
#ifndef OBS_WORKER_IPC_H
#define OBS_WORKER_IPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "server/common/ipc.h"
#include "server/worker/session.h"

#define OBS_IPC_RANGES_MAX  2048u /* exported allocations */
#define OBS_IPC_EXPORTS_MAX 2048u /* of memory of cuMemCreate and of events */
#define OBS_IPC_OPEN_MAX    4096u /* mapped allocations of other sessions */

/*
 * Whether the session can share: it has a supervisor, and its driver can export memory. Called
 * while the worker is warm, before memory is granted.
 */
bool obs_ipc_offered(const struct obs_session *session);
void obs_ipc_start(struct obs_session *session);

/*
 * Notes that the object was exported as `id`, which is taken back when it ends. kind: MEMORY, name:
 * the driver's handle; or EVENT, name: the client's id. CUDA_ERROR_OUT_OF_MEMORY: it is taken back
 * now.
 */
CUresult obs_ipc_exported(enum obs_ipc_kind kind, uint64_t name, const uint64_t id[2]);
void obs_ipc_ended(enum obs_ipc_kind kind, uint64_t name);

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
