/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Messages of a pool and tickets: each survives encoding and decoding; altered bytes never crash. */
#include "protocol/pool.h"
#include "tests/test.h"

static uint64_t seed = 1;

static uint64_t next(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

static void text(char *ret, size_t size)
{
	size_t n = next() % size;

	memset(ret, 0, size);
	for (size_t i = 0; i < n; i++)
		ret[i] = (char)('a' + next() % 26);
}

static void bytes(uint8_t *ret, size_t size)
{
	for (size_t i = 0; i < size; i++)
		ret[i] = (uint8_t)next();
}

static struct obp_pool_part parts[OBP_POOL_PARTS_MAX];
static struct obp_pool_held held[OBP_POOL_BEAT_MAX];

static void ask_fill(struct obp_pool_ask *ask)
{
	bytes(ask->id, sizeof ask->id);
	ask->gpus = (uint32_t)next() % 64 + 1;
	ask->memory = next() << 20;
	ask->share = (uint32_t)next() % OBP_SHARE_ALL;
	ask->priority = (uint32_t)next() % 4;
	ask->exclusive = next() & 1;
	ask->one_server = next() & 1;
	ask->policy = (uint32_t)next() % 9;
	ask->wait_s = (uint32_t)next();
	ask->cuda = 13000;
	ask->restartable = next() & 1;
	ask->offered = next() & 1;
	ask->pid = next();
	text(ask->where, sizeof ask->where);
	text(ask->apart, sizeof ask->apart);
	text(ask->program, sizeof ask->program);
	text(ask->host, sizeof ask->host);
	text(ask->user, sizeof ask->user);
	text(ask->token, sizeof ask->token);
}

static void grant_fill(struct obp_pool_grant *grant)
{
	bytes(grant->id, sizeof grant->id);
	text(grant->tenant, sizeof grant->tenant);
	grant->n_parts = (uint32_t)next() % (OBP_POOL_PARTS_MAX + 1);
	grant->parts = parts;
	memset(parts, 0, sizeof parts);
	for (uint32_t i = 0; i < grant->n_parts; i++) {
		text(parts[i].server, sizeof parts[i].server);
		text(parts[i].urls, sizeof parts[i].urls);
		text(parts[i].pin, sizeof parts[i].pin);
		parts[i].ticket_size = (uint32_t)next() % (OBP_TICKET_MAX + 1);
		bytes(parts[i].ticket, parts[i].ticket_size);
	}
}

static void beat_fill(struct obp_pool_beat *beat)
{
	beat->number = next();
	beat->healthy = next() & 1;
	text(beat->health, sizeof beat->health);
	beat->cordoned = next() & 1;
	beat->drained = next() & 1;
	beat->as_of = next();
	beat->load.n_devices = 2;
	beat->load.sessions = 3;
	text(beat->load.devices[0].name, sizeof beat->load.devices[0].name);
	obp_fact_set(&beat->load.devices[1].facts, OBP_FACT_TEMPERATURE, 61);
	beat->n_held = (uint32_t)next() % (OBP_POOL_BEAT_MAX + 1);
	beat->held = held;
	memset(held, 0, sizeof held);
	for (uint32_t i = 0; i < beat->n_held; i++) {
		bytes(held[i].id, sizeof held[i].id);
		held[i].fence = next();
		held[i].state = 1 + (uint32_t)next() % OBP_POOL_VOID;
		held[i].used = next();
		held[i].share_by = (uint32_t)next() % (OBP_SHARE_BY_MAX + 1);
		held[i].busy = (uint32_t)next() % 1001;
	}
}

static void others_fill(struct obp_pool_message *m)
{
	switch (m->type) {
	case OBP_POOL_QUEUED:
		m->u.queued.position = 3;
		m->u.queued.length = 7;
		text(m->u.queued.reason, sizeof m->u.queued.reason);
		break;
	case OBP_POOL_REFUSED:
	case OBP_POOL_DONE:
		m->u.refused.code = OBP_POOL_LATER;
		text(m->u.refused.text, sizeof m->u.refused.text);
		break;
	case OBP_POOL_CANCEL:
		bytes(m->u.cancel.id, sizeof m->u.cancel.id);
		text(m->u.cancel.token, sizeof m->u.cancel.token);
		m->u.cancel.over = 1;
		break;
	case OBP_POOL_FOLLOW:
		bytes(m->u.follow.id, sizeof m->u.follow.id);
		text(m->u.follow.token, sizeof m->u.follow.token);
		m->u.follow.fixed = 1;
		break;
	case OBP_POOL_MOVED:
		bytes(m->u.moved.id, sizeof m->u.moved.id);
		bytes(m->u.moved.successor, sizeof m->u.moved.successor);
		text(m->u.moved.server, sizeof m->u.moved.server);
		text(m->u.moved.text, sizeof m->u.moved.text);
		m->u.moved.left_s = 57;
		break;
	case OBP_POOL_QUERY:
		text(m->u.query.what, sizeof m->u.query.what);
		text(m->u.query.target, sizeof m->u.query.target);
		m->u.query.since = next();
		break;
	case OBP_POOL_COMMAND:
		text(m->u.command.verb, sizeof m->u.command.verb);
		text(m->u.command.argument, sizeof m->u.command.argument);
		break;
	case OBP_POOL_REGISTER:
		text(m->u.join.name, sizeof m->u.join.name);
		text(m->u.join.urls, sizeof m->u.join.urls);
		m->u.join.incarnation = next();
		break;
	case OBP_POOL_REGISTERED:
		bytes(m->u.registered.key, sizeof m->u.registered.key);
		m->u.registered.cordoned = 1;
		break;
	case OBP_POOL_ORDER:
		m->u.order.kind = OBP_POOL_ORDER_LAST;
		bytes(m->u.order.id, sizeof m->u.order.id);
		text(m->u.order.text, sizeof m->u.order.text);
		break;
	case OBP_POOL_OBEYED:
		m->u.obeyed.kind = OBP_POOL_ORDER_VOID;
		m->u.obeyed.result = OBP_POOL_ENDED;
		break;
	default:
		break;
	}
}

static void fill(struct obp_pool_message *m, enum obp_pool_type type)
{
	memset(m, 0, sizeof *m);
	m->type = type;
	if (type == OBP_POOL_ASK)
		ask_fill(&m->u.ask);
	else if (type == OBP_POOL_GRANT)
		grant_fill(&m->u.grant);
	else if (type == OBP_POOL_BEAT)
		beat_fill(&m->u.beat);
	else if (type == OBP_POOL_ANSWER)
		m->u.answer = (struct obp_pool_answer){ 1, 5, (const uint8_t *)"{\"a\":" };
	else
		others_fill(m);
}

static bool equal(const struct obp_pool_message *a, const struct obp_pool_message *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == OBP_POOL_GRANT)
		return memcmp(a->u.grant.id, b->u.grant.id, sizeof a->u.grant.id) == 0 &&
			strcmp(a->u.grant.tenant, b->u.grant.tenant) == 0 &&
			a->u.grant.n_parts == b->u.grant.n_parts &&
			memcmp(a->u.grant.parts, b->u.grant.parts,
				a->u.grant.n_parts * sizeof *a->u.grant.parts) == 0;
	if (a->type == OBP_POOL_BEAT)
		return a->u.beat.number == b->u.beat.number &&
			strcmp(a->u.beat.health, b->u.beat.health) == 0 &&
			a->u.beat.healthy == b->u.beat.healthy &&
			a->u.beat.cordoned == b->u.beat.cordoned &&
			a->u.beat.drained == b->u.beat.drained &&
			a->u.beat.as_of == b->u.beat.as_of &&
			memcmp(&a->u.beat.load.devices, &b->u.beat.load.devices,
				sizeof a->u.beat.load.devices) == 0 &&
			a->u.beat.n_held == b->u.beat.n_held &&
			memcmp(a->u.beat.held, b->u.beat.held,
				a->u.beat.n_held * sizeof *a->u.beat.held) == 0;
	if (a->type == OBP_POOL_ANSWER)
		return a->u.answer.more == b->u.answer.more &&
			a->u.answer.size == b->u.answer.size &&
			memcmp(a->u.answer.bytes, b->u.answer.bytes, a->u.answer.size) == 0;
	return memcmp(&a->u, &b->u, sizeof a->u) == 0;
}

static struct obp_pool_message sent, got;

TEST(messages_survive)
{
	struct ob_buf frame;

	for (unsigned round = 0; round < 200; round++)
		for (unsigned type = OBP_POOL_ASK; type <= OBP_POOL_LAST; type++) {
			const struct obp_frame *header;

			fill(&sent, (enum obp_pool_type)type);
			ob_buf_init(&frame, sizeof *header + OBP_CONTROL_MAX);
			CHECK(obp_pool_encode(&sent, &frame));
			header = (const struct obp_frame *)frame.data;
			CHECK_INT(header->size + sizeof *header, frame.size);
			CHECK_INT(obp_pool_decode(header + 1, header->raw_size, &got), OB_ERR_NONE);
			CHECK(equal(&sent, &got));
			obp_pool_fini(&got);
			ob_buf_fini(&frame);
		}
}

TEST(altered_messages)
{
	unsigned refused = 0, taken = 0;
	struct ob_buf frame;

	for (unsigned round = 0; round < 20000; round++) {
		struct obp_frame *header;
		uint8_t *map;

		fill(&sent,
			(enum obp_pool_type)(
				OBP_POOL_ASK + round % (OBP_POOL_LAST - OBP_POOL_ASK + 1)));
		ob_buf_init(&frame, sizeof *header + OBP_CONTROL_MAX);
		CHECK(obp_pool_encode(&sent, &frame));
		header = (struct obp_frame *)frame.data;
		map = (uint8_t *)(header + 1);
		for (unsigned i = 0; i < 1 + round % 3; i++)
			map[next() % header->raw_size] ^= (uint8_t)(1 + next() % 255);
		if (obp_pool_decode(map, header->raw_size - (round & 1), &got)) {
			refused++;
		} else {
			taken++;
			obp_pool_fini(&got);
		}
		ob_buf_fini(&frame);
	}
	CHECK(refused > 5000 && taken > 100);
}

TEST(too_much_is_refused)
{
	struct ob_buf frame;

	fill(&sent, OBP_POOL_GRANT);
	sent.u.grant.n_parts = OBP_POOL_PARTS_MAX;
	ob_buf_init(&frame, 100);
	CHECK(!obp_pool_encode(&sent, &frame));
	ob_buf_fini(&frame);
}

static struct obp_ticket ticket_make(void)
{
	struct obp_ticket t;

	memset(&t, 0, sizeof t);
	bytes(t.reservation, sizeof t.reservation);
	text(t.server, sizeof t.server);
	text(t.tenant, sizeof t.tenant);
	t.incarnation = next();
	t.fence = next();
	t.issued = 1790000000 + next() % 1000;
	t.expires = t.issued + 60;
	t.linger_s = 10;
	t.memory = next() << 20;
	t.share = OBP_SHARE_ALL;
	t.priority = 2;
	t.exclusive = next() & 1;
	t.n_devices = 1 + (uint32_t)next() % OBP_DEVICE_MAX;
	for (uint32_t i = 0; i < t.n_devices; i++)
		bytes(t.devices[i], 16);
	return t;
}

TEST(tickets_survive)
{
	for (unsigned round = 0; round < 500; round++) {
		struct obp_ticket a = ticket_make(), b;
		struct ob_buf body;

		ob_buf_init(&body, OBP_TICKET_BODY_MAX);
		CHECK(obp_ticket_encode(&a, &body));
		memset(&b, 0, sizeof b);
		CHECK_INT(obp_ticket_decode(body.data, body.size, &b), OB_ERR_NONE);
		CHECK_INT(b.n_devices, a.n_devices);
		CHECK(memcmp(a.devices, b.devices, sizeof a.devices) == 0);
		CHECK(strcmp(a.server, b.server) == 0 && strcmp(a.tenant, b.tenant) == 0);
		CHECK(a.incarnation == b.incarnation && a.fence == b.fence &&
			a.issued == b.issued && a.expires == b.expires && a.memory == b.memory &&
			a.share == b.share && a.exclusive == b.exclusive);
		/* a map without its last keys is not a ticket */
		CHECK(obp_ticket_decode(body.data, body.size - 1, &b) == OB_ERR_PROTOCOL);
		ob_buf_fini(&body);
	}
}

TEST(tickets_without_a_key)
{
	/* {"server": "a"} */
	static const uint8_t map[] = { 0x81, 0xa6, 's', 'e', 'r', 'v', 'e', 'r', 0xa1, 'a' };
	struct obp_ticket ticket;

	CHECK_INT(obp_ticket_decode(map, sizeof map, &ticket), OB_ERR_PROTOCOL);
}

TEST(the_longest_ticket_fits)
{
	struct obp_ticket t = ticket_make();
	struct ob_buf body;

	memset(t.server, 's', sizeof t.server - 1);
	memset(t.tenant, 't', sizeof t.tenant - 1);
	t.incarnation = t.fence = t.issued = t.expires = t.memory = UINT64_MAX;
	t.linger_s = UINT32_MAX;
	t.n_devices = OBP_DEVICE_MAX;
	ob_buf_init(&body, OBP_TICKET_BODY_MAX);
	CHECK(obp_ticket_encode(&t, &body));
	ob_buf_fini(&body);
}

TEST(exit_codes)
{
	CHECK_INT(obp_pool_exit_code(0), 0);
	CHECK_INT(obp_pool_exit_code(OBP_POOL_CAPACITY), 69);
	CHECK_INT(obp_pool_exit_code(OBP_POOL_LATER), 75);
	CHECK_INT(obp_pool_exit_code(OBP_POOL_DENIED), 77);
	CHECK_INT(obp_pool_exit_code(1000), 70);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
