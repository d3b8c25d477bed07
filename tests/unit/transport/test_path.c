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
	info.tcpi_delivery_rate_app_limited = 0; /* on fast links the kernel's figure varies */
	for (int i = 0; i < 20; i++)
		rate = look(100 << 10, 1000, 0);
	CHECK_INT(rate, 125);
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

/* Bytes until the estimate is between these, MB/s, on a link that takes `rate` bytes/s. */
static unsigned bytes_until(double rate, int least, int most)
{
	unsigned bytes = 0;
	int now_mb = -1;

	while ((now_mb < least || now_mb > most) && bytes < 256u << 20) {
		now_mb = look(128 << 10, (unsigned)((128 << 10) / rate * 1e6 + 1), 1 << 20);
		bytes += 128 << 10;
	}
	return bytes;
}

static void recall(uint64_t rate)
{
	begin();
	meter = (struct obt_meter){ 0 };
	CHECK((uint64_t)obt_meter_recall(&meter, rate) == rate);
	obt_meter_look(&meter, &info, now, false);
}

TEST(an_earlier_rate_is_the_beginning)
{
	recall(1000000000);
	CHECK_INT(look(0, 1000, 0), 1000);
	CHECK_INT(look(128 << 10, 131, 1 << 20), 1000);
	recall(5000000);
	CHECK_INT(look(0, 1000, 0), 5);
	CHECK_INT(obt_meter_learned(&meter), 0);
}

TEST(an_earlier_rate_that_is_wrong_is_dropped)
{
	unsigned fresh;

	/* slower than it was: seen as soon as without memory, within a chunk or two */
	begin();
	fresh = bytes_until(12.5e6, 12, 25);
	recall(1250000000);
	CHECK(bytes_until(12.5e6, 12, 25) <= fresh + (256 << 10));
	/* faster than it was */
	begin();
	fresh = bytes_until(1.25e9, 900, 1300);
	recall(12500000);
	CHECK(bytes_until(1.25e9, 900, 1300) <= fresh + (256 << 10));
	CHECK_RANGE(obt_meter_learned(&meter), 900000000u, 1300000000u);
}

/*
 * Virtual networks let a burst pass at the speed of memory. The rate that is known stays near the
 * truth, and a link that has really become faster is noticed nevertheless.
 */
TEST(a_burst_at_the_start_hardly_changes_an_earlier_rate)
{
	int rate = 0;

	recall(125000000);
	info.tcpi_delivery_rate_app_limited = 1;
	info.tcpi_delivery_rate = 4500000000u;
	for (int i = 0; i < 8; i++)
		rate = look(128 << 10, 2000, 0);
	CHECK_RANGE((unsigned)rate, 125u, 190u);
	for (int i = 0; i < 20; i++) /* the network limits the rate now */
		rate = look(128 << 10, 1049, 1 << 20);
	CHECK_RANGE((unsigned)rate, 120u, 150u);
	recall(125000000);
	info.tcpi_delivery_rate_app_limited = 1;
	info.tcpi_delivery_rate = 4500000000u;
	for (int i = 0; i < 256; i++) /* 32 MiB, and the network never limits the rate */
		rate = look(128 << 10, 500, 0);
	CHECK(rate > 1000);
}

TEST(rates_that_no_link_has_are_ignored)
{
	static const uint64_t bad[] = { 0, 1, OBT_RATE_MIN - 1, OBT_RATE_MAX + 1, UINT64_MAX };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		begin();
		meter = (struct obt_meter){ 0 };
		CHECK(obt_meter_recall(&meter, bad[i]) == 0);
		CHECK_INT(look(0, 1000, 0), 125);
	}
}

TEST(little_is_not_learned)
{
	begin();
	for (int i = 0; i < 3; i++)
		look(128 << 10, 10486, 1 << 20);
	CHECK_INT(obt_meter_learned(&meter), 0);
	for (int i = 0; i < 60; i++)
		look(128 << 10, 10486, 1 << 20);
	CHECK_RANGE(obt_meter_learned(&meter), 12000000u, 13000000u);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
