/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * How busy sessions, devices and the server are, with played stats pages: what a call does that is
 * being executed, one that is held back, and several devices. And what a program is told that was
 * ended by an order.
 */
#include "server/supervisor/status.h"

#include <pthread.h>
#include <sched.h>

#include "protocol/obs_driver.h"
#include "server/common/handoff.h"
#include "server/common/stats_page.h"
#include "server/layers/share.h"
#include "server/supervisor/member.h"
#include "tests/test.h"

#define SESSIONS 3
/* the average of a device that always works; integers are cut */
#define ALWAYS   980u

static struct obs_super super;
static struct obs_options options;
static struct obs_proc procs[SESSIONS];
static struct obs_stats_page pages[SESSIONS];

/* Sessions without tickets on a server with so many devices. */
static void begin(uint32_t devices)
{
	options = (struct obs_options){ .max_sessions = 4 };
	super = (struct obs_super){ .options = &options, .n_devices = devices };
	memset(pages, 0, sizeof pages);
	for (unsigned i = 0; i < SESSIONS; i++) {
		procs[i] = (struct obs_proc){ .super = &super,
			.page = &pages[i],
			.state = OBS_PROC_BUSY,
			.next = super.procs };
		super.procs = &procs[i];
		pages[i].introduced = 1;
		pages[i].waiting = 1;
	}
}

static void samples(unsigned n)
{
	while (n--)
		obs_status_sample(&super);
}

TEST(only_what_is_executed_counts)
{
	begin(1);
	samples(200);
	CHECK_INT(procs[0].busy, 0);
	pages[0].waiting = 0; /* in a call */
	samples(200);
	CHECK(procs[0].busy >= ALWAYS && super.busy >= ALWAYS && super.device_busy[0] >= ALWAYS);
	CHECK_INT(procs[1].busy, 0);
	pages[0].held_back = 1; /* for its share, say */
	samples(200);
	CHECK(procs[0].busy < 20 && super.busy < 20 && super.device_busy[0] < 20);
	pages[0].blocked = 1; /* another thread waits for the device */
	samples(200);
	CHECK(procs[0].busy >= ALWAYS);
	pages[0].held_back = 2;
	samples(200);
	CHECK(procs[0].busy < 20);
	pages[0].held_back = UINT32_MAX; /* the page is the client's, if it has taken over */
	pages[0].blocked = UINT32_MAX;
	samples(200);
	CHECK(procs[0].busy <= 1000);
}

/* A tenth of the samples in a call, nine held back: a share of 0.1 that is always used. */
TEST(a_share_counts_as_what_it_gives)
{
	uint32_t sum = 0;

	begin(1);
	pages[0].waiting = 0;
	for (unsigned i = 0; i < 1000; i++) {
		pages[0].held_back = i % 10 != 0;
		samples(1);
		sum += i >= 500 ? procs[0].busy : 0;
	}
	CHECK(sum / 500 > 50 && sum / 500 < 150);
}

static _Atomic bool launched;

static CUresult no_context(CUcontext *ret)
{
	(void)ret;
	return CUDA_ERROR_INVALID_CONTEXT;
}

static void *launch(void *unused)
{
	static const struct obs_driver driver = { .cuCtxGetCurrent = no_context };

	(void)unused;
	obs_share_open(&driver, OBP_SHARE_ALL);
	while (!atomic_load(&launched))
		obs_share_wait(NULL, false);
	return NULL;
}

TEST(a_launch_that_is_held_back_says_so)
{
	pthread_t thread;

	atomic_store(&obs_stats_page->yield, true);
	CHECK_INT(pthread_create(&thread, NULL, launch, NULL), 0);
	while (!obs_stats_page_read_word(&obs_stats_page->held_back))
		sched_yield();
	atomic_store(&launched, true);
	atomic_store(&obs_stats_page->yield, false);
	pthread_join(thread, NULL);
	CHECK_INT(obs_stats_page_read_word(&obs_stats_page->held_back), 0);
}

TEST(each_device_has_its_own)
{
	begin(4);
	procs[0].place = (struct obs_place){ .reserved = true, .n_devices = 1, .devices = { 2 } };
	pages[0].waiting = 0;
	pages[1].waiting = 0; /* without a ticket: it sees all and has memory on the last */
	pages[1].used[3] = 1;
	samples(200);
	CHECK(super.busy >= ALWAYS);
	CHECK(super.device_busy[2] >= ALWAYS && super.device_busy[3] >= ALWAYS);
	CHECK(super.device_busy[0] == 0 && super.device_busy[1] == 0);
	procs[2].place =
		(struct obs_place){ .reserved = true, .n_devices = 2, .devices = { 1, 0 } };
	pages[2].used[1] = 1; /* its second, the server's first */
	pages[2].waiting = pages[0].held_back = 0;
	pages[1].waiting = 1;
	samples(200);
	CHECK(super.device_busy[0] >= ALWAYS && super.device_busy[2] >= ALWAYS);
	CHECK(super.device_busy[1] == 0 && super.device_busy[3] < 20);
}

TEST(devices_tell_their_use)
{
	struct obp_load load;
	uint64_t use = 1;

	begin(2);
	procs[0].place = (struct obs_place){ .reserved = true, .n_devices = 1, .devices = { 1 } };
	pages[0].waiting = 0;
	samples(200);
	obs_status_fill(&super, OBP_LOAD_WANT_FACTS, NULL, &load);
	CHECK(obp_fact_get(&load.devices[0].facts, OBP_FACT_USE_GPU, &use) && use == 0);
	CHECK(obp_fact_get(&load.devices[1].facts, OBP_FACT_USE_GPU, &use) && use >= 98);
	obp_load_fini(&load);
}

/* The text that the session of a killed reservation gets. */
static const char *ended_text(const char *order_text)
{
	static struct obs_handoff message;
	struct obp_pool_order order = { .kind = OBP_POOL_ORDER_KILL, .id = { 1 } };
	struct obs_reservation r = { .id = { 1 }, .state = OBP_POOL_CLAIMED, .sessions = 1 };
	int ends[2], fds[OBS_HANDOFF_FDS];

	CHECK_INT(obs_handoff_pair(ends), 0);
	begin(1);
	super.membership.reservations.first = &r;
	procs[0].reservation = &r;
	procs[0].fd = ends[0];
	snprintf(order.text, sizeof order.text, "%s", order_text);
	CHECK_INT(obs_member_obey(&super, &order), 1);
	CHECK(obs_handoff_recv(ends[1], &message, fds) > 0);
	CHECK_INT(message.type, OBS_HANDOFF_END);
	close(ends[0]);
	close(ends[1]);
	CHECK(strstr(obs_reservation_killed_text(&r), r.moved ? "was moved" : "operator"));
	return message.text;
}

TEST(a_program_is_told_who_ended_it)
{
	CHECK_STR(ended_text("by token 01ab23cd alice"),
		"ended by the pool's operator: by token 01ab23cd alice");
	CHECK_STR(ended_text(""), "ended by the pool's operator");
	CHECK_STR(ended_text("its program was moved to gpu2"),
		"ended: its program was moved to gpu2");
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
