/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared memory (client-shim/cuda/shared.h): what its files have in common. Everything is under
 * the lock, but for what says otherwise.
 */
#ifndef OBC_SHARED_INSIDE_H
#define OBC_SHARED_INSIDE_H

#include "client-shim/cuda/region.h"
#include "client-shim/cuda/shadow.h"
#include "client-shim/cuda/shared.h"

/*
 * Uploads are made in a stream of their own, since the program may have blocked any of its streams.
 * An event after the last upload orders the program's streams behind it, and `order` an upload behind
 * a stream that reads what it replaces. All end with the context; the struct is kept and used for the
 * next context at the same address.
 *
 * Such a stream may wait for a host function. The transfers of host functions are in a stream of their
 * own then, `prompt`: behind `stream` they would wait for the function's own end.
 */
struct obc_home {
	struct obf_ctx *ctx;
	CUstream stream;
	CUstream prompt; /* NULL: not made yet */
	CUevent event, order;
	bool ordered;        /* behind a reader, maybe still */
	bool prompt_pending; /* uploads in prompt that no end of a function has waited for */
	uint64_t uploads;    /* number of the last recording of the event */
	bool pending;        /* uploads since the event was recorded */
	struct obc_home *next;
};

#define OBC_READERS_MAX 8

struct obc_span {
	uint64_t base, size;
};

/* One allocation, or pages with variables of modules. */
struct obc_shared {
	struct obc_shadow shadow; /* the first member */
	struct obc_piece piece;
	struct obc_home *home;
	/* CU_MEM_ATTACH_SINGLE: the stream that alone may use it, else 0 */
	uint64_t stream;
	/*
	 * The streams of copies that have read it on the device since the last upload. The program may
	 * have written its own bytes meanwhile: an upload waits for the copies.
	 */
	struct obc_readers {
		uint64_t stream[OBC_READERS_MAX];
		uint32_t n;
		bool more; /* than these */
	} readers;
	/* Variables: only these bytes are the device's. NULL: all are. */
	struct obc_span *spans;
	size_t n_spans;
};

struct obc_shareds {
	struct obc_home *homes;
	struct obc_shared **list; /* by address */
	size_t n, capacity;
	uint64_t uploads;             /* the last number of a recording */
	bool helper[OBC_SERVERS_MAX]; /* a second lane exists, see obc_shared_host_function */
};

extern struct obc_shareds obc_shareds;

/* Makes sure that faults are served. */
bool obc_shared_ready(void);
void obc_shared_lock(void);
void obc_shared_unlock(void);
/* Index of the first entry of the list that ends above addr. */
size_t obc_shared_at(uint64_t addr);
bool obc_shared_add(struct obc_shared *s); /* false: out of memory */
void obc_shared_remove(const struct obc_shared *s);

/* ---- shared_bytes.c ---- */

extern const struct obc_shadow_ops obc_shared_ops;
/*
 * Waits without the lock for the work that a fetch of `addr` must wait for: a host function that is
 * part of this work may need the lock. The fetch then waits for what other threads have added.
 */
void obc_shared_wait_before(uint64_t addr);

/* ---- shared_home.c ---- */

/* `ctx` is current. NULL: out of memory, or the session is lost. */
struct obc_home *obc_home_of(struct obf_ctx *ctx);
/* Whether the context that the home was made for still exists. */
bool obc_home_alive(const struct obc_home *home);
/* Whether its memory is that of the current server. */
bool obc_home_here(const struct obc_home *home);
/* NULL: the context has ended. */
struct obc_stream *obc_home_stream(const struct obc_home *home);
/* The stream for a transfer by this thread. NULL: as above, or out of memory. */
struct obc_stream *obc_home_transfers(struct obc_home *home);
/* Whether the home's stream may wait for a host function. */
bool obc_home_blocked(struct obc_home *home);
/* Orders the stream behind all uploads. */
CUresult obc_home_gate(struct obc_stream *at);

#endif
