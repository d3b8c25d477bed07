/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What the report at exit says about the calls that waited longest, for given counters. */
#include "client-shim/session/costs.h"
#include "protocol/obp_calls.h"
#include "tests/test.h"

static uint64_t counts[OBP_OPCODE_END], trips[OBP_OPCODE_END], times[OBP_OPCODE_END];

static uint64_t count_of(uint16_t opcode)
{
	return counts[opcode];
}

static uint64_t trips_of(uint16_t opcode)
{
	return trips[opcode];
}

static uint64_t time_of(uint16_t opcode)
{
	return times[opcode];
}

static void waited(uint16_t opcode, uint64_t n, uint64_t ns)
{
	counts[opcode] = trips[opcode] = n;
	times[opcode] = ns;
}

static void says(uint64_t run_ns, const char *want)
{
	const struct obc_costs costs = { run_ns, count_of, trips_of, time_of };
	char text[4096] = "";
	FILE *out = fmemopen(text, sizeof text, "w");

	CHECK(out != NULL);
	obc_costs_print(out, &costs);
	fclose(out);
	CHECK_STR(text, want);
}

#define HEAD "outboard: the program waited longest in these calls:\n"

TEST(nothing_waited)
{
	counts[OBP_OP_LAUNCH] = 1000;
	says(1000000, "");
	waited(OBP_OP_BYE, 1, 900000);
	says(1000000, "");
}

TEST(waits_of_the_library_itself)
{
	waited(OBP_OP_UPLOAD_PART, 100, 900000);
	waited(OBP_OP_READ_LATER, 100, 900000);
	says(1000000, "");
}

TEST(the_three_longest)
{
	counts[OBP_OP_LAUNCH] = 1000;
	waited(OBP_OP_CTX_SYNCHRONIZE, 1000, 40000000);
	waited(OBP_OP_MEM_INFO, 200, 50000000);
	waited(OBP_OP_EVENT_QUERY, 3000, 30000000);
	waited(OBP_OP_READ, 10, 29000000);
	waited(OBP_OP_BYE, 1, 60000000);
	waited(OBP_OP_BYE_LINK, 1, 60000000);
	says(200000000,
		HEAD
		"outboard: 1. mem_info: waited 200 times, 0.250 ms each, 50.000 ms in total, 25.0 "
		"% of the run time: cuMemGetInfo asks the server each time: ask once and count "
		"what the program allocates\n"
		"outboard: 2. ctx_synchronize: waited 1000 times, 0.040 ms each, 40.000 ms in "
		"total, 20.0 % of the run time: the program synchronises after every launch or "
		"two. Work of one stream is executed in order anyway: synchronise once, before the "
		"results are read\n"
		"outboard: 3. event_query: waited 3000 times, 0.010 ms each, 30.000 ms in total, "
		"15.0 % of the run time: the program polls an event: cuEventSynchronize waits with "
		"one round trip; between polls, do other work\n");
}

TEST(launches_with_changed_parameters)
{
	counts[OBP_OP_LAUNCH_CHANGED] = 1000;
	waited(OBP_OP_CTX_SYNCHRONIZE, 1000, 5000000);
	says(10000000,
		HEAD
		"outboard: 1. ctx_synchronize: waited 1000 times, 0.005 ms each, 5.000 ms in "
		"total, 50.0 % of the run time: the program synchronises after every launch or "
		"two. Work of one stream is executed in order anyway: synchronise once, before the "
		"results are read\n");
}

TEST(a_hint_that_depends_on_launches)
{
	counts[OBP_OP_LAUNCH] = 1000;
	waited(OBP_OP_CTX_SYNCHRONIZE, 10, 5000000);
	waited(OBP_OP_READ, 3, 4000000);
	says(10000000,
		HEAD
		"outboard: 1. ctx_synchronize: waited 10 times, 0.500 ms each, 5.000 ms in total, "
		"50.0 % of the run time: cudaDeviceSynchronize and cuCtxSynchronize wait for all "
		"streams: wait for one stream or event where that is enough\n"
		"outboard: 2. read: waited 3 times, 1.333 ms each, 4.000 ms in total, 40.0 % of "
		"the run time: copies into pageable memory wait for the data: use pinned memory "
		"(cuMemAllocHost) and cuMemcpyDtoHAsync, and one large copy for several small "
		"ones\n");
}

TEST(a_call_without_a_hint)
{
	waited(OBP_CALL_cuMemGetAccess, 2, 1000000);
	says(4000000,
		HEAD "outboard: 1. cuMemGetAccess: waited 2 times, 0.500 ms each, 1.000 ms in "
		     "total, 25.0 % of the run time\n");
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
