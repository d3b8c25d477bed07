/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

#define REST_MAX_MS     16u  /* after a conflict, at random up to 1, 2, 4, ... ms */
#define FAILURE_REST_MS 200u /* after a failure */
#define FAILURE_NOTE_S  10u  /* between two lines about failures */

bool obl_work_ready(const struct obl_core *core)
{
	return core->usable && core->synced && !core->work.busy;
}

struct obl_plan *obl_work_plan(struct obl_core *core)
{
	obl_plan_clear(&core->work.plan);
	return &core->work.plan;
}

static void failure_note(struct obl_work *work, const struct ob_cause *cause)
{
	uint64_t now = ob_clock_ns();

	if (work->noted_ns && now < work->noted_ns + FAILURE_NOTE_S * OB_SECOND)
		return;
	work->noted_ns = now;
	ob_warn("balancer: the registry did not take a transaction: %s",
		cause ? cause->text : "the reason is not known");
}

static void finish(struct obl_core *core, enum obl_outcome outcome, const struct ob_cause *cause)
{
	struct obl_work *work = &core->work;
	obl_work_done *done = work->done;
	void *user = work->user;

	/* A registry that refuses at once must not be asked as fast as it answers. */
	if (outcome == OBL_FAILED) {
		work->rest_until = ob_clock_ns() + FAILURE_REST_MS * OB_MS;
		failure_note(work, cause);
	}
	obl_plan_clear(&work->plan);
	work->busy = false;
	work->done = NULL;
	done(core, user, outcome, cause);
	core->wake(core);
}

/* After a look: what the mirror has now decides, so the plan counts as stale. */
static void looked(void *user, enum ob_err err, const struct ob_cause *cause,
	const struct obl_entry *entries, uint32_t n, uint64_t revision)
{
	struct obl_core *core = user;
	bool there = false;

	if (err) {
		core->work.failures++;
		finish(core, OBL_FAILED, cause);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		there |= strcmp(entries[i].key, core->work.look) == 0;
		obl_mirror_apply(&core->mirror, entries[i].key, entries[i].value,
			entries[i].revision, false);
	}
	if (!there)
		obl_mirror_apply(&core->mirror, core->work.look, NULL, revision, false);
	finish(core, OBL_STALE, NULL);
}

static void conflict(
	struct obl_core *core, const struct obl_entry *current, uint32_t n, uint64_t revision)
{
	struct obl_work *work = &core->work;
	unsigned most = ob_min(1u << ob_min(work->stale, 10u), REST_MAX_MS);

	for (uint32_t i = 0; i < n; i++)
		obl_mirror_apply(&core->mirror, current[i].key,
			current[i].revision ? current[i].value : NULL,
			current[i].revision ? current[i].revision : revision, false);
	work->conflicts++;
	/* The first conflict means old values, which are fresh now; then others are as fast. */
	if (work->stale++)
		work->rest_until =
			ob_clock_ns() + (uint64_t)(random() % (long)(most * 1000)) * (OB_MS / 1000);
	finish(core, OBL_STALE, NULL);
}

static void answered(void *user, enum ob_err err, const struct ob_cause *cause, bool succeeded,
	uint64_t revision, const struct obl_entry *current, uint32_t n_current)
{
	struct obl_core *core = user;
	struct obl_work *work = &core->work;

	if (err && obl_txn_unknown(err) && err != OB_ERR_CLOSED && core->registry &&
		!core->stopping) {
		core->registry->ops->range(core->registry, work->look, looked, core);
		return;
	}
	if (err) {
		work->failures++;
		finish(core, OBL_FAILED, cause);
		return;
	}
	if (!succeeded) {
		conflict(core, current, n_current, revision);
		return;
	}
	work->stale = 0;
	work->made++;
	obl_plan_apply(&work->plan, &core->mirror, revision);
	finish(core, OBL_MADE, NULL);
}

bool obl_work_make(struct obl_core *core, const char *look, obl_work_done *done, void *user)
{
	struct obl_work *work = &core->work;
	const struct obl_plan *plan = &work->plan;
	struct obl_txn txn = { plan->n_compares, plan->n_changes, plan->compares, plan->changes };

	if (plan->failed) {
		ob_error("balancer: a transaction for %s could not be put together (no memory, or "
			 "too large a value)",
			look);
		obl_plan_clear(&work->plan);
		return false;
	}
	snprintf(work->look, sizeof work->look, "%s", look);
	work->done = done;
	work->user = user;
	work->busy = true;
	core->registry->ops->txn(core->registry, &txn, answered, core);
	return true;
}
