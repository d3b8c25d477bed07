/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Values of the registry: what is written is read again; what is wrong is refused. */
#include "loadbalancer/balancer/values.h"

#include "loadbalancer/registry/registry.h"
#include "tests/test.h"

static void fill(void *data, size_t size, unsigned seed)
{
	uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed * 31 + i * 7 + 1);
}

static struct obl_reservation largest_reservation(void)
{
	struct obl_reservation r = { .pid = INT64_MAX,
		.issued = 1,
		.expires = 61,
		.share = OBP_SHARE_ALL,
		.priority = 3,
		.linger_s = OBP_POOL_LINGER_MAX_S,
		.exclusive = true,
		.granted = OBP_POOL_PARTS_MAX,
		.n_parts = OBP_POOL_PARTS_MAX };

	fill(r.id, sizeof r.id, 5);
	memset(r.tenant, 't', sizeof r.tenant - 1);
	memset(r.program, 'p', sizeof r.program - 1);
	memset(r.host, 'h', sizeof r.host - 1);
	memset(r.user, 'u', sizeof r.user - 1);
	memset(r.apart, 'a', sizeof r.apart - 1);
	for (uint32_t i = 0; i < r.n_parts; i++) {
		struct obl_holding *part = &r.parts[i];

		memset(part->server, 's', sizeof part->server - 1);
		part->incarnation = UINT64_MAX - i;
		part->fence = INT64_MAX;
		part->memory = OBL_MEMORY_MAX;
		part->n_devices = OBP_POOL_GPUS_MAX / OBP_POOL_PARTS_MAX;
		for (uint32_t d = 0; d < part->n_devices; d++)
			fill(part->devices[d], 16, i * 16 + d);
	}
	return r;
}

TEST(reservations)
{
	struct obl_reservation r = largest_reservation(), back;
	char *text = obl_reservation_text(&r);

	CHECK(text && strlen(text) < OBL_VALUE_MAX);
	memset(&back, 0, sizeof back);
	CHECK(obl_reservation_read(text, &back));
	CHECK(!memcmp(&back, &r, sizeof r));
	free(text);
}

TEST(restartable_reservations)
{
	struct obl_reservation r = largest_reservation(), back;
	char *text, *again, *end;

	r.restartable = true;
	memset(r.where, 'w', sizeof r.where - 1);
	r.cuda = 1000000;
	r.moves = UINT32_MAX;
	r.load = OBL_LOAD_MAX;
	r.moved = INT64_MAX / 1000;
	r.killed = true;
	fill(r.successor, sizeof r.successor, 9);
	memset(r.from, 'f', sizeof r.from - 1);
	text = obl_reservation_text(&r);
	CHECK(text && strlen(text) < OBL_VALUE_MAX);
	memset(&back, 0, sizeof back);
	CHECK(obl_reservation_read(text, &back));
	CHECK(!memcmp(&back, &r, sizeof r));
	free(text);
	r.restartable = false; /* its restarts are used up, and its last move is not noted yet */
	text = obl_reservation_text(&r);
	memset(&back, 0, sizeof back);
	CHECK(text && obl_reservation_read(text, &back) && !memcmp(&back, &r, sizeof r));
	free(text);
	r.restartable = true;
	snprintf(r.from, sizeof r.from, "no name");
	text = obl_reservation_text(&r);
	CHECK(text && !obl_reservation_read(text, &back));
	free(text);
	memset(r.from, 0, sizeof r.from); /* it is in use: the field is not written */
	text = obl_reservation_text(&r);
	memset(&back, 0, sizeof back);
	CHECK(text && !strstr(text, "\"from\"") && obl_reservation_read(text, &back));
	CHECK(!memcmp(&back, &r, sizeof r));
	free(text);
	r.killed = false; /* and not written, as by an earlier version */
	text = obl_reservation_text(&r);
	memset(&back, 0, sizeof back);
	CHECK(text && !strstr(text, "killed"));
	CHECK(obl_reservation_read(text, &back) && !back.killed);
	free(text);
	r.load++;
	text = obl_reservation_text(&r);
	CHECK(text && !obl_reservation_read(text, &back));
	/* as an earlier version wrote it */
	again = strstr(text, "\"again\":");
	end = again ? strstr(again, "},") : NULL;
	CHECK(again && end);
	memmove(again, end + 2, strlen(end + 2) + 1);
	memset(&back, 0, sizeof back);
	CHECK(obl_reservation_read(text, &back) && back.restartable && back.moves == 0);
	free(text);
}

TEST(servers_and_ledgers)
{
	struct obl_known_server server = { .incarnation = UINT64_MAX,
		.version = "0.1.0",
		.urls = "tls://a:1 tcp://b:2",
		.labels = "zone=a",
		.cuda = 13000,
		.n_devices = OBP_DEVICE_MAX },
				server_back;
	struct obl_ledger ledger = { .incarnation = 1, .fence = 9, .n_devices = OBP_DEVICE_MAX },
			  ledger_back;
	char *text;

	for (uint32_t i = 0; i < OBP_DEVICE_MAX; i++) {
		fill(server.devices[i].uuid, 16, i);
		snprintf(server.devices[i].name, sizeof server.devices[i].name, "GPU \"%u\" \\ é",
			i);
		server.devices[i].total = OBL_MEMORY_MAX;
		server.devices[i].soft = i % 2;
		fill(ledger.devices[i].uuid, 16, i);
		ledger.devices[i].total = ledger.devices[i].reserved = OBL_MEMORY_MAX;
		ledger.devices[i].share = UINT32_MAX;
		ledger.devices[i].sharers = OBL_COUNT_MAX;
		ledger.devices[i].exclusive = true;
	}
	text = obl_known_server_text(&server);
	memset(&server_back, 0, sizeof server_back);
	CHECK(text && obl_known_server_read(text, &server_back));
	CHECK(!memcmp(&server, &server_back, sizeof server));
	free(text);
	text = obl_ledger_text(&ledger);
	memset(&ledger_back, 0, sizeof ledger_back);
	CHECK(text && obl_ledger_read(text, &ledger_back));
	CHECK(!memcmp(&ledger, &ledger_back, sizeof ledger));
	free(text);
}

TEST(requests)
{
	struct obl_queued queued = { .balancer = "b",
		.tenant = "alice",
		.since = 5,
		.until = 6,
		.ask = { .gpus = 64,
			.priority = 1,
			.policy = OBL_POLICY_COUNT,
			.where = "model=H100",
			.token = "obt_secret" } },
			  back;
	char *text;

	fill(queued.ask.id, sizeof queued.ask.id, 1);
	text = obl_queued_text(&queued);
	CHECK(text && obl_queued_read(text, &back));
	CHECK(!strstr(text, "obt_secret")); /* everybody can read the queue */
	CHECK_STR(back.ask.token, "");
	CHECK_INT(back.ask.gpus, 64);
	CHECK_STR(back.ask.where, "model=H100");
	CHECK_MEM(back.ask.id, queued.ask.id, sizeof back.ask.id);
	free(text);
}

TEST(texts_that_are_not_clean)
{
	struct obl_event event = { .time_ms = 1, .kind = "placed", .count = 3 }, back;
	char *text;

	snprintf(event.subject, sizeof event.subject, "a\nb");
	snprintf(event.text, sizeof event.text, "\x1b[31m \xff");
	text = obl_event_text(&event);
	CHECK(text && obl_event_read(text, &back));
	CHECK_STR(back.subject, "a?b");
	CHECK(strspn(back.text, "?[31m ") == strlen(back.text));
	free(text);
}

/* One field of a good ledger is replaced each time. */
TEST(wrong_ledgers)
{
	static const char *const good =
		"{\"incarnation\":\"00000000000000ff\",\"fence\":1,\"devices\":"
		"[{\"uuid\":\"GPU-00010203-0405-0607-0809-0a0b0c0d0e0f\","
		"\"total\":16,\"reserved\":0,\"share\":0,\"sharers\":0,"
		"\"exclusive\":false}]}";
	static const struct {
		const char *from, *to;
	} changes[] = {
		{ "\"00000000000000ff\"", "255" },
		{ "\"00000000000000ff\"", "\"ff\"" },
		{ "\"00000000000000ff\"", "\"00000000000000fg\"" },
		{ "\"fence\":1", "\"fence\":-1" },
		{ "\"fence\":1", "\"fence\":1.5" },
		{ "\"fence\":1", "\"fence\":99999999999999999999" },
		{ "\"fence\":1", "\"fence\":1,\"fence\":2" },
		{ "\"fence\":1", "\"fenc\":1" },
		{ "GPU-0001", "GPU-000g" },
		{ "\"total\":16", "\"total\":1125899906842625" }, /* OBL_MEMORY_MAX + 1 */
		{ "\"reserved\":0", "\"reserved\":\"0\"" },
		{ "\"sharers\":0", "\"sharers\":1000001" }, /* OBL_COUNT_MAX + 1 */
		{ "false", "0" },
		{ "[{", "[[{" },
		{ "}]", "},7]" },
		{ "}]}", "}]" },
		{ "}]}", "}]} x" },
	};
	struct obl_ledger ledger;
	char text[1024];

	CHECK(obl_ledger_read(good, &ledger));
	CHECK_INT(ledger.devices[0].total, 16);
	for (unsigned i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		const char *at = strstr(good, changes[i].from);

		CHECK(at);
		test_subject = changes[i].to;
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, changes[i].to,
			at + strlen(changes[i].from));
		CHECK(!obl_ledger_read(text, &ledger));
	}
	test_subject = NULL;
	CHECK(!obl_ledger_read("", &ledger));
	CHECK(!obl_ledger_read("null", &ledger));
	CHECK(!obl_ledger_read("[]", &ledger));
	CHECK(!obl_ledger_read(
		"{\"incarnation\":\"00000000000000ff\",\"fence\":1,\"devices\":[]}", &ledger));
}

/* The largest number of devices, and one more. */
TEST(bounds_of_lists)
{
	struct obl_reservation r = largest_reservation(), back;
	char *text, *at;

	r.n_parts = r.granted = 1;
	r.parts[0].n_devices = OBP_DEVICE_MAX;
	text = obl_reservation_text(&r);
	CHECK(text && obl_reservation_read(text, &back));
	CHECK_INT(back.parts[0].n_devices, OBP_DEVICE_MAX);
	at = strstr(text, "\"devices\":[");
	CHECK(at);
	at += strlen("\"devices\":[");
	{
		char more[8192];

		snprintf(more, sizeof more, "%.*s\"GPU-00010203-0405-0607-0809-0a0b0c0d0e0f\",%s",
			(int)(at - text), text, at);
		CHECK(!obl_reservation_read(more, &back));
	}
	free(text);
	r.granted = 0; /* fewer than there are parts */
	text = obl_reservation_text(&r);
	CHECK(text && !obl_reservation_read(text, &back));
	free(text);
}

TEST(deep_and_long_texts)
{
	struct obl_event event;
	char *text = malloc(1 << 20);

	memset(text, '[', 1 << 20);
	text[(1 << 20) - 1] = '\0';
	CHECK(!obl_event_read(text, &event));
	text[OBL_VALUE_MAX - 1] = '\0';
	CHECK(!obl_event_read(text, &event));
	memset(text, ' ', OBL_VALUE_MAX);
	text[OBL_VALUE_MAX] = '\0';
	CHECK(!obl_event_read(text, &event));
	free(text);
}

TEST(names_and_ids)
{
	uint8_t id[OBP_RESERVATION_BYTES], back[OBP_RESERVATION_BYTES];
	char text[OBL_ID_TEXT + 1];
	char name[OBP_POOL_NAME_MAX + 1];

	fill(id, sizeof id, 3);
	obl_id_print(id, text);
	CHECK(obl_id_parse(text, back));
	CHECK_MEM(back, id, sizeof id);
	text[OBL_ID_TEXT - 1] = '0';
	text[OBL_ID_TEXT] = '\0';
	CHECK(!obl_id_parse(text, back)); /* one digit more */
	text[OBL_ID_TEXT - 2] = '\0';
	CHECK(!obl_id_parse(text, back)); /* one less */
	text[3] = 'A';
	CHECK(!obl_id_parse(text, back));
	CHECK(obl_name_valid("gpu-1.rack_2"));
	CHECK(!obl_name_valid("") && !obl_name_valid(".a") && !obl_name_valid("a/b") &&
		!obl_name_valid("a b") && !obl_name_valid("\xc3\xa9"));
	memset(name, 'n', sizeof name);
	name[OBP_POOL_NAME_MAX - 1] = '\0';
	CHECK(obl_name_valid(name));
	name[OBP_POOL_NAME_MAX - 1] = 'n';
	name[OBP_POOL_NAME_MAX] = '\0';
	CHECK(!obl_name_valid(name));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
