/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Transactions: made, in conflict, refused, and with an answer that is lost. */
#include "loadbalancer/balancer/work.h"

#include "loadbalancer/registry/memory.h"
#include "tests/test.h"

static const char one[] = "{\"incarnation\":\"0000000000000001\"}";
static const char two[] = "{\"incarnation\":\"0000000000000002\"}";
static const char key[] = "alive/a/b";

static struct obl_core core, other;
static uv_loop_t loop;
static enum obl_outcome outcome;
static unsigned calls;

static void reset(void *user)
{
	obl_mirror_reset(&((struct obl_core *)user)->mirror);
}

static void changed(void *user, const struct obl_entry *entry, bool deleted)
{
	obl_mirror_apply(&((struct obl_core *)user)->mirror, entry->key,
		deleted ? NULL : entry->value, entry->revision, true);
}

static void synced(void *user, uint64_t revision)
{
	struct obl_core *c = user;

	c->mirror.seen = revision;
	c->synced = true;
}

static void usable(void *user, bool is, const struct ob_cause *why)
{
	(void)why;
	((struct obl_core *)user)->usable = is;
}

static void lease(void *user)
{
	(void)user;
}

static void wake(struct obl_core *c)
{
	(void)c;
}

static void begin(struct obl_core *c)
{
	const struct obl_registry_options options = { .url = "memory:test" };
	const struct obl_watcher watcher = { .user = c,
		.reset = reset,
		.changed = changed,
		.synced = synced,
		.usable = usable,
		.lease_renewed = lease };
	struct ob_cause cause;

	CHECK(obl_mirror_init(&c->mirror));
	c->wake = wake;
	CHECK(!obl_registry_open(&loop, &options, &watcher, &c->registry, &cause));
	while (!c->usable || !c->synced)
		uv_run(&loop, UV_RUN_ONCE);
}

static void closed(void *user)
{
	((struct obl_core *)user)->registry = NULL;
}

static void end(struct obl_core *c)
{
	c->registry->ops->close(c->registry, closed, c);
	while (c->registry)
		uv_run(&loop, UV_RUN_ONCE);
	obl_mirror_fini(&c->mirror);
}

static void loop_end(void)
{
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&loop), 0);
	uv_library_shutdown(); /* its own descriptors */
}

static void done(
	struct obl_core *c, void *user, enum obl_outcome result, const struct ob_cause *cause)
{
	CHECK(!c->work.busy);
	CHECK(user == &calls);
	CHECK((cause != NULL) == (result == OBL_FAILED));
	outcome = result;
	calls++;
}

/* Puts a value, and waits for the outcome. */
static enum obl_outcome put(struct obl_core *c, const char *value)
{
	unsigned before = calls;

	CHECK(obl_work_ready(c));
	obl_plan_put(obl_work_plan(c), &c->mirror, key, strdup(value), false);
	CHECK(obl_work_make(c, key, done, &calls));
	CHECK(!obl_work_ready(c));
	while (calls == before)
		uv_run(&loop, UV_RUN_ONCE);
	return outcome;
}

static uint64_t value_of(struct obl_core *c)
{
	const struct obl_item *item = obl_mirror_get(&c->mirror, key);

	return item ? *item->value.alive : 0;
}

TEST(made_and_in_conflict)
{
	uv_loop_init(&loop);
	begin(&core);
	begin(&other);
	CHECK_INT(put(&core, one), OBL_MADE);
	CHECK_INT(value_of(&core), 1);
	while (value_of(&other) != 1)
		uv_run(&loop, UV_RUN_ONCE);
	CHECK_INT(put(&other, two), OBL_MADE);
	obl_mirror_reset(&core.mirror); /* knows nothing of it */
	CHECK_INT(put(&core, one), OBL_STALE);
	CHECK_INT(value_of(&core), 2); /* fresh now */
	CHECK_INT(core.work.conflicts, 1);
	CHECK_INT(put(&core, one), OBL_MADE);
	end(&core);
	end(&other);
	loop_end();
}

/* Whether it was made or not, the mirror knows it afterwards, and a second attempt decides. */
TEST(lost_answers)
{
	uv_loop_init(&loop);
	begin(&core);
	obl_memory_lose_answer(core.registry, false);
	CHECK_INT(put(&core, one), OBL_STALE);
	CHECK_INT(value_of(&core), 0);
	CHECK_INT(put(&core, one), OBL_MADE);
	obl_memory_lose_answer(core.registry, true);
	CHECK_INT(put(&core, two), OBL_STALE);
	CHECK_INT(value_of(&core), 2);
	end(&core);
	loop_end();
}

TEST(refused)
{
	struct ob_cause why = { .code = OB_ERR_REFUSED, .text = "no quorum" };

	uv_loop_init(&loop);
	begin(&core);
	obl_plan_put(obl_work_plan(&core), &core.mirror, key, strdup(one), false);
	obl_memory_set_usable(core.registry, false, &why);
	CHECK(obl_work_make(&core, key, done, &calls));
	while (!calls)
		uv_run(&loop, UV_RUN_ONCE);
	CHECK_INT(outcome, OBL_FAILED);
	CHECK(!obl_work_ready(&core)); /* not usable */
	end(&core);
	loop_end();
}

TEST(plans_that_are_too_large)
{
	struct obl_plan *plan;

	uv_loop_init(&loop);
	begin(&core);
	plan = obl_work_plan(&core);
	for (unsigned i = 0; i < OBL_TXN_OPS_MAX; i++)
		obl_plan_expect(plan, key, 0);
	CHECK(!plan->failed);
	obl_plan_expect(plan, key, 0);
	CHECK(plan->failed);
	CHECK(!obl_work_make(&core, key, done, &calls));
	CHECK(obl_work_ready(&core));
	obl_plan_put(obl_work_plan(&core), &core.mirror, key, NULL, false); /* no memory */
	CHECK(!obl_work_make(&core, key, done, &calls));
	CHECK_INT(calls, 0);
	end(&core);
	loop_end();
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
