/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A user of a registry, for tests: it mirrors what the watcher reports and makes transactions that
 * block. All clients of a program use one loop, `client_loop`.
 */
#ifndef OBL_TEST_CLIENT_H
#define OBL_TEST_CLIENT_H

#include "loadbalancer/registry/registry.h"
#include "loadbalancer/registry/table.h"
#include "tests/test.h"

struct client {
	struct obl_registry *registry;
	struct obl_table mirror; /* what the watcher has reported */
	unsigned resets, synced, changes, leases, usable_calls;
	bool in_sync, usable, closed;
	uint64_t revision; /* of the last event */
	struct ob_cause why;
};

/* The result of the last transaction or range of client_txn and client_range. */
struct answer {
	bool done, succeeded;
	enum ob_err err;
	uint64_t revision;
	struct ob_cause cause;
	struct obl_table found; /* current, or the entries of the range */
	uint32_t n;
};

extern uv_loop_t *client_loop;

/* Runs the loop until the condition holds. */
#define RUN_UNTIL(condition)                                                    \
	do {                                                                    \
		double until_end_ = waiting_now() + WAITING_LONG_S;             \
		while (!(condition)) {                                          \
			if (waiting_now() > until_end_)                         \
				TEST_FAIL("waited in vain for %s", #condition); \
			client_turn();                                          \
		}                                                               \
	} while (0)

/* One iteration of the loop, of 10 ms at most. */
void client_turn(void);
void client_begin(void);
/* Closes the loop: no handle may be left. */
void client_end(void);
/* options->url and so on; fails the test if the registry cannot be opened. */
void client_open(struct client *client, const struct obl_registry_options *options);
void client_wait_usable(struct client *client);
void client_close(struct client *client);
/* Starts a transaction; answer->done says when it is over. */
void client_start(struct client *client, const struct obl_txn *txn, struct answer *answer);
void client_txn(struct client *client, const struct obl_txn *txn, struct answer *answer);
void client_range(struct client *client, const char *prefix, struct answer *answer);
void answer_fini(struct answer *answer);
/* Puts a key unconditionally, or deletes it (value NULL), and returns the revision. */
uint64_t client_put(struct client *client, const char *key, const char *value);
/* The mirror's value and revision; "" and 0: no such key. */
const char *client_value(const struct client *client, const char *key);
uint64_t client_revision(const struct client *client, const char *key);

#endif
