/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/lease.h"

#include <inttypes.h>

#include "base/log.h"
#include "loadbalancer/registry/etcd_error.h"
#include "loadbalancer/registry/wire.h"

#define RETRY_NS    (300 * OB_MS)
#define KEEP_TENTHS 3u /* kept alive after 3/10 of its time */

bool obl_lease_valid(const struct obl_lease *lease, uint64_t now)
{
	return lease->id && now < lease->valid_until;
}

void obl_lease_gone(struct obl_lease *lease, uint64_t id)
{
	if (!id || lease->id != id)
		return;
	ob_warn("the lease in etcd has ended: a new one is made");
	lease->id = 0;
	lease->lost = true;
	lease->next = 0;
}

/* The lease was granted or kept alive, for `ttl` seconds from the request on. */
static void extend(struct obl_lease *lease, uint64_t ttl, uint64_t started_ns)
{
	lease->granted_s = ttl;
	lease->valid_until = started_ns + ttl * OB_SECOND;
	lease->next = started_ns + ttl * OB_SECOND * KEEP_TENTHS / 10;
}

static void granted(void *user, const struct obl_reply *reply)
{
	struct obl_lease *lease = user;
	uint64_t id, ttl;
	bool again = lease->lost;

	lease->busy = false;
	lease->next = ob_clock_ns() + RETRY_NS;
	if (reply->err != OB_ERR_NONE || !obl_wire_number(reply->root, "ID", &id) ||
		!obl_wire_number(reply->root, "TTL", &ttl) || id == 0 || ttl == 0 ||
		ttl > OBL_LEASE_MAX_S)
		return;
	lease->id = id;
	lease->lost = false;
	extend(lease, ttl, reply->started_ns);
	if (again)
		lease->renewed(lease->user);
}

static void kept(void *user, const struct obl_reply *reply)
{
	struct obl_lease *lease = user;
	const json_t *result = json_object_get(reply->root, "result");
	uint64_t id, ttl, revision;

	lease->busy = false;
	lease->next = ob_clock_ns() + RETRY_NS;
	if (reply->code == OBL_GRPC_NOT_FOUND) {
		obl_lease_gone(lease, lease->id);
		return;
	}
	if (reply->err != OB_ERR_NONE || !obl_wire_number(result, "ID", &id) ||
		!obl_wire_number(result, "TTL", &ttl) || id != lease->id || ttl > OBL_LEASE_MAX_S)
		return;
	/* For a lease that has ended, etcd answers without an error and leaves out the zero. */
	if (ttl == 0) {
		obl_lease_gone(lease, id);
		return;
	}
	extend(lease, ttl, reply->started_ns);
	if (obl_wire_revision(result, &revision))
		lease->revision(lease->user, revision);
}

void obl_lease_tick(struct obl_lease *lease, uint64_t now)
{
	struct ob_buf body;

	if (lease->busy || now < lease->next)
		return;
	lease->busy = true;
	ob_buf_init(&body, OBL_SMALL_MAX);
	if (lease->id) {
		ob_buf_printf(&body, "{\"ID\":\"%" PRIu64 "\"}", lease->id);
		obl_calls_start(lease->calls, OBL_CALL_URGENT, "/v3/lease/keepalive", &body,
			OBL_SMALL_MAX, kept, lease);
	} else {
		/* A second lease after a lost answer ends by itself. */
		ob_buf_printf(&body, "{\"TTL\":\"%u\"}", lease->ttl_s);
		obl_calls_start(lease->calls, OBL_CALL_URGENT, "/v3/lease/grant", &body,
			OBL_SMALL_MAX, granted, lease);
	}
}

bool obl_lease_revoke(struct obl_lease *lease, obl_reply_done *done, void *user)
{
	struct ob_buf body;

	if (!lease->id)
		return false;
	ob_buf_init(&body, OBL_SMALL_MAX);
	ob_buf_printf(&body, "{\"ID\":\"%" PRIu64 "\"}", lease->id);
	lease->id = 0;
	obl_calls_start(lease->calls, OBL_CALL_URGENT, "/v3/lease/revoke", &body, OBL_SMALL_MAX,
		done, user);
	return true;
}
