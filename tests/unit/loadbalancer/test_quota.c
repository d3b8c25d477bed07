/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Quotas: each limit at its edge and one past it, the sentences, the text form, saturation. */
#include "base/check.h"
#include "loadbalancer/queue.h"
#include "loadbalancer/quota.h"
#include "tests/test.h"

#define GIB (1ull << 30)

static char text[OBL_QUOTA_TEXT_MAX];

static enum obl_quota_verdict check(const char *quota_text, struct obl_usage usage,
	const struct obl_request *request, uint32_t priority)
{
	struct obl_quota quota;
	struct ob_cause cause;

	CHECK_INT(obl_quota_parse(quota_text, &quota, &cause), OB_ERR_NONE);
	return obl_quota_check(&quota, &usage, request, priority, "alice", text, sizeof text);
}

TEST(each_limit)
{
	static const struct obl_request request = {
		.gpus = 2, .memory = 10 * GIB, .share = 500000
	};
	const struct obl_usage none = { .gpus = 0 };

	CHECK_INT(check("", none, &request, OBL_HIGH), OBL_QUOTA_OK);
	CHECK_STR(text, "");
	CHECK_INT(
		check("gpus=4", (struct obl_usage){ .gpus = 2 }, &request, OBL_LOW), OBL_QUOTA_OK);
	CHECK_INT(check("gpus=4", (struct obl_usage){ .gpus = 3 }, &request, OBL_LOW),
		OBL_QUOTA_LATER);
	CHECK_STR(text, "tenant alice uses 3 of 4 GPUs; this request needs 2 more");
	CHECK_INT(check("gpus=1", none, &request, OBL_LOW), OBL_QUOTA_NEVER);
	CHECK_STR(text,
		"tenant alice may use 1 GPUs; this request needs 2: ask for less, or ask an "
		"operator "
		"for a higher quota");
	CHECK_INT(check("memory=20GiB", none, &request, OBL_LOW), OBL_QUOTA_OK);
	CHECK_INT(check("memory=20GiB", (struct obl_usage){ .memory = 1 }, &request, OBL_LOW),
		OBL_QUOTA_LATER);
	CHECK_INT(
		check("memory=30GiB", (struct obl_usage){ .memory = 15 * GIB }, &request, OBL_LOW),
		OBL_QUOTA_LATER);
	CHECK_STR(text,
		"tenant alice uses 15.0 GiB of 30.0 GiB of GPU memory; this request needs 20.0 GiB "
		"more");
	CHECK_INT(check("share=1.5", (struct obl_usage){ .share = 500000 }, &request, OBL_LOW),
		OBL_QUOTA_OK);
	CHECK_INT(check("share=1.5", (struct obl_usage){ .share = 500001 }, &request, OBL_LOW),
		OBL_QUOTA_LATER);
	CHECK_INT(check("sessions=3", (struct obl_usage){ .sessions = 2 }, &request, OBL_LOW),
		OBL_QUOTA_OK);
	CHECK_INT(check("sessions=3", (struct obl_usage){ .sessions = 3 }, &request, OBL_LOW),
		OBL_QUOTA_LATER);
	CHECK_STR(text, "tenant alice uses 3 of 3 reservations; this request needs 1 more");
	CHECK_INT(check("priority=normal", none, &request, OBL_NORMAL), OBL_QUOTA_OK);
	CHECK_INT(check("priority=normal", none, &request, OBL_HIGH), OBL_QUOTA_NEVER);
	CHECK_STR(text, "tenant alice may use priority normal at most; this request has high");
	/* what never can be is said first */
	CHECK_INT(check("gpus=2,memory=1GiB", (struct obl_usage){ .gpus = 1 }, &request, OBL_LOW),
		OBL_QUOTA_NEVER);
	CHECK(strstr(text, "GPU memory"));
}

TEST(what_a_request_uses)
{
	struct obl_usage usage = obl_usage_of(&(struct obl_request){ .memory = GIB });

	CHECK_INT(usage.gpus, 1);
	CHECK_INT(usage.sessions, 1);
	CHECK(usage.memory == GIB && usage.share == OBL_SHARE_ALL);
	usage = obl_usage_of(&(struct obl_request){ .gpus = 3, .memory = GIB, .share = 250000 });
	CHECK(usage.gpus == 3 && usage.memory == 3 * GIB && usage.share == 750000);
	usage = obl_usage_of(&(struct obl_request){ .gpus = 2, .share = 1, .exclusive = true });
	CHECK(usage.share == 2 * OBL_SHARE_ALL);
	usage = obl_usage_of(&(struct obl_request){ .gpus = 2, .memory = UINT64_MAX });
	CHECK(usage.memory == UINT64_MAX);
}

TEST(usage_saturates)
{
	struct obl_usage usage = { .gpus = 1, .sessions = 1, .memory = 5, .share = 5 };
	const struct obl_usage most = { UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX };
	struct obl_quota quota = { .memory = 10 };

	obl_usage_subtract(&usage, &most);
	CHECK(usage.gpus == 0 && usage.sessions == 0 && usage.memory == 0 && usage.share == 0);
	obl_usage_add(&usage, &most);
	obl_usage_add(&usage, &most);
	CHECK(memcmp(&usage, &most, sizeof usage) == 0);
	CHECK_INT(obl_quota_check(&quota, &usage, &(struct obl_request){ .memory = 5 }, OBL_LOW,
			  "bob", text, sizeof text),
		OBL_QUOTA_LATER);
}

TEST(text_form)
{
	static const char *const good[] = { "", "gpus=4", "memory=320G", "memory=1536M", "memory=7",
		"share=2.500000", "sessions=10,weight=2,priority=high",
		"gpus=4294967295,memory=320G,share=0.000001,sessions=1,weight=1000,priority=low" };
	static const char *const bad[] = { "gpus", "gpus=", "gpus=0", "gpus=-1", "gpus=4294967296",
		"gpus=4,", ",gpus=4", "memory=0", "memory=x", "share=0", "share=0.0000001",
		"share=.5", "share=1.", "share=1000001", "share=1e3", "weight=1001", "weight=0",
		"priority=urgent", "priority=?", "cores=3", "=", "gpus=4=4" };
	struct obl_quota quota, again, before;
	struct ob_cause cause;
	char printed[OBL_QUOTA_TEXT_MAX], longest[OBL_QUOTA_TEXT_MAX + 1];

	for (unsigned i = 0; i < ob_count(good); i++) {
		test_subject = good[i];
		CHECK_INT(obl_quota_parse(good[i], &quota, &cause), OB_ERR_NONE);
		obl_quota_print(&quota, printed, sizeof printed);
		CHECK_STR(printed, good[i]);
		CHECK_INT(obl_quota_parse(printed, &again, &cause), OB_ERR_NONE);
		CHECK(memcmp(&quota, &again, sizeof quota) == 0);
	}
	CHECK_INT(obl_quota_parse("memory=320GiB,share=2.5", &quota, &cause), OB_ERR_NONE);
	CHECK(quota.memory == 320 * GIB && quota.share == 2500000);
	memset(&before, 0x55, sizeof before);
	quota = before;
	for (unsigned i = 0; i < ob_count(bad); i++) {
		test_subject = bad[i];
		CHECK_INT(obl_quota_parse(bad[i], &quota, &cause), OB_ERR_ARGUMENT);
		CHECK(strstr(cause.text, "in a quota: write gpus=4"));
		CHECK(memcmp(&quota, &before, sizeof quota) == 0);
	}
	memset(longest, 'x', sizeof longest);
	longest[OBL_QUOTA_TEXT_MAX] = '\0';
	CHECK_INT(obl_quota_parse(longest, &quota, &cause), OB_ERR_ARGUMENT);
	CHECK_STR(cause.text, "a quota has 255 characters at most");
	quota = (struct obl_quota){ 7, 8, 9 * GIB, 10, 11, OBL_HIGH };
	for (size_t size = 0; size < sizeof printed; size++) {
		memset(printed, 'x', sizeof printed);
		obl_quota_print(&quota, printed, size);
		CHECK(printed[size] == 'x' && (size == 0 || strlen(printed) < size));
	}
}

TEST(priorities)
{
	uint32_t priority;

	for (uint32_t i = OBL_LOW; i <= OBL_HIGH; i++) {
		CHECK(obl_priority_parse(obl_priority_name(i), &priority));
		CHECK_INT(priority, i);
	}
	CHECK_STR(obl_priority_name(0), "?");
	CHECK_STR(obl_priority_name(4), "?");
	CHECK(!obl_priority_parse("", &priority));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
