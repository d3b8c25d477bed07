/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Messages between a balancer and those that connect to it: clients, tools and servers
 * (docs/adr/0046-pool.md). A connection begins with a preface of intent OBP_INTENT_POOL, then on
 * tls:// addresses one TLS layer for all that follows, then control frames in both directions, each
 * with one msgpack map of type enum obp_pool_type. Unknown keys are skipped. No state; any thread.
 *
 *   client, tool                      balancer                        server
 *     ASK            ──────────►                      ◄──────────     REGISTER
 *     (CANCEL)       ──────────►                       ──────────►    REGISTERED
 *                    ◄──────────      QUEUED ...      ◄──────────     BEAT, every second
 *                    ◄──────────      GRANT | REFUSED  ──────────►    ORDER
 *     QUERY          ──────────►                      ◄──────────     OBEYED
 *                    ◄──────────      ANSWER ...
 *     COMMAND        ──────────►
 *                    ◄──────────      DONE
 *     FOLLOW         ──────────►
 *                    ◄──────────      MOVED | REFUSED
 */
#ifndef OBP_POOL_H
#define OBP_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "protocol/control.h"
#include "protocol/load.h"
#include "protocol/ticket.h"

#define OBP_INTENT_POOL       17u   /* of a preface */
#define OBP_POOL_PORT         14900 /* where balancers listen unless told otherwise */
#define OBP_POOL_PARTS_MAX    8u    /* servers in one grant */
#define OBP_POOL_GPUS_MAX     64u   /* devices in one request; more are refused by the balancer */
#define OBP_POOL_URL_MAX      520u
#define OBP_POOL_URLS_MAX     4u     /* addresses of one server */
#define OBP_POOL_TEXT_MAX     1024u  /* bytes of a text for people, NUL included */
#define OBP_POOL_WHERE_MAX    256u   /* bytes of a selector or of labels, NUL included */
#define OBP_POOL_ANSWER_MAX   65536u /* bytes of one ANSWER; a longer document comes in several */
#define OBP_POOL_BEAT_MAX     256u   /* reservations in one BEAT */
#define OBP_POOL_BEAT_MS      1000u  /* interval of heartbeats */
#define OBP_POOL_SILENT_MS    5000u /* a server without a heartbeat for so long gets no new sessions */
#define OBP_POOL_TICKET_S     60u /* a ticket that is not used for so long expires */
/* A place that was offered and is asked for is kept at least so long from then on. */
#define OBP_POOL_OFFER_S      50u
#define OBP_POOL_LINGER_S     10u    /* unless the request says otherwise */
#define OBP_POOL_LINGER_MAX_S 86400u /* longest linger time, and longest wait in the queue */

enum obp_pool_type {
	OBP_POOL_ASK = 64,
	OBP_POOL_QUEUED,
	OBP_POOL_GRANT,
	OBP_POOL_REFUSED,
	OBP_POOL_CANCEL,
	OBP_POOL_QUERY,
	OBP_POOL_ANSWER,
	OBP_POOL_COMMAND,
	OBP_POOL_DONE,
	OBP_POOL_REGISTER,
	OBP_POOL_REGISTERED,
	OBP_POOL_BEAT,
	OBP_POOL_ORDER,
	OBP_POOL_OBEYED,
	OBP_POOL_FOLLOW,
	OBP_POOL_MOVED,
	OBP_POOL_LAST = OBP_POOL_MOVED
};

/*
 * Why a request or command was refused. The commands' exit codes are 69, 75, 77, 64 and 70
 * (sysexits.h).
 */
enum obp_pool_refusal {
	OBP_POOL_CAPACITY = 1, /* no server of the pool can ever fulfil it, as the pool is now */
	OBP_POOL_LATER,   /* not now: what it needs is in use, or the registry does not answer */
	OBP_POOL_DENIED,  /* token, quota, scope */
	OBP_POOL_INVALID, /* the request itself is wrong */
	OBP_POOL_FAULT    /* the balancer failed */
};

struct obp_pool_ask {
	uint8_t id[OBP_RESERVATION_BYTES];
	uint32_t gpus;        /* devices; at least 1 */
	uint64_t memory;      /* bytes on each device; 0: the balancer's default */
	uint32_t share;       /* of each device's time, in millionths; 0: not limited */
	uint32_t priority;    /* 0 the token's default, 1 low, 2 normal, 3 high */
	uint32_t exclusive;   /* 1: nobody else on the devices */
	uint32_t one_server;  /* 1: all devices must be of one server */
	uint32_t policy;      /* 1 + enum obl_policy; 0: the balancer's default */
	uint32_t wait_s;      /* how long to wait in the queue; 0: not at all */
	uint32_t linger_s;    /* 0: OBP_POOL_LINGER_S */
	uint32_t cuda;        /* CUDA version that the driver must have, 13000; 0: any */
	uint32_t restartable; /* 1: the program may be ended and started again elsewhere */
	/* 1: the successor that MOVED named, or the reservation that was left for it; nothing else */
	uint32_t offered;
	uint64_t pid;
	char where[OBP_POOL_WHERE_MAX]; /* selector, "model=H100,zone!=b" */
	char apart
		[OBP_POOL_NAME_MAX]; /* not on a server that runs a reservation of the same word */
	char program[OBP_NAME_MAX], host[OBP_POOL_NAME_MAX], user[OBP_POOL_NAME_MAX];
	char token[OBP_TOKEN_MAX];
};

struct obp_pool_queued {
	uint32_t position, length; /* position 1: next */
	uint64_t estimate_ms;      /* 0: not known */
	char reason[OBP_POOL_TEXT_MAX];
};

struct obp_pool_part {
	char server[OBP_POOL_NAME_MAX];
	/* the server's addresses, best first, with blanks between them */
	char urls[OBP_POOL_URLS_MAX * OBP_POOL_URL_MAX];
	char pin[65]; /* SHA-256 of its certificate in hexadecimal; "": none */
	uint32_t ticket_size;
	uint8_t ticket[OBP_TICKET_MAX];
};

struct obp_pool_grant {
	uint8_t id[OBP_RESERVATION_BYTES];
	char tenant[OBP_POOL_NAME_MAX];
	uint32_t n_parts;
	struct obp_pool_part *parts; /* calloc'ed by decode, freed by obp_pool_fini */
};

struct obp_pool_refused {  /* also the content of DONE: code 0: success */
	uint32_t code;     /* enum obp_pool_refusal */
	uint64_t retry_ms; /* when another attempt makes sense; 0: not known */
	char text[OBP_POOL_TEXT_MAX];
};

/*
 * Ends a request that waits, or gives a reservation back that was not used, or is not used any more.
 * The answer is DONE. On another connection than the request's the token must be of the reservation's
 * tenant.
 */
struct obp_pool_cancel {
	uint8_t id[OBP_RESERVATION_BYTES];
	char token[OBP_TOKEN_MAX];
	uint32_t over; /* 1: used or not, it ends as soon as no session uses it */
};

/*
 * Asks to be told when the reservation is to move (docs/adr/0050-rebalancing.md). The answer is one
 * MOVED, whenever that is, or REFUSED when the reservation has ended or cannot be moved. One on each
 * connection: a second one replaces the first.
 */
struct obp_pool_follow {
	uint8_t id[OBP_RESERVATION_BYTES];
	char token[OBP_TOKEN_MAX];
	uint32_t fixed; /* 1: the program cannot be started again any more; REFUSED confirms it */
};

/*
 * Reservation `successor` was made in place of `id`. A client that wants it asks for it, with
 * `offered`, while it is kept; else it is taken back and the old one stays.
 */
struct obp_pool_moved {
	uint8_t id[OBP_RESERVATION_BYTES], successor[OBP_RESERVATION_BYTES];
	char server[OBP_POOL_NAME_MAX]; /* where the successor is */
	char text[OBP_POOL_TEXT_MAX];   /* why */
	uint32_t left_s;                /* how long it is still kept, unless it is asked for */
};

struct obp_pool_query {
	/* "fleet", "servers", "gpus", "sessions", "queue", "quota", "events", "info" */
	char what[32];
	char target[OBP_POOL_NAME_MAX]; /* one of them; "": all */
	uint64_t since;                 /* events: only those with a higher number */
	char token[OBP_TOKEN_MAX];
};

struct obp_pool_answer {
	uint32_t more; /* 1: the document goes on in another ANSWER */
	uint32_t size;
	const uint8_t *
		bytes; /* a piece of a JSON document; encode: the caller's; decode: in the map's bytes */
};

struct obp_pool_command {
	/*
	 * "cordon", "uncordon", "drain", "forget", "kill" (target: session or reservation), "quota",
	 * "move" (target: reservation; argument: a server, or "")
	 */
	char verb[32];
	char target[OBP_POOL_NAME_MAX];
	char argument[OBP_POOL_WHERE_MAX];
	char token[OBP_TOKEN_MAX];
};

struct obp_pool_register {
	char name[OBP_POOL_NAME_MAX];
	uint64_t incarnation; /* random, not 0; chosen when the supervisor starts */
	char version[32];
	char urls[OBP_POOL_URLS_MAX * OBP_POOL_URL_MAX]; /* as of a part */
	char pin[65];
	char labels[OBP_POOL_WHERE_MAX]; /* "zone=a,rack=3" */
	char token[OBP_TOKEN_MAX];       /* of scope "serve" */
};

struct obp_pool_registered {
	char balancer[OBP_POOL_NAME_MAX];
	uint8_t key[32];   /* public key of its tickets */
	uint64_t time_s;   /* the balancer's clock, seconds since 1970 */
	uint32_t cordoned; /* an operator has cordoned the server */
};

/* States of a reservation at its server. */
enum obp_pool_state { OBP_POOL_CLAIMED = 1, OBP_POOL_ENDED, OBP_POOL_VOID };

struct obp_pool_held {
	uint8_t id[OBP_RESERVATION_BYTES];
	uint64_t fence;
	uint32_t state;    /* enum obp_pool_state */
	uint32_t sessions; /* of it, now */
	uint64_t used;     /* bytes of device memory, now */
	uint32_t share_by; /* enum obp_share_by: throttle if one of its sessions is kept so */
	uint32_t busy;     /* per mille of the last second in which its sessions were executing */
};

/*
 * A heartbeat. The list of reservations is complete: what is claimed and not in it has ended. ENDED
 * and VOID ones are repeated until an ORDER of kind CREDITED names them.
 */
struct obp_pool_beat {
	uint64_t number;      /* 1, 2, ... on one connection */
	struct obp_load load; /* with facts and sessions; decode: obp_pool_fini frees */
	uint32_t healthy;     /* 0: no new sessions; the reason is in `health` */
	char health[OBP_POOL_TEXT_MAX];
	/* What operators have made of the server, as it has been told: */
	uint32_t cordoned; /* it refuses new reservations */
	uint32_t drained;  /* and ends, or has ended, its sessions */
	uint64_t as_of;    /* of the order that it has obeyed; 0: of none */
	uint32_t n_held;
	struct obp_pool_held *held; /* encode: the caller's; decode: obp_pool_fini frees */
};

enum obp_pool_order_kind {
	OBP_POOL_ORDER_VOID =
		1, /* refuse the ticket of reservation `id`; OBEYED says if it was in time */
	OBP_POOL_ORDER_CREDITED, /* reservation `id` need not be reported again */
	OBP_POOL_ORDER_CORDON,   /* number: 1 on, 0 off: refuse new reservations */
	OBP_POOL_ORDER_DRAIN,    /* number: milliseconds until sessions are ended */
	/*
	 * End all sessions of reservation `id`, and refuse its ticket, used or not; text: why;
	 * number: for the answer
	 */
	OBP_POOL_ORDER_KILL,
	OBP_POOL_ORDER_KILL_SESSION, /* end session `number`; text: why */
	/* reservation `id` does not end for want of sessions in the next `number` seconds */
	OBP_POOL_ORDER_KEEP,
	/*
	 * Reservation `id` takes no further session and ends with its last one, without lingering; if it
	 * was not used yet, as VOID. OBEYED has its state
	 */
	OBP_POOL_ORDER_END,
	OBP_POOL_ORDER_LAST = OBP_POOL_ORDER_END
};

/* A KILL because the program was moved has this text and the name of its new server. */
#define OBP_POOL_MOVED_TEXT "its program was moved to "

struct obp_pool_order {
	uint32_t kind;
	uint8_t id[OBP_RESERVATION_BYTES];
	uint64_t number;
	char text[OBP_POOL_TEXT_MAX];
	/*
	 * CORDON and DRAIN: the registry's revision at which an operator wanted this. An order with a
	 * lower one than that of the last order is refused: its balancer has not heard of the other. An
	 * equal one does not begin again what was called off. 0: not known, never refused. force: it is
	 * not compared; the registry was begun anew.
	 */
	uint64_t as_of;
	uint32_t force;
};

struct obp_pool_obeyed {
	uint32_t kind; /* of the order */
	uint8_t id[OBP_RESERVATION_BYTES];
	uint64_t number;
	/* VOID, END: enum obp_pool_state; other kinds: 1 done, 0 there is no such thing */
	uint32_t result;
};

struct obp_pool_message {
	enum obp_pool_type type;
	union {
		struct obp_pool_ask ask;
		struct obp_pool_queued queued;
		struct obp_pool_grant grant;
		struct obp_pool_refused refused; /* REFUSED and DONE */
		struct obp_pool_cancel cancel;
		struct obp_pool_follow follow;
		struct obp_pool_moved moved;
		struct obp_pool_query query;
		struct obp_pool_answer answer;
		struct obp_pool_command command;
		struct obp_pool_register join; /* REGISTER */
		struct obp_pool_registered registered;
		struct obp_pool_beat beat;
		struct obp_pool_order order;
		struct obp_pool_obeyed obeyed;
	} u;
};

/* Appends a whole frame. False: the buffer is full, or the map would exceed OBP_CONTROL_MAX. */
bool obp_pool_encode(const struct obp_pool_message *message, struct ob_buf *frame);
/*
 * Decodes a frame's map bytes, which must live as long as an ANSWER is used. OB_ERR_PROTOCOL,
 * OB_ERR_NO_MEMORY. On success call obp_pool_fini.
 */
enum ob_err obp_pool_decode(const void *map, size_t size, struct obp_pool_message *ret);
void obp_pool_fini(struct obp_pool_message *message);
/* The exit code of a refusal (sysexits.h): 69, 75, 77, 64, 70; 0 for code 0. */
uint8_t obp_pool_exit_code(uint32_t code);

#endif
