/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the balancer keeps for each address that connects to it: its connections, and wrong tokens.
 * IPv4 by address, IPv6 by /64, all peers of Unix sockets as one. An entry exists as long as it has
 * connections, and for a while after that; when there are too many, those without connections go. Loop's thread only; owner: the gate.
 */
#ifndef OBL_ADDRESS_H
#define OBL_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBL_ADDRESS_BUCKETS   512u
#define OBL_ADDRESSES_MAX     8192u
#define OBL_ADDRESS_RATE      50u /* new connections a second, and four times as many at once */
#define OBL_ADDRESS_TEXT      64u
#define OBL_WRONG_TOKENS_FREE 5u /* before waiting begins */
#define OBL_WRONG_WAIT_MAX_S  60u
#define OBL_WRONG_FORGET_S    600u

struct obl_address {
	struct obl_address *next;
	uint8_t key[16];
	char text[OBL_ADDRESS_TEXT]; /* "10.0.0.7", "2001:db8:0:1::/64", "unix" */
	bool local;                  /* this machine: a Unix socket or a loopback address */
	bool unix_socket;
	uint32_t connections;
	uint32_t room; /* connections that it may begin now */
	uint64_t room_ns;
	uint32_t wrong; /* wrong tokens in a row */
	uint64_t wrong_ns, wait_until_ns;
};

struct obl_addresses {
	struct obl_address *buckets[OBL_ADDRESS_BUCKETS];
	uint32_t n;
};

/* The peer of a socket; counts one more connection. NULL: no memory, or too many. */
struct obl_address *obl_address_enter(struct obl_addresses *addresses, int fd);
/* One connection less; the entry may be freed. */
void obl_address_leave(
	struct obl_addresses *addresses, struct obl_address *address, uint64_t now_ns);
/*
 * Takes one new connection from what the address may begin: OBL_ADDRESS_RATE a second. False: they
 * come too fast. Addresses of this machine are not limited.
 */
bool obl_address_take(struct obl_address *address, uint64_t now_ns);
/* A wrong token was shown, or a valid one. */
void obl_address_wrong(struct obl_address *address, uint64_t now_ns);
void obl_address_right(struct obl_address *address);
/* Seconds until a token of this address is looked at; 0: now. */
uint32_t obl_address_wait_s(const struct obl_address *address, uint64_t now_ns);
/* Frees entries without connections whose wait is over; now_ns OB_NEVER: all of them. */
void obl_addresses_sweep(struct obl_addresses *addresses, uint64_t now_ns);

#endif
