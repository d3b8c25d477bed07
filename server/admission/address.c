/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/admission/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"

#define BUCKETS 4096u

static struct obs_address table[OBS_ADDRESSES_MAX], others = { .used = true, .text = "others" };
static struct obs_address *heads[BUCKETS];
static uint32_t n_used, hand;

/* ---- keys ---- */

bool obs_address_loopback(const struct sockaddr_storage *address)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;

	if (address->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->ss_family == AF_INET6 &&
		(IN6_IS_ADDR_LOOPBACK(six) ||
			(IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127));
}

static void key_of(
	int fd, struct obs_address_key *ret, bool *ret_local, char ret_text[OBS_ADDRESS_MAX])
{
	struct sockaddr_storage peer = { 0 };
	socklen_t length = sizeof peer;
	struct ucred user = { 0 };
	char host[INET6_ADDRSTRLEN];

	*ret = (struct obs_address_key){ { 0 } };
	if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0)
		peer.ss_family = AF_UNSPEC;
	*ret_local = peer.ss_family == AF_UNIX || obs_address_loopback(&peer);
	if (peer.ss_family == AF_INET6) {
		memcpy(ret->bytes, &((struct sockaddr_in6 *)&peer)->sin6_addr, 16);
		if (IN6_IS_ADDR_V4MAPPED(&((struct sockaddr_in6 *)&peer)->sin6_addr)) {
			inet_ntop(AF_INET, ret->bytes + 12, host, sizeof host);
			snprintf(ret_text, OBS_ADDRESS_MAX, "%s", host);
			return;
		}
		memset(ret->bytes + 8, 0, 8);
		inet_ntop(AF_INET6, ret->bytes, host, sizeof host);
		snprintf(ret_text, OBS_ADDRESS_MAX, "%s/64", host);
	} else if (peer.ss_family == AF_INET) {
		ret->bytes[10] = ret->bytes[11] = 0xff;
		memcpy(ret->bytes + 12, &((struct sockaddr_in *)&peer)->sin_addr, 4);
		inet_ntop(AF_INET, ret->bytes + 12, host, sizeof host);
		snprintf(ret_text, OBS_ADDRESS_MAX, "%s", host);
	} else {
		length = sizeof user;
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length);
		ret->bytes[0] = 0xfe;
		memcpy(ret->bytes + 12, &user.uid, 4);
		snprintf(ret_text, OBS_ADDRESS_MAX, "uid %u", (unsigned)user.uid);
	}
}

/*
 * The hash has no secret. A client that chooses its addresses can put them into one chain, which
 * is bounded by the table's 4,096 entries.
 */
static uint32_t hash(const struct obs_address_key *key)
{
	return (uint32_t)(ob_hash(OB_HASH_START, key->bytes, sizeof key->bytes) % BUCKETS);
}

/* ---- the table ---- */

/*
 * True if the entry can be reused for another address: no connection, no waiting time, no refusal
 * to report, a full bucket.
 */
static bool idle(const struct obs_address *a, uint64_t now)
{
	if (a->n_callers || now < a->wait_until_ns ||
		(a->wrong && now - a->wrong_ns < OBS_WRONG_FORGET_S * OB_SECOND) ||
		now - a->filled_ns < OBS_BURST_S * OB_SECOND)
		return false;
	for (int i = 0; i < OBS_REFUSALS; i++)
		if (a->refused[i].count)
			return false;
	return true;
}

static void unlink_entry(struct obs_address *address)
{
	struct obs_address **at = &heads[hash(&address->key)];

	while (*at && *at != address)
		at = &(*at)->next;
	if (*at)
		*at = address->next;
}

/* A free entry, or an idle one; NULL: none. */
static struct obs_address *entry_find(uint64_t now)
{
	if (n_used < OBS_ADDRESSES_MAX)
		return &table[n_used++];
	for (uint32_t i = 0; i < OBS_ADDRESSES_MAX; i++) {
		struct obs_address *address = &table[hand];

		hand = (hand + 1) % OBS_ADDRESSES_MAX;
		if (idle(address, now)) {
			unlink_entry(address);
			return address;
		}
	}
	return NULL;
}

struct obs_address *obs_address_of(int fd, uint64_t now)
{
	char text[OBS_ADDRESS_MAX];
	struct obs_address_key key;
	struct obs_address *address;
	bool local;

	key_of(fd, &key, &local, text);
	for (address = heads[hash(&key)]; address; address = address->next)
		if (memcmp(&address->key, &key, sizeof key) == 0)
			return address;
	address = entry_find(now);
	if (!address)
		return &others;
	*address = (struct obs_address){ .next = heads[hash(&key)],
		.key = key,
		.used = true,
		.local = local,
		.credit_ns = OBS_BURST_S * OB_SECOND,
		.filled_ns = now };
	memcpy(address->text, text, sizeof text);
	heads[hash(&key)] = address;
	return address;
}

struct obs_address *obs_address_fullest(void)
{
	struct obs_address *most = &others;

	for (uint32_t i = 0; i < n_used; i++)
		if (table[i].n_callers > most->n_callers)
			most = &table[i];
	return most->n_callers ? most : NULL;
}

/* ---- rates, wrong tokens ---- */

bool obs_address_take(struct obs_address *address, uint32_t rate, uint64_t now)
{
	uint64_t each = OB_SECOND / rate;

	address->credit_ns =
		ob_min(address->credit_ns + (now - address->filled_ns), OBS_BURST_S * OB_SECOND);
	address->filled_ns = now;
	if (address->credit_ns < each)
		return false;
	address->credit_ns -= each;
	return true;
}

void obs_address_wrong(struct obs_address *address, uint64_t now)
{
	uint32_t beyond, seconds;

	if (address->wrong && now - address->wrong_ns > OBS_WRONG_FORGET_S * OB_SECOND)
		address->wrong = 0;
	address->wrong = ob_min(address->wrong + 1, 1000u);
	address->wrong_ns = now;
	if (address->wrong <= OBS_WRONG_FREE)
		return;
	beyond = ob_min(address->wrong - OBS_WRONG_FREE - 1, 10u);
	seconds = ob_min(1u << beyond, OBS_WRONG_WAIT_MAX_S);
	address->wait_until_ns = now + seconds * OB_SECOND;
}

void obs_address_right(struct obs_address *address)
{
	address->wrong = 0;
	address->wait_until_ns = 0;
}

uint32_t obs_address_wait_s(const struct obs_address *address, uint64_t now)
{
	return now < address->wait_until_ns
		? (uint32_t)((address->wait_until_ns - now + OB_SECOND - 1) / OB_SECOND)
		: 0;
}

/* ---- reports of refusals ---- */

void obs_address_refused(struct obs_address *address, enum obs_refusal why, const char *text)
{
	address->refused[why].count++;
	snprintf(address->refused[why].text, sizeof address->refused[why].text, "%s", text);
}

struct report {
	uint64_t now;
	unsigned left;
	uint32_t rest;
	void (*tell)(const char *address, const char *why, uint32_t count);
};

static void address_report(struct report *report, struct obs_address *address)
{
	for (int i = 0; i < OBS_REFUSALS; i++) {
		uint32_t count = address->refused[i].count;

		if (!count ||
			(report->now != OB_NEVER && address->refused[i].told_ns &&
				report->now - address->refused[i].told_ns < OB_SECOND))
			continue;
		address->refused[i].told_ns = report->now;
		address->refused[i].count = 0;
		if (report->left) {
			report->left--;
			report->tell(address->text, address->refused[i].text, count);
		} else {
			report->rest += count;
		}
	}
}

void obs_address_report(uint64_t now, unsigned max,
	void (*tell)(const char *address, const char *why, uint32_t count))
{
	struct report report = { .now = now, .left = max, .tell = tell };

	for (uint32_t i = 0; i < n_used; i++)
		address_report(&report, &table[i]);
	address_report(&report, &others);
	if (report.rest)
		tell("others", "of several kinds, from too many addresses to list", report.rest);
}
