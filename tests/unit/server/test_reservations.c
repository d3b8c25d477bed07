/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The server's ledger: each refusal alone, then long random histories compared with a model that
 * keeps a plain list of what happened.
 */
#include "base/check.h"
#include "base/clock.h"
#include "server/supervisor/reservations.h"
#include "tests/test.h"

#define DEVICES 4u
#define TOTAL   1000u
#define IDS     40u

static struct obs_reservations table;
static struct obs_reservation_time now = { 1000000, 50 * OB_SECOND };
static struct ob_cause cause;
static enum obs_ticket_refusal why;

static void begin(void)
{
	table = (struct obs_reservations){ .n_devices = DEVICES };
	for (uint32_t i = 0; i < DEVICES; i++)
		table.total[i] = TOTAL;
}

static struct obp_ticket ticket_of(uint8_t id, uint64_t memory)
{
	return (struct obp_ticket){ .reservation = { id, 1 },
		.fence = id,
		.tenant = "alice",
		.issued = now.s,
		.expires = now.s + 60,
		.memory = memory,
		.n_devices = 1 };
}

static enum ob_err enter(
	const struct obp_ticket *ticket, const uint8_t *devices, struct obs_reservation **ret)
{
	return obs_reservations_enter(&table, ticket, devices, 0, now, NULL, ret, &why, &cause);
}

static void pass(uint64_t seconds)
{
	now.s += seconds;
	now.ns += seconds * OB_SECOND;
	obs_reservations_tick(&table, now);
}

TEST(each_refusal_says_why)
{
	struct obs_reservation *r, *other;
	struct obp_ticket ticket = ticket_of(1, 600), changed;
	const uint8_t zero[] = { 0 }, one[] = { 1 };

	begin();
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	changed = ticket_of(2, 401);
	CHECK_INT(enter(&changed, zero, &other), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_ROOM);
	CHECK(strstr(cause.text, "device 0"));
	CHECK_INT(enter(&changed, one, &other), OB_ERR_NONE);
	obs_reservations_leave(&table, other, NULL, now);
	changed = ticket_of(3, 400);
	CHECK_INT(enter(&changed, zero, &other), OB_ERR_NONE);
	obs_reservations_leave(&table, other, NULL, now);
	changed = ticket_of(4, 0);
	changed.exclusive = true;
	CHECK_INT(enter(&changed, zero, &other), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_ROOM);
	changed = ticket_of(5, UINT64_MAX);
	CHECK_INT(enter(&changed, zero, &other), OB_ERR_REFUSED);
	changed = ticket;
	changed.fence++;
	CHECK_INT(enter(&changed, zero, &other), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_OTHER);
	CHECK_INT(enter(&ticket, one, &other), OB_ERR_REFUSED);
	changed = ticket_of(6, 1);
	CHECK_INT(obs_reservations_enter(
			  &table, &changed, one, 0, now, "closed for today", &other, &why, &cause),
		OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_CLOSED);
	CHECK_STR(cause.text, "closed for today");
	CHECK_INT(obs_reservations_enter(
			  &table, &ticket, zero, 0, now, "closed for today", &other, &why, &cause),
		OB_ERR_NONE); /* a further session of an old one */
	CHECK(other == r && r->sessions == 2);
	obs_reservations_fini(&table);
}

TEST(a_kept_one_lasts_longer_than_its_linger_time)
{
	struct obs_reservation *r;
	struct obp_ticket ticket = ticket_of(1, 1);
	const uint8_t zero[] = { 0 };

	begin();
	CHECK(!obs_reservations_keep(&table, ticket.reservation, 60, now)); /* not used yet */
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	CHECK(obs_reservations_keep(&table, ticket.reservation, 60, now));
	CHECK(obs_reservations_keep(
		&table, ticket.reservation, 20, now)); /* the longer time counts */
	pass(10);
	obs_reservations_leave(&table, r, NULL, now);
	CHECK_INT(r->state, OBP_POOL_CLAIMED);
	pass(49);
	CHECK_INT(r->state, OBP_POOL_CLAIMED);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	obs_reservations_leave(&table, r, NULL, now);
	pass(1);
	CHECK_INT(r->state, OBP_POOL_ENDED);
	CHECK(!obs_reservations_keep(&table, ticket.reservation, 60, now));
	obs_reservations_fini(&table);
	/* No balancer can keep one for ever. */
	begin();
	ticket = ticket_of(2, 1);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	CHECK(obs_reservations_keep(&table, ticket.reservation, UINT64_MAX, now));
	obs_reservations_leave(&table, r, NULL, now);
	pass(OBP_POOL_LINGER_MAX_S - 1);
	CHECK_INT(r->state, OBP_POOL_CLAIMED);
	pass(1);
	CHECK_INT(r->state, OBP_POOL_ENDED);
	/* A killed one neither. */
	ticket = ticket_of(3, 1);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	CHECK(obs_reservations_keep(&table, ticket.reservation, 60, now));
	obs_reservations_kill(&table, r);
	CHECK(!obs_reservations_keep(&table, ticket.reservation, 60, now));
	obs_reservations_leave(&table, r, NULL, now);
	CHECK_INT(r->state, OBP_POOL_ENDED);
	obs_reservations_fini(&table);
}

TEST(clocks_may_differ_by_the_skew_and_no_more)
{
	struct obs_reservation *r;
	struct obp_ticket ticket = ticket_of(1, 1);
	const uint8_t zero[] = { 0 };

	begin();
	ticket.expires = now.s - OBP_TICKET_SKEW_S;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	ticket = ticket_of(2, 1);
	ticket.expires = now.s - OBP_TICKET_SKEW_S - 1;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_EXPIRED);
	CHECK(strstr(cause.text, "expired 31 s ago: nobody"));
	CHECK_INT(obs_reservations_enter(&table, &ticket, zero, -300, now, NULL, &r, &why, &cause),
		OB_ERR_REFUSED);
	CHECK(strstr(cause.text, "clock is 300 s behind"));
	ticket.expires = now.s + OBS_TICKET_LIFE_MAX_S + OBP_TICKET_SKEW_S;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	ticket = ticket_of(3, 1);
	ticket.expires = now.s + OBS_TICKET_LIFE_MAX_S + OBP_TICKET_SKEW_S + 1;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_FORM);
	ticket.expires = UINT64_MAX;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	ticket.expires = 0;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	obs_reservations_fini(&table);
}

TEST(a_used_ticket_never_begins_anew)
{
	struct obs_reservation *r;
	struct obp_ticket ticket = ticket_of(1, 1);
	const uint8_t zero[] = { 0 };

	begin();
	ticket.linger_s = 5;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	CHECK(!obs_reservations_credit(&table, ticket.reservation));
	obs_reservations_leave(&table, r, NULL, now);
	pass(4);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE); /* it lingers */
	obs_reservations_leave(&table, r, NULL, now);
	pass(4);
	CHECK_INT(obs_reservations_count(&table, OBP_POOL_CLAIMED), 1);
	pass(1);
	CHECK_INT(obs_reservations_count(&table, OBP_POOL_ENDED), 1);
	CHECK(obs_reservations_credit(&table, ticket.reservation));
	CHECK_INT(obs_reservations_count(&table, OBP_POOL_ENDED), 0);
	CHECK(obs_reservations_find(&table, ticket.reservation)); /* the ticket is still valid */
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_ENDED);
	for (int i = 0; i < 200 && obs_reservations_find(&table, ticket.reservation); i++) {
		CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
		pass(1);
	}
	CHECK(!obs_reservations_find(&table, ticket.reservation));
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_EXPIRED);
	CHECK_INT(table.n, 0);
}

TEST(a_void_ticket_is_refused_for_as_long_as_one_can_be_valid)
{
	struct obs_reservation *r;
	struct obp_ticket ticket = ticket_of(1, 1);
	const uint8_t zero[] = { 0 };

	begin();
	ticket.expires = now.s + OBS_TICKET_LIFE_MAX_S;
	CHECK_INT(obs_reservations_void(&table, ticket.reservation, now), OBP_POOL_VOID);
	CHECK_INT(obs_reservations_void(&table, ticket.reservation, now), OBP_POOL_VOID);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_VOID);
	CHECK(obs_reservations_credit(&table, ticket.reservation));
	pass(OBS_TICKET_LIFE_MAX_S + OBP_TICKET_SKEW_S);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_VOID);
	pass(100);
	CHECK_INT(table.n, 0);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_REFUSED);
	CHECK_INT(why, OBS_TICKET_EXPIRED);
}

TEST(as_many_as_a_heartbeat_lists_are_taken)
{
	struct obs_reservation *r;
	const uint8_t zero[] = { 0 };
	struct obp_ticket ticket = ticket_of(0, 0);

	begin();
	for (unsigned i = 0; i < OBP_POOL_BEAT_MAX; i++) {
		ticket.reservation[0] = (uint8_t)i;
		ticket.reservation[1] = (uint8_t)(i >> 8);
		CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	}
	ticket.reservation[2] = 1;
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_LIMIT);
	CHECK_INT(why, OBS_TICKET_LIMIT);
	CHECK_INT(obs_reservations_void(&table, ticket.reservation, now), 0);
	r = table.first;
	obs_reservations_leave(&table, r, NULL, now);
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_LIMIT); /* its end is still to be reported */
	CHECK(obs_reservations_credit(&table, table.first->id));
	CHECK_INT(enter(&ticket, zero, &r), OB_ERR_NONE);
	obs_reservations_fini(&table);
}

TEST(the_page_follows_the_sessions)
{
	struct obs_reservation *r, *same;
	struct obp_ticket ticket = ticket_of(1, 500);
	const uint8_t devices[] = { 2, 0 };
	const uint64_t used[OBP_DEVICE_MAX] = { 100, 30 }, lie[OBP_DEVICE_MAX] = { UINT64_MAX, 5 };

	begin();
	ticket.n_devices = 2;
	ticket.linger_s = 10;
	CHECK_INT(enter(&ticket, devices, &r), OB_ERR_NONE);
	CHECK_INT(enter(&ticket, devices, &same), OB_ERR_NONE);
	CHECK_INT(enter(&ticket, devices, &same), OB_ERR_NONE);
	CHECK(r == same && r->page);
	atomic_store(&r->page->used[0], 150);
	atomic_store(&r->page->used[1], 40);
	obs_reservations_leave(&table, r, used, now);
	CHECK(atomic_load(&r->page->used[0]) == 50 && atomic_load(&r->page->used[1]) == 10);
	obs_reservations_leave(&table, r, lie, now); /* a hostile worker's numbers */
	CHECK(atomic_load(&r->page->used[0]) == 0 && atomic_load(&r->page->used[1]) == 5);
	obs_reservations_leave(&table, r, NULL, now);
	CHECK_INT(enter(&ticket, devices, &same), OB_ERR_NONE);
	obs_reservations_leave(&table, r, used, now);
	CHECK(atomic_load(&r->page->used[0]) == 0 && atomic_load(&r->page->used[1]) == 0);
	obs_reservations_kill(&table, r);
	CHECK(r->state == OBP_POOL_ENDED && !r->page && r->page_fd == -1);
	obs_reservations_fini(&table);
}

/* ---- the model ---- */

static struct happened {
	struct obp_ticket ticket;
	uint8_t devices[DEVICES];
	bool known, credited, killed;
	enum obp_pool_state state;
	unsigned sessions, claims;
	uint64_t idle_s;
	struct obs_reservation *r;
} model[IDS];

static uint64_t seed = 7;

static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % n;
}

static void renew(unsigned i)
{
	struct happened *h = &model[i];
	uint32_t n = 1 + draw(2), first = draw(DEVICES);

	*h = (struct happened){ .ticket = ticket_of((uint8_t)i, draw(600)) };
	h->ticket.fence = seed;
	memcpy(h->ticket.reservation + 4, &seed, sizeof seed);
	h->ticket.expires = now.s + draw(90);
	h->ticket.linger_s = draw(3) ? draw(20) : 0;
	h->ticket.exclusive = draw(8) == 0;
	h->ticket.n_devices = n;
	for (uint32_t d = 0; d < n; d++)
		h->devices[d] = (uint8_t)((first + d) % DEVICES);
}

static bool model_fits(const struct happened *h)
{
	for (uint32_t d = 0; d < h->ticket.n_devices; d++) {
		uint64_t sum = h->ticket.memory;

		for (unsigned i = 0; i < IDS; i++) {
			const struct happened *o = &model[i];

			if (!o->known || o->state != OBP_POOL_CLAIMED ||
				!memchr(o->devices, h->devices[d], o->ticket.n_devices))
				continue;
			if (o->ticket.exclusive || h->ticket.exclusive)
				return false;
			sum += o->ticket.memory;
		}
		if (sum > TOTAL)
			return false;
	}
	return true;
}

static void model_enter(struct happened *h)
{
	bool lives = h->known && h->state == OBP_POOL_CLAIMED && !h->killed;
	bool good = lives ||
		(!h->known && h->ticket.expires + OBP_TICKET_SKEW_S >= now.s && model_fits(h));
	struct obs_reservation *r = NULL;

	CHECK_INT(enter(&h->ticket, h->devices, &r) == OB_ERR_NONE, good);
	if (!good)
		return;
	CHECK(!lives || h->r == r);
	h->claims += !lives;
	CHECK(h->claims <= 1);
	h->known = true;
	h->state = OBP_POOL_CLAIMED;
	h->r = r;
	h->sessions++;
	CHECK_INT(r->sessions, h->sessions);
}

static void model_leave(struct happened *h)
{
	if (!h->sessions)
		return;
	obs_reservations_leave(&table, h->r, NULL, now);
	h->idle_s = now.s;
	if (--h->sessions == 0 && (h->killed || h->ticket.linger_s == 0))
		h->state = OBP_POOL_ENDED;
}

static void model_void(struct happened *h)
{
	uint32_t state = obs_reservations_void(&table, h->ticket.reservation, now);

	if (!h->known) {
		h->known = true;
		h->state = OBP_POOL_VOID;
	}
	CHECK_INT(state, h->state);
}

static void model_credit(struct happened *h)
{
	bool ended = h->known && h->state != OBP_POOL_CLAIMED;

	CHECK_INT(obs_reservations_credit(&table, h->ticket.reservation), ended);
	h->credited = h->credited || ended;
}

static void model_kill(struct happened *h)
{
	if (!h->known || h->state != OBP_POOL_CLAIMED)
		return;
	obs_reservations_kill(&table, h->r);
	h->killed = true;
	if (!h->sessions)
		h->state = OBP_POOL_ENDED;
}

/* What is forgotten must be one that nobody can use any more. */
static void model_pass(void)
{
	pass(draw(12));
	for (unsigned i = 0; i < IDS; i++) {
		struct happened *h = &model[i];

		if (h->known && h->state == OBP_POOL_CLAIMED && !h->sessions &&
			now.s - h->idle_s >= h->ticket.linger_s)
			h->state = OBP_POOL_ENDED;
		if (h->known && !obs_reservations_find(&table, h->ticket.reservation)) {
			CHECK(h->credited);
			CHECK(h->state == OBP_POOL_VOID ||
				now.s > h->ticket.expires + OBP_TICKET_SKEW_S);
			/* entering it must be refused as expired */
			h->known = h->credited = h->killed = false;
		}
	}
}

static void compare(void)
{
	uint32_t known = 0, reported = 0, claimed = 0;

	for (unsigned i = 0; i < IDS; i++) {
		const struct happened *h = &model[i];
		const struct obs_reservation *r =
			obs_reservations_find(&table, h->ticket.reservation);

		CHECK_INT(r != NULL, h->known);
		known += h->known;
		reported += h->known && !h->credited;
		claimed += h->known && h->state == OBP_POOL_CLAIMED;
		if (r)
			CHECK(r->state == h->state && r->sessions == h->sessions &&
				r->credited == h->credited);
	}
	CHECK(table.n >= known && table.n_reported >= reported);
	CHECK_INT(obs_reservations_count(&table, OBP_POOL_CLAIMED), claimed);
}

TEST(random_histories_agree_with_the_model)
{
	begin();
	for (unsigned i = 0; i < IDS; i++)
		renew(i);
	for (unsigned round = 0; round < 60000 / TEST_SLOWER; round++) {
		struct happened *h = &model[draw(IDS)];
		unsigned what = draw(16);

		if (what < 6)
			model_enter(h);
		else if (what < 10)
			model_leave(h);
		else if (what == 10)
			model_void(h);
		else if (what < 13)
			model_credit(h);
		else if (what == 13)
			model_kill(h);
		else if (what == 14)
			model_pass();
		else if (h->known && h->credited && !h->sessions)
			renew((unsigned)(h - model)); /* another program; the old entry stays */
		else if (!h->known && h->ticket.expires + OBP_TICKET_SKEW_S < now.s)
			renew((unsigned)(h - model));
		compare();
	}
	obs_reservations_fini(&table);
	CHECK_INT(table.n, 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
