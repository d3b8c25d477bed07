/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What is sent to etcd's JSON gateway, and what comes back. In JSON, 64-bit numbers are strings, keys
 * and values base64, and members that are zero are left out. Every answer is checked: the other side
 * may be anything. No I/O, no state; any thread.
 */
#ifndef OBL_WIRE_H
#define OBL_WIRE_H

#include <jansson.h>

#include "base/buf.h"
#include "loadbalancer/registry/registry.h"

#define OBL_PREFIX_MAX     128u        /* bytes of the option `prefix` */
#define OBL_BODY_MAX       (4u << 20)  /* of a request: a transaction has 1.5 MiB at most */
#define OBL_TXN_ANSWER_MAX (4u << 20)  /* of an answer to it */
#define OBL_SMALL_MAX      (64u << 10) /* of other answers */

/* ---- requests: appended to an initialised buffer ---- */

void obl_wire_txn(
	struct ob_buf *body, const char *prefix, const struct obl_txn *txn, uint64_t lease);
/*
 * All keys that begin with `prefix`, after the key `after` (NULL: from the first) at a revision (0: the
 * present one); at most `limit` of them.
 */
void obl_wire_range(struct ob_buf *body, const char *prefix, const char *after, uint64_t revision,
	uint32_t limit, bool keys_only);
void obl_wire_watch(struct ob_buf *body, const char *prefix, uint64_t start_revision);

/* ---- answers ---- */

/* A key with its value, in own memory. */
struct obl_kv {
	char *key, *value; /* the key without the prefix */
	uint64_t revision, lease;
};

/* A member that is a number, as a string or not; absent: 0. False: not such a number. */
bool obl_wire_number(const json_t *object, const char *name, uint64_t *ret);
/* The revision in the header of an answer. False: there is none. */
bool obl_wire_revision(const json_t *root, uint64_t *ret_revision);
/*
 * A key-value. A value that the registry could not have written becomes "", so that the key is seen to
 * exist. OB_ERR_NOT_FOUND: a key that the registry could not have written, to be ignored;
 * OB_ERR_PROTOCOL.
 */
enum ob_err obl_wire_kv(const json_t *kv, const char *prefix, struct obl_kv *ret_kv);
void obl_kv_fini(struct obl_kv *kv);
/*
 * The answer to a transaction: *ret_revision, and if the comparisons did not hold, the keys of the
 * comparisons, in ret_current[n_compares]; a key that does not exist has value NULL and revision 0. The
 * caller releases them all by obl_kv_fini on success. OB_ERR_PROTOCOL.
 */
enum ob_err obl_wire_txn_answer(const json_t *root, const char *prefix, char *const *keys,
	uint32_t n_compares, bool *ret_succeeded, uint64_t *ret_revision,
	struct obl_kv *ret_current);

#endif
