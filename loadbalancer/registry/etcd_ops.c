/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/etcd_ops.h"

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/entries.h"
#include "loadbalancer/registry/etcd_error.h"
#include "loadbalancer/registry/pager.h"

/* One transaction or range. */
struct op {
	struct obl_etcd_ops *ops;
	obl_txn_done *txn_done;
	obl_range_done *range_done;
	void *user;
	uint64_t lease; /* that a transaction uses; 0: none */
	uint32_t n_compares;
	char **keys;        /* of the comparisons */
	struct obl_kv *kvs; /* of a range */
	uint32_t n_kvs, capacity;
};

static struct op *op_new(struct obl_etcd_ops *ops, void *user)
{
	struct op *op = obl_alloc(1, sizeof *op);

	op->ops = ops;
	op->user = user;
	ops->n++;
	return op;
}

static void drop_kvs(struct op *op)
{
	for (uint32_t i = 0; i < op->n_kvs; i++)
		obl_kv_fini(&op->kvs[i]);
	op->n_kvs = 0;
}

static void op_free(struct op *op)
{
	op->ops->n--;
	drop_kvs(op);
	free(op->kvs);
	for (uint32_t i = 0; i < op->n_compares; i++)
		free(op->keys[i]);
	free(op->keys);
	free(op);
}

static void to_entries(const struct obl_kv *kvs, uint32_t n, struct obl_entry *ret_entries)
{
	for (uint32_t i = 0; i < n; i++)
		ret_entries[i] = (struct obl_entry){
			.key = kvs[i].key, .value = kvs[i].value, .revision = kvs[i].revision
		};
}

/* ---- transactions ---- */

static void txn_failed(struct op *op, enum ob_err err, const struct ob_cause *cause)
{
	obl_txn_done *done = op->txn_done;
	void *user = op->user;

	op_free(op);
	done(user, err, cause, false, 0, NULL, 0);
}

static void txn_answered(void *user, const struct obl_reply *reply)
{
	struct op *op = user;
	struct obl_kv current[OBL_TXN_OPS_MAX];
	struct obl_entry entries[OBL_TXN_OPS_MAX];
	uint32_t n = op->n_compares;
	struct ob_cause cause;
	uint64_t revision;
	bool succeeded;
	enum ob_err err;

	if (reply->code == OBL_GRPC_NOT_FOUND)
		obl_lease_gone(op->ops->lease, op->lease);
	if (reply->err != OB_ERR_NONE) {
		txn_failed(op, reply->err, reply->cause);
		return;
	}
	err = obl_wire_txn_answer(
		reply->root, op->ops->prefix, op->keys, n, &succeeded, &revision, current);
	if (err != OB_ERR_NONE) {
		ob_cause_set(&cause, err,
			"etcd's answer to a transaction is damaged: whether it was made is "
			"unknown");
		txn_failed(op, err, &cause);
		return;
	}
	op->ops->quorum(op->ops->user, reply->started_ns, revision);
	if (succeeded)
		n = 0;
	to_entries(current, n, entries);
	op->txn_done(op->user, OB_ERR_NONE, NULL, succeeded, revision, entries, n);
	for (uint32_t i = 0; i < n; i++)
		obl_kv_fini(&current[i]);
	op_free(op);
}

static enum ob_err too_many(struct ob_cause *ret_cause)
{
	return ob_cause_set(ret_cause, OB_ERR_LIMIT,
		"more than %u operations of the registry are pending", OBL_OPERATIONS_MAX);
}

static enum ob_err txn_admitted(const struct obl_etcd_ops *ops, const struct obl_txn *txn,
	bool *ret_leased, struct ob_cause *ret_cause)
{
	enum ob_err err = obl_txn_check(txn, ret_cause);

	*ret_leased = false;
	if (err != OB_ERR_NONE)
		return err;
	if (ops->n > OBL_OPERATIONS_MAX)
		return too_many(ret_cause);
	for (uint32_t i = 0; i < txn->n_changes; i++)
		*ret_leased |= txn->changes[i].leased && txn->changes[i].value;
	if (*ret_leased && !ops->lease->id)
		return ob_cause_set(ret_cause, OB_ERR_REFUSED,
			"there is no lease in etcd for the key of the transaction; try again "
			"later");
	return OB_ERR_NONE;
}

static char **copy_keys(const struct obl_txn *txn)
{
	char **keys = obl_alloc(txn->n_compares, sizeof *keys);

	for (uint32_t i = 0; i < txn->n_compares; i++)
		keys[i] = obl_copy_text(txn->compares[i].key);
	return keys;
}

void obl_etcd_txn(
	struct obl_etcd_ops *ops, const struct obl_txn *txn, obl_txn_done *done, void *user)
{
	struct op *op = op_new(ops, user);
	struct ob_cause cause;
	struct ob_buf body;
	bool leased;

	op->txn_done = done;
	if (txn_admitted(ops, txn, &leased, &cause) != OB_ERR_NONE) {
		obl_calls_refuse(ops->calls, &cause, txn_answered, op);
		return;
	}
	op->n_compares = txn->n_compares;
	op->keys = copy_keys(txn);
	op->lease = leased ? ops->lease->id : 0;
	ob_buf_init(&body, OBL_BODY_MAX);
	obl_wire_txn(&body, ops->prefix, txn, op->lease);
	obl_calls_start(ops->calls, OBL_CALL_ONCE, "/v3/kv/txn", &body, OBL_TXN_ANSWER_MAX,
		txn_answered, op);
}

/* ---- ranges ---- */

static void range_begin(void *user)
{
	drop_kvs(user);
}

static void range_kv(void *user, struct obl_kv *kv)
{
	struct op *op = user;

	if (strcmp(kv->key, OBL_LEADER_KEY) == 0) {
		obl_kv_fini(kv);
		return;
	}
	if (op->n_kvs == op->capacity) {
		op->capacity = op->capacity ? 2 * op->capacity : 64;
		op->kvs = obl_realloc(op->kvs, op->capacity, sizeof *op->kvs);
	}
	op->kvs[op->n_kvs++] = *kv;
}

static void range_end(void *user, enum ob_err err, const struct ob_cause *cause, uint64_t revision,
	uint64_t started_ns)
{
	struct op *op = user;
	struct obl_entry *entries;

	if (err != OB_ERR_NONE) {
		op->range_done(op->user, err, cause, NULL, 0, 0);
		op_free(op);
		return;
	}
	op->ops->quorum(op->ops->user, started_ns, revision);
	entries = obl_alloc(op->n_kvs, sizeof *entries);
	to_entries(op->kvs, op->n_kvs, entries);
	op->range_done(op->user, OB_ERR_NONE, NULL, entries, op->n_kvs, revision);
	free(entries);
	op_free(op);
}

static void range_refused(void *user, const struct obl_reply *reply)
{
	range_end(user, reply->err, reply->cause, 0, 0);
}

void obl_etcd_range(struct obl_etcd_ops *ops, const char *prefix, obl_range_done *done, void *user)
{
	struct op *op = op_new(ops, user);
	struct obl_pager_user pages = { op, range_begin, range_kv, range_end };
	struct ob_cause cause;
	enum ob_err err = obl_prefix_check(prefix, &cause);

	op->range_done = done;
	if (err == OB_ERR_NONE && ops->n > OBL_OPERATIONS_MAX)
		err = too_many(&cause);
	if (err == OB_ERR_NONE)
		obl_pager_start(ops->calls, ops->prefix, prefix, &pages);
	else
		obl_calls_refuse(ops->calls, &cause, range_refused, op);
}
