/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A server's load report and lists of servers: encoded and decoded, truncated, damaged. */
#include "base/check.h"
#include "base/clock.h"
#include "loadbalancer/ask.h"
#include "tests/test.h"

static struct obp_load sample(struct obp_load_session *sessions, uint32_t n)
{
	struct obp_load load = { .version = "1.2",
		.driver = "soft",
		.draining = true,
		.sessions = 3,
		.max_sessions = 9,
		.busy = 1000,
		.uptime_ns = 5,
		.n_devices = 2,
		.n_sessions = n,
		.listed = sessions,
		.refused_total = UINT64_MAX,
		.cuda_version = 13000,
		.nvidia_version = "550.54.15",
		.memory_limit = 5 };

	load.devices[1] = (struct obp_load_device){ .name = "H200",
		.total = 1ull << 40,
		.used = 7,
		.units = 132,
		.sharers = 2,
		.ptx_only = true,
		.share_by = (2u << OBP_SHARE_BY_MAX) - 1 };
	for (unsigned i = 0; i < OBP_FACT_COUNT; i++)
		if (i != OBP_FACT_POWER)
			obp_fact_set(&load.devices[1].facts, i, obp_fact_max(i));
	for (uint32_t i = 0; i < n; i++)
		sessions[i] = (struct obp_load_session){ .id = i + 1,
			.memory = 1ull << 33,
			.share = OBP_SHARE_ALL,
			.throttle = OBP_THROTTLE_LIMITED,
			.share_by = OBP_SHARE_BY_MAX,
			.priority = 2,
			.program = "train",
			.client = "10.0.0.1:5",
			.used = { UINT64_MAX, UINT64_MAX - 1 } };
	return load;
}

static struct ob_buf encoded(const struct obp_load *load, size_t *ret_map)
{
	struct ob_buf frame;

	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	CHECK(obp_load_encode(load, &frame));
	*ret_map = ((struct obp_frame *)frame.data)->raw_size;
	return frame;
}

TEST(there_and_back)
{
	static struct obp_load_session sessions[OBP_LOAD_SESSIONS_MAX];
	struct obp_load load = sample(sessions, OBP_LOAD_SESSIONS_MAX), back;
	size_t size;
	struct ob_buf frame = encoded(&load, &size);

	CHECK_INT(obp_load_decode(frame.data + sizeof(struct obp_frame), size, &back), OB_ERR_NONE);
	CHECK_STR(back.version, "1.2");
	CHECK(back.draining && back.sessions == 3 && back.busy == 1000 &&
		back.refused_total == UINT64_MAX);
	CHECK_INT(back.cuda_version, 13000);
	CHECK_INT(back.memory_limit, 5);
	CHECK_STR(back.nvidia_version, "550.54.15");
	CHECK_INT(back.devices[0].facts.known, 0);
	for (unsigned i = 0; i < OBP_FACT_COUNT; i++) {
		uint64_t value = 1;

		CHECK(obp_fact_get(&back.devices[1].facts, i, &value) == (i != OBP_FACT_POWER));
		CHECK(value == (i == OBP_FACT_POWER ? 1 : obp_fact_max(i)));
	}
	for (unsigned i = 0; i < OBP_DEVICE_MAX; i++)
		CHECK(back.listed[7].used[i] == (i < 2 ? UINT64_MAX - i : 0));
	CHECK_INT(back.n_devices, 2);
	CHECK_STR(back.devices[1].name, "H200");
	CHECK(back.devices[1].total == 1ull << 40 && back.devices[1].ptx_only &&
		back.devices[1].units == 132 &&
		back.devices[1].share_by == (2u << OBP_SHARE_BY_MAX) - 1);
	CHECK_INT(back.n_sessions, OBP_LOAD_SESSIONS_MAX);
	CHECK_STR(back.listed[255].client, "10.0.0.1:5");
	CHECK(back.listed[255].id == 256 && back.listed[255].throttle == OBP_THROTTLE_LIMITED &&
		back.listed[255].share_by == OBP_SHARE_BY_MAX);
	obp_load_fini(&back);
	ob_buf_fini(&frame);
}

TEST(every_cut_and_every_damaged_byte_is_survived)
{
	struct obp_load_session sessions[2];
	struct obp_load load = sample(sessions, 2), back;
	size_t size;
	struct ob_buf frame = encoded(&load, &size);
	uint8_t *map = frame.data + sizeof(struct obp_frame);

	for (size_t cut = 0; cut < size; cut++)
		CHECK_INT(obp_load_decode(map, cut, &back), OB_ERR_PROTOCOL);
	for (size_t at = 0; at < size; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			map[at] ^= (uint8_t)(1u << bit);
			if (obp_load_decode(map, size, &back) == OB_ERR_NONE)
				obp_load_fini(&back);
			map[at] ^= (uint8_t)(1u << bit);
		}
	ob_buf_fini(&frame);
}

TEST(lists_of_addresses)
{
	static struct obl_answer answers[OBL_LIST_MAX];
	struct ob_cause cause;
	char text[65 * 10 + 1];
	uint32_t n = 0;

	CHECK_INT(obl_list_parse("tcp://a:1,unix:/b,tcp://[::1]:7", answers, &n, &cause),
		OB_ERR_NONE);
	CHECK_INT(n, 3);
	CHECK_STR(answers[1].url, "unix:/b");
	CHECK_STR(answers[2].url, "tcp://[::1]:7");
	CHECK_INT(obl_list_parse("", answers, &n, &cause), OB_ERR_URL);
	CHECK_INT(obl_list_parse("tcp://a:1,,tcp://b:1", answers, &n, &cause), OB_ERR_URL);
	CHECK_INT(obl_list_parse("tcp://a:1,http://b", answers, &n, &cause), OB_ERR_URL);
	CHECK(strstr(cause.text, "tcp://"));
	for (int i = 0; i < 65; i++)
		memcpy(text + 10 * i, "tcp://a:1,", 11);
	text[64 * 10 - 1] = 0;
	CHECK_INT(obl_list_parse(text, answers, &n, &cause), OB_ERR_NONE);
	CHECK_INT(n, OBL_LIST_MAX);
	text[64 * 10 - 1] = ',';
	text[65 * 10 - 1] = 0;
	CHECK_INT(obl_list_parse(text, answers, &n, &cause), OB_ERR_URL);
}

TEST(nobody_there)
{
	struct obl_request request = { .memory = 0 };
	char url[OBT_URL_MAX + 1];
	struct ob_cause cause;

	CHECK_INT(obl_pick("unix:/nowhere/1,unix:/nowhere/2", &request, OBL_LEAST_LOAD, OB_SECOND,
			  url, &cause),
		OB_ERR_CONNECT);
	CHECK(strstr(cause.text, "2 do not answer"));
	/* A single address is used without a query, which would cost a round trip. */
	CHECK_INT(obl_pick("unix:/nowhere/1", &request, OBL_LEAST_LOAD, OB_SECOND, url, &cause),
		OB_ERR_NONE);
	CHECK_STR(url, "unix:/nowhere/1");
}

/* The largest answer that a server can give fits. */
TEST(everything_at_its_maximum_fits)
{
	static struct obp_load_session sessions[OBP_LOAD_SESSIONS_MAX];
	static struct obp_load load;
	struct ob_buf frame;
	size_t size;

	load = (struct obp_load){
		.n_devices = OBP_DEVICE_MAX, .n_sessions = OBP_LOAD_SESSIONS_MAX, .listed = sessions
	};
	memset(load.driver, 'd', sizeof load.driver - 1);
	for (uint32_t d = 0; d < OBP_DEVICE_MAX; d++) {
		memset(load.devices[d].name, 'n', OBP_LOAD_NAME_MAX - 1);
		for (unsigned i = 0; i < OBP_FACT_COUNT; i++)
			obp_fact_set(&load.devices[d].facts, i, obp_fact_max(i));
	}
	for (uint32_t i = 0; i < OBP_LOAD_SESSIONS_MAX; i++) {
		memset(sessions[i].program, 'p', OBP_LOAD_NAME_MAX - 1);
		memset(sessions[i].client, 'c', OBP_LOAD_NAME_MAX - 1);
		memset(sessions[i].used, 0xff, sizeof sessions[i].used);
	}
	frame = encoded(&load, &size);
	CHECK(size <= OBP_CONTROL_MAX);
	ob_buf_fini(&frame);
}

/* A fact above its maximum, or of another type, spoils the answer; one with another name is skipped. */
TEST(facts_are_bounded)
{
	struct obp_load load = { .n_devices = 1 }, back;
	size_t size;
	struct ob_buf frame;
	uint8_t *at;

	obp_fact_set(&load.devices[0].facts, OBP_FACT_USE_GPU, 100);
	frame = encoded(&load, &size);
	at = memmem(frame.data, frame.size, "use_gpu", 7);
	CHECK(at != NULL);
	at[7] = 101; /* a small number is one byte */
	CHECK_INT(obp_load_decode(frame.data + sizeof(struct obp_frame), size, &back),
		OB_ERR_PROTOCOL);
	at[0] = 'x';
	CHECK_INT(obp_load_decode(frame.data + sizeof(struct obp_frame), size, &back), OB_ERR_NONE);
	CHECK_INT(back.devices[0].facts.known, 0);
	obp_load_fini(&back);
	ob_buf_fini(&frame);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
