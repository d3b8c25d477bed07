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
 */
struct obc_home {
	struct obf_ctx *ctx;
	CUstream stream;
	CUevent event, order;
	uint64_t uploads; /* number of the last recording of the event */
	bool pending;     /* uploads since the event was recorded */
	struct obc_home *next;
};

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
	 * Copies read it on the device since the last upload, all in this stream. The program may have
	 * written its own bytes meanwhile: an upload waits for the copies. many: in several streams.
	 */
	struct obc_reader {
		bool any, many, legacy;
		uint64_t stream;
	} reader;
	/* Variables: only these bytes are the device's. NULL: all are. */
	struct obc_span *spans;
	size_t n_spans;
};

struct obc_shareds {
	struct obc_home *homes;
	struct obc_shared **list; /* by address */
	size_t n, capacity;
	uint64_t uploads; /* the last number of a recording */
	bool helper;      /* a second lane exists, see obc_shared_host_function */
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
/* NULL: the context has ended. */
struct obc_stream *obc_home_stream(const struct obc_home *home);
/* Orders the stream behind all uploads. */
CUresult obc_home_gate(struct obc_stream *at);

#endif
