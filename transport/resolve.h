/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The addresses of a server. A number needs no resolver; what the resolver said of a name is kept
 * for the connections that follow. This is not only quicker: the C library's resolver opens
 * descriptors with low numbers, which a program that closes what it does not know may close and
 * reuse in the middle of it. The resolver then waits for an answer on a file of the program's, and
 * with it every later caller. Any thread.
 */
#ifndef OBT_RESOLVE_H
#define OBT_RESOLVE_H

#include <stdbool.h>
#include <sys/socket.h>

#define OBT_ADDRESSES_MAX 8

struct obt_addresses {
	unsigned n;
	/* the resolver was not asked this time: it may know better by now */
	bool kept;
	struct {
		struct sockaddr_storage address;
		socklen_t length;
	} list[OBT_ADDRESSES_MAX];
};

/*
 * port: a number or a service's name. fresh: ask the resolver, whatever is kept. 0, or an error of
 * getaddrinfo().
 */
int obt_resolve(const char *host, const char *port, bool fresh, struct obt_addresses *ret);

#endif
