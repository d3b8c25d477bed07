/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Recording of a timeline: what is kept, in which order, what is dropped and counted. With the
 * argument "spin N" the program only records N calls; a test counts the instructions.
 */
#include <pthread.h>

#include "client-shim/session/timeline.h"
#include "tests/test.h"

static void start(const char *events)
{
	char path[] = "/tmp/timeline-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	setenv("OUTBOARD_TIMELINE", path, 1);
	setenv("OUTBOARD_TIMELINE_EVENTS", events, 1);
	obc_timeline_start();
	unlink(path);
	CHECK(obc_timeline_on);
}

struct seen {
	uint64_t n, next, at;
};

static void look(void *user, unsigned track, const struct obc_timeline_event *event)
{
	struct seen *seen = user;

	CHECK_INT(event->number, seen->next + track);
	CHECK(event->at >= seen->at);
	seen->at = event->at;
	seen->next += 1000000;
	seen->n++;
}

static uint64_t kept(unsigned track)
{
	struct seen seen = { 0 };

	obc_timeline_each(track, look, &seen);
	return seen.n;
}

/* The lane's calls: number = 1000000 * i + lane. */
static void *record(void *argument)
{
	unsigned lane = *(unsigned *)argument;

	for (uint64_t i = 0; i < 500; i++) {
		bool waits = i % 3 == 0;

		obc_timeline_call(lane, 7, 1000000 * i + lane, 64, waits);
		if (waits)
			obc_timeline_waited(lane, UINT64_MAX / 2);
	}
	return NULL;
}

TEST(off_without_a_name)
{
	unsetenv("OUTBOARD_TIMELINE");
	obc_timeline_start();
	CHECK(!obc_timeline_on);
}

TEST(a_file_that_cannot_be_made)
{
	setenv("OUTBOARD_TIMELINE", "/nonexistent/file", 1);
	obc_timeline_start();
	CHECK(!obc_timeline_on);
}

TEST(limits)
{
	start("1023"); /* below the minimum: the default is used */
	CHECK_INT(obc_timeline_limit(), OBC_TIMELINE_EVENTS);
}

TEST(all_is_kept_below_the_limit)
{
	unsigned lane = 5;

	start("1024");
	record(&lane);
	record(&lane);
	CHECK_INT(obc_timeline_dropped(5), 0);
	CHECK_INT(obc_timeline_limit(), 1024);
}

TEST(what_is_dropped_is_counted)
{
	pthread_t threads[20];
	unsigned lanes[20];
	uint64_t n = 0, dropped = 0;

	start("2048");
	for (unsigned i = 0; i < 20; i++) {
		lanes[i] = i * 53;
		pthread_create(&threads[i], NULL, record, &lanes[i]);
	}
	for (unsigned i = 0; i < 20; i++) {
		pthread_join(threads[i], NULL);
		n += kept(lanes[i]);
		dropped += obc_timeline_dropped(lanes[i]);
		CHECK_INT(kept(lanes[i]) + obc_timeline_dropped(lanes[i]), 500);
	}
	CHECK_INT(n + dropped, 20 * 500);
	CHECK(n <= 2048);
	/* a lane of 500 events leaves 12 of its fourth block unused */
	CHECK(n >= 2048 - 20 * 12);
}

TEST(a_wait_that_has_not_ended)
{
	struct obc_timeline_event event;

	start("1024");
	CHECK(!obc_timeline_waiting(3, &event));
	obc_timeline_call(3, 9, 77, 40, true);
	CHECK(obc_timeline_waiting(3, &event));
	CHECK_INT(event.number, 77);
	CHECK_INT(event.opcode, 9);
	CHECK_INT(kept(3), 0);
	obc_timeline_waited(3, event.at + 5);
	CHECK(!obc_timeline_waiting(3, &event));
}

static int spin(long n)
{
	start("16777216");
	for (long i = 0; i < n; i++)
		obc_timeline_call(1, 7, (uint64_t)i, 64, false);
	return obc_timeline_dropped(1) != 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "spin") == 0)
		return spin(atol(argv[2]));
	return test_main(argc, argv);
}
