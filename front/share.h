/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Sharing memory and events with other processes: what the handles of a program contain, and the
 * backend's part. share.c has memory of cuMemAlloc, event_share.c events, vmm_share.c memory of
 * cuMemCreate, mempool_share.c pools. Any thread.
 */
#ifndef OBF_SHARE_H
#define OBF_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "front/front.h"

struct obf_event;

enum obf_share_kind {
	OBF_SHARE_MEMORY = 1, /* memory of cuMemCreate */
	OBF_SHARE_RANGE,      /* an allocation of cuMemAlloc */
	OBF_SHARE_EVENT,
	OBF_SHARE_POOL,
	OBF_SHARE_POINTER, /* an allocation of a pool */
};

/*
 * The contents of CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData, and of the file that
 * stands for memory or a pool. A program may change it: the backend checks what it uses.
 */
struct obf_share {
	char magic[6];
	uint16_t kind;
	uint64_t id[2];        /* as the backend names it */
	uint64_t offset, size; /* of the allocation in what is mapped, bytes */
	uint64_t span;         /* bytes that are mapped */
	uint64_t pool;         /* POINTER: of the pool's id */
};
_Static_assert(sizeof(struct obf_share) <= 64, "the size of a CUipcMemHandle");

/* What a backend can share. */
#define OBF_SHARES_VMM    1u
#define OBF_SHARES_RANGES 2u
#define OBF_SHARES_EVENTS 4u
#define OBF_SHARES_POOLS  8u

/*
 * The backend's part. It sets and uses id, offset, size and span of a struct obf_share. Handles
 * that no process has exported, or that were taken back: CUDA_ERROR_INVALID_VALUE, for ranges and
 * events CUDA_ERROR_INVALID_HANDLE.
 */
struct obf_sharing {
	unsigned (*offers)(void); /* OBF_SHARES_*; called by cuInit and later */

	/* CUDA_ERROR_INVALID_VALUE also for memory that was not created for this. */
	CUresult (*vmm_export)(CUmemGenericAllocationHandle handle, int *ret_fd);
	CUresult (*vmm_import)(int fd, CUmemGenericAllocationHandle *ret);
	/* addr: in a mapping of cuMemMap */
	CUresult (*vmm_retain)(uint64_t addr, CUmemGenericAllocationHandle *ret);

	CUresult (*range_export)(const struct obf_mem *mem, struct obf_share *ret);
	/*
	 * Maps the allocation: sets base, size, device and backend of *ret.
	 * CUDA_ERROR_INVALID_CONTEXT: this process has exported it.
	 */
	CUresult (*range_open)(const struct obf_share *share, struct obf_mem *ret);
	/* No work uses the memory. */
	CUresult (*range_close)(const struct obf_mem *mem);

	CUresult (*event_export)(struct obf_event *event, struct obf_share *ret);
	/* In place of event_open. */
	CUresult (*event_import)(struct obf_event *event, const struct obf_share *share);

	CUresult (*pool_export)(int device, struct obf_share *ret);
	CUresult (*pool_import)(const struct obf_share *share, int *ret_device);
};

#define OBF_SHARE_TYPES                                                                   \
	((unsigned)(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 | \
		CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC))

/*
 * Whether there are handles of this type. CUDA_ERROR_NOT_SUPPORTED: on other systems only;
 * CUDA_ERROR_INVALID_VALUE: nowhere.
 */
CUresult obf_share_type_check(CUmemAllocationHandleType type);
/* What the attached backend can share. */
unsigned obf_shares(void);
/* Whether cuIpcGetMemHandle can export the memory. */
bool obf_share_ipc_capable(const struct obf_mem *mem);
/* Writes magic and kind; the rest is as the backend set it. */
void obf_share_seal(struct obf_share *share, enum obf_share_kind kind);
/* Reads what a program passed. False: not a handle of this kind. */
bool obf_share_read(const void *from, enum obf_share_kind kind, struct obf_share *ret);

/*
 * A file that contains the handle, for a program that passes descriptors. The program owns it; -1:
 * the system has no memory or descriptors.
 */
int obf_share_file(const struct obf_share *share);
/* False: not such a file. */
bool obf_share_file_read(int fd, enum obf_share_kind kind, struct obf_share *ret);

/* Maps another process's allocation and enters it in the map of allocations. */
CUresult obf_share_open(struct obf_ctx *ctx, const struct obf_share *share, struct obf_mem *mem);
/* The allocation was removed from that map: waits for the context's work and unmaps it. */
CUresult obf_share_close(struct obf_ctx *ctx, const struct obf_mem *mem);
/* The same, for an allocation whose context has ended. */
void obf_share_ended(const struct obf_mem *mem);

#endif
