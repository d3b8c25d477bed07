/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The registry: an ordered set of keys with values and revisions, which all balancers of a pool
 * share (docs/adr/0046-pool.md lists the keys). One table of functions, three fillings:
 *
 *   memory   in this process, lost at its end; several handles of one process can share it (tests)
 *   static   the same, and a file: one balancer, which locks the file
 *   etcd     several balancers, by the HTTP/JSON gateway of etcd 3.4 or newer
 *
 * Asynchronous: a function starts an operation and returns; `done` is called later from the loop,
 * exactly once, never from inside the function, also when the operation times out or the registry
 * is closed (OB_ERR_CLOSED). Loop's thread only. Keys and values are bytes without NUL; at most
 * OBL_KEY_MAX and OBL_VALUE_MAX.
 */
#ifndef OBL_REGISTRY_H
#define OBL_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/cause.h"

#define OBL_KEY_MAX   256u
#define OBL_VALUE_MAX 16384u
#define OBL_TXN_OPS_MAX \
	64u /* comparisons, or changes, of one transaction: etcd refuses more than 128 in all */

struct obl_registry;

/* A key with its value. revision: of its last change; 0: the key does not exist. */
struct obl_entry {
	const char *key, *value; /* NUL-terminated; valid during the call */
	uint64_t revision;       /* increases with each change of the registry */
};

/* ---- transactions ---- */

/* The key's revision must be this; 0: it must not exist. */
struct obl_compare {
	const char *key;
	uint64_t revision;
};

struct obl_change {
	const char *key, *value; /* value NULL: delete */
	bool leased;             /* the key ends with this registry's lease */
};

struct obl_txn {
	uint32_t n_compares, n_changes;
	const struct obl_compare *compares;
	const struct obl_change *changes;
};

/*
 * succeeded: all comparisons held and all changes were made, at `revision`. Else nothing was
 * changed, and current[i] is the present state of compares[i].key. err: it is unknown whether the
 * changes were made (OB_ERR_TIMEOUT, OB_ERR_CLOSED), or they were not (OB_ERR_CONNECT: not sent;
 * OB_ERR_REFUSED: no quorum, denied); *cause says what to do.
 */
typedef void obl_txn_done(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n_current);

/* All entries of a prefix, by key, and the revision of that state. */
typedef void obl_range_done(void *user, enum ob_err err, const struct ob_cause *cause,
	const struct obl_entry *entries, uint32_t n, uint64_t revision);

/* ---- watching ---- */

/*
 * The whole registry is watched once, from obl_registry_open on. First `reset` and all entries,
 * then each change in order; after a gap (compaction, a long loss of the connection) `reset` and
 * all entries again. An entry with revision 0 was deleted: `value` is NULL.
 */
struct obl_watcher {
	void *user;
	void (*reset)(void *user);
	void (*changed)(void *user, const struct obl_entry *entry, bool deleted);
	/* The first state, or the state after a reset, is complete up to this revision. */
	void (*synced)(void *user, uint64_t revision);
	/*
	 * The registry can, or cannot, be used: connected with quorum and a live lease. In between
	 * placements are refused; nothing else changes.
	 */
	void (*usable)(void *user, bool usable, const struct ob_cause *why);
	/* The lease was lost and a new one granted: leased keys must be written again. */
	void (*lease_renewed)(void *user);
};

struct obl_registry_ops {
	const char *name;
	void (*txn)(struct obl_registry *registry, const struct obl_txn *txn, obl_txn_done *done,
		void *user);
	void (*range)(struct obl_registry *registry, const char *prefix, obl_range_done *done,
		void *user);
	/* True: this balancer is the leader (etcd: holds the election's key; others: always). */
	bool (*leads)(const struct obl_registry *registry);
	/* Ends all operations (OB_ERR_CLOSED), revokes the lease, calls closed. */
	void (*close)(struct obl_registry *registry, void (*closed)(void *user), void *user);
};

/* First member of each filling. */
struct obl_registry {
	const struct obl_registry_ops *ops;
	struct obl_watcher watcher;
};

struct obl_registry_options {
	/*
	 * "memory", "static:/path/of/file", "etcd:http://a:2379,http://b:2379" or
	 * "etcd:https://..."; with etcd, keys have the prefix `prefix`
	 */
	const char *url;
	const char *prefix;          /* "outboard/"; NULL: that */
	const char *ca, *cert, *key; /* etcd over https; NULL: the system's authorities, none */
	const char *user, *password_file; /* etcd's authentication; NULL: none */
	const char *balancer;             /* this balancer's name, for the election */
	uint32_t lease_s;                 /* 10 */
	uint32_t timeout_ms;              /* of one attempt; another endpoint is tried then: 800 */
};

/*
 * Opens the registry; connecting goes on in the background. OB_ERR_URL, OB_ERR_ARGUMENT,
 * OB_ERR_TLS, OB_ERR_IO (the file), OB_ERR_LIMIT (another balancer has the file): *ret_cause. The
 * watcher's functions are called from the loop only.
 */
enum ob_err obl_registry_open(uv_loop_t *loop, const struct obl_registry_options *options,
	const struct obl_watcher *watcher, struct obl_registry **ret, struct ob_cause *ret_cause);

#endif
