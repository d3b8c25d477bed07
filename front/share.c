/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory of cuMemAlloc that several processes use (cuIpc...), and the form of all handles. Opening
 * memory again gives the same address: the list of opened allocations counts.
 */
#include "front/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front/backend.h"
#include "front/private.h"
#include "protocol/obf_calls.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static const char magic[6] = "OBshr1";

/* An allocation of another process that is mapped here. */
struct opened {
	struct obf_share share;
	uint64_t base;
	const struct obf_ctx *ctx;
	unsigned refs;
	struct opened *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *all_opened; /* under the lock */

CUresult obf_share_type_check(CUmemAllocationHandleType type)
{
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_SUCCESS;
	return type && !((unsigned)type & ~OBF_SHARE_TYPES) ? CUDA_ERROR_NOT_SUPPORTED
							    : CUDA_ERROR_INVALID_VALUE;
}

unsigned obf_shares(void)
{
	const struct obf_sharing *sharing = obf_process.backend->sharing;

	return sharing ? sharing->offers() : 0;
}

/* ---- handles ---- */

void obf_share_seal(struct obf_share *share, enum obf_share_kind kind)
{
	memcpy(share->magic, magic, sizeof magic);
	share->kind = (uint16_t)kind;
}

bool obf_share_read(const void *from, enum obf_share_kind kind, struct obf_share *ret)
{
	memcpy(ret, from, sizeof *ret);
	return memcmp(ret->magic, magic, sizeof magic) == 0 && ret->kind == kind;
}

int obf_share_file(const struct obf_share *share)
{
	int fd = memfd_create("outboard-share", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 &&
		(write(fd, share, sizeof *share) != (ssize_t)sizeof *share ||
			fcntl(fd, F_ADD_SEALS, SEALS) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool obf_share_file_read(int fd, enum obf_share_kind kind, struct obf_share *ret)
{
	struct obf_share share;
	struct stat stat;

	return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
		stat.st_size == (off_t)sizeof share &&
		pread(fd, &share, sizeof share, 0) == (ssize_t)sizeof share &&
		obf_share_read(&share, kind, ret);
}

/* ---- memory ---- */

bool obf_share_ipc_capable(const struct obf_mem *mem)
{
	return obf_shares() & OBF_SHARES_RANGES && mem->kind == OBF_MEM_DEVICE && !mem->pooled &&
		!mem->joins && !mem->is_global && !mem->imported;
}

CUresult obf_share_open(struct obf_ctx *ctx, const struct obf_share *share, struct obf_mem *mem)
{
	const struct obf_sharing *sharing = obf_process.backend->sharing;
	CUresult result;

	if (share->size == 0 || !ob_span_inside(share->offset, share->size, share->span))
		return CUDA_ERROR_INVALID_HANDLE;
	result = sharing->range_open(share, mem);
	if (result != CUDA_SUCCESS)
		return result;
	mem->kind = OBF_MEM_DEVICE;
	mem->ctx = ctx;
	mem->imported = true;
	if (obf_mem_insert(mem))
		return CUDA_SUCCESS;
	sharing->range_close(mem);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult work_wait(const struct obf_ctx *ctx)
{
	return obf_context_within(obf_context_of(ctx), obf_process.backend->ctx_synchronize);
}

CUresult obf_share_close(struct obf_ctx *ctx, const struct obf_mem *mem)
{
	CUresult result = work_wait(ctx), closed;

	/* Work of the context that opened it may use it, too. */
	if (mem->ctx && mem->ctx != ctx && atomic_load(&mem->ctx->active) && result == CUDA_SUCCESS)
		result = work_wait(mem->ctx);
	closed = obf_process.backend->sharing->range_close(mem);
	return result == CUDA_SUCCESS ? closed : result;
}

/* The link to the allocation that was opened from this handle, or that lies at base. */
static struct opened **opened_find(const struct obf_share *share, uint64_t base)
{
	struct opened **link = &all_opened;

	while (*link &&
		(share ? memcmp(&(*link)->share, share, sizeof *share) != 0
		       : (*link)->base != base))
		link = &(*link)->next;
	return link;
}

static void opened_drop(struct opened **link)
{
	struct opened *opened = *link;

	*link = opened->next;
	free(opened);
}

void obf_share_ended(const struct obf_mem *mem)
{
	struct opened **link;

	pthread_mutex_lock(&lock);
	link = opened_find(NULL, mem->base);
	if (*link)
		opened_drop(link);
	pthread_mutex_unlock(&lock);
	obf_process.backend->sharing->range_close(mem);
}

static CUresult enter(struct obf_ctx **ret)
{
	CUresult result = obf_ctx_enter(ret);

	if (result == CUDA_SUCCESS && !(obf_shares() & OBF_SHARES_RANGES))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

CUresult obf_cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr addr)
{
	struct obf_share share = { .size = 0 };
	struct obf_ctx *ctx;
	struct obf_mem mem;
	CUresult result = enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	/* As in CUDA, any address in an allocation stands for the allocation. */
	if (!ret || !obf_mem_find(addr, &mem) || !obf_share_ipc_capable(&mem))
		return CUDA_ERROR_INVALID_VALUE;
	result = obf_process.backend->sharing->range_export(&mem, &share);
	if (result != CUDA_SUCCESS)
		return obf_ctx_result(ctx, result);
	obf_share_seal(&share, OBF_SHARE_RANGE);
	memset(ret, 0, sizeof *ret);
	memcpy(ret, &share, sizeof share);
	return CUDA_SUCCESS;
}

/* Under the lock: opens an allocation that is not open yet. */
static CUresult open_first(struct obf_ctx *ctx, const struct obf_share *share, CUdeviceptr *ret)
{
	struct opened *opened = malloc(sizeof *opened);
	struct obf_mem mem = { .size = 0 };
	CUresult result;

	if (!opened)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = obf_share_open(ctx, share, &mem);
	if (result != CUDA_SUCCESS) {
		free(opened);
		return result;
	}
	*opened = (struct opened){
		.share = *share, .base = mem.base, .ctx = ctx, .refs = 1, .next = all_opened
	};
	all_opened = opened;
	*ret = mem.base;
	return CUDA_SUCCESS;
}

CUresult obf_cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags)
{
	struct opened *opened;
	struct obf_share share;
	struct obf_ctx *ctx;
	CUresult result = enter(&ctx);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!obf_share_read(&handle, OBF_SHARE_RANGE, &share))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	opened = *opened_find(&share, 0);
	if (!opened)
		result = open_first(ctx, &share, ret);
	else if (opened->ctx != ctx)
		result = CUDA_ERROR_INVALID_CONTEXT; /* one context of a process may open it */
	else if (opened->refs++ < UINT32_MAX)
		*ret = opened->base;
	pthread_mutex_unlock(&lock);
	return obf_ctx_result(ctx, result);
}

CUresult obf_cuIpcCloseMemHandle(CUdeviceptr addr)
{
	struct opened **link;
	struct obf_ctx *ctx;
	struct obf_mem mem;
	CUresult result = enter(&ctx);
	bool last = false;

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	link = opened_find(NULL, addr);
	if (!*link)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (--(*link)->refs == 0) {
		opened_drop(link);
		last = obf_mem_remove(addr, &mem);
	}
	pthread_mutex_unlock(&lock);
	return last ? obf_ctx_result(ctx, obf_share_close(ctx, &mem)) : result;
}
