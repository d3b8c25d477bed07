/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The balancer's copy of the registry: each key with its revision and its parsed value. It follows
 * the watch, and the balancer's own transactions at once. Changes may be reported twice and out of
 * order between the two: the higher revision wins, and a deleted key is remembered until the watch
 * has reported its deletion. Loop's thread only. Owner: the balancer.
 */
#ifndef OBL_MIRROR_H
#define OBL_MIRROR_H

#include "loadbalancer/balancer/values.h"
#include "loadbalancer/registry/registry.h"

/* By the first word of the key; docs/POOL.md lists them. */
enum obl_item_kind {
	OBL_ITEM_SERVER,
	OBL_ITEM_LEDGER,
	OBL_ITEM_ALIVE,
	OBL_ITEM_RESERVATION,
	OBL_ITEM_QUEUE,
	OBL_ITEM_TENANT,
	OBL_ITEM_QUOTA,
	OBL_ITEM_OPERATOR,
	OBL_ITEM_EVENT,
	OBL_ITEM_BALANCER,
	OBL_ITEM_KINDS
};

struct obl_item {
	struct obl_item *bucket;          /* next with the same hash */
	struct obl_item *next, *previous; /* of its kind */
	enum obl_item_kind kind;
	uint64_t revision;
	uint64_t came_ns; /* ob_clock_ns: when its present value came into this mirror */
	bool gone;        /* deleted; kept until the watch says so too */
	bool wrong;       /* the value could not be read: there is none */
	union {
		void *any; /* malloc'ed */
		struct obl_known_server *server;
		struct obl_ledger *ledger;
		uint64_t *alive; /* incarnation */
		struct obl_reservation *reservation;
		struct obl_queued *queued;
		struct obl_usage *usage;
		struct obl_quota *quota;
		struct obl_operator *operated;
		struct obl_event *event;
	} value;
	const char *name; /* what follows the first '/' */
	char key[];
};

struct obl_mirror {
	struct obl_item **buckets;
	size_t n_buckets, n;
	struct obl_item *first[OBL_ITEM_KINDS], *last[OBL_ITEM_KINDS]; /* deleted ones too */
	uint64_t seen;   /* the watch has reported everything up to this revision */
	uint64_t newest; /* the registry had this revision: own changes are ahead of the watch */
	/* Called after an item has changed; `gone` is set, with its last value, when it is deleted. */
	void (*changed)(void *user, const struct obl_item *item);
	void *user;
};

/* False: no memory. */
bool obl_mirror_init(struct obl_mirror *mirror);
void obl_mirror_fini(struct obl_mirror *mirror);
/* Forgets everything without calling `changed`: the watch begins again. */
void obl_mirror_reset(struct obl_mirror *mirror);
/*
 * A change. value NULL: the key does not exist in the registry's state of this revision. watched:
 * the watch has reported it, in its order; it tells no revision of a deletion. Keys of unknown kinds
 * are ignored. A value that cannot be read, or no memory, makes the item `wrong`.
 */
void obl_mirror_apply(struct obl_mirror *mirror, const char *key, const char *value,
	uint64_t revision, bool watched);
/* Frees deleted items that the watch can no longer report. */
void obl_mirror_prune(struct obl_mirror *mirror);
/* The item, if it exists and can be read; else NULL. */
const struct obl_item *obl_mirror_get(const struct obl_mirror *mirror, const char *key);
/* By the kind's first word: "ledger", NAME. */
const struct obl_item *obl_mirror_find(
	const struct obl_mirror *mirror, enum obl_item_kind kind, const char *name);
/* The reservation of this id. */
const struct obl_item *obl_mirror_reservation(
	const struct obl_mirror *mirror, const uint8_t id[OBP_RESERVATION_BYTES]);
/* Whether an item of the kind exists that cannot be read. */
bool obl_mirror_has_wrong(const struct obl_mirror *mirror, enum obl_item_kind kind);
/* For a comparison: the key's revision; 0: it does not exist. */
uint64_t obl_mirror_revision(const struct obl_mirror *mirror, const char *key);
/* All changes of this key up to the returned revision, at least, are in the mirror. */
uint64_t obl_mirror_as_of(const struct obl_mirror *mirror, const char *key);
/* The items of a kind that exist and can be read, in the order of their creation. NULL: the end. */
const struct obl_item *obl_mirror_first(const struct obl_mirror *mirror, enum obl_item_kind kind);
const struct obl_item *obl_mirror_next(const struct obl_item *item);
/* "ledger/NAME"; false: the key would be too long. */
bool obl_key_print(enum obl_item_kind kind, const char *name, char ret_key[OBL_KEY_MAX]);

#endif
