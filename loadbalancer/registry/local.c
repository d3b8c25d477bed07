/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/local.h"

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/entries.h"

enum item_kind {
	ITEM_TXN,
	ITEM_RANGE,
	/* events for the watcher */
	ITEM_RESET,
	ITEM_CHANGED,
	ITEM_SYNCED,
	ITEM_USABLE,
	ITEM_LEASE,
};

/* An answer or an event that waits for its delivery. */
struct item {
	struct item *next;
	enum item_kind kind;
	uint64_t number;        /* of the change that must have been saved before */
	struct ob_cause *cause; /* NULL: no error */
	obl_txn_done *txn_done;
	obl_range_done *range_done;
	void *user;
	bool flag; /* ITEM_TXN: succeeded; ITEM_USABLE: usable */
	uint64_t revision;
	struct obl_entry *entries; /* one block */
	uint32_t n;
};

enum lost { LOST_NOTHING, LOST_BEFORE, LOST_AFTER };

struct obl_local {
	struct obl_registry registry; /* must be first */
	struct obl_hub *hub;
	struct obl_local *next; /* of the hub's handles */
	uv_idle_t idle;
	struct item *first, **last;
	uint32_t n_ops;
	enum lost lose_answer;
	bool unusable, closing;
	struct ob_cause why; /* of unusable */
	void (*closed)(void *user);
	void *closed_user;
};

/* ---- the queue ---- */

static void item_free(struct item *item)
{
	free(item->cause);
	free(item->entries);
	free(item);
}

static void item_fail(struct item *item, const struct ob_cause *cause)
{
	free(item->cause);
	item->cause = obl_alloc(1, sizeof *item->cause);
	*item->cause = *cause;
	free(item->entries);
	item->entries = NULL;
	item->n = 0;
	item->flag = false;
}

static bool is_operation(const struct item *item)
{
	return item->kind == ITEM_TXN || item->kind == ITEM_RANGE;
}

static void deliver_event(struct obl_local *local, struct item *item)
{
	const struct obl_watcher *watcher = &local->registry.watcher;

	switch (item->kind) {
	case ITEM_RESET:
		watcher->reset(watcher->user);
		break;
	case ITEM_CHANGED:
		watcher->changed(watcher->user, item->entries, !item->entries->value);
		break;
	case ITEM_SYNCED:
		watcher->synced(watcher->user, item->revision);
		break;
	case ITEM_USABLE:
		watcher->usable(watcher->user, item->flag, item->cause);
		break;
	case ITEM_LEASE:
		watcher->lease_renewed(watcher->user);
		break;
	case ITEM_TXN:
	case ITEM_RANGE:
		break;
	}
}

static void deliver(struct obl_local *local, struct item *item)
{
	enum ob_err err = item->cause ? item->cause->code : OB_ERR_NONE;

	if (is_operation(item))
		local->n_ops--;
	if (item->kind == ITEM_TXN)
		item->txn_done(item->user, err, item->cause, item->flag, item->revision,
			item->entries, item->n);
	else if (item->kind == ITEM_RANGE)
		item->range_done(
			item->user, err, item->cause, item->entries, item->n, item->revision);
	else if (!local->closing)
		deliver_event(local, item);
	item_free(item);
}

static void idle_closed(uv_handle_t *handle)
{
	struct obl_local *local = handle->data;
	void (*closed)(void *user) = local->closed;
	void *user = local->closed_user;

	for (struct obl_local **at = &local->hub->handles; *at; at = &(*at)->next)
		if (*at == local) {
			*at = local->next;
			break;
		}
	free(local);
	closed(user);
}

/* Delivers what was in the queue at the beginning; the loop runs before what is added meanwhile. */
static void deliver_all(uv_idle_t *idle)
{
	struct obl_local *local = idle->data;
	struct item **end = local->last;

	while (local->first && local->first->number <= local->hub->saved) {
		struct item *item = local->first;
		bool last = &item->next == end;

		local->first = item->next;
		if (!local->first)
			local->last = &local->first;
		deliver(local, item);
		if (last)
			break;
	}
	if (local->first && local->first->number <= local->hub->saved)
		return;
	uv_idle_stop(idle);
	if (local->closing && !uv_is_closing((uv_handle_t *)idle))
		uv_close((uv_handle_t *)idle, idle_closed);
}

static void wake(struct obl_local *local)
{
	if (!uv_is_closing((uv_handle_t *)&local->idle))
		uv_idle_start(&local->idle, deliver_all);
}

static struct item *push(struct obl_local *local, enum item_kind kind)
{
	struct item *item = obl_alloc(1, sizeof *item);

	item->kind = kind;
	item->number = local->hub->made;
	*local->last = item;
	local->last = &item->next;
	wake(local);
	return item;
}

static void push_changed(
	struct obl_local *local, const char *key, const char *value, uint64_t revision)
{
	struct obl_entry entry = { .key = key, .value = value, .revision = value ? revision : 0 };
	struct item *item = push(local, ITEM_CHANGED);

	item->entries = obl_entries_copy(&entry, 1);
	item->n = 1;
}

static void push_state(struct obl_local *local)
{
	const struct obl_table *table = &local->hub->table;

	push(local, ITEM_RESET);
	for (size_t i = 0; i < table->n; i++)
		push_changed(
			local, table->rows[i].key, table->rows[i].value, table->rows[i].revision);
	push(local, ITEM_SYNCED)->revision = table->revision;
}

/* ---- hubs ---- */

void obl_hub_init(struct obl_hub *hub, const struct obl_store *store)
{
	*hub = (struct obl_hub){ 0 };
	obl_table_init(&hub->table);
	if (store)
		hub->store = *store;
}

void obl_hub_fini(struct obl_hub *hub)
{
	obl_table_fini(&hub->table);
}

void obl_hub_saved(struct obl_hub *hub, uint64_t made)
{
	hub->saved = made;
	for (struct obl_local *local = hub->handles; local; local = local->next)
		wake(local);
}

/* The events of changes that are taken back are dropped. */
static void queue_restore(struct obl_local *local, uint64_t saved, const struct ob_cause *cause)
{
	struct item **at = &local->first;

	while (*at) {
		struct item *item = *at;

		if (item->number > saved && item->kind == ITEM_CHANGED) {
			*at = item->next;
			item_free(item);
			continue;
		}
		if (item->number > saved && is_operation(item) && !item->cause)
			item_fail(item, cause);
		if (item->number > saved)
			item->number = saved;
		at = &item->next;
	}
	local->last = at;
}

void obl_hub_restore(
	struct obl_hub *hub, const struct obl_table *saved, const struct ob_cause *cause)
{
	obl_table_fini(&hub->table);
	obl_table_copy(&hub->table, saved);
	hub->made = hub->saved;
	for (struct obl_local *local = hub->handles; local; local = local->next) {
		queue_restore(local, hub->saved, cause);
		wake(local);
	}
}

/* A change was applied: it gets a number, which the answers and events after it wait for. */
static void hub_changed(struct obl_hub *hub)
{
	hub->made++;
	if (!hub->store.changed)
		hub->saved = hub->made;
}

static void hub_notify(struct obl_hub *hub, const char *key, const char *value, uint64_t revision)
{
	for (struct obl_local *local = hub->handles; local; local = local->next)
		if (!local->closing)
			push_changed(local, key, value, revision);
}

static void remove_leased(struct obl_local *local)
{
	struct obl_hub *hub = local->hub;
	bool any = false;

	for (size_t i = hub->table.n; i-- > 0;) {
		if (hub->table.rows[i].owner != local)
			continue;
		if (!any) {
			hub->table.revision++;
			hub_changed(hub);
			any = true;
		}
		hub_notify(hub, hub->table.rows[i].key, NULL, 0);
		obl_table_remove(&hub->table, hub->table.rows[i].key);
	}
	if (any && hub->store.changed)
		hub->store.changed(hub->store.user);
}

/* ---- operations ---- */

static struct item *operation(struct obl_local *local, enum item_kind kind, void *user)
{
	struct item *item = push(local, kind);

	item->user = user;
	local->n_ops++;
	return item;
}

/* Whether a request can be executed at all; else *ret_cause. */
static enum ob_err admitted(struct obl_local *local, struct ob_cause *ret_cause)
{
	if (local->closing)
		return ob_cause_set(ret_cause, OB_ERR_CLOSED, "the registry is closed");
	if (local->n_ops > OBL_OPERATIONS_MAX)
		return ob_cause_set(ret_cause, OB_ERR_LIMIT,
			"more than %u operations of the registry are pending", OBL_OPERATIONS_MAX);
	if (local->unusable)
		return ob_cause_set(ret_cause, OB_ERR_REFUSED, "the registry cannot be used: %s",
			local->why.text);
	return OB_ERR_NONE;
}

/* True: at least one change has an effect. Deleting a key that does not exist has none. */
static bool has_effect(const struct obl_table *table, const struct obl_txn *txn)
{
	for (uint32_t i = 0; i < txn->n_changes; i++)
		if (txn->changes[i].value || obl_table_find(table, txn->changes[i].key))
			return true;
	return false;
}

static void apply(struct obl_local *local, const struct obl_txn *txn)
{
	struct obl_hub *hub = local->hub;
	struct obl_table *table = &hub->table;
	uint64_t revision = ++table->revision;

	for (uint32_t i = 0; i < txn->n_changes; i++) {
		const struct obl_change *change = &txn->changes[i];

		if (change->value)
			obl_table_put(table, change->key, change->value, revision,
				change->leased ? local : NULL);
		else if (!obl_table_remove(table, change->key))
			continue;
		hub_notify(hub, change->key, change->value, revision);
	}
	if (hub->store.changed)
		hub->store.changed(hub->store.user);
}

static void fill_current(
	const struct obl_table *table, const struct obl_txn *txn, struct item *item)
{
	struct obl_entry current[OBL_TXN_OPS_MAX];

	for (uint32_t i = 0; i < txn->n_compares; i++) {
		const struct obl_row *row = obl_table_find(table, txn->compares[i].key);

		current[i] = (struct obl_entry){ .key = txn->compares[i].key,
			.value = row ? row->value : NULL,
			.revision = row ? row->revision : 0 };
	}
	item->entries = obl_entries_copy(current, txn->n_compares);
	item->n = txn->n_compares;
}

static void execute(struct obl_local *local, const struct obl_txn *txn, struct item *item)
{
	struct obl_hub *hub = local->hub;

	item->flag = obl_table_holds(&hub->table, txn);
	if (!item->flag) {
		fill_current(&hub->table, txn, item);
	} else if (has_effect(&hub->table, txn)) {
		hub_changed(hub);
		item->number = hub->made;
		apply(local, txn);
	}
	item->revision = hub->table.revision;
}

void obl_local_txn(
	struct obl_registry *registry, const struct obl_txn *txn, obl_txn_done *done, void *user)
{
	struct obl_local *local = (struct obl_local *)registry;
	struct item *item = operation(local, ITEM_TXN, user);
	enum lost lost = local->lose_answer;
	struct ob_cause cause;
	enum ob_err err;

	item->txn_done = done;
	err = admitted(local, &cause);
	if (err == OB_ERR_NONE)
		err = obl_txn_check(txn, &cause);
	if (err == OB_ERR_NONE && lost != LOST_BEFORE)
		execute(local, txn, item);
	if (err == OB_ERR_NONE && lost != LOST_NOTHING) {
		local->lose_answer = LOST_NOTHING;
		err = ob_cause_set(&cause, OB_ERR_TIMEOUT, "the answer to a transaction was lost");
	}
	if (err != OB_ERR_NONE)
		item_fail(item, &cause);
}

void obl_local_range(
	struct obl_registry *registry, const char *prefix, obl_range_done *done, void *user)
{
	struct obl_local *local = (struct obl_local *)registry;
	const struct obl_table *table = &local->hub->table;
	struct item *item = operation(local, ITEM_RANGE, user);
	struct obl_entry *found;
	struct ob_cause cause;
	enum ob_err err;
	size_t first, n;

	item->range_done = done;
	err = admitted(local, &cause);
	if (err == OB_ERR_NONE)
		err = obl_prefix_check(prefix, &cause);
	if (err != OB_ERR_NONE) {
		item_fail(item, &cause);
		return;
	}
	first = obl_table_prefix(table, prefix, &n);
	found = obl_alloc(n, sizeof *found);
	for (size_t i = 0; i < n; i++)
		found[i] = (struct obl_entry){ .key = table->rows[first + i].key,
			.value = table->rows[first + i].value,
			.revision = table->rows[first + i].revision };
	item->entries = obl_entries_copy(found, (uint32_t)n);
	item->n = (uint32_t)n;
	item->revision = table->revision;
	free(found);
}

bool obl_local_leads(const struct obl_registry *registry)
{
	return !((const struct obl_local *)registry)->closing;
}

/* ---- handles ---- */

struct obl_local *obl_local_new(uv_loop_t *loop, struct obl_hub *hub,
	const struct obl_registry_ops *ops, const struct obl_watcher *watcher)
{
	struct obl_local *local = obl_alloc(1, sizeof *local);

	local->registry.ops = ops;
	local->registry.watcher = *watcher;
	local->hub = hub;
	local->last = &local->first;
	local->idle.data = local;
	uv_idle_init(loop, &local->idle);
	local->next = hub->handles;
	hub->handles = local;
	push_state(local);
	push(local, ITEM_USABLE)->flag = true;
	return local;
}

struct obl_hub *obl_local_hub(struct obl_local *local)
{
	return local->hub;
}

void obl_local_close(struct obl_registry *registry, void (*closed)(void *user), void *user)
{
	struct obl_local *local = (struct obl_local *)registry;
	struct ob_cause cause;

	local->closing = true;
	local->closed = closed;
	local->closed_user = user;
	ob_cause_set(&cause, OB_ERR_CLOSED, "the registry was closed before it answered");
	for (struct item *item = local->first; item; item = item->next) {
		if (is_operation(item))
			item_fail(item, &cause);
		item->number = 0;
	}
	remove_leased(local);
	wake(local);
}

void obl_local_set_usable(struct obl_local *local, bool usable, const struct ob_cause *why)
{
	struct item *item;

	if (local->unusable == !usable)
		return;
	local->unusable = !usable;
	item = push(local, ITEM_USABLE);
	item->number = 0; /* also while nothing can be saved */
	if (why) {
		local->why = *why;
		item_fail(item, why);
	}
	item->flag = usable;
}

void obl_local_lose_lease(struct obl_local *local)
{
	remove_leased(local);
	push(local, ITEM_LEASE);
}

void obl_local_lose_answer(struct obl_local *local, bool made)
{
	local->lose_answer = made ? LOST_AFTER : LOST_BEFORE;
}
