/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Placement: properties that hold for any servers and any request, tested with many random ones
 * against a second implementation from the definition.
 */
#include <strings.h>

#include "base/check.h"
#include "loadbalancer/place.h"
#include "tests/test.h"

#define GIB     (1ull << 30)
#define ROUNDS  (20000 / TEST_SLOWER)
#define SERVERS 12

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static void random_device(struct obl_device *device)
{
	static const char *const names[] = { "NVIDIA H200", "NVIDIA L4",
		"Outboard software device (CPU)" };
	uint32_t kind = below(3);

	*device = (struct obl_device){ .total = (1ull + below(80)) * GIB,
		.units = 1 + below(132),
		.clock_mhz = 1000 + below(1000),
		.sharers = below(2) * below(12),
		.share = below(3) * 250000,
		.celsius = (uint16_t)(30 + below(64)),
		.kind = kind == 2       ? OBL_SOFTWARE
			: below(6) == 0 ? OBL_MIG
					: OBL_GPU,
		.mig_mode = kind != 2 && below(20) == 0,
		.faulty = below(20) == 0,
		.withdrawn = below(20) == 0,
		.held = below(20) == 0 };
	device->reserved = device->sharers ? device->total / 100 * below(101) : 0;
	device->model = names[kind];
}

static struct obl_labels labels[2]; /* zone a, zone b */

static void random_server(struct obl_server *server, uint32_t devices_max)
{
	*server = (struct obl_server){ .alive = below(10) != 0,
		.draining = below(15) == 0,
		.cordoned = below(15) == 0,
		.unhealthy = below(15) == 0,
		.sessions = below(9),
		.max_sessions = 8,
		.fresh = below(4),
		.fresh_max = below(4) ? 0 : 2,
		.busy = below(1001),
		.cuda = below(2) ? 12000 : 13000,
		.weight = below(2) * below(10),
		.link_ns = below(2) * below(1000000),
		.name = "rack",
		.labels = below(3) ? &labels[below(2)] : NULL,
		.n_devices = below(devices_max + 1) };
	for (uint32_t i = 0; i < server->n_devices; i++)
		random_device(&server->devices[i]);
	obl_server_score(server);
}

static const struct obl_where *random_where(void)
{
	static const char *const texts[] = { "zone=a", "zone!=b,memory>=20GiB", "kind=software",
		"model=L4|h200,units>=10" };
	static struct obl_where where;
	struct ob_cause cause;

	CHECK_INT(obl_where_parse(texts[below(4)], &where, &cause), OB_ERR_NONE);
	return &where;
}

static struct obl_request random_request(void)
{
	static uint64_t apart;
	struct obl_request request = { .memory = below(3) ? below(60) * GIB : 0,
		.gpus = below(2) ? below(3) : below(OBL_GPUS_MAX + 2),
		.share = below(3) * 200000,
		.exclusive = below(6) == 0,
		.one_server = below(4) == 0,
		.cuda = below(4) ? 0 : 12040,
		.min_units = below(4) ? 0 : below(100),
		.max_sharers = below(3) ? 0 : below(10),
		.where = below(4) ? NULL : random_where(),
		.apart = below(4) ? NULL : &apart };

	apart = (uint64_t)below(1u << SERVERS);
	if (below(4) == 0)
		strcpy(request.type, below(2) ? "h200" : "L4");
	return request;
}

/* ---- the definition ---- */

static bool server_open(const struct obl_server *s, uint32_t i, const struct obl_request *r)
{
	return s->alive && !s->draining && !s->cordoned && !s->unhealthy &&
		s->sessions < s->max_sessions && !(s->fresh_max && s->fresh >= s->fresh_max) &&
		!(r->apart && (*r->apart >> i & 1));
}

static bool server_ever(const struct obl_server *s, const struct obl_request *r)
{
	return !(r->cuda && s->cuda < r->cuda) &&
		!(r->where && !obl_where_server(r->where, s->name, s->cuda, s->labels));
}

static bool device_ever(const struct obl_device *d, const struct obl_request *r)
{
	return !d->mig_mode && (!r->type[0] || strcasestr(d->model, r->type)) &&
		!(r->where && !obl_where_device(r->where, d)) && d->units >= r->min_units &&
		d->total >= ob_max(r->memory, 1u);
}

static bool device_now(const struct obl_device *d, const struct obl_request *r, bool alone)
{
	return d->total - d->reserved >= ob_max(r->memory, 1u) && d->share + r->share <= 1000000 &&
		!d->held && !(alone && d->sharers) && !d->faulty && !d->withdrawn &&
		d->celsius <= OBL_CELSIUS_MAX && !(r->max_sharers && d->sharers >= r->max_sharers);
}

static bool may_take(const struct obl_server *servers, uint32_t i, uint32_t d,
	const struct obl_request *r, bool alone, bool now)
{
	const struct obl_server *s = &servers[i];

	if (!server_ever(s, r) || (now && !server_open(s, i, r)))
		return false;
	if (s->n_devices == 0)
		return !r->type[0] && !(now && alone && s->sessions);
	return d < s->n_devices && device_ever(&s->devices[d], r) &&
		(!now || device_now(&s->devices[d], r, alone));
}

/* The largest number of devices of the kind, and *ret_parts the fewest servers for `need` of them. */
static uint32_t could_have(const struct obl_server *servers, const struct obl_request *r,
	bool alone, bool now, bool software, uint32_t need, uint32_t *ret_parts)
{
	uint32_t counts[SERVERS] = { 0 }, total = 0;

	for (uint32_t i = 0; i < SERVERS; i++)
		for (uint32_t d = 0; d < ob_max(servers[i].n_devices, 1u); d++)
			if ((servers[i].n_devices && servers[i].devices[d].kind == OBL_SOFTWARE) ==
				software)
				counts[i] += may_take(servers, i, d, r, alone, now);
	*ret_parts = 0;
	for (uint32_t p = 0; p < (r->one_server ? 1 : OBL_PARTS_MAX); p++) {
		uint32_t best = 0;

		for (uint32_t i = 1; i < SERVERS; i++)
			best = counts[i] > counts[best] ? i : best;
		if (total < need)
			*ret_parts = p + 1;
		total += counts[best];
		counts[best] = 0;
	}
	return total;
}

static bool is_software(const struct obl_server *servers, const struct obl_part *part)
{
	return part->n && servers[part->server].devices[part->devices[0]].kind == OBL_SOFTWARE;
}

static void placed_check(const struct obl_server *servers, const struct obl_request *r, bool alone,
	const struct obl_choice *choice)
{
	uint32_t need = ob_max(r->gpus, 1u), got = 0, fewest;
	bool software = is_software(servers, &choice->parts[0]), used[SERVERS] = { false };

	CHECK(choice->outlook == OBL_PLACED);
	for (uint32_t p = 0; p < choice->n_parts; p++) {
		const struct obl_part *part = &choice->parts[p];

		CHECK(part->server < SERVERS && !used[part->server]);
		used[part->server] = true;
		if (part->n == 0)
			CHECK(may_take(servers, part->server, 0, r, alone, true));
		for (uint32_t d = 0; d < part->n; d++) {
			const struct obl_device *device =
				&servers[part->server].devices[part->devices[d]];

			CHECK(may_take(servers, part->server, part->devices[d], r, alone, true));
			CHECK_INT(device->kind == OBL_SOFTWARE, software);
			CHECK(d == 0 || part->devices[d] > part->devices[d - 1]);
		}
		got += ob_max(part->n, 1u);
	}
	CHECK_INT(got, need);
	CHECK(could_have(servers, r, alone, true, software, need, &fewest) >= need);
	CHECK_INT(choice->n_parts, fewest);
	if (software)
		CHECK(could_have(servers, r, alone, true, false, need, &fewest) < need);
}

static void refused_check(const struct obl_server *servers, const struct obl_request *r, bool alone,
	const struct obl_choice *choice)
{
	uint32_t need = ob_max(r->gpus, 1u), out = 0, all = 0, p;
	char text[512];

	CHECK_INT(choice->most,
		ob_max(could_have(servers, r, alone, true, false, need, &p),
			could_have(servers, r, alone, true, true, need, &p)));
	CHECK_INT(choice->most_ever,
		ob_max(could_have(servers, r, alone, false, false, need, &p),
			could_have(servers, r, alone, false, true, need, &p)));
	CHECK(choice->most < need || need > OBL_GPUS_MAX);
	CHECK_INT(choice->outlook,
		choice->most_ever < need || need > OBL_GPUS_MAX ? OBL_CAPACITY : OBL_LATER);
	/* every server counts once, or with each of its devices */
	for (int reason = OBL_FITS; reason < OBL_REASONS; reason++)
		out += choice->left_out[reason];
	for (uint32_t i = 0; i < SERVERS; i++)
		all += server_open(&servers[i], i, r) && server_ever(&servers[i], r)
			? ob_max(servers[i].n_devices, 1u)
			: 1;
	CHECK_INT(out, all);
	obl_explain(choice, servers, r, text, sizeof text);
	CHECK(text[0]);
	if (choice->nearest.bytes) {
		const struct obl_device *near =
			&servers[choice->nearest.server].devices[choice->nearest.device];

		CHECK(near->total - near->reserved == choice->nearest.bytes);
		CHECK(choice->nearest.bytes < ob_max(r->memory, 1u));
	}
}

TEST(what_is_chosen_fits_and_something_is_chosen_when_anything_does)
{
	struct obl_server servers[SERVERS];
	uint32_t placed = 0, several = 0, never = 0;
	struct obl_choice choice;
	struct ob_cause cause;

	CHECK(!obl_labels_parse("zone=a", &labels[0], &cause));
	CHECK(!obl_labels_parse("zone=b", &labels[1], &cause));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		enum obl_policy policy = (enum obl_policy)below(OBL_POLICY_COUNT);
		struct obl_request request = random_request();
		struct obl_state state = { below(1000), seed };
		bool alone = request.exclusive || policy == OBL_EXCLUSIVE;
		uint32_t most = below(2) ? 3 : OBL_DEVICES_MAX;

		for (int i = 0; i < SERVERS; i++)
			random_server(&servers[i], most);
		if (obl_place(servers, SERVERS, &request, policy, &state, &choice)) {
			placed_check(servers, &request, alone, &choice);
			placed++;
			several += choice.n_parts > 1;
		} else {
			refused_check(servers, &request, alone, &choice);
			never += choice.outlook == OBL_CAPACITY;
		}
	}
	/* all three outcomes were tested */
	CHECK(placed > ROUNDS / 4 && several > ROUNDS / 50 && never > ROUNDS / 50);
}

TEST(the_same_arguments_give_the_same_answer)
{
	struct obl_server servers[SERVERS];
	struct obl_choice a, b;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		enum obl_policy policy = (enum obl_policy)below(OBL_POLICY_COUNT);
		struct obl_request request = random_request();
		struct obl_state first = { below(1000), seed }, second = first;

		for (int i = 0; i < SERVERS; i++)
			random_server(&servers[i], 4);
		CHECK_INT(obl_place(servers, SERVERS, &request, policy, &first, &a),
			obl_place(servers, SERVERS, &request, policy, &second, &b));
		CHECK(memcmp(&a, &b, sizeof a) == 0 && memcmp(&first, &second, sizeof first) == 0);
	}
}

/*
 * The result of deterministic policies does not depend on the order of the list, unless two servers
 * are equal.
 */
TEST(the_order_of_the_list_does_not_matter)
{
	static const enum obl_policy policies[] = { OBL_LEAST_LOAD, OBL_LEAST_CONNECTIONS,
		OBL_BINPACK, OBL_SPREAD, OBL_EXCLUSIVE };
	struct obl_server servers[SERVERS], turned[SERVERS];
	struct obl_choice a, b;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		enum obl_policy policy = policies[below(ob_count(policies))];
		struct obl_request request = random_request();
		struct obl_state state = { 0, seed };
		uint32_t by = below(SERVERS);

		request.apart = NULL;
		request.gpus = below(3);
		for (uint32_t i = 0; i < SERVERS; i++) {
			random_server(&servers[i], 0);
			servers[i].sessions = below(9);
			servers[i].n_devices = 1 + below(2);
			random_device(&servers[i].devices[0]);
			random_device(&servers[i].devices[1]);
			servers[i].devices[0].busy =
				(uint16_t)(2 * i); /* so that no two are equal */
			servers[i].devices[1].busy = (uint16_t)(2 * i + 1);
			servers[i].link_ns = 1000 + i;
			obl_server_score(&servers[i]);
		}
		for (uint32_t i = 0; i < SERVERS; i++)
			turned[i] = servers[(i + by) % SERVERS];
		if (!obl_place(servers, SERVERS, &request, policy, &state, &a))
			continue;
		CHECK(obl_place(turned, SERVERS, &request, policy, &state, &b));
		CHECK_INT(a.n_parts, b.n_parts);
		for (uint32_t p = 0; p < a.n_parts; p++) {
			CHECK_INT((b.parts[p].server + by) % SERVERS, a.parts[p].server);
			CHECK_INT(a.parts[p].devices[0], b.parts[p].devices[0]);
		}
	}
}

/* Nothing is ever promised twice, whatever comes and goes; and at the end all is free again. */
TEST(a_long_run_never_promises_too_much)
{
	enum { HELD = 200 };
	static struct obl_request requests[HELD];
	static struct obl_choice choices[HELD];
	static struct obl_server servers[SERVERS], before[SERVERS];
	bool used[HELD] = { false };
	uint32_t placed = 0;

	for (uint32_t i = 0; i < SERVERS; i++) {
		servers[i] =
			(struct obl_server){ .alive = true, .max_sessions = 40, .n_devices = 8 };
		for (uint32_t d = 0; d < 8; d++)
			servers[i].devices[d] =
				(struct obl_device){ .total = 80 * GIB, .units = 100 };
	}
	memcpy(before, servers, sizeof servers);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t k = below(HELD);
		struct obl_state state = { round, seed };

		if (used[k]) {
			obl_give(servers, &requests[k], &choices[k]);
			used[k] = false;
			continue;
		}
		requests[k] = (struct obl_request){ .gpus = below(12),
			.memory = (1 + below(80)) * GIB,
			.share = below(4) * 250000,
			.exclusive = below(8) == 0,
			.one_server = below(3) == 0 };
		used[k] = obl_place(servers, SERVERS, &requests[k],
			(enum obl_policy)below(OBL_POLICY_COUNT - 1), &state, &choices[k]);
		if (!used[k])
			continue;
		placed++;
		obl_take(servers, &requests[k], &choices[k]);
		for (uint32_t i = 0; i < SERVERS; i++)
			for (uint32_t d = 0; d < 8; d++) {
				const struct obl_device *device = &servers[i].devices[d];

				CHECK(device->reserved <= device->total &&
					device->share <= 1000000);
				CHECK(!device->held || device->sharers == 1);
			}
	}
	CHECK(placed > ROUNDS / 10);
	for (uint32_t k = 0; k < HELD; k++)
		if (used[k])
			obl_give(servers, &requests[k], &choices[k]);
	for (uint32_t i = 0; i < SERVERS; i++) {
		servers[i].fresh = 0;
		CHECK(memcmp(&servers[i], &before[i], sizeof servers[i]) == 0);
	}
}

/* A claim names devices that would fit were they free, as many as needed, on the fewest servers. */
TEST(claims)
{
	struct obl_server servers[SERVERS];
	struct obl_choice claim;
	uint32_t claimed = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct obl_request request = random_request();
		uint32_t got = 0;

		for (int i = 0; i < SERVERS; i++) {
			random_server(&servers[i], 8);
			servers[i].n_devices = ob_max(servers[i].n_devices, 1u);
		}
		if (!obl_claim(servers, SERVERS, &request, &claim))
			continue;
		claimed++;
		CHECK(obl_claim_holds(servers, SERVERS, &request, &claim));
		for (uint32_t p = 0; p < claim.n_parts; p++) {
			struct obl_server *s = &servers[claim.parts[p].server];

			got += claim.parts[p].n;
			s->sessions = s->fresh = 0;
			for (uint32_t d = 0; d < claim.parts[p].n; d++) {
				struct obl_device *device = &s->devices[claim.parts[p].devices[d]];

				device->reserved = device->share = device->sharers = 0;
				device->held = false;
			}
		}
		CHECK_INT(got, ob_max(request.gpus, 1u));
		/* what was claimed is free now, so the request fits */
		CHECK(obl_place(servers, SERVERS, &request, OBL_BINPACK,
			&(struct obl_state){ 0, 1 }, &(struct obl_choice){ 0 }));
		servers[claim.parts[0].server].devices[claim.parts[0].devices[0]].faulty = true;
		CHECK(!obl_claim_holds(servers, SERVERS, &request, &claim));
	}
	CHECK(claimed > ROUNDS / 4);
}

/* The maximum number of servers is used, and what is behind it is not. */
TEST(the_last_server)
{
	static struct obl_server servers[OBL_SERVERS_MAX + 1];
	struct obl_request request = { .memory = GIB };
	struct obl_state state = { 0, 1 };
	struct obl_choice choice;

	for (uint32_t at = OBL_SERVERS_MAX - 1; at <= OBL_SERVERS_MAX; at++) {
		memset(servers, 0, sizeof servers);
		servers[at] = (struct obl_server){
			.alive = true, .max_sessions = 1, .n_devices = OBL_DEVICES_MAX
		};
		servers[at].devices[OBL_DEVICES_MAX - 1].total = GIB;
		for (uint32_t d = 0; d + 1 < OBL_DEVICES_MAX; d++)
			servers[at].devices[d].total = 1;
		CHECK_INT(obl_place(servers, OBL_SERVERS_MAX + 1, &request, OBL_BINPACK, &state,
				  &choice),
			at < OBL_SERVERS_MAX);
	}
	CHECK(!obl_place(servers, 0, &request, OBL_BINPACK, &state, &choice));
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
