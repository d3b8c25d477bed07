/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_bare: the transport without us. A child process at the other end of a plain TCP or unix
 * connection that echoes 64-byte messages and takes or gives bulk bytes: what any remote call is
 * measured against. Beside an shm: address it is memory shared with the child: the message is
 * copied there and back again by each side, which sees by a counter that it came; bulk is one copy
 * to or from shared memory that holds all of it, and the child is not asked. One owner; blocks; the
 * child dies with its parent.
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
	struct obx_bare_memory *memory; /* NULL: a connection */
	pid_t child;
	bool spin;
};

/* As the address's transport would. spin: both ends poll without sleeping. False: errno. */
bool obx_bare_open(struct obx_bare *bare, const struct obt_url *url, bool spin);
void obx_bare_close(struct obx_bare *bare);
/* One 64-byte round trip, ns. */
uint64_t obx_bare_ping(struct obx_bare *bare);
/* size bytes to the child (answered by one byte at the end), or from the child into data; ns. */
uint64_t obx_bare_send(struct obx_bare *bare, const void *data, size_t size);
uint64_t obx_bare_receive(struct obx_bare *bare, void *data, size_t size);

#endif
