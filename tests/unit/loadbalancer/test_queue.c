/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The queue: its order, backfill, and that nobody starves: small pools are simulated with a request
 * for whole GPUs among many small ones.
 */
#include "base/check.h"
#include "loadbalancer/queue.h"
#include "tests/test.h"

#define GIB     (1ull << 30)
#define MINUTE  60000ull
#define RUNNING 256

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static struct obl_waiting waits(
	const struct obl_request *request, uint32_t priority, uint32_t tenant, uint64_t since_ms)
{
	static uint64_t number;

	return (struct obl_waiting){ .priority = priority,
		.tenant = tenant,
		.since_ms = since_ms,
		.number = ++number,
		.request = request,
		.policy = OBL_BINPACK };
}

static void pool_fill(struct obl_server *servers, uint32_t n, uint32_t devices)
{
	memset(servers, 0, n * sizeof *servers);
	for (uint32_t i = 0; i < n; i++) {
		servers[i] = (struct obl_server){
			.alive = true, .max_sessions = 1000, .name = "rack", .n_devices = devices
		};
		for (uint32_t d = 0; d < devices; d++)
			servers[i].devices[d].total = 80 * GIB;
	}
}

/* ---- the order ---- */

TEST(priority_then_fair_share_then_age)
{
	static const struct obl_request one = { .memory = GIB }, four = { .gpus = 4 };
	const struct obl_queue_tenant tenants[] = { { 1, 4 }, { 1, 0 }, { 3, 4 } };
	struct obl_waiting w[] = {
		waits(&one, OBL_NORMAL, 0, 10),  /* 0: 4 devices in use */
		waits(&four, OBL_NORMAL, 1, 30), /* 1: none */
		waits(&one, OBL_NORMAL, 1, 40),  /* 2: after that 4 */
		waits(&one, OBL_NORMAL, 2, 50),  /* 3: 4 with weight 3 */
		waits(&one, OBL_NORMAL, 2, 45),  /* 4: older than 3 */
		waits(&one, OBL_LOW, 1, 1),      /* 5 */
		waits(&one, OBL_HIGH, 0, 60),    /* 6 */
	};
	/*
	 * After 6, tenant 0 has 5. Tenant 1 has 0: 1. Tenant 2 has 4 / 3, then 5 / 3: 4, 3. Tenant 1
	 * has 4: 2. Tenant 0: 0.
	 */
	static const uint16_t expected[] = { 6, 1, 4, 3, 2, 0, 5 };
	uint16_t order[ob_count(w)];

	obl_queue_order(w, ob_count(w), tenants, 3, order);
	for (unsigned i = 0; i < ob_count(w); i++)
		CHECK_INT(order[i], expected[i]);
}

/* The definition, without the sorting: again and again the best of the rest. */
static void order_slow(const struct obl_waiting *w, uint32_t n,
	const struct obl_queue_tenant *tenants, uint16_t *ret_order)
{
	uint32_t used[8] = { 0 };
	bool done[64] = { false };

	for (uint32_t k = 0; k < n; k++) {
		uint32_t best = n;

		for (uint32_t i = 0; i < n; i++) {
			uint64_t a, b;
			uint32_t t = w[i].tenant;

			if (done[i])
				continue;
			if (best == n || w[i].priority > w[best].priority) {
				best = i;
				continue;
			}
			if (w[i].priority < w[best].priority)
				continue;
			a = (uint64_t)(tenants[t].devices + used[t]) *
				ob_max(tenants[w[best].tenant].weight, 1u);
			b = (uint64_t)(tenants[w[best].tenant].devices + used[w[best].tenant]) *
				ob_max(tenants[t].weight, 1u);
			if (a < b ||
				(a == b &&
					(w[i].since_ms < w[best].since_ms ||
						(w[i].since_ms == w[best].since_ms &&
							w[i].number < w[best].number))))
				best = i;
		}
		done[best] = true;
		used[w[best].tenant] += ob_max(w[best].request->gpus, 1u);
		ret_order[k] = (uint16_t)best;
	}
}

TEST(the_order_is_that_of_the_definition)
{
	static struct obl_request requests[4] = { { .gpus = 0 }, { .gpus = 1 }, { .gpus = 3 },
		{ .gpus = 8 } };

	for (uint32_t round = 0; round < 5000 / TEST_SLOWER; round++) {
		struct obl_queue_tenant tenants[8];
		struct obl_waiting w[64];
		uint16_t order[64], expected[64];
		uint32_t n = below(65);

		for (int t = 0; t < 8; t++)
			tenants[t] = (struct obl_queue_tenant){ below(4), below(20) };
		for (uint32_t i = 0; i < n; i++)
			w[i] = waits(&requests[below(4)], OBL_LOW + below(3), below(8), below(50));
		obl_queue_order(w, n, tenants, 8, order);
		order_slow(w, n, tenants, expected);
		CHECK(memcmp(order, expected, n * sizeof order[0]) == 0);
	}
}

/* The maximum, in the order that is worst for sorting: every request once. */
TEST(a_full_queue_has_everyone_once)
{
	static struct obl_waiting w[OBL_QUEUE_MAX];
	static struct obl_queue_tenant tenants[OBL_QUEUE_TENANTS_MAX];
	static uint16_t order[OBL_QUEUE_MAX];
	static const struct obl_request one = { .memory = 1 };
	bool seen[OBL_QUEUE_MAX] = { false };

	for (uint32_t i = 0; i < OBL_QUEUE_MAX; i++)
		w[i] = waits(&one, OBL_NORMAL, OBL_QUEUE_TENANTS_MAX - 1 - i, 5);
	obl_queue_order(w, OBL_QUEUE_MAX, tenants, OBL_QUEUE_TENANTS_MAX, order);
	for (uint32_t i = 0; i < OBL_QUEUE_MAX; i++) {
		CHECK(!seen[order[i]]);
		seen[order[i]] = true;
		CHECK_INT(order[i], i); /* by number */
	}
}

/* ---- who may go ---- */

struct next {
	bool any;
	uint32_t place;
	struct obl_choice choice;
};

static struct next next_of(const struct obl_waiting *w, uint32_t n,
	const struct obl_server *servers, uint32_t n_servers, uint64_t now_ms,
	struct obl_queue_hold *hold)
{
	static const struct obl_queue_tenant tenants[8];
	uint16_t order[OBL_QUEUE_MAX];
	struct obl_state state = { 0, now_ms };
	struct next next;

	obl_queue_order(w, n, tenants, 8, order);
	next.any = obl_queue_next(
		w, order, n, servers, n_servers, now_ms, hold, &state, &next.place, &next.choice);
	if (next.any)
		next.place = order[next.place];
	return next;
}

TEST(backfill_until_patience_ends)
{
	static const struct obl_request whole = { .memory = 80 * GIB },
					small = { .memory = 4 * GIB };
	struct obl_server servers[2];
	struct obl_queue_hold hold = { .active = false };
	struct obl_waiting w[2];
	struct next next;

	pool_fill(servers, 2, 1);
	servers[0].devices[0].reserved = 4 * GIB;
	servers[0].devices[0].sharers = 1;
	servers[1].devices[0].reserved = 60 * GIB;
	servers[1].devices[0].sharers = 3;
	w[0] = waits(&whole, OBL_NORMAL, 0, 1000);
	w[1] = waits(&small, OBL_NORMAL, 0, 2000);
	/* the first does not fit, the second goes, on the tightest device */
	next = next_of(w, 2, servers, 2, 1000 + OBL_QUEUE_PATIENCE_MS, &hold);
	CHECK(next.any && next.place == 1 && !hold.active);
	CHECK_INT(next.choice.parts[0].server, 1);
	/* one millisecond later the first holds back: the device on which the least must end */
	next = next_of(w, 2, servers, 2, 1001 + OBL_QUEUE_PATIENCE_MS, &hold);
	CHECK(hold.active && hold.number == w[0].number);
	CHECK_INT(hold.claim.n_parts, 1);
	CHECK_INT(hold.claim.parts[0].server, 0);
	CHECK(next.any && next.place == 1);
	CHECK_INT(next.choice.parts[0].server, 1);
	/* where nothing else is left the second waits, although it would fit */
	servers[1].devices[0].reserved = 80 * GIB;
	next = next_of(w, 2, servers, 2, 1001 + OBL_QUEUE_PATIENCE_MS, &hold);
	CHECK(!next.any && hold.active);
	/* a higher priority is not held back */
	w[1].priority = OBL_HIGH;
	next = next_of(w, 2, servers, 2, 1001 + OBL_QUEUE_PATIENCE_MS, &hold);
	CHECK(next.any && next.place == 1);
	CHECK_INT(next.choice.parts[0].server, 0);
	w[1].priority = OBL_NORMAL;
	/* the claimed device fails: another is claimed */
	servers[0].devices[0].faulty = true;
	next = next_of(w, 2, servers, 2, 1001 + OBL_QUEUE_PATIENCE_MS, &hold);
	CHECK(!next.any && hold.active);
	CHECK_INT(hold.claim.parts[0].server, 1);
	/* it is free: the first goes; and when it does not wait any more nothing is held */
	servers[1].devices[0].reserved = servers[1].devices[0].sharers = 0;
	next = next_of(w, 2, servers, 2, 1001 + OBL_QUEUE_PATIENCE_MS, &hold);
	CHECK(next.any && next.place == 0);
	next_of(w + 1, 1, servers, 2, 1001 + OBL_QUEUE_PATIENCE_MS, &hold);
	CHECK(!hold.active);
}

/* The definition: the first in the order that fits, with what is kept from it. */
TEST(the_first_that_fits_goes)
{
	static struct obl_request requests[48];
	uint32_t gone = 0, held = 0;

	for (uint32_t round = 0; round < 4000 / TEST_SLOWER; round++) {
		struct obl_queue_hold hold = { .active = false };
		struct obl_server servers[4];
		struct obl_waiting w[48];
		struct next next;
		uint16_t order[48];
		uint32_t n = 1 + below(48), expected = n;
		static const struct obl_queue_tenant tenants[8];

		pool_fill(servers, 4, 4);
		for (uint32_t d = 0; d < 16; d++) {
			struct obl_device *device = &servers[d / 4].devices[d % 4];

			device->sharers = below(6);
			device->share = device->sharers * below(150000);
			device->reserved = device->sharers ? (20 + below(61)) * GIB : 0;
			device->units = 50 + below(50);
		}
		for (uint32_t i = 0; i < n; i++) {
			requests[i] = (struct obl_request){ .gpus = below(3) ? 1 : below(9),
				.memory = (10 + below(71)) * GIB,
				.share = below(3) * 300000,
				.min_units = below(3) ? 0 : 50 + below(60),
				.exclusive = below(4) == 0,
				.one_server = below(4) == 0 };
			w[i] = waits(&requests[i], OBL_LOW + below(3), below(8), below(60000));
			w[i].blocked = below(8) == 0;
		}
		next = next_of(w, n, servers, 4, 60000, &hold);
		obl_queue_order(w, n, tenants, 8, order);
		for (uint32_t i = 0; expected == n && i < n; i++) {
			struct obl_request request = requests[order[i]];
			struct obl_state state = { 0, 0 };
			struct obl_choice choice;

			if (hold.active && hold.number != w[order[i]].number &&
				w[order[i]].priority <= hold.priority)
				request.kept = &hold.claim;
			if (!w[order[i]].blocked &&
				obl_place(servers, 4, &request, OBL_BINPACK, &state, &choice))
				expected = order[i];
		}
		CHECK_INT(next.any, expected != n);
		if (next.any)
			CHECK_INT(next.place, expected);
		gone += next.any;
		held += hold.active;
	}
	CHECK(gone > 1000 / TEST_SLOWER && gone < 4000 / TEST_SLOWER && held > 400 / TEST_SLOWER);
}

TEST(who_holds_back)
{
	static const struct obl_request whole = { .memory = 80 * GIB },
					never = { .memory = 81 * GIB };
	struct obl_server servers[2];
	struct obl_queue_hold hold = { .active = false };
	uint64_t now = OBL_QUEUE_PATIENCE_MS + 100;
	struct obl_waiting w[5];

	pool_fill(servers, 2, 1);
	for (int i = 0; i < 2; i++) {
		servers[i].devices[0].reserved = 10 * GIB;
		servers[i].devices[0].sharers = 1;
	}
	w[0] = waits(&never, OBL_HIGH, 0, 1); /* cannot be placed at all */
	w[1] = waits(&whole, OBL_NORMAL, 0, 9);
	w[2] = waits(&whole, OBL_NORMAL, 1, 8); /* the oldest */
	w[3] = waits(&whole, OBL_NORMAL, 2, 7);
	w[3].blocked = true;                    /* waits for its quota */
	w[4] = waits(&whole, OBL_HIGH, 3, 101); /* not for long enough */
	CHECK(!next_of(w, 5, servers, 2, now, &hold).any);
	CHECK(hold.active);
	CHECK_INT(hold.number, w[2].number);
	/* it stays, although another one is older now */
	w[1].since_ms = 1;
	CHECK(!next_of(w, 5, servers, 2, now, &hold).any);
	CHECK_INT(hold.number, w[2].number);
	/* until a higher priority has waited for long enough */
	CHECK(!next_of(w, 5, servers, 2, now + 2, &hold).any);
	CHECK_INT(hold.number, w[4].number);
	/* blocked: no longer */
	w[4].blocked = true;
	CHECK(!next_of(w, 5, servers, 2, now + 2, &hold).any);
	CHECK_INT(hold.number, w[1].number);
}

/* ---- nobody starves ---- */

struct running {
	uint64_t ends_ms;
	struct obl_request request;
	struct obl_choice choice;
};

struct run {
	struct obl_server servers[2];
	struct running running[RUNNING];
	struct obl_queue_hold hold;
	struct obl_waiting waiting[OBL_QUEUE_MAX];
	uint32_t n_running, n;
	bool claims; /* false: as if patience never ended */
	/* the big one; when it began to hold back others; when all on its devices had ended */
	uint64_t number, held_ms, bound_ms;
};

/* When all has ended that runs on the claimed devices now. */
static uint64_t claim_ends(const struct run *run)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < run->n_running; i++) {
		const struct obl_part *part = &run->running[i].choice.parts[0];

		for (uint32_t p = 0; p < run->hold.claim.n_parts; p++)
			for (uint32_t d = 0; d < run->hold.claim.parts[p].n; d++)
				if (part->server == run->hold.claim.parts[p].server &&
					part->devices[0] == run->hold.claim.parts[p].devices[d])
					last = ob_max(last, run->running[i].ends_ms);
	}
	return last;
}

static void serve(struct run *run, uint64_t now_ms, uint64_t duration_ms)
{
	for (;;) {
		struct next next;

		if (!run->claims)
			for (uint32_t i = 0; i < run->n; i++)
				run->waiting[i].since_ms = now_ms;
		next = next_of(run->waiting, run->n, run->servers, 2, now_ms, &run->hold);
		if (run->hold.active && run->hold.number == run->number && !run->held_ms) {
			run->held_ms = now_ms;
			run->bound_ms = claim_ends(run);
		}
		if (!next.any)
			return;
		CHECK(run->n_running < RUNNING);
		run->running[run->n_running++] = (struct running){ now_ms + duration_ms,
			*run->waiting[next.place].request, next.choice };
		obl_take(run->servers, run->waiting[next.place].request, &next.choice);
		run->waiting[next.place] = run->waiting[--run->n];
	}
}

static void end_what_is_over(struct run *run, uint64_t now_ms)
{
	for (uint32_t i = 0; i < run->n_running;)
		if (run->running[i].ends_ms <= now_ms) {
			obl_give(run->servers, &run->running[i].request, &run->running[i].choice);
			run->running[i] = run->running[--run->n_running];
		} else {
			i++;
		}
}

/*
 * Two servers with two GPUs, and small requests that would keep them in use for ever: new ones come
 * as fast as others end, the queue of small ones is never empty. After some minutes comes one for
 * `gpus` whole GPUs. Returns how long it waited in milliseconds; UINT64_MAX: not served in two hours.
 */
static uint64_t big_one_waits(uint32_t gpus, bool claims, uint32_t tenant)
{
	static const struct obl_request small = { .memory = 10 * GIB };
	struct obl_request big = { .gpus = gpus, .memory = 80 * GIB, .exclusive = true };
	static struct run run;

	memset(&run, 0, sizeof run);
	pool_fill(run.servers, 2, 2);
	run.claims = claims;
	for (uint64_t now = 1000; now < 120 * MINUTE; now += 1000) {
		bool waiting = false;

		end_what_is_over(&run, now);
		while (run.n < 8)
			run.waiting[run.n++] = waits(&small, OBL_NORMAL, 0, now);
		if (now == 10 * MINUTE) {
			run.waiting[run.n] = waits(&big, OBL_NORMAL, tenant, now);
			run.number = run.waiting[run.n++].number;
		}
		serve(&run, now, 60000 + below(240) * 1000);
		for (uint32_t i = 0; i < run.n; i++)
			waiting |= run.waiting[i].number == run.number;
		if (!run.number || waiting)
			continue;
		/* as promised: at the latest when all had ended that ran there */
		CHECK(run.held_ms == 0 || now <= run.bound_ms);
		return now - 10 * MINUTE;
	}
	return UINT64_MAX;
}

/*
 * Five minutes is the longest session. Requests that are older hold back others first; they are
 * small and soon served.
 */
TEST(a_request_for_whole_gpus_is_served_among_small_ones)
{
	const uint64_t most = 301000 + 3 * OBL_QUEUE_PATIENCE_MS;

	for (uint32_t gpus = 1; gpus <= 4; gpus++)
		for (uint32_t round = 0; round < 5; round++) {
			CHECK(big_one_waits(gpus, true, 1) <= most);
			/* the tenant of the small ones itself, so that these come before it */
			CHECK(big_one_waits(gpus, true, 0) <= most);
		}
}

/* Without claims the same simulation starves it: so the test above tests something. */
TEST(without_claims_it_starves)
{
	CHECK(big_one_waits(2, false, 1) == UINT64_MAX);
}

/* ---- what is told ---- */

TEST(estimates)
{
	static const struct obl_request one = { .gpus = 1 }, four = { .gpus = 4 };
	struct obl_waiting w[] = { waits(&four, OBL_NORMAL, 0, 1), waits(&one, OBL_NORMAL, 0, 2) };
	const uint16_t order[] = { 0, 1 };
	struct obl_releases releases = { .n = 0 };

	CHECK_INT(obl_queue_estimate(w, order, 1, &releases, 1000), 0);
	obl_releases_add(&releases, 1000, 7);
	CHECK_INT(obl_queue_estimate(w, order, 1, &releases, 2000), 0);
	obl_releases_add(&releases, 5000, 2);
	/* two devices in ten seconds; four are needed, then one more */
	CHECK_INT(obl_queue_estimate(w, order, 0, &releases, 11000), 20000);
	CHECK_INT(obl_queue_estimate(w, order, 1, &releases, 11000), 25000);
	w[0].blocked = true;
	CHECK_INT(obl_queue_estimate(w, order, 1, &releases, 11000), 5000);
	/* only the last OBL_RELEASES_MAX count: one device each second */
	for (uint32_t i = 0; i < 3 * OBL_RELEASES_MAX; i++)
		obl_releases_add(&releases, 100000 + 1000 * i, 1);
	CHECK_INT(releases.n, OBL_RELEASES_MAX);
	CHECK_INT(obl_queue_estimate(
			  w, order, 1, &releases, 100000 + 1000 * (3 * OBL_RELEASES_MAX - 1)),
		1000);
	CHECK_INT(obl_queue_estimate(w, order, 1, &releases, 1), 0); /* a clock that went back */
}

TEST(explanations)
{
	static const struct obl_request whole = { .memory = 80 * GIB };
	struct obl_server servers[2];
	struct obl_waiting w[] = { waits(&whole, OBL_NORMAL, 0, 1),
		waits(&whole, OBL_NORMAL, 0, 2) };
	const uint16_t order[] = { 0, 1 };
	struct obl_queue_hold hold = { true, w[0].number, OBL_NORMAL,
		{ .n_parts = 1, .parts = { { 1, 1, { 0 } } } } };
	char text[256];

	pool_fill(servers, 2, 1);
	servers[0].devices[0].reserved = 20 * GIB;
	obl_queue_explain(w, order, 1, servers, 2, &hold, text, sizeof text);
	CHECK_STR(text,
		"1 request is before it; devices: 1 have too little free memory (80.0 GiB wanted, "
		"the "
		"largest free block is 60.0 GiB, on gpu0 of rack), 1 are kept for a request that "
		"has "
		"waited longer");
	obl_queue_explain(w, order, 0, servers, 2, &hold, text, sizeof text);
	CHECK_STR(text, "0 requests are before it; it fits and will be placed");
	for (size_t size = 1; size < sizeof text; size++) {
		memset(text, 'x', sizeof text);
		obl_queue_explain(w, order, 1, servers, 2, &hold, text, size);
		CHECK(strlen(text) < size && text[size] == 'x');
	}
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
