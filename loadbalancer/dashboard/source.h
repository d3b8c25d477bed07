/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the HTTP server of a balancer (web.h) asks of the balancer: one table of functions. The
 * balancer fills it in; tests have another filling (tests/e2e/dashboard_pool.c). All functions are
 * called on the loop's thread, and none may block. What is passed to a function lives as long as
 * the call.
 */
#ifndef OBL_DASHBOARD_SOURCE_H
#define OBL_DASHBOARD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"
#include "loadbalancer/counts.h"
#include "protocol/pool.h"

/* Who asks. */
struct obl_caller {
	bool all;    /* sees every tenant's sessions: scopes look and admin */
	bool admin;  /* may give commands */
	bool proven; /* by a token; false: the balancer asks for none */
	char scope[8];
	char who[96]; /* for the log and events: "token 01ab23cd alice" */
	char tenant[OBP_POOL_NAME_MAX];
};

/* As "state" in the document of servers. */
enum obl_seen_state {
	OBL_SEEN_READY,
	OBL_SEEN_CORDONED,
	OBL_SEEN_DRAINING,
	OBL_SEEN_UNWELL, /* it says so itself */
	OBL_SEEN_JOINING,
	OBL_SEEN_SILENT, /* no heartbeat for OBP_POOL_SILENT_MS */
	OBL_SEEN_LOST,   /* not connected to this balancer */
	OBL_SEEN_STATES
};

struct obl_seen_server {
	const char *name;
	enum obl_seen_state state;
	uint64_t beat_ns;  /* age of its last heartbeat; UINT64_MAX: none at this balancer */
	uint32_t sessions; /* that it reports */
};

struct obl_seen_gpu {
	const char *server, *model;
	uint32_t index; /* on its server */
	uint8_t uuid[16];
	uint64_t total, reserved; /* bytes: of the device; in reservations */
	uint32_t sharers;         /* reservations */
	bool faulty;              /* it gets no new sessions */
	/* as reported; `known` has a bit for each enum obl_reading */
	uint32_t known;
	uint64_t used; /* bytes */
	uint32_t busy; /* per mille of its time */
	uint32_t celsius;
	uint32_t milliwatts;
};

enum obl_reading { OBL_READ_USED, OBL_READ_BUSY, OBL_READ_CELSIUS, OBL_READ_POWER };

struct obl_seen_tenant {
	const char *name;
	uint32_t reservations, claimed; /* claimed: those of which a session exists or existed */
	uint64_t gpus, memory;          /* reserved; bytes */
	uint32_t waiting;               /* requests in the queue */
	uint64_t waiting_ns;            /* the oldest of them */
};

struct obl_seen {
	const char *balancer, *version; /* the balancer's name */
	bool usable;                    /* the registry */
	bool leader;
	const struct obl_counts *counts;
};

/* code: 0 done, or enum obp_pool_refusal, with text for the operator. */
typedef void obl_web_done(void *user, uint32_t code, const char *text);

struct obl_source {
	void *user;
	/*
	 * Who bears this token; NULL: none was sent. fd: the connection, for its peer's address;
	 * -1: a token that was right is checked again, and wrong ones of its address do not matter.
	 * OB_ERR_DENIED, OB_ERR_LIMIT (too many wrong ones; later), OB_ERR_IO (tokens cannot be
	 * read; later): *ret_cause is for the bearer.
	 */
	enum ob_err (*caller)(void *user, int fd, const char *token, struct obl_caller *ret,
		struct ob_cause *ret_cause);
	/*
	 * Makes a JSON document (protocol/pool.h, obp_pool_query) as this caller may see it, without
	 * line ends; *ret_text is malloc'ed. since: events only. False: no memory.
	 */
	bool (*document)(void *user, const struct obl_caller *caller, const char *what,
		uint64_t since, char **ret_text, size_t *ret_size);
	/* The number of the last event; 0: there was none. */
	uint64_t (*last_event)(void *user);
	/*
	 * Runs an operator's command; `done` is called exactly once, later or at once. The caller
	 * is an admin.
	 */
	void (*command)(void *user, const struct obl_caller *caller, const char *verb,
		const char *target, const char *argument, obl_web_done *done, void *done_user);
	void (*seen)(void *user, struct obl_seen *ret);
	/*
	 * Called before some of the next three, which then show one state until the caller returns
	 * to the loop.
	 */
	void (*refresh)(void *user);
	/* Calls `each` for all; what it gets lives as long as that call. */
	void (*servers)(
		void *user, void (*each)(void *to, const struct obl_seen_server *server), void *to);
	void (*gpus)(void *user, void (*each)(void *to, const struct obl_seen_gpu *gpu), void *to);
	void (*tenants)(
		void *user, void (*each)(void *to, const struct obl_seen_tenant *tenant), void *to);
};

#endif
