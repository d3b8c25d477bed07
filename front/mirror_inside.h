/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by mirror.c (making, ending, copies, host functions), mirror_launch.c (kernels) and
 * mirror_transfer.c: the mirrors and their lock, and how bytes get to a mirror and back. All but
 * obf_mirror_download at a mirror's end is under the lock.
 */
#ifndef OBF_MIRROR_INSIDE_H
#define OBF_MIRROR_INSIDE_H

#include <pthread.h>

#include "front/backing.h"
#include "front/mirror.h"
#include "front/stream.h"

#define OBF_MIRROR_PIECE 4096u /* bytes; the unit of comparisons and uploads */

struct obf_mirror {
	uint64_t host, size, device;
	struct obf_ctx *ctx;
	CUstream transfers; /* a stream of its own, since the program's may be blocked */
	uint8_t *common;    /* the bytes that both sides last had in common */
	uint8_t *got;       /* the device's bytes while they are compared */
	/* with several servers; inode 0: the memory is not shared */
	struct obf_backing backing;
	/* kernels since the last download. stream: all of them were in this one, or 0 */
	bool launched;
	uint64_t stream;
	/*
	 * Kernels since the last download that have no parameter which points here. They may have got
	 * a pointer from device memory.
	 */
	bool maybe;
	bool pushed;      /* uploads since that no launch has waited for */
	uint64_t settled; /* the launches up to this number have been waited for */
	struct obf_mirror *next;
};

extern struct obf_mirror *obf_mirror_list;
extern pthread_mutex_t obf_mirror_lock;

/* The mirror of this host address; NULL: there is none. */
struct obf_mirror *obf_mirror_at(uint64_t host);

/* ---- mirror_transfer.c ---- */

CUresult obf_mirror_stream(const struct obf_mirror *mirror, struct obf_stream **ret);
/* The run of units at or after *at that the program has changed. False: there is none. */
bool obf_mirror_changed(
	const struct obf_mirror *mirror, uint32_t unit, uint64_t *at, uint64_t *ret_size);
/* Uploads one run of bytes. */
CUresult obf_mirror_run_upload(
	struct obf_mirror *mirror, struct obf_stream *stream, uint64_t at, uint64_t size);

/*
 * This and the rest are calls in a mirror's context (obf_ctx_run); user: the mirror. Writes what the
 * device has changed to the host memory.
 */
CUresult obf_mirror_download(struct obf_ctx *ctx, void *user);
/*
 * Before a kernel. If earlier kernels, which are complete, may have changed the device's side too, both
 * changes are joined first.
 */
CUresult obf_mirror_upload(struct obf_ctx *ctx, void *user);
/*
 * After a host function. Kernels in other streams may be writing next to what it has changed, so only
 * changed words are uploaded as long as they are in few runs.
 */
CUresult obf_mirror_upload_words(struct obf_ctx *ctx, void *user);
/*
 * Before the program waits: what it has changed, for kernels that run and wait for it. No error is
 * returned, because the wait returns it. What is in too many runs is left to the next launch.
 */
CUresult obf_mirror_push_words(struct obf_ctx *ctx, void *user);

#endif
