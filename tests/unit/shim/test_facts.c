/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* obc_facts: which answers about functions are used again. */
#include "client-shim/cuda/facts.h"

#include <string.h>

#include "base/opt.h"
#include "tests/test.h"

#define ALL ((1u << OBC_FACTS_ATTRS) - 1)

static struct obc_facts_name name_of(unsigned image, uint32_t device, uint32_t index)
{
	struct obc_facts_name name = { .device = device, .index = index };

	memcpy(name.sha256, &image, sizeof image);
	return name;
}

static void fill(int32_t values[OBC_FACTS_ATTRS], int32_t first)
{
	for (unsigned i = 0; i < OBC_FACTS_ATTRS; i++)
		values[i] = first + (int32_t)i;
}

TEST(a_function_is_image_device_and_index)
{
	const struct obc_facts_name name = name_of(1, 0, 5),
				    others[] = { name_of(2, 0, 5), name_of(1, 1, 5),
					    name_of(1, 0, 6) };
	int32_t values[OBC_FACTS_ATTRS], got[OBC_FACTS_ATTRS] = { 0 };

	fill(values, 100);
	CHECK(!obc_facts_attrs(&name, ALL, got));
	CHECK(!obc_facts_runs(&name));
	obc_facts_put_attrs(&name, ALL, values);
	CHECK(!obc_facts_runs(&name));
	obc_facts_put_runs(&name);
	CHECK(obc_facts_runs(&name));
	for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
		CHECK(!obc_facts_attrs(&others[i], ALL, got));
		CHECK(!obc_facts_runs(&others[i]));
	}
	CHECK_INT(got[0], 0);
	CHECK(obc_facts_attrs(&name, ALL, got));
	CHECK(memcmp(got, values, sizeof got) == 0);
}

/* An attribute that the program had set is not known of the code. */
TEST(values_of_the_program_are_not_facts)
{
	const struct obc_facts_name name = name_of(3, 0, 0);
	int32_t values[OBC_FACTS_ATTRS], got[OBC_FACTS_ATTRS];

	fill(values, 1000);
	obc_facts_put_attrs(&name, ALL & ~(1u << 8), values);
	CHECK(!obc_facts_attrs(&name, ALL, got));
	CHECK(obc_facts_attrs(&name, ALL & ~(1u << 8), got));
	CHECK_INT(got[7], 1007);
	CHECK_INT(got[8], 0);
	fill(values, 2000);
	obc_facts_put_attrs(&name, 1u << 8, values);
	CHECK(obc_facts_attrs(&name, ALL, got));
	CHECK_INT(got[7], 1007);
	CHECK_INT(got[8], 2008);
}

TEST(the_oldest_is_forgotten)
{
	const struct obc_facts_name first = name_of(10, 0, 0), last = name_of(10, 0, OBC_FACTS_MAX);
	struct obc_facts_name name;
	int32_t got[OBC_FACTS_ATTRS];

	for (uint32_t i = 0; i < OBC_FACTS_MAX; i++) {
		name = name_of(10, 0, i);
		obc_facts_put_runs(&name);
	}
	CHECK(obc_facts_runs(&first));
	obc_facts_put_runs(&last);
	CHECK(obc_facts_runs(&last));
	CHECK(!obc_facts_runs(&first));
	name = name_of(10, 0, 1);
	CHECK(obc_facts_runs(&name));
	CHECK(!obc_facts_attrs(&last, 1, got)); /* nothing is left of the first */
}

TEST(switched_off)
{
	const struct obc_facts_name name = name_of(20, 0, 0);
	int32_t values[OBC_FACTS_ATTRS] = { 0 };

	obc_facts_put_runs(&name);
	obc_facts_put_attrs(&name, ALL, values);
	ob_opt_set(OB_OPT_LOCAL, false);
	CHECK(!obc_facts_runs(&name));
	CHECK(!obc_facts_attrs(&name, ALL, values));
	ob_opt_set(OB_OPT_LOCAL, true);
	CHECK(obc_facts_runs(&name));
}

int main(int argc, char **argv)
{
	ob_opt_set(OB_OPT_LOCAL, true); /* what is tested here */
	return test_main(argc, argv);
}
