/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Reads all keys of a prefix from etcd, in pages of one revision. When the revision is compacted in
 * between, it begins again. Loop's thread only.
 */
#ifndef OBL_PAGER_H
#define OBL_PAGER_H

#include "loadbalancer/registry/calls.h"
#include "loadbalancer/registry/wire.h"

#define OBL_PAGE_KEYS   500u
#define OBL_PAGE_MAX    (32u << 20)  /* bytes of an answer */
#define OBL_KEYS_MAX    65536u       /* of a prefix; more: OB_ERR_LIMIT */
#define OBL_KEYS_BYTES  (256u << 20) /* of their values */
#define OBL_PAGE_BEGINS 3u           /* attempts */

struct obl_pager_user {
	void *user;
	/* Before the first key, and when reading begins again: what was passed before is void. */
	void (*begin)(void *user);
	/* Takes over the strings. */
	void (*kv)(void *user, struct obl_kv *kv);
	/* The last call. cause NULL: no error; `code` is etcd's. */
	void (*done)(void *user, enum ob_err err, const struct ob_cause *cause, uint64_t revision,
		uint64_t started_ns);
};

/* Reads the keys that begin with base and prefix; base is taken from the keys. Copies all. */
void obl_pager_start(struct obl_calls *calls, const char *base, const char *prefix,
	const struct obl_pager_user *user);

#endif
