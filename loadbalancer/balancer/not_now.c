/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/not_now.h"

#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/members.h"
#include "loadbalancer/balancer/tenants.h"

/* A request waits for the devices of a server that has just registered; less than LOOK_MS (asks.c). */
#define JOIN_MS    8000u
#define DEVICES_MS 60000u /* a server that names no devices for so long has none */
#define START_S    10u    /* until all servers have connected after a start */

/* Why a request cannot be placed, for a client that does not wait. */
static enum obp_pool_refusal refusal_of(struct obl_core *core, struct obl_line *line,
	struct obl_asker *asker, char *ret_text, size_t size)
{
	struct obl_state chance = core->chance;
	struct obl_quota quota;
	struct obl_usage usage;
	struct obl_choice choice;

	if (obl_tenant_quota(core, asker->entry.tenant, &quota)) {
		enum obl_quota_verdict verdict;

		usage = obl_tenant_usage(core, asker->entry.tenant);
		verdict = obl_quota_check(&quota, &usage, &asker->request,
			asker->entry.ask.priority, asker->entry.tenant, ret_text, size);
		if (verdict != OBL_QUOTA_OK)
			return verdict == OBL_QUOTA_NEVER ? OBP_POOL_DENIED : OBP_POOL_LATER;
	}
	if (obl_place(line->fleet->servers, line->fleet->n, &asker->request, asker->policy, &chance,
		    &choice)) {
		snprintf(ret_text, size, "other requests wait for the same devices");
		return OBP_POOL_LATER;
	}
	obl_explain(&choice, line->fleet->servers, &asker->request, ret_text, size);
	return choice.outlook == OBL_CAPACITY ? OBP_POOL_CAPACITY : OBP_POOL_LATER;
}

/*
 * Whether there is a server that has registered, is well, and whose devices are not known yet, so that
 * it may be the one that the request needs. *ret_new: it has just registered, and so has the request.
 */
static bool is_joining(const struct obl_core *core, const struct obl_asker *asker, bool *ret_new)
{
	uint64_t now = ob_clock_ns();
	const struct obl_member *m = core->members; /* the newest first */

	while (m && now < m->joined_ns + DEVICES_MS * OB_MS &&
		(m->joined || m->silent || !m->healthy))
		m = m->next;
	if (!m || now >= ob_min(m->joined_ns, asker->begun_ns) + DEVICES_MS * OB_MS)
		return false;
	*ret_new = now < ob_min(m->joined_ns, asker->begun_ns) + JOIN_MS * OB_MS;
	return true;
}

void obl_not_now(struct obl_core *core, struct obl_line *line, struct obl_asker *asker)
{
	bool waits = asker->entry.ask.wait_s != 0, is_new = false;
	char text[OBP_POOL_TEXT_MAX];
	enum obp_pool_refusal code;

	if (asker->looked && waits && (!asker->hopes || is_joining(core, asker, &is_new)))
		return;
	code = refusal_of(core, line, asker, text, sizeof text);
	asker->hopes = code == OBP_POOL_CAPACITY && is_joining(core, asker, &is_new);
	if (asker->hopes) {
		if (is_new)
			return; /* it is looked at again within a second */
		code = OBP_POOL_LATER;
		snprintf(text, sizeof text,
			"the devices of a server that has registered are not known yet");
	}
	asker->looked = true;
	/* A balancer that has just started may not know its servers yet. */
	if (code == OBP_POOL_CAPACITY && waits &&
		ob_clock_ns() < core->started_ns + START_S * OB_SECOND)
		code = OBP_POOL_LATER;
	if (!waits || code != OBP_POOL_LATER)
		obl_asker_refuse(asker, code, text);
}
