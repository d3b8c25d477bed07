/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/dashboard/peers.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"

void obl_peers_init(struct obl_peers *peers)
{
	*peers = (struct obl_peers){ 0 };
	if (getrandom(&peers->seed, sizeof peers->seed, 0) != sizeof peers->seed)
		peers->seed = ob_clock_ns();
}

struct obl_peer_key obl_peer_key_of(int fd)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof peer;
	bool known = getpeername(fd, (struct sockaddr *)&peer, &length) == 0;

	return obl_peer_key_from(known ? (const struct sockaddr *)&peer : NULL);
}

struct obl_peer_key obl_peer_key_from(const struct sockaddr *peer)
{
	struct obl_peer_key key = { .local = false };
	struct in6_addr address = IN6ADDR_ANY_INIT;

	if (!peer)
		return key;
	if (peer->sa_family == AF_UNIX) {
		key.bytes[16] = 1;
		key.local = true;
		return key;
	}
	if (peer->sa_family == AF_INET) {
		address.s6_addr[10] = address.s6_addr[11] = 0xff;
		memcpy(&address.s6_addr[12], &((const struct sockaddr_in *)peer)->sin_addr, 4);
	} else if (peer->sa_family == AF_INET6) {
		address = ((const struct sockaddr_in6 *)peer)->sin6_addr;
	}
	key.local = IN6_IS_ADDR_V4MAPPED(&address) ? address.s6_addr[12] == 127
						   : IN6_IS_ADDR_LOOPBACK(&address);
	memcpy(key.bytes, address.s6_addr,
		key.local || IN6_IS_ADDR_V4MAPPED(&address) ? sizeof address : sizeof address / 2);
	return key;
}

bool obl_peer_key_same(const struct obl_peer_key *a, const struct obl_peer_key *b)
{
	return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool obl_peers_take(struct obl_peers *peers, const struct obl_peer_key *key, uint64_t now_ns)
{
	struct obl_peer_rate *rate =
		&peers->rates[ob_hash(peers->seed, key->bytes, sizeof key->bytes) % OBL_WEB_RATES];
	uint64_t more;

	if (key->local && !peers->limits_local)
		return true;
	if (!rate->room_ns || !obl_peer_key_same(&rate->key, key))
		*rate = (struct obl_peer_rate){
			.key = *key, .room = OBL_WEB_BURST, .room_ns = now_ns
		};
	more = ob_min(now_ns - rate->room_ns, OBL_WEB_BURST / OBL_WEB_RATE * OB_SECOND) *
		OBL_WEB_RATE / OB_SECOND;
	if (more) {
		rate->room = (uint32_t)ob_min((uint64_t)OBL_WEB_BURST, rate->room + more);
		rate->room_ns = now_ns;
	}
	if (!rate->room)
		return false;
	rate->room--;
	return true;
}

static void peer_cut(struct obl_peers *peers, struct obl_peer *peer)
{
	shutdown(peer->fd, SHUT_RDWR);
	peer->fd = -1;
	peers->n_open--;
}

/* Shuts down the oldest connections of an address beyond its limit. */
static void address_make_room(struct obl_peers *peers, const struct obl_peer_key *key)
{
	struct obl_peer *peer;
	unsigned n = 0;

	for (peer = peers->newest; peer; peer = peer->older)
		if (peer->fd >= 0 && obl_peer_key_same(&peer->key, key) &&
			++n >= OBL_WEB_ADDRESS_CONNECTIONS)
			peer_cut(peers, peer);
}

struct obl_peer *obl_peer_enter(struct obl_peers *peers, int fd)
{
	struct obl_peer *peer = calloc(1, sizeof *peer);

	if (!peer)
		return NULL;
	peer->key = obl_peer_key_of(fd);
	if (!peer->key.local || peers->limits_local)
		address_make_room(peers, &peer->key);
	for (struct obl_peer *old = peers->oldest; old && peers->n_open >= OBL_WEB_FULL;
		old = old->newer)
		if (old->fd >= 0)
			peer_cut(peers, old);
	peer->fd = fd;
	peer->older = peers->newest;
	*(peers->newest ? &peers->newest->newer : &peers->oldest) = peer;
	peers->newest = peer;
	peers->n_open += fd >= 0;
	return peer;
}

void obl_peer_streams(struct obl_peers *peers, struct obl_peer *peer)
{
	if (!peer || peer->fd < 0)
		return;
	peer->fd = -1;
	peers->n_open--;
}

void obl_peer_leave(struct obl_peers *peers, struct obl_peer *peer)
{
	if (!peer)
		return;
	*(peer->newer ? &peer->newer->older : &peers->newest) = peer->older;
	*(peer->older ? &peer->older->newer : &peers->oldest) = peer->newer;
	peers->n_open -= peer->fd >= 0;
	free(peer);
}
