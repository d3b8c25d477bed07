/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/costs.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "protocol/obp_calls.h"

/* an operation that was made fewer times is not taken for a part of a loop */
#define LOOP_MIN 8u

/*
 * What removes the waits of an operation. `per`: the hint applies only if the operation
 * was made about as often as this one; 0: always. The first hint that applies is printed.
 */
static const struct {
	uint16_t opcode, per;
	const char *hint;
} hints[] = {
	{ OBP_OP_CTX_SYNCHRONIZE, OBP_OP_LAUNCH,
		"the program synchronises after every launch or two. Work of one stream is "
		"executed "
		"in order anyway: synchronise once, before the results are read" },
	{ OBP_OP_CTX_SYNCHRONIZE, 0,
		"cudaDeviceSynchronize and cuCtxSynchronize wait for all streams: wait for one "
		"stream or event where that is enough" },
	{ OBP_OP_STREAM_SYNCHRONIZE, OBP_OP_LAUNCH,
		"the program synchronises after every launch or two. Work of one stream is "
		"executed "
		"in order anyway: synchronise once, before the results are read" },
	{ OBP_OP_STREAM_SYNCHRONIZE, 0,
		"a copy back in the same stream waits for the work before it: no synchronisation "
		"is needed before the copy" },
	{ OBP_OP_EVENT_SYNCHRONIZE, 0,
		"to order streams use cuStreamWaitEvent, which does not make the program wait" },
	{ OBP_OP_EVENT_QUERY, 0,
		"the program polls an event: cuEventSynchronize waits with one round trip; "
		"between polls, do other work" },
	{ OBP_OP_STREAM_QUERY, 0,
		"the program polls a stream: cuStreamSynchronize waits with one round trip; "
		"between polls, do other work" },
	{ OBP_OP_EVENT_ELAPSED, 0, "read the times of events after the loop and not within it" },
	{ OBP_OP_MEM_INFO, 0,
		"cuMemGetInfo asks the server each time: ask once and count what the program "
		"allocates" },
	{ OBP_OP_READ, OBP_OP_LAUNCH,
		"results are copied back after every launch or two: copy several at once, or with "
		"cuMemcpyDtoHAsync into pinned memory while the next kernel runs" },
	{ OBP_OP_READ, 0,
		"copies into pageable memory wait for the data: use pinned memory "
		"(cuMemAllocHost) and cuMemcpyDtoHAsync, and one large copy for several small "
		"ones" },
	{ OBP_OP_READ_ROWS, 0,
		"copies into pageable memory wait for the data: use pinned memory "
		"(cuMemAllocHost) and asynchronous copies" },
	{ OBP_OP_READ_STRIPED, 0,
		"large copies into pageable memory wait for the data: use pinned memory "
		"(cuMemAllocHost) and cuMemcpyDtoHAsync" },
	{ OBP_OP_PING, 0,
		"large copies from pageable memory wait until the server has the data: use pinned "
		"memory (cuMemAllocHost) and cuMemcpyHtoDAsync. OUTBOARD_OPT=-async, or "
		"--sync, makes every call wait" },
	{ OBP_OP_WRITE_STRIPED, 0,
		"large copies from pageable memory wait until the server has the data: use pinned "
		"memory (cuMemAllocHost) and cuMemcpyHtoDAsync" },
	{ OBP_OP_CACHE_ASK, 0,
		"the server is asked for data that it may still have: if uploads rarely repeat, "
		"set "
		"OUTBOARD_CACHE=off" },
	{ OBP_OP_MEM_GROW, 0,
		"allocate once and use the memory again, or use cuMemAllocAsync, which keeps "
		"freed memory" },
	{ OBP_OP_MEM_ALLOC_PLAIN, 0,
		"allocate once and use the memory again: the server's driver lacks virtual memory "
		"management, so each of these calls waits" },
	{ OBP_OP_MEM_SLAB, 0,
		"allocate once and use the memory again: the server's driver lacks virtual memory "
		"management, so the server is asked for each piece of memory" },
	{ OBP_OP_HELD_BYTES, 0,
		"many calls were made while copies of pinned memory were under way, and the server "
		"has room for only so many that wait for them: a larger OUTBOARD_RING gives more" },
	{ OBP_OP_FUNC_LOAD, 0, "each kernel is prepared once, at its first launch" },
	{ OBP_OP_MODULE_LOAD_CHECKED, 0,
		"load modules once, at the start; those with fewer and smaller images load "
		"faster" },
	{ OBP_OP_MODULE_LOAD_NOW, 0, "load modules once, at the start" },
	{ OBP_OP_GLOBAL_GET, 0, "look symbols up once and keep the addresses" },
	{ OBP_OP_FUNC_ATTRS, 0, "read the attributes of a kernel once and keep them" },
};

/*
 * Whether about as many `other` were sent as `opcode` made round trips: between half and twice,
 * often enough for a loop.
 */
static bool alternate(const struct obc_costs *costs, uint16_t opcode, uint16_t other)
{
	uint64_t trips = costs->trips(opcode), others = costs->count(other);

	if (other == OBP_OP_LAUNCH)
		others += costs->count(OBP_OP_LAUNCH_CHANGED);
	return trips >= LOOP_MIN && others <= 2 * trips && trips <= 2 * others;
}

static const char *hint_find(const struct obc_costs *costs, uint16_t opcode)
{
	for (size_t i = 0; i < ob_count(hints); i++)
		if (hints[i].opcode == opcode &&
			(!hints[i].per || alternate(costs, opcode, hints[i].per)))
			return hints[i].hint;
	return NULL;
}

/* Waits of the library's own threads, and of the session's end. */
static bool is_own(uint16_t opcode)
{
	return opcode == OBP_OP_BYE || opcode == OBP_OP_BYE_LINK || opcode == OBP_OP_UPLOAD_PART ||
		opcode == OBP_OP_READ_LATER;
}

/* The opcode with the longest wait that is not in `shown`. 0: none waited. */
static uint16_t next_cost(const struct obc_costs *costs, const uint16_t *shown, unsigned n)
{
	uint16_t most = 0;

	for (unsigned opcode = 1; opcode < OBP_OPCODE_END; opcode++) {
		bool seen = is_own((uint16_t)opcode) || !obp_call_info((uint16_t)opcode) ||
			!costs->trips((uint16_t)opcode);

		for (unsigned i = 0; i < n; i++)
			seen = seen || shown[i] == opcode;
		if (!seen && (!most || costs->trip_ns((uint16_t)opcode) > costs->trip_ns(most)))
			most = (uint16_t)opcode;
	}
	return most;
}

void obc_costs_print(FILE *out, const struct obc_costs *costs)
{
	uint16_t shown[OBC_COSTS_SHOWN];

	for (unsigned n = 0; n < OBC_COSTS_SHOWN; n++) {
		uint16_t opcode = shown[n] = next_cost(costs, shown, n);
		uint64_t ns, trips;
		const char *hint;

		if (!opcode)
			return;
		if (n == 0)
			fprintf(out, "outboard: the program waited longest in these calls:\n");
		ns = costs->trip_ns(opcode);
		trips = costs->trips(opcode);
		hint = hint_find(costs, opcode);
		fprintf(out,
			"outboard: %u. %s: waited %llu %s, %.3f ms each, %.3f ms in total, "
			"%.1f %% of the run time%s%s\n",
			n + 1, obp_call_info(opcode)->name, (unsigned long long)trips,
			trips == 1 ? "time" : "times", (double)ns / 1e6 / (double)trips,
			(double)ns / 1e6,
			costs->run_ns ? 100.0 * (double)ns / (double)costs->run_ns : 0,
			hint ? ": " : "", hint ? hint : "");
	}
}
