/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Peers of the dashboard's HTTP server, for tests. */
#ifndef TESTS_PEER_KEY_H
#define TESTS_PEER_KEY_H

#include <arpa/inet.h>

#include "loadbalancer/dashboard/peers.h"
#include "tests/test.h"

/* The key of an IPv6 address in text form. */
static inline struct obl_peer_key key_of(const char *address)
{
	struct sockaddr_in6 peer = { .sin6_family = AF_INET6 };

	CHECK(inet_pton(AF_INET6, address, &peer.sin6_addr) == 1);
	return obl_peer_key_from((const struct sockaddr *)&peer);
}

#endif
