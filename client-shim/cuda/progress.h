/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_ctx: the client's part of a context, beside the front end's object: its id on the wire, and
 * how much of its work is known to be complete.
 *
 * Progress is counted in record numbers of the log. The work of record n is complete when a later
 * synchronising record has been answered. `last` is the record of the newest work, and all work
 * before record `done` is complete.
 *
 * obf_ctx.backend holds the id on the wire. The index in obc_ctxs is (id - 1) % OBC_CTX_MAX. The
 * objects are static and reused. Any thread.
 */
#ifndef OBC_PROGRESS_H
#define OBC_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "client-shim/session/server.h"
#include "front/front.h"

#define OBC_CTX_MAX 1024u /* contexts of a process, primaries included */

struct obc_ctx {
	uint64_t id; /* on the wire; 0: free */
	/* newest work in the legacy stream and in streams that wait for it */
	_Atomic uint64_t last_blocking;
	_Atomic uint64_t last_other; /* newest work in non-blocking streams */
	_Atomic uint64_t done;       /* all work before this record is complete */
	/* all work counted by last_blocking before this record is complete */
	_Atomic uint64_t done_blocking;
	/* memory freed before this record needs no further fence */
	_Atomic uint64_t fenced;
	/*
	 * count of launches of the process (obc_log_count); those of this context up to this count
	 * are known to be complete
	 */
	_Atomic uint64_t settled;
	/* newest work of streams that were destroyed before that work was known to be complete */
	_Atomic uint64_t orphaned;
	_Atomic bool other_streams; /* the context has had non-blocking streams */
	_Atomic bool untracked;     /* some work is not counted: the server must be asked */
	struct obc_plain *plain;    /* slabs of the context; of client-shim/cuda/plain.c */
};

extern struct obc_ctx obc_ctxs_first[OBC_CTX_MAX];
#define obc_ctxs OBC_HERE(obc_ctxs_first)

/* The client library's part of an active context. */
static inline struct obc_ctx *obc_ctx_of(const struct obf_ctx *ctx)
{
	return &obc_ctxs[((uintptr_t)ctx->backend - 1) % OBC_CTX_MAX];
}

/*
 * *p = max(*p, n). Release, and acquire in obc_read: who sees that a copy is complete sees the bytes
 * that it brought, also if another thread received them.
 */
static inline void obc_raise(_Atomic uint64_t *p, uint64_t n)
{
	uint64_t old = atomic_load_explicit(p, memory_order_relaxed);

	while (old < n &&
		!atomic_compare_exchange_weak_explicit(
			p, &old, n, memory_order_release, memory_order_relaxed))
		;
}

static inline uint64_t obc_read(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_acquire);
}

/* Whether work of the context may be incomplete. */
static inline bool obc_ctx_busy(struct obc_ctx *home)
{
	uint64_t done = obc_read(&home->done),
		 blocking = ob_max(done, obc_read(&home->done_blocking));

	return atomic_load_explicit(&home->untracked, memory_order_relaxed) ||
		obc_read(&home->last_blocking) > blocking || obc_read(&home->last_other) > done;
}

/*
 * A wait has succeeded. It covered all work of the context (`all`), or the legacy stream and the
 * streams that wait for it. `launches` is the value of obc_ctx_launches() before the wait's record
 * was begun.
 */
void obc_ctx_settled(struct obc_ctx *home, uint64_t launches, bool all);
uint64_t obc_ctx_launches(void);

#endif
