/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The audit log is bounded, whatever happens to a server; and what addresses may do. */
#include <sys/socket.h>

#include "base/clock.h"
#include "server/address.h"
#include "server/audit.h"
#include "tests/unit/test.h"

static char directory[64], path[96];

static void begin(void)
{
	strcpy(directory, "/tmp/outboard-audit-XXXXXX");
	CHECK(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/log", directory);
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s'", directory);
	CHECK(system(command) == 0);
}

/* Bytes of FILE.number, or of FILE with 0; -1: there is none. Each line of it is whole. */
static long file_size(unsigned number)
{
	char name[128], line[8192];
	long size = 0;
	FILE *file;

	snprintf(name, sizeof name, number ? "%s.%u" : "%s", path, number);
	file = fopen(name, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof line, file)) {
		size_t n = strlen(line);

		CHECK(line[0] == '{' && n > 2 && line[n - 2] == '}' && line[n - 1] == '\n');
		size += (long)n;
	}
	fclose(file);
	return size;
}

TEST(files_are_rotated_and_the_oldest_goes)
{
	const struct obs_identity who = { .who = "token 01ab23cd a\"b\n", .from = "10.0.0.7:1" };
	const long limit = 64 << 10;

	begin();
	CHECK(obs_audit_open(path, (uint64_t)limit, 3));
	for (uint64_t i = 0; i < 3000; i++)
		obs_audit_opened(i, &who, "tls", "program", 1, "a device");
	obs_audit_close();
	for (unsigned i = 0; i < 3; i++)
		CHECK(file_size(i) > 0 && file_size(i) <= limit);
	CHECK_INT(file_size(3), -1);
	/* What was there before counts. */
	CHECK(obs_audit_open(path, (uint64_t)limit, 1));
	for (uint64_t i = 0; i < 1000; i++)
		obs_audit_opened(i, &who, "tls", "program", 1, "a device");
	CHECK(file_size(0) <= limit);
	obs_audit_close();
	end();
}

TEST(refusals_are_counted_and_not_listed)
{
	unsigned lines = 0, told = 0, one = 0;
	char line[8192];
	FILE *file;

	begin();
	CHECK(obs_audit_open(path, OBS_AUDIT_SIZE_DEFAULT, 8));
	for (unsigned i = 0; i < 100000; i++)
		obs_audit_refused("10.0.0.7", "anonymous", "not the right token", 2);
	obs_audit_close();
	file = fopen(path, "r");
	CHECK(file);
	while (fgets(line, sizeof line, file)) {
		const char *count = strstr(line, "\"count\":");

		CHECK(count);
		CHECK(sscanf(count, "\"count\":%u", &one) == 1);
		told += one;
		lines++;
	}
	fclose(file);
	CHECK_INT(told, 200000);
	CHECK(lines >= 2 && lines < 1000); /* some dozens a second, however slow this machine is */
	end();
}

static unsigned reports, reported;

static void tell(const char *address, const char *why, uint32_t count)
{
	CHECK(address[0] && why[0]);
	reports++;
	reported += count;
}

TEST(an_address_is_told_of_once_a_second)
{
	struct obs_address *address;
	uint64_t now = 1000 * OB_SECOND;
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	address = obs_address_of(fds[0], now);
	CHECK(address == obs_address_of(fds[1], now) && address->local && strncmp(address->text, "uid ", 4) == 0);
	for (int i = 0; i < 1000; i++) {
		obs_address_refused(address, OBS_REFUSED_SILENT, "silent");
		obs_address_refused(address, OBS_REFUSED_DENIED, "wrong token");
		obs_address_report(now + (uint64_t)i * OB_MS, 8, tell);
	}
	CHECK_INT(reports, 2);
	obs_address_report(OB_NEVER, 8, tell);
	CHECK_INT(reports, 4);
	CHECK_INT(reported, 2000);
	/* More kinds than may be told one by one are told together. */
	for (int why = 0; why < OBS_REFUSALS; why++)
		obs_address_refused(address, (enum obs_refusal)why, "x");
	reports = reported = 0;
	obs_address_report(OB_NEVER, 2, tell);
	CHECK_INT(reported, OBS_REFUSALS);
	CHECK_INT(reports, 3);
	close(fds[0]);
	close(fds[1]);
}

TEST(new_sessions_have_a_rate_and_a_burst)
{
	struct obs_address address = { .credit_ns = OBS_BURST_S * OB_SECOND, .filled_ns = OB_SECOND };
	uint64_t now = OB_SECOND;
	unsigned taken = 0;

	for (int i = 0; i < 1000; i++)
		taken += obs_address_take(&address, 10, now);
	CHECK_INT(taken, 10 * OBS_BURST_S);
	for (int i = 0; i < 1000; i++)
		taken += obs_address_take(&address, 10, now += 10 * OB_MS); /* ten seconds */
	CHECK_INT(taken, 10 * OBS_BURST_S + 100);
	now += 3600 * OB_SECOND;
	for (int i = 0; i < 1000; i++)
		taken += obs_address_take(&address, 10, now);
	CHECK_INT(taken, 2 * 10 * OBS_BURST_S + 100);
}

TEST(wrong_tokens_have_to_wait_longer_and_longer)
{
	struct obs_address address = { 0 };
	uint64_t now = 1000 * OB_SECOND;
	uint32_t before = 0, wait;

	for (unsigned i = 0; i < OBS_WRONG_FREE; i++)
		obs_address_wrong(&address, now);
	CHECK_INT(obs_address_wait_s(&address, now), 0);
	for (int i = 0; i < 20; i++) {
		obs_address_wrong(&address, now);
		wait = obs_address_wait_s(&address, now);
		CHECK(wait > before || wait == OBS_WRONG_WAIT_MAX_S);
		CHECK_INT(obs_address_wait_s(&address, now + wait * OB_SECOND), 0);
		before = wait;
	}
	CHECK_INT(before, OBS_WRONG_WAIT_MAX_S);
	obs_address_right(&address);
	CHECK_INT(obs_address_wait_s(&address, now), 0);
	/* They are forgotten after a time. */
	for (unsigned i = 0; i < OBS_WRONG_FREE + 5; i++)
		obs_address_wrong(&address, now);
	obs_address_wrong(&address, now + (OBS_WRONG_FORGET_S + 1) * OB_SECOND);
	CHECK_INT(obs_address_wait_s(&address, now + (OBS_WRONG_FORGET_S + 1) * OB_SECOND), 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
