/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What admission knows of each address that clients come from: how many connections it has open
 * here, how fast it may make new ones (a token bucket), how many wrong tokens came from it, which
 * refusals are still to be told. IPv4 by address, IPv6 by its /64, unix sockets by user. The table
 * is bounded: entries of which nothing needs to be remembered are used again, and when all are in
 * use further addresses share one. Admission process, its one thread; times are ob_clock_ns.
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
#define OBS_BURST_S          4u /* so many seconds' new connections may come at once */

/* Why connections are refused: one line a second for each of these and each address, at most. */
enum obs_refusal {
	OBS_REFUSED_PROTOCOL, /* not our protocol, or not this version of it */
	OBS_REFUSED_SILENT,   /* did not introduce itself in time, or made room for others */
	OBS_REFUSED_TLS,
	OBS_REFUSED_DENIED, /* no right token or certificate */
	OBS_REFUSED_SECRET, /* a join with a wrong secret, or of no session */
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
	/* the bucket: ns of the time that has passed and not been used */
	uint64_t credit_ns;
	uint64_t filled_ns; /* when that was last reckoned */
	uint32_t wrong;     /* tokens, in a row */
	uint64_t wrong_ns, wait_until_ns;
	struct {
		uint32_t count; /* not yet told */
		uint64_t told_ns;
		char text[120]; /* the last one's reason */
	} refused[OBS_REFUSALS];
};

bool obs_address_loopback(const struct sockaddr_storage *address);
/* The peer of a socket. Never NULL. */
struct obs_address *obs_address_of(int fd, uint64_t now);
/* One more new session or question from there: false when that is too fast. rate: a second. */
bool obs_address_take(struct obs_address *address, uint32_t rate, uint64_t now);
/* A wrong token, or none. */
void obs_address_wrong(struct obs_address *address, uint64_t now);
/* A right one. */
void obs_address_right(struct obs_address *address);
/* Seconds that it has to wait before its next token is looked at; 0: none. */
uint32_t obs_address_wait_s(const struct obs_address *address, uint64_t now);
void obs_address_refused(struct obs_address *address, enum obs_refusal why, const char *text);
/* The address with most connections; NULL: there is none. */
struct obs_address *obs_address_fullest(void);
/*
 * What is to be told now (OB_NEVER: all there is): at most `max` calls of `tell`, and one more for
 * all the rest, from "others".
 */
void obs_address_report(uint64_t now, unsigned max,
	void (*tell)(const char *address, const char *why, uint32_t count));

#endif
