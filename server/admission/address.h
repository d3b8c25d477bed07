/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What admission knows of each client address: its open connections, how fast it may open new ones
 * (a token bucket), wrong tokens, refusals still to be reported. IPv4 by address, IPv6 by /64, unix
 * sockets by user. The table is bounded: idle entries are reused, and when all are in use, further
 * addresses share one. Admission process, one thread; times are ob_clock_ns.
 */
#ifndef OBS_ADDRESS_H
#define OBS_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "server/common/identity.h"

#define OBS_ADDRESSES_MAX    4096u
#define OBS_WRONG_FREE       5u /* wrong tokens before waiting begins */
#define OBS_WRONG_WAIT_MAX_S 60u
#define OBS_WRONG_FORGET_S   600u
#define OBS_BURST_S          4u /* connections of so many seconds may come at once */

/* Kinds of refusals. At most one line a second is reported for each kind and address. */
enum obs_refusal {
	OBS_REFUSED_PROTOCOL, /* not our protocol, or not this version of it */
	OBS_REFUSED_SILENT,   /* sent no complete first message in time, or was evicted */
	OBS_REFUSED_TLS,
	OBS_REFUSED_DENIED, /* no valid token or certificate */
	OBS_REFUSED_SECRET, /* a join with a wrong secret, or for an unknown session */
	OBS_REFUSED_TICKET, /* no valid ticket, in a pool */
	OBS_REFUSED_RATE,   /* too many */
	OBS_REFUSALS
};

struct obs_caller;

struct obs_address_key {
	/* an IPv6 address, IPv4 mapped into it; unix: fe, zeros, the user's number */
	uint8_t bytes[16];
};

struct obs_address {
	struct obs_address *next; /* of the same hash */
	struct obs_address_key key;
	bool used, local;
	char text[OBS_ADDRESS_MAX];
	struct obs_caller *newest, *oldest; /* its connections */
	uint32_t n_callers;
	/* the bucket: unused time, ns */
	uint64_t credit_ns;
	uint64_t filled_ns; /* when the bucket was last updated */
	uint32_t wrong;     /* wrong tokens in a row */
	uint64_t wrong_ns, wait_until_ns;
	struct {
		uint32_t count; /* not yet reported */
		uint64_t told_ns;
		char text[120]; /* the last one's reason */
	} refused[OBS_REFUSALS];
};

bool obs_address_loopback(const struct sockaddr_storage *address);
/* The peer of a socket. Never NULL. */
struct obs_address *obs_address_of(int fd, uint64_t now);
/*
 * Takes one new session or question from the bucket: false when they come too fast. rate: per
 * second.
 */
bool obs_address_take(struct obs_address *address, uint32_t rate, uint64_t now);
/* Counts a wrong or missing token. */
void obs_address_wrong(struct obs_address *address, uint64_t now);
/* Forgets wrong tokens: a valid one was shown. */
void obs_address_right(struct obs_address *address);
/* Seconds to wait before the next token of this address is checked; 0: none. */
uint32_t obs_address_wait_s(const struct obs_address *address, uint64_t now);
void obs_address_refused(struct obs_address *address, enum obs_refusal why, const char *text);
/* The address with most connections; NULL: there is none. */
struct obs_address *obs_address_fullest(void);
/*
 * Reports what is due (now OB_NEVER: everything): at most `max` calls of `tell`, and one for all
 * the rest, from "others".
 */
void obs_address_report(uint64_t now, unsigned max,
	void (*tell)(const char *address, const char *why, uint32_t count));

#endif
