/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* What reservations take from ledgers is what their ends give back. */
#include "loadbalancer/balancer/ledger.h"

#include "tests/test.h"

#define GIB (UINT64_C(1) << 30)

static struct obl_known_server server_of(uint64_t incarnation, uint32_t devices)
{
	struct obl_known_server server = { .incarnation = incarnation, .n_devices = devices };

	for (uint32_t i = 0; i < devices; i++) {
		server.devices[i].uuid[0] = (uint8_t)(i + 1);
		server.devices[i].total = 16 * GIB;
	}
	return server;
}

static struct obl_holding part_of(uint64_t incarnation, uint64_t memory, uint32_t first, uint32_t n)
{
	struct obl_holding part = {
		.server = "s", .incarnation = incarnation, .memory = memory, .n_devices = n
	};

	for (uint32_t i = 0; i < n; i++)
		part.devices[i][0] = (uint8_t)(first + i + 1);
	return part;
}

static struct obl_ledger ledger_of(uint64_t incarnation, uint32_t devices)
{
	struct obl_known_server server = server_of(incarnation, devices);
	struct obl_ledger ledger;

	obl_ledger_begin(&server, 1, &ledger);
	return ledger;
}

TEST(takes_and_gives_back)
{
	struct obl_ledger ledger = ledger_of(7, 3), before = ledger;
	struct obl_reservation r = { .share = 250000 };
	struct obl_holding a = part_of(7, 6 * GIB, 0, 2), b = part_of(7, 10 * GIB, 1, 2);

	CHECK(obl_ledger_add(&ledger, &r, &a));
	CHECK(obl_ledger_add(&ledger, &r, &b));
	CHECK_INT(ledger.fence, 3);
	CHECK_INT(ledger.devices[0].reserved, 6 * GIB);
	CHECK_INT(ledger.devices[1].reserved, 16 * GIB);
	CHECK_INT(ledger.devices[2].reserved, 10 * GIB);
	CHECK_INT(ledger.devices[1].share, 500000);
	CHECK_INT(ledger.devices[1].sharers, 2);
	CHECK(obl_ledger_subtract(&ledger, &r, &a));
	CHECK(obl_ledger_subtract(&ledger, &r, &b));
	CHECK_INT(ledger.fence, 5);
	before.fence = 5;
	CHECK(!memcmp(&ledger, &before, sizeof ledger));
}

TEST(never_more_than_there_is)
{
	struct obl_ledger ledger = ledger_of(7, 1), copy;
	struct obl_reservation r = { .share = 0 }, shared = { .share = 600000 };
	struct obl_holding all = part_of(7, 16 * GIB, 0, 1), byte = part_of(7, 1, 0, 1),
			   huge = part_of(7, UINT64_MAX, 0, 1), other = part_of(7, 1, 1, 1);

	copy = ledger;
	CHECK(!obl_ledger_add(&copy, &r, &huge));
	copy = ledger;
	CHECK(!obl_ledger_add(&copy, &r, &other)); /* no such device */
	CHECK(obl_ledger_add(&ledger, &r, &all));
	copy = ledger;
	CHECK(!obl_ledger_add(&copy, &r, &byte));
	ledger = ledger_of(7, 1);
	CHECK(obl_ledger_add(&ledger, &shared, &byte));
	copy = ledger;
	CHECK(!obl_ledger_add(&copy, &shared, &byte)); /* 1.2 devices' time */
}

TEST(exclusive_devices)
{
	struct obl_ledger ledger = ledger_of(7, 1), copy;
	struct obl_reservation alone = { .exclusive = true }, r = { .share = 0 };
	struct obl_holding part = part_of(7, 16 * GIB, 0, 1), small = part_of(7, GIB, 0, 1);

	CHECK(obl_ledger_add(&ledger, &alone, &part));
	CHECK(ledger.devices[0].exclusive);
	CHECK_INT(ledger.devices[0].reserved, 16 * GIB);
	copy = ledger;
	CHECK(!obl_ledger_add(&copy, &r, &small));
	CHECK(obl_ledger_subtract(&ledger, &alone, &part));
	CHECK(!ledger.devices[0].exclusive && !ledger.devices[0].reserved);
	CHECK(obl_ledger_add(&ledger, &r, &small));
	copy = ledger;
	CHECK(!obl_ledger_add(&copy, &alone, &part)); /* somebody is there */
}

TEST(other_incarnations)
{
	struct obl_ledger ledger = ledger_of(8, 1), before = ledger;
	struct obl_reservation r = { .share = 0 };
	struct obl_holding old = part_of(7, GIB, 0, 1);

	CHECK(!obl_ledger_subtract(&ledger, &r, &old));
	CHECK(!memcmp(&ledger, &before, sizeof ledger));
}

/* Wrong sums in the registry do not become huge amounts. */
TEST(saturates)
{
	struct obl_ledger ledger = ledger_of(7, 1);
	struct obl_reservation r = { .share = 5 };
	struct obl_holding part = part_of(7, GIB, 0, 1), gone = part_of(7, GIB, 3, 1);
	struct obl_usage usage = { .gpus = 1 }, less = { .gpus = 2, .memory = 1, .sessions = 1 };

	CHECK(obl_ledger_subtract(&ledger, &r, &part));
	CHECK(!ledger.devices[0].reserved && !ledger.devices[0].share &&
		!ledger.devices[0].sharers);
	CHECK(obl_ledger_subtract(&ledger, &r, &gone)); /* the device has left the server */
	obl_usage_subtract(&usage, &less);
	CHECK(!usage.gpus && !usage.memory && !usage.sessions);
}

TEST(carries_over)
{
	struct obl_ledger old = ledger_of(7, 2), now = ledger_of(7, 3);
	struct obl_reservation r = { .share = 5 };
	struct obl_holding part = part_of(7, GIB, 0, 2);

	CHECK(obl_ledger_add(&old, &r, &part));
	obl_ledger_carry(&now, &old);
	CHECK_INT(now.devices[0].reserved, GIB);
	CHECK_INT(now.devices[1].sharers, 1);
	CHECK(!now.devices[2].reserved);
}

TEST(usage_of_parts_adds_up)
{
	struct obl_reservation r = { .share = 500000, .n_parts = 3, .granted = 3 };
	struct obl_usage whole, sum = { 0 };

	for (uint32_t i = 0; i < 3; i++)
		r.parts[i] = part_of(7, (i + 1) * GIB, 0, i + 1);
	whole = obl_usage_of_reservation(&r);
	CHECK_INT(whole.gpus, 6);
	CHECK_INT(whole.memory, (1 + 4 + 9) * GIB);
	CHECK_INT(whole.sessions, 1);
	CHECK_INT(whole.share, 6 * 500000);
	while (r.n_parts) {
		struct obl_usage part =
			obl_usage_of_part(&r, &r.parts[1 % r.n_parts], r.n_parts == 1);

		obl_usage_add(&sum, &part);
		obl_reservation_drop(&r, 1 % r.n_parts);
	}
	CHECK(!memcmp(&sum, &whole, sizeof sum));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
