/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Resolves the addresses of a server and remembers them for later connections. Remembering saves
 * time, and avoids a fault: the C library's resolver opens descriptors with low numbers, and a
 * program that closes descriptors it does not know may close and reuse one. The resolver would then
 * wait for an answer on a file of the program, and with it every later caller. Any thread.
 */
#ifndef OBT_RESOLVE_H
#define OBT_RESOLVE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/cause.h"

#define OBT_ADDRESSES_MAX 8

struct obt_addresses {
	unsigned n;
	/* remembered from an earlier call; may be out of date */
	bool kept;
	struct {
		struct sockaddr_storage address;
		socklen_t length;
	} list[OBT_ADDRESSES_MAX];
};

/*
 * port: a number or a service's name. fresh: ask the resolver even if the name is remembered.
 * OB_ERR_RESOLVE: *ret_cause; its `system` is ENOENT for an unknown name, EAGAIN when no name
 * server answered.
 */
enum ob_err obt_resolve(const char *host, const char *port, bool fresh, struct obt_addresses *ret,
	struct ob_cause *ret_cause);

#endif
