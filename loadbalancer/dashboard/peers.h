/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The connections of the HTTP server (web.h), oldest first, and how many there may be: in all, and
 * from one address of another machine; and how many one address may begin. When there are too many the oldest is shut down, so that
 * connections which are left open, or send half a request, keep nobody out. Streams have limits of
 * their own (stream.h). Owned by the HTTP server; the loop's thread.
 */
#ifndef OBL_DASHBOARD_PEERS_H
#define OBL_DASHBOARD_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define OBL_WEB_CONNECTIONS         512u /* in all; beyond FULL the oldest that is no stream goes */
#define OBL_WEB_FULL                384u
#define OBL_WEB_ADDRESS_CONNECTIONS 96u /* from one address, streams not counted */
#define OBL_WEB_RATE                50u /* new ones a second from one address: each may cost a TLS handshake */
#define OBL_WEB_BURST               200u
#define OBL_WEB_RATES               1024u /* addresses whose rate is known; others replace them */
#define OBL_WEB_KEY                 17u

/* Whose connection it is: IPv4 by address, IPv6 by /64. */
struct obl_peer_key {
	uint8_t bytes[OBL_WEB_KEY];
	bool local; /* this machine, where a proxy may serve many: no limits by address */
};

struct obl_peer {
	struct obl_peer *newer, *older;
	struct obl_peer_key key;
	int fd; /* -1: shut down, or a stream */
};

/* How many connections an address may begin now. */
struct obl_peer_rate {
	struct obl_peer_key key;
	uint32_t room;
	uint64_t room_ns; /* 0: free */
};

struct obl_peers {
	struct obl_peer_rate rates[OBL_WEB_RATES];
	uint64_t seed; /* of the places of addresses, which nobody can know */
	struct obl_peer *newest, *oldest;
	unsigned n_open;   /* peers with a descriptor */
	bool limits_local; /* also addresses of this machine */
};

void obl_peers_init(struct obl_peers *peers);
struct obl_peer_key obl_peer_key_of(int fd);
/* address: NULL: not known. */
struct obl_peer_key obl_peer_key_from(const struct sockaddr *address);
bool obl_peer_key_same(const struct obl_peer_key *a, const struct obl_peer_key *b);

/* Whether the address may begin a connection now; then counts it. */
bool obl_peers_take(struct obl_peers *peers, const struct obl_peer_key *key, uint64_t now_ns);
/* Makes room for a new connection and enters it. NULL: no memory. */
struct obl_peer *obl_peer_enter(struct obl_peers *peers, int fd);
/* It has become a stream. */
void obl_peer_streams(struct obl_peers *peers, struct obl_peer *peer);
/* It is closed; frees it. peer may be NULL. */
void obl_peer_leave(struct obl_peers *peers, struct obl_peer *peer);

#endif
