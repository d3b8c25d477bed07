/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The device's times in a timeline, with a driver whose streams go on when the test says so. Its
 * clock is that of the machine plus an offset. Bounds of times are those of cause and effect, so
 * they hold however slow the machine is.
 */
#include "base/clock.h"
#include "protocol/obs_driver.h"
#include "server/worker/device_calls.h"
#include "server/worker/device_times.h"
#include "server/worker/session.h"
#include "server/worker/timeline.h"
#include "tests/test.h"

#define OFFSET  123456789012345ull /* ns; of the device's clock */
#define EVENTS  (4 * OBS_DEVICE_MARKS)
#define STREAMS (OBS_DEVICE_STREAMS + 8)
#define OP      77 /* the works' opcode */

/* ---- the driver ---- */

struct event {
	bool live;
	unsigned stream, at; /* complete when the stream has done so many things */
	uint64_t time;       /* 0: not complete */
};

static struct {
	struct event events[EVENTS];
	unsigned n_events, live_events, records;
	/* of each stream: things in it and done; an event is one, a work is one */
	unsigned given[STREAMS], done[STREAMS], n_streams, live_streams;
	bool capturing[STREAMS];
	CUresult query, launch; /* results */
	CUcontext current;
} fake;

static unsigned stream_index(CUstream stream)
{
	return stream == CU_STREAM_LEGACY ? 0 : (unsigned)(uintptr_t)stream >> 4;
}

static CUstream stream_handle(unsigned i)
{
	return i ? (CUstream)(uintptr_t)(i << 4) : NULL;
}

/* The stream's next n things happen now. */
static void run(unsigned stream, unsigned n)
{
	for (; n && fake.done[stream] < fake.given[stream]; n--) {
		fake.done[stream]++;
		for (unsigned i = 0; i < fake.n_events; i++)
			if (fake.events[i].stream == stream &&
				fake.events[i].at == fake.done[stream])
				fake.events[i].time = ob_clock_ns() + OFFSET;
	}
}

static CUresult stream_create(CUstream *ret, unsigned flags, int priority)
{
	(void)priority;
	CHECK_INT(flags, CU_STREAM_NON_BLOCKING);
	fake.live_streams++;
	*ret = stream_handle(STREAMS - ++fake.n_streams);
	return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream stream)
{
	(void)stream;
	fake.live_streams--;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *ret)
{
	*ret = fake.capturing[stream_index(stream)] ? CU_STREAM_CAPTURE_STATUS_ACTIVE
						    : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *ret, unsigned flags)
{
	CHECK_INT(flags, CU_EVENT_DEFAULT);
	CHECK(fake.n_events < EVENTS);
	fake.events[fake.n_events].live = true;
	fake.live_events++;
	*ret = (CUevent)&fake.events[fake.n_events++];
	return CUDA_SUCCESS;
}

static struct event *event_of(CUevent handle)
{
	struct event *event = (struct event *)handle;

	CHECK(event->live);
	return event;
}

static CUresult event_destroy(CUevent handle)
{
	event_of(handle)->live = false;
	fake.live_events--;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent handle, CUstream stream)
{
	struct event *event = event_of(handle);
	unsigned i = stream_index(stream);
	/* The stream of the anchors, and one without unfinished work, do it at once. */
	bool idle = fake.given[i] == fake.done[i];

	CHECK(!fake.capturing[i]);
	fake.records++;
	event->stream = i;
	event->at = ++fake.given[i];
	event->time = 0;
	if (idle)
		run(i, 1);
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent handle)
{
	return event_of(handle)->time ? fake.query : CUDA_ERROR_NOT_READY;
}

static CUresult event_elapsed(float *ret, CUevent start, CUevent end)
{
	CHECK(event_of(start)->time && event_of(end)->time);
	*ret = (float)((double)(int64_t)(event_of(end)->time - event_of(start)->time) / 1e6);
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
	(void)params, (void)extra;
	fake.given[stream_index(stream)] += fake.launch == CUDA_SUCCESS;
	return fake.launch;
}

static CUresult wait_event(CUstream stream, CUevent event, unsigned flags)
{
	(void)event, (void)flags;
	fake.given[stream_index(stream)]++;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext context)
{
	fake.current = context;
	return CUDA_SUCCESS;
}

/* ---- a worker ---- */

static struct obs_session session;
static struct obs_exec x;
static const struct obs_driver *drv;

static void begin(void)
{
	static char contexts[2];

	session.lib.table = (struct obs_driver){ .cuStreamCreateWithPriority = stream_create,
		.cuStreamDestroy_v2 = stream_destroy,
		.cuStreamIsCapturing = is_capturing,
		.cuStreamWaitEvent = wait_event,
		.cuEventCreate = event_create,
		.cuEventDestroy_v2 = event_destroy,
		.cuEventRecord = event_record,
		.cuEventQuery = event_query,
		.cuEventElapsedTime_v2 = event_elapsed,
		.cuLaunchKernel = launch,
		.cuCtxSetCurrent = set_current };
	session.n_contexts = 2;
	for (unsigned i = 0; i < 2; i++) {
		session.contexts[i].id = i + 1;
		session.contexts[i].driver = (CUcontext)&contexts[i];
	}
	session.drv = &session.lib.table;
	x = (struct obs_exec){ .session = &session,
		.drv = session.drv,
		.context = &session.contexts[0],
		.opcode = OP };
	obs_device_thread(&x);
	obs_device_switch(true);
	obs_timeline_switch(true);
	drv = obs_device_calls(&session.lib.table);
}

static CUresult work(unsigned stream, uint64_t number)
{
	x.call = number;
	return drv->cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream_handle(stream), NULL, NULL);
}

static void pause_ms(unsigned ms)
{
	let_pass(1000 * ms, "a test of times");
}

static struct obp_timeline_event got[OBS_TIMELINE_KEPT];
static uint64_t lost;

static uint32_t collect(void)
{
	obs_device_collect(&x);
	return obs_timeline_read(got, OBS_TIMELINE_KEPT, &lost);
}

static uint64_t end_of(const struct obp_timeline_event *event)
{
	return event->at_ns + event->took_ns;
}

/* ---- tests ---- */

TEST(works_follow_one_another)
{
	uint64_t before, first, second, after;

	begin();
	before = ob_clock_ns();
	for (uint64_t i = 1; i <= 3; i++)
		CHECK_INT(work(1, i), CUDA_SUCCESS);
	CHECK_INT(collect(), 0);
	pause_ms(2);
	first = ob_clock_ns();
	run(1, 2); /* the first work and its mark; the mark before it is complete */
	CHECK_INT(collect(), 1);
	CHECK_INT(got[0].number, 1);
	CHECK_INT(obp_timeline_kind(&got[0]), OBP_TIMELINE_DEVICE);
	CHECK_INT(obp_timeline_opcode(&got[0]), OP);
	CHECK_INT(obp_timeline_works(&got[0]), 1);
	CHECK(got[0].at_ns >= before && end_of(&got[0]) <= ob_clock_ns());
	/* floats in ms: up to 0.06 us are lost */
	CHECK(got[0].took_ns + 1000 >= 2000000);
	CHECK(end_of(&got[0]) + 100000 >= first);
	second = end_of(&got[0]);
	pause_ms(2);
	run(1, 4);
	CHECK_INT(collect(), 2);
	after = ob_clock_ns();
	CHECK_INT(got[0].number, 2);
	CHECK_INT(got[1].number, 3);
	CHECK(got[0].at_ns >= second);
	CHECK(got[0].took_ns + 1000 >= 2000000);
	CHECK(got[1].at_ns >= end_of(&got[0]) && end_of(&got[1]) <= after);
	CHECK_INT(lost, 0);
	/* one mark between two works: four, and two anchors */
	CHECK_INT(fake.n_events, 6);
}

TEST(an_idle_stream_is_no_work)
{
	uint64_t before, after;

	begin();
	work(1, 1);
	run(1, 9);
	pause_ms(20);
	before = ob_clock_ns();
	work(1, 2);
	run(1, 9);
	after = ob_clock_ns();
	pause_ms(50); /* the event may not be later than its report: that must not limit it here */
	CHECK_INT(collect(), 2);
	CHECK(got[1].at_ns >= before);
	CHECK(got[1].took_ns <= after - before + 1000);
}

TEST(a_wait_is_no_work)
{
	uint64_t before;

	begin();
	work(1, 1);
	drv->cuStreamWaitEvent(stream_handle(1), NULL, 0);
	work(1, 2);
	run(1, 2); /* the first work */
	pause_ms(20);
	before = ob_clock_ns();
	run(1, 9);
	CHECK_INT(collect(), 2);
	CHECK(got[1].took_ns <= ob_clock_ns() - before);
	/* two clocks are compared; the work before the wait was 20 ms earlier */
	CHECK(got[1].at_ns + 1000000 >= before);
}

/* A stream waits for the legacy stream's work, and that for the streams'. */
TEST(the_legacy_stream_is_no_work_of_another)
{
	unsigned records;

	begin();
	work(1, 1);
	records = fake.records;
	work(1, 2);
	CHECK_INT(fake.records, records + 1);
	work(0, 3);
	records = fake.records;
	work(1, 4);
	CHECK_INT(fake.records, records + 2);
	records = fake.records;
	work(0, 5);
	CHECK_INT(fake.records, records + 2);
	records = fake.records;
	work(0, 6);
	CHECK_INT(fake.records, records + 1);
	run(1, 99);
	run(0, 99);
	CHECK_INT(collect(), 6);
}

TEST(each_stream_has_its_number)
{
	uint64_t tracks[4];

	begin();
	work(1, 1);
	work(2, 2);
	work(0, 3);
	x.context = &session.contexts[1];
	work(1, 4);
	for (unsigned i = 0; i < 3; i++)
		run(i, 9);
	CHECK_INT(collect(), 4);
	for (unsigned i = 0; i < 4; i++)
		tracks[got[i].number - 1] = got[i].more;
	CHECK_INT(tracks[0], obp_timeline_stream(0, 0, 1));
	CHECK_INT(tracks[1], obp_timeline_stream(0, 0, 2));
	CHECK_INT(tracks[2], obp_timeline_stream(0, 0, 0));
	CHECK_INT(tracks[3], obp_timeline_stream(0, 1, 3));
}

TEST(pieces_of_a_record_are_one_event)
{
	begin();
	work(1, 5);
	work(1, 5);
	work(1, 5);
	work(1, 6);
	run(1, 99);
	CHECK_INT(collect(), 2);
	CHECK_INT(got[0].number, 5);
	CHECK_INT(obp_timeline_works(&got[0]), 3);
	CHECK_INT(obp_timeline_works(&got[1]), 1);
	CHECK(got[1].at_ns >= end_of(&got[0]));
	/* but not if the device was idle in between */
	work(1, 7);
	run(1, 99);
	work(1, 7);
	run(1, 99);
	CHECK_INT(collect(), 2);
	CHECK_INT(lost, 0);
}

TEST(without_a_free_mark_equal_works_are_one_event)
{
	const unsigned n = OBS_DEVICE_MARKS + 500;
	uint32_t kept, works = 0;
	uint64_t next = 1;

	begin();
	for (unsigned i = 1; i <= n; i++)
		CHECK_INT(work(1, i), CUDA_SUCCESS);
	CHECK_INT(collect(), 0);
	/* some come free: two more events */
	run(1, 5);
	for (unsigned i = 1; i <= 500; i++)
		CHECK_INT(work(1, n + i), CUDA_SUCCESS);
	run(1, UINT32_MAX);
	kept = collect();
	CHECK_INT(kept, OBS_DEVICE_MARKS - 1 + 2);
	for (uint32_t i = 0; i < kept; i++) {
		CHECK_INT(got[i].number, next);
		next += obp_timeline_works(&got[i]);
		works += obp_timeline_works(&got[i]);
	}
	CHECK_INT(works, n + 500);
	CHECK_INT(lost, 0);
	CHECK_INT(fake.n_events, OBS_DEVICE_MARKS + 2);
}

TEST(without_a_free_mark_other_works_are_counted)
{
	const unsigned n = OBS_DEVICE_MARKS + 500;

	begin();
	for (unsigned i = 1; i <= n; i++) {
		x.opcode = (uint16_t)(OP + i % 2);
		CHECK_INT(work(1, i), CUDA_SUCCESS);
	}
	CHECK_INT(fake.n_events, OBS_DEVICE_MARKS + 2);
	CHECK_INT(collect(), 0);
	CHECK(lost >= 500 && lost <= 502);
	run(1, UINT32_MAX);
	CHECK_INT(collect(), n - lost);
	for (unsigned i = 1; i < n - lost; i++)
		CHECK(got[i].at_ns >= end_of(&got[i - 1]) && got[i].number > got[i - 1].number);
	/* There are free ones again, also without reading. */
	for (unsigned i = 1; i <= 3 * OBS_DEVICE_MARKS; i++) {
		work(1, n + i);
		run(1, UINT32_MAX);
	}
	CHECK_INT(collect(), 3 * OBS_DEVICE_MARKS);
	CHECK(lost <= 502);
	CHECK_INT(fake.n_events, OBS_DEVICE_MARKS + 2);
}

/* Marks that one stream holds come free while another is used. */
TEST(marks_of_other_streams_come_free)
{
	begin();
	for (unsigned i = 1; i <= OBS_DEVICE_MARKS; i++)
		work(1, i);
	run(1, UINT32_MAX);
	for (unsigned i = 1; i <= 100; i++) {
		work(2, 10000 + i);
		run(2, UINT32_MAX);
	}
	collect();
	CHECK(lost >= 1 && lost < 10);
}

TEST(a_context_that_ends_has_no_events)
{
	begin();
	work(1, 1);
	work(1, 2);
	work(2, 3);
	x.context = &session.contexts[1];
	work(3, 4);
	run(1, 2);
	obs_device_forget(&x, &session.contexts[0]);
	CHECK_INT(fake.live_events, 4); /* two of a work, two anchors */
	CHECK_INT(fake.live_streams, 1);
	CHECK(fake.current == session.contexts[0].driver);
	run(3, 9);
	CHECK_INT(collect(), 2);
	CHECK_INT(got[0].number, 1);
	CHECK_INT(got[1].number, 4);
	CHECK_INT(lost, 2);
	/* the entry is used for another context */
	x.context = &session.contexts[0];
	run(1, 9);
	work(1, 5);
	run(1, 9);
	CHECK_INT(collect(), 1);
	CHECK_INT(got[0].number, 5);
	obs_device_forget(&x, &session.contexts[0]);
	obs_device_forget(&x, &session.contexts[0]);
	obs_device_forget(&x, &session.contexts[1]);
	CHECK_INT(fake.live_events, 0);
	CHECK_INT(fake.live_streams, 0);
}

TEST(a_stream_that_is_captured_gets_no_event)
{
	begin();
	work(1, 1);
	fake.capturing[1] = true;
	CHECK_INT(work(1, 2), CUDA_SUCCESS); /* the driver's event_record would fail */
	fake.capturing[1] = false;
	work(1, 3);
	run(1, 99);
	CHECK_INT(collect(), 2);
	CHECK_INT(got[1].number, 3);
	CHECK_INT(lost, 0);
}

TEST(errors_stay_the_drivers)
{
	begin();
	fake.launch = CUDA_ERROR_INVALID_VALUE;
	CHECK_INT(work(1, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_INT(collect(), 0);
	CHECK_INT(lost, 0);
	fake.launch = CUDA_SUCCESS;
	CHECK_INT(work(1, 2), CUDA_SUCCESS);
	run(1, 99);
	fake.query = CUDA_ERROR_ILLEGAL_ADDRESS;
	CHECK_INT(collect(), 0);
	CHECK_INT(lost, 1);
	CHECK_INT(work(1, 3), CUDA_SUCCESS);
	fake.query = CUDA_SUCCESS;
	run(1, 99);
	CHECK_INT(collect(), 1);
}

TEST(streams_have_a_maximum)
{
	begin();
	for (unsigned i = 1; i <= OBS_DEVICE_STREAMS + 2; i++) {
		work(i, i);
		run(i, 99);
	}
	CHECK_INT(collect(), OBS_DEVICE_STREAMS);
	CHECK_INT(lost, 2);
	/* a destroyed one gives its number to the next, once its works are over */
	work(3, 1000);
	drv->cuStreamDestroy_v2(stream_handle(3));
	work(OBS_DEVICE_STREAMS + 1, 1001);
	run(OBS_DEVICE_STREAMS + 1, 99);
	run(3, 99);
	CHECK_INT(collect(), 1);
	CHECK_INT(lost, 3);
	work(OBS_DEVICE_STREAMS + 1, 1002);
	run(OBS_DEVICE_STREAMS + 1, 99);
	CHECK_INT(collect(), 1);
	CHECK_INT(got[0].more, obp_timeline_stream(0, 0, 3));
}

/* A program that makes a stream for each of its works, without reading in between. */
TEST(destroyed_streams_take_no_room)
{
	begin();
	for (unsigned i = 1; i <= 4 * OBS_DEVICE_STREAMS; i++) {
		unsigned stream = i % (OBS_DEVICE_STREAMS / 2) + 1;

		work(stream, i);
		/* every other one is destroyed with unfinished work */
		if (i % 2)
			run(stream, 99);
		drv->cuStreamDestroy_v2(stream_handle(stream));
		run(stream, 99);
	}
	CHECK_INT(collect(), 4 * OBS_DEVICE_STREAMS);
	CHECK_INT(lost, 0);
	for (unsigned i = 0; i < 4 * OBS_DEVICE_STREAMS; i++)
		CHECK((got[i].more & 0xffff) <= 2);
}

TEST(contexts_have_a_maximum)
{
	begin();
	session.n_contexts = OBS_DEVICE_CONTEXTS + 1;
	for (unsigned i = 0; i <= OBS_DEVICE_CONTEXTS; i++) {
		session.contexts[i].driver = (CUcontext)&session.contexts[i];
		x.context = &session.contexts[i];
		work(1, i + 1);
	}
	run(1, 999);
	CHECK_INT(collect(), OBS_DEVICE_CONTEXTS);
	CHECK_INT(lost, 1);
}

TEST(off_it_does_nothing)
{
	begin();
	work(1, 1);
	obs_device_switch(false);
	fake.records = 0;
	work(1, 2);
	run(1, 99);
	CHECK_INT(collect(), 0);
	CHECK_INT(fake.records, 0);
	/* on again: what was in the stream before is forgotten */
	obs_device_switch(true);
	obs_timeline_switch(true);
	work(1, 3);
	run(1, 99);
	CHECK_INT(collect(), 1);
	CHECK_INT(got[0].number, 3);
	CHECK_INT(lost, 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
