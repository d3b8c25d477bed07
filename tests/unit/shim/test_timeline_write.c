/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The file of a timeline, with events as no honest server sends them: numbers of streams, times and
 * lengths without sense must not make a file that a viewer cannot show.
 */
#include "base/clock.h"
#include "client-shim/session/timeline.h"
#include "client-shim/session/timeline_server.h"
#include "client-shim/session/timeline_write.h"
#include "tests/test.h"

#define ROWS 4000u

static struct obp_timeline_event rows[ROWS];
static struct obc_timeline_rows claimed = { .rows = rows, .offered = true };

/* Instead of the server. */
void obc_timeline_server_rows(struct obc_timeline_rows *ret)
{
	*ret = claimed;
}

static char path[] = "/tmp/timeline-XXXXXX";

static void start(void)
{
	int fd = mkstemp(path);
	uint64_t now;

	CHECK(fd >= 0);
	close(fd);
	setenv("OUTBOARD_TIMELINE", path, 1);
	obc_timeline_start();
	CHECK(obc_timeline_on);
	now = ob_clock_ns();
	obc_fit_add(&claimed.fit, now, now + 1000, now + 1000, now + 2000);
}

struct seen {
	unsigned slices, devices, tracks, arrows; /* devices: slices of the device */
	unsigned long long dropped;
	double first, last; /* us */
	char names[4][64];  /* of the first tracks of the device */
};

/* Writes the file and reads it, one event a line. */
static void written(struct seen *ret)
{
	static char text[1 << 20];
	FILE *file;

	obc_timeline_write();
	file = fopen(path, "r");
	CHECK(file != NULL);
	*ret = (struct seen){ .first = 1e30 };
	while (fgets(text, sizeof text, file)) {
		const char *at = strstr(text, "\"ts\":"), *took = strstr(text, "\"dur\":");
		const char *name = strstr(text, "\"args\":{\"name\":\"device ");
		const char *dropped = strstr(text, "\"dropped server events\":");

		if (dropped)
			ret->dropped = strtoull(strchr(dropped, ':') + 1, NULL, 10);
		ret->arrows += strstr(text, "\"cat\":\"flow\"") != NULL;
		if (name && ret->tracks < 4)
			sscanf(name, "\"args\":{\"name\":\"%63[^\"]", ret->names[ret->tracks]);
		ret->tracks += name != NULL;
		if (!at || !took)
			continue;
		ret->slices++;
		ret->devices += strstr(text, "\"cat\":\"device\"") != NULL;
		ret->first = strtod(at + 5, NULL) < ret->first ? strtod(at + 5, NULL) : ret->first;
		if (strtod(at + 5, NULL) + strtod(took + 6, NULL) > ret->last)
			ret->last = strtod(at + 5, NULL) + strtod(took + 6, NULL);
		CHECK(strtod(took + 6, NULL) >= 0);
	}
	fclose(file);
	unlink(path);
}

TEST(the_device_has_tracks)
{
	uint64_t now;
	struct seen seen;

	start();
	now = ob_clock_ns();
	obc_timeline_call(3, 7, 10, 64, false);
	rows[0] = (struct obp_timeline_event){ 10, now, 500, 0, obp_timeline_what(0, 0, 7, 1) };
	for (unsigned i = 1; i <= 4; i++)
		rows[i] = (struct obp_timeline_event){ 10, now + i * 1000, 500,
			obp_timeline_stream(i / 4, i == 3 ? 5 : i / 4, i == 1 ? 0 : 7),
			obp_timeline_what(OBP_TIMELINE_DEVICE, 0, 7, i) };
	claimed.n = 5;
	/* The slices are limited by the time at which the file is written. */
	UNTIL(ob_clock_ns() > now + 10000);
	written(&seen);
	CHECK_INT(seen.slices, 6);
	CHECK_INT(seen.devices, 4);
	CHECK_INT(seen.tracks, 4);
	CHECK_INT(seen.arrows, 6);
	CHECK_INT(seen.dropped, 0);
	CHECK(strcmp(seen.names[0], "device 0, default stream") == 0);
	CHECK(strcmp(seen.names[1], "device 0, stream 7") == 0);
	CHECK(strcmp(seen.names[2], "device 0, context 5, stream 7") == 0);
	CHECK(strcmp(seen.names[3], "device 1, stream 7") == 0);
}

TEST(streams_have_a_maximum)
{
	struct seen seen;

	start();
	for (unsigned i = 0; i < ROWS; i++)
		rows[i] = (struct obp_timeline_event){ i, ob_clock_ns(), 10, i / 4 * 0x123456789ull,
			obp_timeline_what(OBP_TIMELINE_DEVICE, i, (uint16_t)i, UINT32_MAX) };
	claimed.n = ROWS;
	claimed.dropped = 5;
	written(&seen);
	CHECK_INT(seen.tracks, 256);
	CHECK_INT(seen.devices, 4 * 256);
	CHECK_INT(seen.dropped, 5 + ROWS - 4 * 256);
}

TEST(times_without_sense)
{
	const uint64_t odd[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, INT64_MAX,
		(uint64_t)INT64_MAX + 1, ob_clock_ns(), ob_clock_ns() + UINT32_MAX,
		ob_clock_ns() - UINT32_MAX };
	const unsigned n = sizeof odd / sizeof *odd;
	struct seen seen;
	uint64_t began;

	start();
	began = obc_timeline_began();
	claimed.n = 0;
	for (unsigned kind = 0; kind < 16; kind++)
		for (unsigned i = 0; i < n * n; i++)
			rows[claimed.n++] = (struct obp_timeline_event){ odd[i % n], odd[i % n],
				odd[i / n], odd[i % 5], kind | odd[i % 7] << 4 };
	CHECK(claimed.n <= ROWS);
	written(&seen);
	CHECK_INT(seen.slices, claimed.n);
	CHECK(seen.first >= 0);
	CHECK(seen.last <= (double)(ob_clock_ns() - began) / 1e3);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
