/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The copy of the registry: the watch and own transactions report the same changes in any order. */
#include "loadbalancer/balancer/mirror.h"

#include "base/clock.h"
#include "tests/test.h"

static const char one[] = "{\"incarnation\":\"0000000000000001\"}";
static const char two[] = "{\"incarnation\":\"0000000000000002\"}";
static unsigned changes, deletions;

static void changed(void *user, const struct obl_item *item)
{
	(void)user;
	if (item->gone)
		deletions++;
	else
		changes++;
}

static struct obl_mirror mirror;

static void begin(void)
{
	CHECK(obl_mirror_init(&mirror));
	mirror.changed = changed;
	changes = deletions = 0;
}

static uint64_t value(void)
{
	const struct obl_item *item = obl_mirror_get(&mirror, "alive/a/b");

	return item ? *item->value.alive : 0;
}

TEST(own_changes_before_the_watch)
{
	begin();
	obl_mirror_apply(&mirror, "alive/a/b", one, 5, false);
	CHECK_INT(value(), 1);
	obl_mirror_apply(&mirror, "alive/a/b", one, 5, true); /* the same again */
	CHECK_INT(changes, 1);
	obl_mirror_apply(&mirror, "alive/a/b", two, 7, false);
	obl_mirror_apply(&mirror, "alive/a/b", one, 6, true); /* between: old */
	CHECK_INT(value(), 2);
	obl_mirror_apply(&mirror, "alive/a/b", NULL, 8, false);
	CHECK_INT(value(), 0);
	CHECK_INT(deletions, 1);
	obl_mirror_apply(&mirror, "alive/a/b", two, 7, true); /* it stays deleted */
	CHECK_INT(value(), 0);
	CHECK_INT(obl_mirror_revision(&mirror, "alive/a/b"), 0);
	obl_mirror_apply(&mirror, "alive/a/b", NULL, 0, true);
	CHECK_INT(deletions, 1);
	obl_mirror_apply(&mirror, "alive/x/y", one, 9, true);
	obl_mirror_prune(&mirror);
	CHECK_INT(mirror.n, 1); /* the mark is gone, since the watch is past it */
	obl_mirror_fini(&mirror);
}

/* The watch deletes a key that was made again here: the deletion is older. */
TEST(an_old_deletion)
{
	begin();
	obl_mirror_apply(&mirror, "alive/a/b", one, 5, true);
	obl_mirror_apply(&mirror, "alive/a/b", NULL, 6, false);
	obl_mirror_apply(&mirror, "alive/a/b", two, 7, false);
	obl_mirror_apply(&mirror, "alive/a/b", NULL, 0, true);
	CHECK_INT(value(), 2);
	obl_mirror_apply(&mirror, "alive/a/b", two, 7, true);
	obl_mirror_apply(&mirror, "alive/a/b", NULL, 0, true); /* and this one is not */
	CHECK_INT(value(), 0);
	obl_mirror_fini(&mirror);
}

TEST(how_new_it_is)
{
	const struct obl_item *item;
	uint64_t came, before;

	begin();
	CHECK_INT(obl_mirror_as_of(&mirror, "alive/a/b"), 0);
	obl_mirror_apply(&mirror, "alive/x/y", one, 4, true);
	CHECK_INT(obl_mirror_as_of(&mirror, "alive/a/b"), 4);
	before = ob_clock_ns();
	obl_mirror_apply(&mirror, "alive/a/b", one, 6, false);
	item = obl_mirror_get(&mirror, "alive/a/b");
	came = item->came_ns;
	CHECK(came >= before && came <= ob_clock_ns());
	obl_mirror_apply(&mirror, "alive/a/b", one, 6, true); /* not the value's first appearance */
	CHECK_INT(item->came_ns, came);
	CHECK_INT(obl_mirror_as_of(&mirror, "alive/a/b"), 6);
	obl_mirror_apply(
		&mirror, "alive/a/b", NULL, 8, false); /* deleted here: the watch is behind */
	CHECK_INT(obl_mirror_as_of(&mirror, "alive/a/b"), 8);
	CHECK(mirror.newest == 8 && mirror.seen == 6);
	CHECK_INT(obl_mirror_as_of(&mirror, "alive/x/y"), 6);
	obl_mirror_fini(&mirror);
}

TEST(wrong_values_and_unknown_keys)
{
	begin();
	obl_mirror_apply(&mirror, "alive/a/b", "{}", 5, true);
	CHECK(!obl_mirror_get(&mirror, "alive/a/b"));
	CHECK_INT(obl_mirror_revision(&mirror, "alive/a/b"), 5); /* it can be replaced */
	CHECK(!obl_mirror_first(&mirror, OBL_ITEM_ALIVE));
	obl_mirror_apply(&mirror, "leader", "x", 6, true);
	CHECK_INT(mirror.n, 1);
	obl_mirror_apply(&mirror, "alive/a/b", one, 7, true);
	CHECK_INT(value(), 1);
	obl_mirror_fini(&mirror);
}

TEST(many_keys)
{
	char key[OBL_KEY_MAX];
	unsigned n = 0;

	begin();
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(key, sizeof key, "alive/s%u/b", i);
		obl_mirror_apply(&mirror, key, one, i + 1, true);
	}
	for (unsigned i = 0; i < 10000; i += 2) {
		snprintf(key, sizeof key, "alive/s%u/b", i);
		obl_mirror_apply(&mirror, key, NULL, 0, true);
	}
	for (const struct obl_item *item = obl_mirror_first(&mirror, OBL_ITEM_ALIVE); item;
		item = obl_mirror_next(item))
		n++;
	CHECK_INT(n, 5000);
	CHECK_STR(obl_mirror_first(&mirror, OBL_ITEM_ALIVE)->name, "s1/b");
	CHECK(obl_mirror_find(&mirror, OBL_ITEM_ALIVE, "s9999/b"));
	obl_mirror_prune(&mirror);
	CHECK_INT(mirror.n, 5000);
	obl_mirror_reset(&mirror);
	CHECK_INT(mirror.n, 0);
	obl_mirror_fini(&mirror);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
