/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The audit log is bounded, whatever happens to a server. Also the limits of addresses. */
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "server/admission/address.h"
#include "server/supervisor/audit.h"
#include "tests/test.h"

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

/*
 * Returns the size of FILE.number, or of FILE if number is 0; -1: it does not exist. Checks that
 * each line is complete.
 */
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
	CHECK(!obs_audit_open(path, (uint64_t)limit, 3, NULL));
	for (uint64_t i = 0; i < 3000; i++)
		obs_audit_opened(i, &who, "tls", "program", 1, "a device");
	obs_audit_close();
	for (unsigned i = 0; i < 3; i++)
		CHECK(file_size(i) > 0 && file_size(i) <= limit);
	CHECK_INT(file_size(3), -1);
	/* Existing content counts. */
	CHECK(!obs_audit_open(path, (uint64_t)limit, 1, NULL));
	for (uint64_t i = 0; i < 1000; i++)
		obs_audit_opened(i, &who, "tls", "program", 1, "a device");
	CHECK(file_size(0) <= limit);
	obs_audit_close();
	end();
}

/* A compromised child sends anything. */
TEST(lines_are_json_whatever_names_hold)
{
	struct obs_identity who = { .proved = true };
	char program[256], line[8192];
	FILE *file;

	begin();
	memset(who.who, 1, sizeof who.who - 1);
	memset(who.from, '\\', sizeof who.from - 1);
	memset(program, 0x9b, sizeof program - 1);
	program[sizeof program - 1] = '\0';
	CHECK(!obs_audit_open(path, 16ull << 20, 8, NULL));
	obs_audit_opened(1, &who, "tls", program, UINT64_MAX,
		"\xc2\x9b"
		"2J");
	memset(who.from, 1, sizeof who.from - 1);
	memset(program, 1, sizeof program - 1);
	obs_audit_opened(2, &who, "tls", program, UINT64_MAX, program);
	obs_audit_closed(3, who.who, &(struct obs_audit_counts){ .seconds = 1e300 }, program);
	obs_audit_refused("\xff\xfe", "anonymous", "\xe2\x80\xae", 1);
	obs_audit_close();
	CHECK(file_size(0) > 0);
	file = fopen(path, "r");
	CHECK(file);
	while (fgets(line, sizeof line, file)) {
		size_t n = strlen(line) - 1;
		unsigned quotes = 0;

		for (size_t i = 0; i < n; i += line[i] == '\\' ? 2 : 1)
			quotes += line[i] == '"';
		CHECK_INT(quotes % 2, 0);
		CHECK(strcmp(line + n - 2, "\"}\n") == 0);
		line[n] = '\0';
		CHECK(!strchr(line, 0x01) && !strstr(line, "\x9b") && !strchr(line, '\xff') &&
			!strstr(line, "\xe2\x80\xae"));
	}
	fclose(file);
	end();
}

TEST(a_file_that_could_not_be_opened_is_tried_again)
{
	const struct obs_identity who = { .who = "token 01ab23cd alice", .from = "10.0.0.7:1" };
	struct rlimit limit, none;
	long before;

	begin();
	CHECK(!obs_audit_open(path, 64 << 10, 3, NULL));
	while (file_size(0) < (64 << 10) - 300)
		obs_audit_opened(1, &who, "tls", "program", 1, "a device");
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = limit;
	none.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	for (int i = 0; i < 10; i++) /* a new file is due, but no descriptor is available */
		obs_audit_opened(2, &who, "tls", "program", 1, "a device");
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	before = file_size(0);
	obs_audit_opened(3, &who, "tls", "program", 1, "a device");
	CHECK(file_size(0) > before && file_size(0) > 0);
	obs_audit_close();
	end();
}

TEST(refusals_are_counted_and_not_listed)
{
	unsigned lines = 0, told = 0, one = 0;
	char line[8192];
	FILE *file;

	begin();
	CHECK(!obs_audit_open(path, 16ull << 20, 8, NULL));
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
	CHECK(lines >= 2 && lines < 1000); /* some dozens a second, on a machine of any speed */
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
	CHECK(address == obs_address_of(fds[1], now) && address->local &&
		strncmp(address->text, "uid ", 4) == 0);
	for (int i = 0; i < 1000; i++) {
		obs_address_refused(address, OBS_REFUSED_SILENT, "silent");
		obs_address_refused(address, OBS_REFUSED_DENIED, "wrong token");
		obs_address_report(now + (uint64_t)i * OB_MS, 8, tell);
	}
	CHECK_INT(reports, 2);
	obs_address_report(OB_NEVER, 8, tell);
	CHECK_INT(reports, 4);
	CHECK_INT(reported, 2000);
	/* Kinds beyond the number that is reported separately are reported together. */
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
	struct obs_address address = { .credit_ns = OBS_BURST_S * OB_SECOND,
		.filled_ns = OB_SECOND };
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
	/* Addresses are forgotten after a time. */
	for (unsigned i = 0; i < OBS_WRONG_FREE + 5; i++)
		obs_address_wrong(&address, now);
	obs_address_wrong(&address, now + (OBS_WRONG_FORGET_S + 1) * OB_SECOND);
	CHECK_INT(obs_address_wait_s(&address, now + (OBS_WRONG_FORGET_S + 1) * OB_SECOND), 0);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
