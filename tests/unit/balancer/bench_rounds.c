/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The time of one round of rebalancing, and of looking for what must leave its server, at the
 * limits: all servers with all devices, two reservations on each, half of the devices hot. While it
 * is made, no heartbeat is read and no request answered.
 */
#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/balancer/fleet.h"
#include "loadbalancer/balancer/leaving.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/rounds.h"
#include "tests/unit/balancer/rack.h"

#define TIMES 10
#define NOW   UINT64_C(1000000)

static void beat(void)
{
	for (struct obl_member *m = rack.members; m; m = m->next)
		m->beat_ns = ob_clock_ns();
}

/* Of this thread, ns. */
static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * OB_SECOND + (uint64_t)now.tv_nsec;
}

/* The best of TIMES, in ms of a processor. */
static double ms_of(void (*what)(void))
{
	double best = 1e9;

	for (int i = 0; i < TIMES; i++) {
		uint64_t began = processor_ns();

		what();
		best = ob_min(best, (double)(processor_ns() - began) / 1e6);
		rack_forget();
	}
	return best;
}

static void one_round(void)
{
	obl_round(&rack, NOW * 1000);
}

static void leaving(void)
{
	obl_leaving_decide(&rack, NOW);
}

static void fleet(void)
{
	obl_fleet_fill(&rack, rack.line->fleet);
}

static void pool(bool hot, const char *where, bool apart)
{
	uint32_t busy[OBL_DEVICES_MAX], number = 0;
	char name[16], word[32];

	rack_begin();
	for (uint32_t i = 0; i < OBL_SERVERS_MAX; i++) {
		for (uint32_t d = 0; d < OBL_DEVICES_MAX; d++)
			busy[d] = !hot || (i + d) % 2 ? 100 : 1000;
		snprintf(name, sizeof name, "gpu%u", i);
		rack_server(name, OBL_DEVICES_MAX, busy, "zone=a,rack=r7");
		for (uint32_t d = 0; d < 2 * OBL_DEVICES_MAX; d++) {
			snprintf(word, sizeof word, "group-%u", number / 2);
			rack_reserve(++number,
				&(struct rack_reservation){ .server = name,
					.device = d / 2,
					.busy = busy[d / 2] / 2,
					.where = where,
					.apart = apart ? word : NULL });
		}
	}
}

int main(void)
{
	static const char long_where[] =
		"zone=a,model=h200|h100,memory>=40GiB,rack!=r8,kind=gpu,server!=*x|*y|*z,units>=0";

	struct obl_where where;
	struct ob_cause cause;

	if (obl_where_parse(long_where, &where, &cause)) {
		fprintf(stderr, "%s\n", cause.text);
		return 1;
	}
	pool(true, "", false);
	beat();
	printf("the fleet alone                      %6.1f ms\n", ms_of(fleet));
	printf("round, half of the devices hot       %6.1f ms\n", ms_of(one_round));
	rack_operate("gpu1023", true, true);
	printf("what leaves, one server drained      %6.1f ms\n", ms_of(leaving));
	rack_end();
	pool(true, long_where, false);
	beat();
	printf("round, each with many wishes         %6.1f ms\n", ms_of(one_round));
	rack_end();
	pool(true, long_where, true);
	beat();
	printf("round, and all apart                 %6.1f ms\n", ms_of(one_round));
	rack_end();
	pool(false, "", false);
	beat();
	printf("round, nothing to do                 %6.1f ms\n", ms_of(one_round));
	rack_end();
	return 0;
}
