/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/registry/leader.h"

#include "loadbalancer/registry/entries.h"

#define RETRY_NS (500 * OB_MS)

void obl_leader_reset(struct obl_leader *leader)
{
	leader->known = false;
	leader->lease_of_key = 0;
}

void obl_leader_synced(struct obl_leader *leader)
{
	leader->known = true;
}

void obl_leader_seen(struct obl_leader *leader, const struct obl_kv *kv)
{
	/* A key without a lease was not put by a balancer. It stands until somebody deletes it. */
	leader->lease_of_key = kv ? kv->lease ? kv->lease : UINT64_MAX : 0;
	if (!kv)
		leader->next = 0;
}

/* The watch tells the result. */
static void tried(void *user, const struct obl_reply *reply)
{
	struct obl_leader *leader = user;

	(void)reply;
	leader->busy = false;
	leader->next = ob_clock_ns() + RETRY_NS;
}

void obl_leader_tick(struct obl_leader *leader, uint64_t now)
{
	struct obl_compare compare = { .key = OBL_LEADER_KEY };
	struct obl_change change = { .key = OBL_LEADER_KEY, .value = leader->name, .leased = true };
	struct obl_txn txn = { 1, 1, &compare, &change };
	struct ob_buf body;

	if (!leader->known || leader->lease_of_key || leader->busy || now < leader->next ||
		!obl_lease_valid(leader->lease, now))
		return;
	leader->busy = true;
	ob_buf_init(&body, OBL_BODY_MAX);
	obl_wire_txn(&body, leader->prefix, &txn, leader->lease->id);
	obl_calls_start(leader->calls, OBL_CALL_ONCE, "/v3/kv/txn", &body, OBL_TXN_ANSWER_MAX,
		tried, leader);
}

bool obl_leader_leads(const struct obl_leader *leader, uint64_t now)
{
	return leader->known && leader->lease_of_key && leader->lease_of_key == leader->lease->id &&
		obl_lease_valid(leader->lease, now + OBL_LEADER_MARGIN_NS);
}
