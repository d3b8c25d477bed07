/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What launches cost: a device that takes a known time for each of them, with any number of
 * streams. The bounds hold however late the test is scheduled: what was charged can only have taken
 * longer.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/clock.h"
#include "protocol/control.h"
#include "protocol/obs_driver.h"
#include "server/common/stats_page.h"
#include "server/layers/keep.h"
#include "server/layers/share.h"
#include "tests/test.h"

#define STREAMS   3u
#define SHARE     250000u
#define RATE      0.25
/* what a session may have saved, and three launches that are not charged yet */
#define LAUNCH_NS (4 * OB_MS)
#define SAVED_NS  (100 * RATE * OB_MS + 3 * (double)LAUNCH_NS)
/* longer than a case may last */
#define NEVER_NS  (600 * OB_SECOND)

static struct {
	uint64_t end_ns[STREAMS]; /* of the last launch */
	double worked_ns;         /* the time of all launches; sum */
	bool refuse_start, refuse_end;
	bool all_done; /* whatever the events' times say */
	unsigned synchronized, records;
	_Atomic unsigned looks; /* at events */
	CUcontext current;
} device;
static char primary, further;

struct event {
	_Atomic uint64_t ns;
};

/* the start and the end that were recorded last */
static struct event *last[2];

static uint64_t *stream_end(CUstream stream)
{
	return &device.end_ns[(uintptr_t)stream % STREAMS];
}

static void until(uint64_t ns)
{
	while (ob_clock_ns() < ns)
		waiting_look();
}

static CUresult get_current(CUcontext *ret)
{
	*ret = device.current;
	return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *ret, unsigned flags)
{
	(void)flags;
	*ret = (CUevent)calloc(1, sizeof(struct event));
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	bool start = device.records++ % 2 == 0;

	if (start ? device.refuse_start : device.refuse_end) {
		if (start)
			device.records = 0;
		return CUDA_ERROR_INVALID_HANDLE;
	}
	last[!start] = (struct event *)event;
	last[!start]->ns = ob_max(*stream_end(stream), ob_clock_ns());
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	device.looks++;
	return device.all_done || ((struct event *)event)->ns <= ob_clock_ns()
		? CUDA_SUCCESS
		: CUDA_ERROR_NOT_READY;
}

static CUresult event_synchronize(CUevent event)
{
	if (!device.all_done)
		until(((struct event *)event)->ns);
	return CUDA_SUCCESS;
}

static CUresult event_elapsed(float *ms, CUevent start, CUevent end)
{
	*ms = (float)(((struct event *)end)->ns - ((struct event *)start)->ns) / (float)OB_MS;
	return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream stream)
{
	device.synchronized++;
	until(*stream_end(stream));
	return CUDA_SUCCESS;
}

static const struct obs_driver driver = {
	.cuCtxGetCurrent = get_current,
	.cuEventCreate = event_create,
	.cuEventDestroy_v2 = event_destroy,
	.cuEventRecord = event_record,
	.cuEventQuery = event_query,
	.cuEventSynchronize = event_synchronize,
	.cuEventElapsedTime_v2 = event_elapsed,
	.cuStreamSynchronize = stream_synchronize,
};

static void begin(void)
{
	device.current = (CUcontext)&primary;
	obs_keep_part_made((CUcontext)&primary);
	obs_share_open(&driver, SHARE);
}

static void launch(unsigned stream, bool graph, uint64_t ns)
{
	CUstream at = (CUstream)(uintptr_t)stream;

	obs_share_wait(at, graph);
	*stream_end(at) = ob_max(*stream_end(at), ob_clock_ns()) + ns;
	device.worked_ns += (double)ns;
	obs_share_launched(at, CUDA_SUCCESS);
}

static uint64_t throttled(void)
{
	return atomic_load(&obs_stats_page->throttled_ns);
}

/* However many streams there are: together they never have more than the part. */
TEST(what_runs_inside_is_never_held_back)
{
	begin();
	for (unsigned i = 0; i < 60; i++)
		launch(i % STREAMS, false, LAUNCH_NS);
	until(device.end_ns[0]);
	launch(0, false, 250 * OB_MS); /* longer than what is saved */
	until(device.end_ns[0]);
	for (unsigned i = 0; i < 10; i++)
		launch(i % STREAMS, false, LAUNCH_NS);
	CHECK_INT(throttled(), 0);
	obs_share_forget();
}

/* Both kinds in turn: the share of the time inside, and the time outside, are in the share. */
static void both(unsigned stream, bool graph, CUcontext outside)
{
	uint64_t began = ob_clock_ns();
	double outside_ns = 0, inside_ns = 0, clock_ns;

	for (unsigned i = 0; i < 40; i++) {
		device.current = (CUcontext)&primary;
		launch(0, false, LAUNCH_NS);
		inside_ns += (double)LAUNCH_NS;
		/* nothing else is under way, so that the time inside is exact */
		until(device.end_ns[0]);
		device.current = outside;
		launch(stream, graph, LAUNCH_NS);
		outside_ns += (double)LAUNCH_NS;
	}
	obs_share_wait(NULL, true);
	obs_share_launched(NULL, CUDA_ERROR_INVALID_VALUE);
	clock_ns = (double)(ob_clock_ns() - began);
	CHECK(outside_ns + RATE * inside_ns <= RATE * clock_ns + SAVED_NS);
}

TEST(launches_and_graphs)
{
	begin();
	both(1, true, (CUcontext)&primary);
	obs_share_forget();
}

TEST(launches_in_the_part_and_in_a_context_of_its_own)
{
	begin();
	both(1, false, (CUcontext)&further);
	obs_share_forget();
}

/*
 * A launch inside waits for something for a second. Others, one of which is always under way, and
 * graphs beside them have no more than the share afterwards.
 */
TEST(what_waits_inside_saves_nothing)
{
	uint64_t began;
	double outside_ns = 0, clock_ns, inside_ns;
	struct event *start, *before;

	begin();
	launch(0, false, NEVER_NS);
	start = last[0];
	before = last[1];
	start->ns += NEVER_NS;
	until(ob_clock_ns() + OB_SECOND);
	began = ob_clock_ns();
	start->ns = began;
	for (unsigned i = 0; i < 8; i++) {
		device.end_ns[i % 2] = 0; /* nothing else is in this stream */
		launch(i % 2, false, NEVER_NS);
		before->ns = ob_clock_ns();
		before = last[1];
		launch(2, true, 20 * OB_MS);
		outside_ns += 20 * (double)OB_MS;
		until(device.end_ns[2]);
	}
	before->ns = ob_clock_ns();
	inside_ns = (double)(before->ns - began);
	obs_share_wait(NULL, true);
	obs_share_launched(NULL, CUDA_ERROR_INVALID_VALUE);
	clock_ns = (double)(ob_clock_ns() - began);
	/* what an idle session saves, in tokens and in `lost` each */
	CHECK(outside_ns + RATE * inside_ns <= RATE * clock_ns + 2 * 100 * RATE * OB_MS);
	obs_share_forget();
}

/* A context that has been used is no reason to charge the part in full. */
TEST(only_what_ran_outside_is_charged_in_full)
{
	uint64_t before;

	begin();
	device.current = (CUcontext)&further;
	launch(0, false, OB_MS);
	until(device.end_ns[0]);
	device.current = (CUcontext)&primary;
	before = throttled();
	for (unsigned i = 0; i < 20; i++) {
		launch(1, false, 10 * OB_MS);
		until(device.end_ns[1]);
	}
	CHECK_INT(throttled() - before, 0);
	obs_share_forget();
}

TEST(a_part_that_has_ended)
{
	begin();
	CHECK(obs_keep_inside((CUcontext)&primary, false));
	CHECK(!obs_keep_inside((CUcontext)&primary, true));
	CHECK(!obs_keep_inside((CUcontext)&further, false) && !obs_keep_inside(NULL, false));
	obs_keep_part_ended((CUcontext)&primary);
	CHECK(!obs_keep_inside((CUcontext)&primary, false));
}

/* A launch that no pair of events measures is waited for, and charged by the clock. */
static void untimed(bool *refused)
{
	uint64_t began;

	begin();
	*refused = true;
	began = ob_clock_ns();
	for (unsigned i = 0; i < 20; i++)
		launch(0, false, LAUNCH_NS);
	CHECK_INT(device.synchronized, 20);
	obs_share_wait(NULL, false);
	obs_share_launched(NULL, CUDA_ERROR_INVALID_VALUE);
	CHECK(device.worked_ns <= RATE * (double)(ob_clock_ns() - began) + SAVED_NS);
	CHECK(atomic_load(&obs_stats_page->device_ns) >= 20 * LAUNCH_NS);
	obs_share_forget();
}

TEST(a_driver_that_refuses_the_first_event)
{
	untimed(&device.refuse_start);
}

TEST(a_driver_that_refuses_the_second_event)
{
	untimed(&device.refuse_end);
}

static uint64_t charged(void)
{
	return atomic_load(&obs_stats_page->device_ns);
}

/* Streams wait for what the program does after all these launches, which are charged when they end. */
TEST(launches_that_all_wait_hold_up_none)
{
	begin();
	device.current = (CUcontext)&further;
	for (unsigned i = 0; i < STREAMS; i++)
		device.end_ns[i] = ob_clock_ns() + NEVER_NS;
	for (unsigned i = 0; i < 1000; i++)
		launch(i % STREAMS, false, LAUNCH_NS);
	CHECK_INT(charged(), 0);
	device.all_done = true;
	obs_share_forget();
	CHECK_INT(charged(), 1000 * LAUNCH_NS);
	CHECK_INT(device.synchronized, 0);
}

TEST(launches_that_wait_after_long_ones_hold_up_none)
{
	begin();
	device.current = (CUcontext)&further;
	launch(1, false, 200 * OB_MS);
	until(device.end_ns[1]);
	device.end_ns[0] = ob_clock_ns() + NEVER_NS;
	for (unsigned i = 0; i < 5; i++)
		launch(0, false, LAUNCH_NS);
	/* what does not wait ends, and is charged, meanwhile */
	launch(1, false, LAUNCH_NS);
	until(device.end_ns[1]);
	launch(1, false, LAUNCH_NS);
	CHECK(charged() >= 200 * OB_MS + LAUNCH_NS && charged() < NEVER_NS);
}

static _Atomic unsigned launched;

static void *launch_one(void *arg)
{
	launch(2, false, LAUNCH_NS);
	launched++;
	return arg;
}

/* Two kernels may each run for a long time, or until something ends them that comes later. */
TEST(launches_that_run_are_waited_for_but_not_for_ever)
{
	uint64_t began;
	pthread_t thread;

	begin();
	device.current = (CUcontext)&further;
	launch(0, false, 200 * OB_MS);
	until(device.end_ns[0]);
	launch(0, false, NEVER_NS);
	launch(1, false, NEVER_NS);
	began = ob_clock_ns();
	CHECK(!pthread_create(&thread, NULL, launch_one, NULL));
	pthread_detach(thread);
	while (ob_clock_ns() - began < OB_SECOND)
		waiting_look();
	CHECK(!launched || ob_clock_ns() - began >= OBS_SHARE_PASS_MS * OB_MS);
	UNTIL(launched);
	CHECK(ob_clock_ns() - began >= OBS_SHARE_PASS_MS * OB_MS);
}

/* for as long as the case lasts */
static void *launch_more(void *arg)
{
	for (;;) {
		obs_share_wait(NULL, false);
		obs_share_launched(NULL, CUDA_ERROR_INVALID_VALUE);
	}
	return arg;
}

static bool held_back(void)
{
	return obs_stats_page_read_word(&obs_stats_page->held_back) != 0;
}

/*
 * A launch has to wait while an earlier one, which ends at `end`, is under way: the device works for
 * the session until then, and not any more afterwards.
 */
static void waits_beside(struct event *end)
{
	pthread_t thread;
	unsigned before = device.looks;
	bool held = false;

	CHECK(!pthread_create(&thread, NULL, launch_more, NULL));
	pthread_detach(thread);
	for (; device.looks - before < 20; waiting_look())
		held |= held_back();
	CHECK(!held);
	end->ns = ob_clock_ns();
	UNTIL(held_back());
}

TEST(a_wait_for_tokens_beside_a_launch_is_no_idleness)
{
	struct event *first[2];

	begin();
	device.current = (CUcontext)&further;
	launch(0, false, NEVER_NS);
	first[0] = last[0];
	first[1] = last[1];
	launch(1, false, NEVER_NS);
	/* the first one ends after a time that is paid for when the case is long over */
	first[1]->ns = ob_clock_ns();
	first[0]->ns = first[1]->ns - NEVER_NS;
	waits_beside(last[1]);
}

TEST(yielding_beside_a_launch_is_no_idleness)
{
	begin();
	atomic_store(&obs_stats_page->yield, true);
	launch(0, false, NEVER_NS);
	waits_beside(last[1]);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
