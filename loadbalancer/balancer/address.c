/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"

#define OBL_ADDRESS_BURST_S 4u
#define KEPT_NS             (10 * OB_SECOND) /* after the last connection: the rate is known */

static void peer_of(int fd, struct obl_address *ret)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof peer;
	uint8_t *key = ret->key;
	char text[INET6_ADDRSTRLEN] = "?";

	if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.ss_family == AF_INET6)
		memcpy(key, &((const struct sockaddr_in6 *)&peer)->sin6_addr, 16);
	if (peer.ss_family == AF_INET) {
		key[10] = key[11] = 0xff;
		memcpy(key + 12, &((const struct sockaddr_in *)&peer)->sin_addr, 4);
	}
	if (peer.ss_family == AF_UNIX) {
		key[0] = 0xfe;
		ret->local = ret->unix_socket = true;
		snprintf(ret->text, sizeof ret->text, "unix");
	} else if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)key)) {
		ret->local = key[12] == 127;
		inet_ntop(AF_INET, key + 12, text, sizeof text);
		snprintf(ret->text, sizeof ret->text, "%s", text);
	} else {
		ret->local = IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)key);
		if (!ret->local)
			memset(key + 8, 0, 8);
		inet_ntop(AF_INET6, key, text, sizeof text);
		snprintf(ret->text, sizeof ret->text, "%s%s", text, ret->local ? "" : "/64");
	}
}

struct obl_address *obl_address_enter(struct obl_addresses *addresses, int fd)
{
	struct obl_address peer = { .next = NULL }, *address, **bucket;

	peer_of(fd, &peer);
	bucket = &addresses->buckets[ob_hash(OB_HASH_START, peer.key, sizeof peer.key) %
		OBL_ADDRESS_BUCKETS];
	for (address = *bucket; address; address = address->next)
		if (memcmp(address->key, peer.key, sizeof peer.key) == 0) {
			address->connections++;
			return address;
		}
	if (addresses->n >= OBL_ADDRESSES_MAX)
		obl_addresses_sweep(addresses, OB_NEVER);
	address = addresses->n < OBL_ADDRESSES_MAX ? malloc(sizeof *address) : NULL;
	if (!address)
		return NULL;
	*address = peer;
	address->connections = 1;
	address->next = *bucket;
	*bucket = address;
	addresses->n++;
	return address;
}

bool obl_address_take(struct obl_address *address, uint64_t now_ns)
{
	uint64_t more = (now_ns - address->room_ns) * OBL_ADDRESS_RATE / OB_SECOND;

	if (address->local)
		return true;
	if (more) {
		address->room = (uint32_t)ob_min(
			(uint64_t)OBL_ADDRESS_RATE * OBL_ADDRESS_BURST_S, address->room + more);
		address->room_ns = now_ns;
	}
	if (!address->room)
		return false;
	address->room--;
	return true;
}

static bool needed(const struct obl_address *address, uint64_t now)
{
	return address->connections || (now != OB_NEVER && now < address->room_ns + KEPT_NS) ||
		(now != OB_NEVER && address->wrong &&
			now < address->wrong_ns + OBL_WRONG_FORGET_S * OB_SECOND);
}

static void bucket_sweep(struct obl_addresses *addresses, struct obl_address **bucket, uint64_t now)
{
	while (*bucket) {
		struct obl_address *address = *bucket;

		if (needed(address, now)) {
			bucket = &address->next;
			continue;
		}
		*bucket = address->next;
		addresses->n--;
		free(address);
	}
}

void obl_addresses_sweep(struct obl_addresses *addresses, uint64_t now_ns)
{
	for (unsigned i = 0; i < OBL_ADDRESS_BUCKETS; i++)
		bucket_sweep(addresses, &addresses->buckets[i], now_ns);
}

void obl_address_leave(
	struct obl_addresses *addresses, struct obl_address *address, uint64_t now_ns)
{
	address->connections--;
	if (!needed(address, now_ns))
		bucket_sweep(addresses,
			&addresses->buckets[ob_hash(OB_HASH_START, address->key,
						    sizeof address->key) %
				OBL_ADDRESS_BUCKETS],
			now_ns);
}

void obl_address_wrong(struct obl_address *address, uint64_t now_ns)
{
	uint32_t over;

	address->wrong++;
	address->wrong_ns = now_ns;
	over = address->wrong > OBL_WRONG_TOKENS_FREE ? address->wrong - OBL_WRONG_TOKENS_FREE : 0;
	if (over)
		address->wait_until_ns = now_ns +
			ob_min(1ull << ob_min(over - 1, 6u), OBL_WRONG_WAIT_MAX_S) * OB_SECOND;
}

void obl_address_right(struct obl_address *address)
{
	address->wrong = 0;
	address->wait_until_ns = 0;
}

uint32_t obl_address_wait_s(const struct obl_address *address, uint64_t now_ns)
{
	return now_ns < address->wait_until_ns
		? (uint32_t)((address->wait_until_ns - now_ns) / OB_SECOND) + 1
		: 0;
}
