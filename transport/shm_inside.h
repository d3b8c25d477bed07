/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The memory and the state of a stream through it: for shm.c and tests. */
#ifndef OBT_SHM_INSIDE_H
#define OBT_SHM_INSIDE_H

#include "transport/ring.h"
#include "transport/shm.h"

/* size of struct obt_shm_memory at the memory's beginning, rounded up */
#define OBT_SHM_CONTROL_BYTES 4096u
/* size of the whole memory */
#define OBT_SHM_BYTES         (OBT_SHM_CONTROL_BYTES + 2ull * OBT_SHM_RING_BYTES)

enum { OBT_SHM_TO_SERVER, OBT_SHM_TO_CLIENT };

struct obt_shm_memory {
	struct obt_ring_shared rings[2];
};

_Static_assert(sizeof(struct obt_shm_memory) <= OBT_SHM_CONTROL_BYTES, "the data follows");

/* Statistics of whether spinning has shortened waits. */
struct obt_shm_spin {
	int credit;
	unsigned turns;
};

struct obt_shm {
	_Atomic bool on;    /* bytes go through the rings */
	_Atomic bool ended; /* the socket has ended: no bytes will follow those in the ring */
	bool server;
	bool settled;     /* no memory is expected any more */
	int memfd;        /* client: to be sent; server: received; -1 */
	unsigned preface; /* client: bytes that go before the memory */
	void *map;        /* NULL: none */
	unsigned recv_timeout_ms;
	_Alignas(128) struct obt_ring_writer out;
	struct obt_shm_spin out_spin;
	_Alignas(128) struct obt_ring_reader in;
	struct obt_shm_spin in_spin;
};

extern const struct obt_ops obt_shm_ops;

/*
 * Attaches memory without a handshake, for tests with both ends over a pair of sockets.
 * OB_ERR_NO_MEMORY.
 */
enum ob_err obt_shm_attach(struct obt_stream *stream, int memfd, bool server);
/* True if the ring holds unread bytes; any thread. */
bool obt_shm_unread(const struct obt_stream *stream);

#endif
