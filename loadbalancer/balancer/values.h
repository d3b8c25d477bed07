/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The values of the registry's keys (docs/POOL.md lists keys and fields) as structures, and their
 * text, JSON. What is read may have been written by anybody who can write to the registry: each
 * field is checked for its type, bounds and characters, and unknown fields are skipped. Numbers of
 * 64 random bits are hexadecimal strings, because JSON's numbers have 53 bits in many programs.
 * Plain data without pointers; no state; any thread.
 */
#ifndef OBL_VALUES_H
#define OBL_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loadbalancer/balancer/names.h"
#include "loadbalancer/quota.h"
#include "protocol/pool.h"

#define OBL_URLS_TEXT  (OBP_POOL_URLS_MAX * OBP_POOL_URL_MAX)
#define OBL_MEMORY_MAX (UINT64_C(1) << 50) /* bytes of one device: more is not believed */
#define OBL_COUNT_MAX  1000000u            /* of sharers, GPUs, reservations */
#define OBL_LOAD_MAX   1000000u            /* per mille of a device */
#define OBL_EVENT_TEXT 256u
#define OBL_EVENT_KIND 24u

/* servers/NAME */
struct obl_known_device {
	uint8_t uuid[16];
	char name[OBP_LOAD_NAME_MAX];
	uint64_t total;                        /* bytes that sessions may use */
	uint32_t units, clock_khz, capability; /* as in obp_load_device */
	bool soft;
};

struct obl_known_server {
	uint64_t incarnation;
	char version[32], pin[65];
	char urls[OBL_URLS_TEXT]; /* best first, with blanks between them */
	char labels[OBP_POOL_WHERE_MAX];
	uint32_t cuda; /* 13000; 0: not known */
	uint32_t n_devices;
	struct obl_known_device devices[OBP_DEVICE_MAX];
};

/* ledger/NAME */
struct obl_ledger_device {
	uint8_t uuid[16];
	uint64_t total, reserved; /* bytes */
	uint64_t share;           /* sum of the reservations' shares, millionths */
	uint32_t sharers;         /* reservations on it */
	bool exclusive;           /* its one reservation admits no other */
};

struct obl_ledger {
	uint64_t incarnation; /* of the server: a part of another one is not in here */
	uint64_t fence;       /* increases with each transaction */
	uint32_t n_devices;
	struct obl_ledger_device devices[OBP_DEVICE_MAX];
};

/* What a reservation holds on one server. */
struct obl_holding {
	char server[OBP_POOL_NAME_MAX];
	uint64_t incarnation, fence;
	uint64_t memory; /* bytes on each device */
	uint32_t n_devices;
	uint8_t devices[OBP_DEVICE_MAX][16]; /* UUIDs, in the order that the program sees */
};

/* reservations/ID */
struct obl_reservation {
	uint8_t id[OBP_RESERVATION_BYTES];
	char tenant[OBP_POOL_NAME_MAX];
	char program[OBP_NAME_MAX], host[OBP_POOL_NAME_MAX], user[OBP_POOL_NAME_MAX];
	char apart[OBP_POOL_NAME_MAX];
	uint64_t pid;
	uint64_t issued, expires; /* seconds since 1970 */
	uint32_t share;           /* of each device, millionths; 0: not limited */
	uint32_t priority;        /* 1 low, 2 normal, 3 high */
	uint32_t linger_s;
	bool exclusive, restartable;
	/* ---- of a restartable one (moves.h) ---- */
	char where[OBP_POOL_WHERE_MAX]; /* what any place of it must fulfil */
	uint32_t cuda;                  /* the same */
	uint32_t moves;                 /* how often its program was moved */
	uint32_t load;  /* what it should add to its device, per mille; 0: unknown */
	uint64_t moved; /* seconds since 1970: when a move concerned it last; 0: never */
	char from
		[OBP_POOL_NAME_MAX]; /* the server it was moved from, until it is in use; else "" */
	uint8_t successor[OBP_RESERVATION_BYTES]; /* made in its place; zeros: none */
	bool killed; /* ended by command before its program was there */
	/* ---- */
	uint32_t granted; /* parts at first; n_parts: those that are not credited yet */
	uint32_t n_parts;
	struct obl_holding parts[OBP_POOL_PARTS_MAX];
};

/* queue/ORDER */
struct obl_queued {
	char balancer[OBP_POOL_NAME_MAX];
	char tenant[OBP_POOL_NAME_MAX];
	uint64_t since, until; /* ms since 1970 */
	/* the request; its token is not stored */
	struct obp_pool_ask ask;
};

/* operator/NAME */
struct obl_operator {
	bool cordoned, draining;
	uint64_t since;    /* seconds since 1970 */
	uint64_t grace_ms; /* of the drain */
	char by[2 * OBP_POOL_NAME_MAX];
};

/* events/NUMBER */
struct obl_event {
	uint64_t time_ms;          /* since 1970 */
	char kind[OBL_EVENT_KIND]; /* "joined" */
	char subject[OBP_POOL_NAME_MAX];
	char text[OBL_EVENT_TEXT];
	uint32_t count; /* how many of them this one stands for */
};

/*
 * From text: false if it is not such a value; *ret is undefined then. To text: malloc'ed; NULL: no
 * memory, or the text would be longer than a value may be.
 */
bool obl_known_server_read(const char *text, struct obl_known_server *ret);
char *obl_known_server_text(const struct obl_known_server *server);
bool obl_ledger_read(const char *text, struct obl_ledger *ret);
char *obl_ledger_text(const struct obl_ledger *ledger);
bool obl_reservation_read(const char *text, struct obl_reservation *ret);
char *obl_reservation_text(const struct obl_reservation *reservation);
bool obl_queued_read(const char *text, struct obl_queued *ret);
char *obl_queued_text(const struct obl_queued *queued);
/* tenants/NAME */
bool obl_usage_read(const char *text, struct obl_usage *ret);
char *obl_usage_text(const struct obl_usage *usage);
/* quotas/NAME */
bool obl_limits_read(const char *text, struct obl_quota *ret);
char *obl_limits_text(const struct obl_quota *limits);
bool obl_operator_read(const char *text, struct obl_operator *ret);
char *obl_operator_text(const struct obl_operator *state);
/* alive/NAME/BALANCER: the server's incarnation */
bool obl_alive_read(const char *text, uint64_t *ret_incarnation);
char *obl_alive_text(uint64_t incarnation);
bool obl_event_read(const char *text, struct obl_event *ret);
char *obl_event_text(const struct obl_event *event);

#endif
