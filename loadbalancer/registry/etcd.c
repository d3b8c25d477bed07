/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/etcd.h"

#include <stdio.h>
#include <unistd.h>

#include "loadbalancer/registry/alloc.h"
#include "loadbalancer/registry/entries.h"
#include "loadbalancer/registry/etcd_ops.h"
#include "loadbalancer/registry/leader.h"
#include "loadbalancer/registry/watch.h"

#define TICK_MS   100u
#define PROBE_NS  OB_SECOND
/* Without a proof of a quorum for so long the registry is not usable: reported within 3 s. */
#define SILENT_NS (2200 * OB_MS)
#define CLOSE_NS  OB_SECOND /* for revoking the lease */

enum close_state { NOT_CLOSING, CLOSE_ASKED, CLOSE_REVOKING, CLOSE_HANDLES };

struct etcd {
	struct obl_registry registry; /* must be first */
	uv_timer_t timer;
	struct obl_calls calls;
	struct obl_watch watch;
	struct obl_lease lease;
	struct obl_leader leader;
	struct obl_etcd_ops ops;
	char prefix[OBL_PREFIX_MAX + 1];
	char *balancer;
	uint64_t opened_ns;
	uint64_t quorum_ns; /* a quorum existed at this time; 0: not known */
	uint64_t probe_ns;  /* when the last probe began */
	bool probing;
	bool told, usable; /* what the watcher was told, if it was */
	enum close_state state;
	uint64_t close_until;
	void (*closed)(void *user);
	void *closed_user;
};

/* ---- is it usable? ---- */

static void etcd_quorum(void *user, uint64_t started_ns, uint64_t revision)
{
	struct etcd *etcd = user;

	if (started_ns > etcd->quorum_ns)
		etcd->quorum_ns = started_ns;
	if (etcd->state == NOT_CLOSING)
		obl_watch_heard(&etcd->watch, revision, started_ns, ob_clock_ns());
}

static void probed(void *user, const struct obl_reply *reply)
{
	struct etcd *etcd = user;
	uint64_t revision;

	etcd->probing = false;
	if (reply->err == OB_ERR_NONE && obl_wire_revision(reply->root, &revision))
		etcd_quorum(etcd, reply->started_ns, revision);
}

static void probe(struct etcd *etcd, uint64_t now)
{
	struct ob_buf body;

	if (etcd->probing || now < etcd->quorum_ns + PROBE_NS)
		return;
	/* While there is no quorum, more often. */
	if (now < etcd->probe_ns + PROBE_NS / 4)
		return;
	etcd->probing = true;
	etcd->probe_ns = now;
	ob_buf_init(&body, OBL_SMALL_MAX);
	obl_wire_range(&body, etcd->prefix, NULL, 0, 1, true);
	obl_calls_start(
		&etcd->calls, OBL_CALL_URGENT, "/v3/kv/range", &body, OBL_SMALL_MAX, probed, etcd);
}

/* OB_ERR_NONE: it is usable. */
static enum ob_err check_usable(const struct etcd *etcd, uint64_t now, struct ob_cause *ret_cause)
{
	const char *last = obl_calls_failure_text(&etcd->calls, "no reason is known");

	if (now > etcd->quorum_ns + SILENT_NS)
		return ob_cause_set(ret_cause, OB_ERR_REFUSED,
			"no etcd with a quorum answers (%s); check the members of the etcd", last);
	if (!obl_lease_valid(&etcd->lease, now))
		return ob_cause_set(ret_cause, OB_ERR_REFUSED,
			"there is no lease in etcd (%s); if this lasts, check etcd's log", last);
	if (!obl_watch_follows(&etcd->watch, now))
		return ob_cause_set(ret_cause, OB_ERR_REFUSED,
			"the keys in etcd cannot be watched (%s); if this lasts, check etcd's log",
			last);
	return OB_ERR_NONE;
}

static void tell_usable(struct etcd *etcd, uint64_t now)
{
	const struct obl_watcher *watcher = &etcd->registry.watcher;
	struct ob_cause why;
	bool usable = check_usable(etcd, now, &why) == OB_ERR_NONE;

	if (etcd->told ? usable == etcd->usable : !usable && now < etcd->opened_ns + SILENT_NS)
		return;
	etcd->told = true;
	etcd->usable = usable;
	watcher->usable(watcher->user, usable, usable ? NULL : &why);
}

/* ---- the parts tell ---- */

static void etcd_endpoint_failed(void *user, uint32_t endpoint)
{
	struct etcd *etcd = user;

	obl_watch_endpoint_failed(&etcd->watch, endpoint);
}

static void etcd_reset(void *user)
{
	struct etcd *etcd = user;

	obl_leader_reset(&etcd->leader);
	if (etcd->state == NOT_CLOSING)
		etcd->registry.watcher.reset(etcd->registry.watcher.user);
}

static void etcd_changed(void *user, const char *key, const struct obl_kv *kv)
{
	struct etcd *etcd = user;
	struct obl_entry entry = {
		.key = key, .value = kv ? kv->value : NULL, .revision = kv ? kv->revision : 0
	};

	if (strcmp(key, OBL_LEADER_KEY) == 0)
		obl_leader_seen(&etcd->leader, kv);
	else if (etcd->state == NOT_CLOSING)
		etcd->registry.watcher.changed(etcd->registry.watcher.user, &entry, !kv);
}

static void etcd_synced(void *user, uint64_t revision)
{
	struct etcd *etcd = user;

	obl_leader_synced(&etcd->leader);
	if (etcd->state == NOT_CLOSING)
		etcd->registry.watcher.synced(etcd->registry.watcher.user, revision);
}

static void etcd_lease_renewed(void *user)
{
	struct etcd *etcd = user;

	if (etcd->state == NOT_CLOSING)
		etcd->registry.watcher.lease_renewed(etcd->registry.watcher.user);
}

static void etcd_heard(void *user, uint64_t revision)
{
	struct etcd *etcd = user;

	if (etcd->state == NOT_CLOSING)
		obl_watch_heard(&etcd->watch, revision, 0, ob_clock_ns());
}

/* ---- closing ---- */

static void timer_closed(uv_handle_t *handle)
{
	struct etcd *etcd = handle->data;
	void (*closed)(void *user) = etcd->closed;
	void *user = etcd->closed_user;

	free(etcd->balancer);
	free(etcd);
	closed(user);
}

static void http_closed(void *user)
{
	struct etcd *etcd = user;

	uv_close((uv_handle_t *)&etcd->timer, timer_closed);
}

static void close_handles(struct etcd *etcd)
{
	etcd->state = CLOSE_HANDLES;
	uv_timer_stop(&etcd->timer);
	obl_calls_close(&etcd->calls);
	obl_calls_fini(&etcd->calls);
	obl_http_close(etcd->calls.http, http_closed, etcd);
}

static void revoked(void *user, const struct obl_reply *reply)
{
	struct etcd *etcd = user;

	(void)reply; /* else the lease ends by itself */
	etcd->close_until = 0;
}

/* Ends the operations, then revokes the lease, then closes the handles, in three ticks. */
static void close_tick(struct etcd *etcd, uint64_t now)
{
	if (etcd->state == CLOSE_ASKED) {
		obl_watch_fini(&etcd->watch);
		obl_calls_close(&etcd->calls);
		etcd->state = CLOSE_REVOKING;
		etcd->close_until = now + CLOSE_NS;
		if (!obl_lease_revoke(&etcd->lease, revoked, etcd))
			etcd->close_until = 0;
		return;
	}
	obl_calls_tick(&etcd->calls, now);
	if (now >= etcd->close_until)
		close_handles(etcd);
}

/* ---- the timer ---- */

static void tick(uv_timer_t *timer)
{
	struct etcd *etcd = timer->data;
	uint64_t now = ob_clock_ns();

	if (etcd->state != NOT_CLOSING) {
		close_tick(etcd, now);
		return;
	}
	obl_calls_tick(&etcd->calls, now);
	if (etcd->state != NOT_CLOSING)
		return; /* a callback has closed the registry */
	obl_lease_tick(&etcd->lease, now);
	obl_watch_tick(&etcd->watch, now);
	obl_leader_tick(&etcd->leader, now);
	probe(etcd, now);
	tell_usable(etcd, now);
}

static void etcd_close(struct obl_registry *registry, void (*closed)(void *user), void *user)
{
	struct etcd *etcd = (struct etcd *)registry;

	etcd->state = CLOSE_ASKED;
	etcd->closed = closed;
	etcd->closed_user = user;
	uv_timer_start(&etcd->timer, tick, 0, 20);
}

/* ---- operations ---- */

static void etcd_txn(
	struct obl_registry *registry, const struct obl_txn *txn, obl_txn_done *done, void *user)
{
	struct etcd *etcd = (struct etcd *)registry;

	obl_etcd_txn(&etcd->ops, txn, done, user);
}

static void etcd_range(
	struct obl_registry *registry, const char *prefix, obl_range_done *done, void *user)
{
	struct etcd *etcd = (struct etcd *)registry;

	obl_etcd_range(&etcd->ops, prefix, done, user);
}

static bool etcd_leads(const struct obl_registry *registry)
{
	const struct etcd *etcd = (const struct etcd *)registry;

	return etcd->state == NOT_CLOSING && obl_leader_leads(&etcd->leader, ob_clock_ns());
}

static const struct obl_registry_ops etcd_ops = {
	.name = "etcd",
	.txn = etcd_txn,
	.range = etcd_range,
	.leads = etcd_leads,
	.close = etcd_close,
};

/* ---- opening ---- */

static enum ob_err check_options(
	const struct obl_registry_options *options, const char *prefix, struct ob_cause *ret_cause)
{
	size_t n = strlen(prefix);

	if (n == 0 || n > OBL_PREFIX_MAX || !obl_text_fits(prefix, OBL_PREFIX_MAX))
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"the prefix of the keys in etcd is 1 to %u bytes of UTF-8", OBL_PREFIX_MAX);
	if (!options->user != !options->password_file)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"etcd's authentication needs a user and a password file, or neither");
	if (options->lease_s == 1 || options->lease_s > OBL_LEASE_MAX_S)
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"the lease in etcd is 2 to %u seconds", OBL_LEASE_MAX_S);
	if (options->balancer && !obl_text_fits(options->balancer, OBL_VALUE_MAX))
		return ob_cause_set(
			ret_cause, OB_ERR_ARGUMENT, "the balancer's name is too long or not UTF-8");
	return OB_ERR_NONE;
}

static void init_parts(struct etcd *etcd, const struct obl_registry_options *options)
{
	etcd->calls.timeout_ms = options->timeout_ms ? options->timeout_ms : 800;
	etcd->calls.failed = etcd_endpoint_failed;
	etcd->calls.user = etcd;
	obl_calls_init(&etcd->calls, options->user, options->password_file);
	etcd->watch = (struct obl_watch){ .calls = &etcd->calls,
		.prefix = etcd->prefix,
		.reset = etcd_reset,
		.changed = etcd_changed,
		.done = etcd_synced,
		.user = etcd };
	obl_watch_init(&etcd->watch);
	etcd->lease = (struct obl_lease){ .calls = &etcd->calls,
		.ttl_s = options->lease_s ? options->lease_s : 10,
		.renewed = etcd_lease_renewed,
		.revision = etcd_heard,
		.user = etcd };
	etcd->leader = (struct obl_leader){ .calls = &etcd->calls,
		.lease = &etcd->lease,
		.prefix = etcd->prefix,
		.name = etcd->balancer };
	etcd->ops = (struct obl_etcd_ops){ .calls = &etcd->calls,
		.lease = &etcd->lease,
		.prefix = etcd->prefix,
		.quorum = etcd_quorum,
		.user = etcd };
}

enum ob_err obl_etcd_open(uv_loop_t *loop, const char *addresses,
	const struct obl_registry_options *options, const struct obl_watcher *watcher,
	struct obl_registry **ret, struct ob_cause *ret_cause)
{
	const char *prefix = options->prefix ? options->prefix : "outboard/";
	uint64_t now = ob_clock_ns();
	struct etcd *etcd = obl_alloc(1, sizeof *etcd);
	enum ob_err err = check_options(options, prefix, ret_cause);

	if (err == OB_ERR_NONE)
		err = obl_endpoints_parse(
			addresses, now ^ (uint64_t)getpid(), &etcd->calls.endpoints, ret_cause);
	if (err == OB_ERR_NONE)
		err = obl_http_new(loop, options->ca, options->cert, options->key,
			&etcd->calls.http, ret_cause);
	if (err != OB_ERR_NONE) {
		free(etcd);
		return err;
	}
	etcd->registry.ops = &etcd_ops;
	etcd->registry.watcher = *watcher;
	etcd->opened_ns = now;
	snprintf(etcd->prefix, sizeof etcd->prefix, "%s", prefix);
	etcd->balancer = obl_copy_text(options->balancer ? options->balancer : "");
	init_parts(etcd, options);
	uv_timer_init(loop, &etcd->timer);
	etcd->timer.data = etcd;
	uv_timer_start(&etcd->timer, tick, 0, TICK_MS);
	*ret = &etcd->registry;
	return OB_ERR_NONE;
}
