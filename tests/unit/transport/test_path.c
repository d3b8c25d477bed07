/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The meter's estimate from the kernel's data: it follows the rate of busy intervals, rises but
 * does not fall with that of idle ones, and nearly ignores bursts after a pause.
 */
#include <linux/tcp.h>

#include "base/clock.h"
#include "tests/test.h"
#include "transport/path.h"

static struct obt_meter meter;
static struct tcp_info info;
static uint64_t now;

static void begin(void)
{
	meter = (struct obt_meter){ 0 };
	info = (struct tcp_info){ .tcpi_min_rtt = 100, .tcpi_rtt = 200 };
	now = OB_SECOND;
	obt_meter_look(&meter, &info, now, false);
}

/* Returns the estimate in MB/s, rounded, after `bytes` more were acknowledged within `us`. */
static int look(uint64_t bytes, unsigned us, uint32_t unsent)
{
	now += us * 1000ull;
	info.tcpi_bytes_acked += bytes;
	info.tcpi_notsent_bytes = unsent;
	return (int)(obt_meter_look(&meter, &info, now, false) / 1e6 + 0.5);
}

TEST(a_guess_until_something_is_known)
{
	begin();
	CHECK_INT(look(0, 1000, 0), 125);
	CHECK_INT(look(1000, 1000, 1000), 125); /* too few bytes; the interval continues */
}

TEST(a_busy_link_is_measured)
{
	int rate = 0;

	begin();
	for (int i = 0; i < 3; i++)
		rate = look(128 << 10, 10486, 1 << 20); /* 12.5 MB/s */
	CHECK(rate < 30);
	for (int i = 0; i < 60; i++)
		rate = look(128 << 10, 10486, 1 << 20);
	CHECK(rate >= 12 && rate <= 13);
	for (int i = 0; i < 60; i++)
		rate = look(1 << 20, 1049, 1 << 20); /* 1 GB/s now */
	CHECK(rate > 900);
}

TEST(a_queue_on_the_way_is_busy_too)
{
	int rate = 0;

	begin();
	info.tcpi_unacked = 100;
	info.tcpi_rtt = 20000;
	for (int i = 0; i < 60; i++)
		rate = look(128 << 10, 10486, 0);
	CHECK(rate >= 12 && rate <= 13);
}

TEST(time_to_spare_says_a_least)
{
	int rate = 0;

	begin();
	info.tcpi_delivery_rate_app_limited = 1;
	info.tcpi_delivery_rate = 1000000;
	for (int i = 0; i < 20; i++)
		rate = look(100 << 10, 1000, 0);
	CHECK_INT(rate, 125); /* slower than the estimate, because no more was sent */
	info.tcpi_delivery_rate = 1000000000;
	for (int i = 0; i < 100; i++)
		rate = look(100 << 10, 1000, 0);
	CHECK(rate > 900);
}

TEST(a_burst_after_a_pause_counts_little)
{
	int rate = 0;

	begin();
	for (int i = 0; i < 60; i++)
		rate = look(128 << 10, 10486, 1 << 20);
	info.tcpi_delivery_rate_app_limited = 1;
	info.tcpi_delivery_rate = 1000000000;
	CHECK(look(128 << 10, 5000, 0) <= 14);
	CHECK(look(128 << 10, 5000, 0) <= 17);
	for (int i = 0; i < 100; i++) /* never busy again, because the link has become faster */
		rate = look(128 << 10, 5000, 0);
	CHECK(rate > 400);
}

TEST(a_slow_reader_is_no_slow_link)
{
	int rate = 0;

	begin();
	for (int i = 0; i < 60; i++) {
		info.tcpi_rwnd_limited += 10486;
		rate = look(128 << 10, 10486, 1 << 20);
	}
	CHECK_INT(rate, 125);
	meter = (struct obt_meter){ 0 };
	for (int i = 0; i < 60; i++) {
		info.tcpi_rwnd_limited += 10486;
		info.tcpi_bytes_acked += 128 << 10;
		now += 10486000;
		rate = (int)(obt_meter_look(&meter, &info, now, true) / 1e6 + 0.5);
	}
	CHECK(rate >= 12 && rate <= 13); /* with trust_reader the reader's rate counts */
}

TEST(a_new_connection_begins_at_nothing)
{
	begin();
	look(1 << 20, 1000, 0);
	info.tcpi_bytes_acked = 0;
	CHECK(look(0, 1000, 0) >= 125);
	CHECK(look(128 << 10, 10486, 1) < 125);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
