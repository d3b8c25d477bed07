/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_bare: the bare transport, the baseline for remote calls. A child process at the other end of
 * a plain TCP or Unix connection echoes 64-byte messages and receives or sends bulk bytes. For an
 * shm: address the transport is memory shared with the child: each side copies the message into it
 * and out of it, and a counter shows that a message arrived. Bulk is one copy to or from shared
 * memory that is large enough for all of it; the child takes no part. One owner; blocks; the child
 * dies with its parent.
 */
#ifndef OBX_BARE_H
#define OBX_BARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "transport/url.h"

struct obx_bare {
	int fd;
	struct obx_bare_memory *memory; /* NULL: a connection is used */
	pid_t child;
	bool spin;
};

/*
 * Uses the transport that the address names. spin: both ends poll without sleeping. False: errno.
 */
bool obx_bare_open(struct obx_bare *bare, const struct obt_url *url, bool spin);
void obx_bare_close(struct obx_bare *bare);
/* Makes one round trip of 64 bytes. Returns ns. */
uint64_t obx_bare_ping(struct obx_bare *bare);
/*
 * Sends size bytes to the child, which answers with one byte at the end, or receives them from the
 * child into data. Returns ns.
 */
uint64_t obx_bare_send(struct obx_bare *bare, const void *data, size_t size);
uint64_t obx_bare_receive(struct obx_bare *bare, void *data, size_t size);
/*
 * Announces n exchanges of size bytes, of which each has no message of its own and the child keeps
 * all bytes, as a program that copies them would. obx_bare_next makes one and returns ns: the bytes
 * and one byte back, or with `down` one byte and the bytes back. piece: 0, or the child copies all
 * bytes once more, in pieces of so many bytes, as a server does whose device is a part of its own
 * memory. Not for shared memory.
 */
void obx_bare_series(struct obx_bare *bare, bool down, size_t size, uint32_t n, size_t piece);
uint64_t obx_bare_next(struct obx_bare *bare, bool down, void *data, size_t size);

#endif
