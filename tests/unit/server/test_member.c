/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The parts of the membership in a pool that need no process: addresses of balancers, the channel
 * between supervisor and member process, orders, and what a heartbeat says.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "server/common/member_channel.h"
#include "server/common/stats_page.h"
#include "server/member/balancer.h"
#include "server/supervisor/beat.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/member.h"
#include "tests/test.h"

static struct obs_super super;
static struct obs_options options;
static struct obs_member_message sent, got;

TEST(a_missing_port_is_the_balancers)
{
	static const struct {
		const char *text, *port;
	} of[] = { { "tcp://a", "14900" }, { "tls://a.example", "14900" }, { "tcp://a:1", "1" },
		{ "tcp://[::1]", "14900" }, { "tcp://[::1]:77", "77" },
		{ "tls://10.0.0.1", "14900" } };
	struct ob_cause cause;
	struct obt_url url;

	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		test_subject = of[i].text;
		CHECK_INT(obs_balancer_address(of[i].text, &url, &cause), OB_ERR_NONE);
		CHECK_STR(url.port, of[i].port);
	}
	CHECK_INT(obs_balancer_address("http://a", &url, &cause), OB_ERR_URL);
	CHECK_INT(obs_balancer_address("unix:/tmp/x", &url, &cause), OB_ERR_NONE);
}

TEST(the_channel_takes_the_longest_message)
{
	int ends[2];

	CHECK_INT(obs_member_pair(ends), 0);
	sent.type = OBS_MEMBER_BEAT;
	sent.size = OBS_MEMBER_FRAME;
	memset(sent.frame, 0x5a, sizeof sent.frame);
	CHECK(obs_member_send(ends[0], &sent));
	CHECK_INT(obs_member_recv(ends[1], &got), 1);
	CHECK(got.size == OBS_MEMBER_FRAME && memcmp(got.frame, sent.frame, sizeof got.frame) == 0);
	CHECK_INT(obs_member_recv(ends[1], &got), -1);
	CHECK_INT(errno, EAGAIN);
	close(ends[0]);
	CHECK_INT(obs_member_recv(ends[1], &got), 0);
	close(ends[1]);
}

TEST(what_is_no_message_is_refused)
{
	int ends[2];

	CHECK_INT(obs_member_pair(ends), 0);
	CHECK_INT(send(ends[1], "x", 1, 0), 1);
	CHECK_INT(obs_member_recv(ends[0], &got), -1);
	CHECK_INT(errno, EPROTO);
	sent = (struct obs_member_message){ .type = OBS_MEMBER_ORDER, .size = 8 };
	CHECK_INT(send(ends[1], &sent, offsetof(struct obs_member_message, frame) + 7, 0),
		(ssize_t)offsetof(struct obs_member_message, frame) + 7);
	CHECK_INT(obs_member_recv(ends[0], &got), -1);
	sent.size = 0;
	memset(sent.u.order.text, '\x1b', sizeof sent.u.order.text); /* no end, and not clean */
	CHECK(obs_member_send(ends[1], &sent));
	CHECK_INT(obs_member_recv(ends[0], &got), 1);
	CHECK(strlen(got.u.order.text) < sizeof got.u.order.text &&
		!strchr(got.u.order.text, 0x1b));
	close(ends[0]);
	close(ends[1]);
}

static void begin(void)
{
	options = (struct obs_options){ .max_sessions = 4, .pool = "tcp://a" };
	super = (struct obs_super){ .options = &options };
}

TEST(orders_are_obeyed)
{
	struct obp_pool_order order = { .kind = OBP_POOL_ORDER_CORDON, .number = 1 };
	const struct obs_membership *m = &super.membership;

	begin();
	CHECK_INT(obs_member_obey(&super, &order), 1);
	CHECK(m->cordoned && !m->drain_ns && m->reservations.changed);
	order = (struct obp_pool_order){ .kind = OBP_POOL_ORDER_DRAIN, .number = 60000 };
	CHECK_INT(obs_member_obey(&super, &order), 1);
	CHECK(m->cordoned && m->drain_ns > ob_clock_ns() &&
		m->drain_ns < ob_clock_ns() + 61 * OB_SECOND);
	order.number = UINT64_MAX;
	CHECK_INT(obs_member_obey(&super, &order), 1);
	CHECK(m->drain_ns > ob_clock_ns());
	order = (struct obp_pool_order){ .kind = OBP_POOL_ORDER_CORDON };
	CHECK_INT(obs_member_obey(&super, &order), 1);
	CHECK(!m->cordoned && !m->drain_ns);
	order = (struct obp_pool_order){ .kind = OBP_POOL_ORDER_VOID, .id = { 1 } };
	CHECK_INT(obs_member_obey(&super, &order), OBP_POOL_VOID);
	order.kind = OBP_POOL_ORDER_CREDITED;
	CHECK_INT(obs_member_obey(&super, &order), 1);
	order.id[0] = 2;
	CHECK_INT(obs_member_obey(&super, &order), 0);
	/* What was not used yet is ended too: its ticket is refused, and no other one is asked for. */
	order.kind = OBP_POOL_ORDER_KILL;
	CHECK_INT(obs_member_obey(&super, &order), 1);
	CHECK_INT(obs_reservations_find(&m->reservations, order.id)->state, OBP_POOL_VOID);
	CHECK(obs_reservations_find(&m->reservations, order.id)->ordered);
	order.id[0] = 1; /* was void already */
	CHECK_INT(obs_member_obey(&super, &order), 1);
	CHECK(obs_reservations_find(&m->reservations, order.id)->ordered);
	order.kind = OBP_POOL_ORDER_KILL_SESSION;
	CHECK_INT(obs_member_obey(&super, &order), 0);
	/* What was not used yet can be ended, and not be kept. */
	order = (struct obp_pool_order){ .kind = OBP_POOL_ORDER_KEEP, .id = { 3 }, .number = 60 };
	CHECK_INT(obs_member_obey(&super, &order), 0);
	order.kind = OBP_POOL_ORDER_END;
	CHECK_INT(obs_member_obey(&super, &order), OBP_POOL_VOID);
	CHECK(!obs_reservations_find(&m->reservations, order.id)->ordered);
	order.kind = 999;
	CHECK_INT(obs_member_obey(&super, &order), 0);
	obs_reservations_fini(&super.membership.reservations);
}

/* The order, and whether the server is cordoned, drained, and as of when, after it. */
static void obey(enum obp_pool_order_kind kind, uint64_t number, uint64_t as_of, bool force,
	uint32_t result, bool cordoned, bool drained, uint64_t is_as_of)
{
	const struct obp_pool_order order = {
		.kind = kind, .number = number, .as_of = as_of, .force = force
	};
	static struct obp_pool_message beat;

	CHECK_INT(obs_member_obey(&super, &order), result);
	CHECK(obs_beat_fill(&super, &beat));
	CHECK_INT(beat.u.beat.cordoned, cordoned);
	CHECK_INT(beat.u.beat.drained, drained);
	CHECK_INT(beat.u.beat.as_of, is_as_of);
	obp_pool_fini(&beat);
}

TEST(the_latest_order_counts_not_the_last_one)
{
	const struct obs_membership *m = &super.membership;
	uint64_t end;

	begin();
	obey(OBP_POOL_ORDER_DRAIN, 600000, 7, false, 1, true, true, 7);
	end = m->drain_ns;
	/* Another balancer with its own idea of the time that is left. */
	obey(OBP_POOL_ORDER_DRAIN, 0, 7, false, 1, true, true, 7);
	CHECK_INT(m->drain_ns, end);
	/* Balancers that have not heard of the drain. */
	obey(OBP_POOL_ORDER_CORDON, 0, 6, false, 0, true, true, 7);
	obey(OBP_POOL_ORDER_CORDON, 1, 6, false, 0, true, true, 7);
	obey(OBP_POOL_ORDER_DRAIN, 0, 6, false, 0, true, true, 7);
	CHECK_INT(m->drain_ns, end);
	/* A later one. */
	obey(OBP_POOL_ORDER_DRAIN, 60000, 8, false, 1, true, true, 8);
	CHECK(m->drain_ns < end);
	/* Called off at the same revision, since a deletion has none, and not begun again. */
	obey(OBP_POOL_ORDER_CORDON, 0, 8, false, 1, false, false, 8);
	obey(OBP_POOL_ORDER_DRAIN, 0, 8, false, 0, false, false, 8);
	obey(OBP_POOL_ORDER_CORDON, 1, 8, false, 0, false, false, 8);
	obey(OBP_POOL_ORDER_CORDON, 1, 9, false, 1, true, false, 9);
	obey(OBP_POOL_ORDER_CORDON, 1, 10, false, 1, true, false, 10);
	/* A registry that was begun anew counts from 1 again. */
	obey(OBP_POOL_ORDER_CORDON, 0, 2, false, 0, true, false, 10);
	obey(OBP_POOL_ORDER_CORDON, 0, 2, true, 1, false, false, 2);
	obey(OBP_POOL_ORDER_DRAIN, 60000, 3, true, 1, true, true, 3);
	end = m->drain_ns;
	obey(OBP_POOL_ORDER_DRAIN, 0, 3, true, 1, true, true, 3);
	CHECK_INT(m->drain_ns, end);
	/* Without a revision it is obeyed. */
	obey(OBP_POOL_ORDER_CORDON, 0, 0, false, 1, false, false, 0);
}

TEST(a_heartbeat_says_what_is_wrong)
{
	static struct obp_pool_message beat;

	begin();
	super.n_devices = 2;
	CHECK(obs_beat_fill(&super, &beat));
	CHECK(beat.u.beat.healthy == 1 && beat.u.beat.n_held == 0);
	obp_pool_fini(&beat);
	super.retrying = true;
	snprintf(super.start_error, sizeof super.start_error, "no driver");
	CHECK(obs_beat_fill(&super, &beat));
	CHECK(beat.u.beat.healthy == 0 && strstr(beat.u.beat.health, "no driver"));
	obp_pool_fini(&beat);
	super.retrying = false;
	obp_fact_set(&super.devices[1].facts, OBP_FACT_TEMPERATURE, OBS_BEAT_HOT_C);
	CHECK(obs_beat_fill(&super, &beat));
	CHECK_INT(beat.u.beat.healthy, 1);
	obp_pool_fini(&beat);
	obp_fact_set(&super.devices[1].facts, OBP_FACT_TEMPERATURE, OBS_BEAT_HOT_C + 1);
	CHECK(obs_beat_fill(&super, &beat));
	CHECK(beat.u.beat.healthy == 0 && strstr(beat.u.beat.health, "device 1 is hotter"));
	obp_pool_fini(&beat);
	for (uint8_t i = 1; i < 4; i++)
		obs_reservations_void(&super.membership.reservations,
			(const uint8_t[OBP_RESERVATION_BYTES]){ i }, obs_lease_now());
	obs_reservations_credit(
		&super.membership.reservations, (const uint8_t[OBP_RESERVATION_BYTES]){ 2 });
	CHECK(obs_beat_fill(&super, &beat));
	CHECK_INT(beat.u.beat.n_held, 2);
	CHECK_INT(beat.u.beat.held[0].state, OBP_POOL_VOID);
	obp_pool_fini(&beat);
	obs_reservations_fini(&super.membership.reservations);
}

/* Sessions of one reservation, youngest first, are kept in different ways. */
static uint32_t kept_by(const uint32_t share_by[3])
{
	static struct obp_pool_message beat;
	static struct obs_proc procs[3];
	uint32_t told;

	for (unsigned i = 0; i < 3; i++) {
		int fd = -1;

		procs[i] = (struct obs_proc){ .super = &super,
			.state = OBS_PROC_BUSY,
			.page = obs_stats_page_new(&fd),
			.reservation = super.membership.reservations.first,
			.next = i < 2 ? &procs[i + 1] : NULL };
		CHECK(procs[i].page != NULL);
		close(fd);
		procs[i].page->share_by = share_by[i];
		procs[i].page->introduced = share_by[i] != OBP_SHARE_BY_NONE;
	}
	super.procs = procs;
	CHECK(obs_beat_fill(&super, &beat));
	CHECK_INT(beat.u.beat.n_held, 1);
	told = beat.u.beat.held[0].share_by;
	obp_pool_fini(&beat);
	super.procs = NULL;
	for (unsigned i = 0; i < 3; i++)
		obs_stats_page_free(procs[i].page);
	return told;
}

TEST(a_reservation_tells_the_weakest_way)
{
	begin();
	obs_reservations_void(&super.membership.reservations,
		(const uint8_t[OBP_RESERVATION_BYTES]){ 1 }, obs_lease_now());
	CHECK_INT(kept_by((const uint32_t[]){ 0, 0, 0 }), OBP_SHARE_BY_NONE);
	CHECK_INT(kept_by((const uint32_t[]){ OBP_SHARE_BY_GREEN, OBP_SHARE_BY_GREEN, 0 }),
		OBP_SHARE_BY_GREEN);
	CHECK_INT(kept_by((const uint32_t[]){ 0, OBP_SHARE_BY_GREEN, OBP_SHARE_BY_THROTTLE }),
		OBP_SHARE_BY_THROTTLE);
	CHECK_INT(kept_by((const uint32_t[]){ OBP_SHARE_BY_THROTTLE, 0, OBP_SHARE_BY_MPS }),
		OBP_SHARE_BY_THROTTLE);
	CHECK_INT(kept_by((const uint32_t[]){ OBP_SHARE_BY_MPS, 99, 0 }), OBP_SHARE_BY_MPS);
	obs_reservations_fini(&super.membership.reservations);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
