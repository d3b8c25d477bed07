/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/place.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/text.h"

#define GIB (1024.0 * 1024 * 1024)

static const char *const policy_names[OBL_POLICY_COUNT] = {
#define X(name, text, what) text,
	OBL_POLICY_LIST(X)
#undef X
};

const char *obl_policy_name(enum obl_policy policy)
{
	return (unsigned)policy < OBL_POLICY_COUNT ? policy_names[policy] : "?";
}

bool obl_policy_parse(const char *text, enum obl_policy *ret)
{
	for (unsigned i = 0; i < OBL_POLICY_COUNT; i++)
		if (strcmp(text, policy_names[i]) == 0) {
			*ret = (enum obl_policy)i;
			return true;
		}
	return false;
}

/* ---- score and load of a device ---- */

double obl_device_score(const struct obl_server *server, uint32_t index)
{
	const struct obl_device *device = &server->devices[index];
	/*
	 * Geometric mean: both compute and memory count, and neither makes up for a lack of the
	 * other.
	 */
	double compute = sqrt(ob_max(device->units, 1u) * (ob_max(device->clock_mhz, 1u) / 1000.0));
	double memory = sqrt(ob_max((double)device->total / GIB, 1.0));
	double score = compute * memory;

	/*
	 * A round trip of 100 us halves the score, as it does the speed of a program with many
	 * short calls; so does a rate of 1 GB/s, for large copies.
	 */
	if (server->link_ns)
		score *= 2.0 / (1.0 + (double)server->link_ns / 100e3);
	if (server->link_bytes_s)
		score *= 2.0 / (1.0 + 1e9 / (double)server->link_bytes_s);
	return device->soft ? score / 100 : score;
}

double obl_device_load(const struct obl_server *server, uint32_t index)
{
	const struct obl_device *device = &server->devices[index];
	double memory = device->total ? (double)device->used / (double)device->total : 0;

	/* Current work counts most; idle sessions may begin to work at any time. */
	return server->busy / 1000.0 + 0.5 * memory + 0.1 * device->sharers;
}

static double server_load(const struct obl_server *server, uint32_t device)
{
	return server->n_devices ? obl_device_load(server, device)
				 : server->busy / 1000.0 + 0.1 * server->sessions;
}

static uint64_t device_free(const struct obl_device *device)
{
	return device->total > device->used ? device->total - device->used : 0;
}

/* ---- the filter ---- */

static bool type_is(const struct obl_device *device, const char *type)
{
	return !type[0] || strcasestr(device->name, type);
}

static enum obl_fit device_fits(
	const struct obl_device *device, const struct obl_request *request, enum obl_policy policy)
{
	if (!type_is(device, request->type))
		return OBL_NO_TYPE;
	if (device->units < request->min_units)
		return OBL_NO_UNITS;
	if (device->total && device_free(device) < request->memory)
		return OBL_NO_MEMORY;
	if (device->held || (policy == OBL_EXCLUSIVE && device->sharers) ||
		(request->max_sharers && device->sharers >= request->max_sharers))
		return OBL_SHARED;
	return OBL_FITS;
}

/* Below 0: a is better under the policy; ties are resolved by score, then by index. */
static double device_compare(const struct obl_server *sa, uint32_t a, const struct obl_server *sb,
	uint32_t b, enum obl_policy policy)
{
	const struct obl_device *da = &sa->devices[a], *db = &sb->devices[b];
	double order = 0;

	switch (policy) {
	case OBL_BINPACK:
		/*
		 * GPUs before software devices, those with room for sharers before crowded ones,
		 * then the tightest fit.
		 */
		order = (double)da->soft - db->soft;
		if (order == 0)
			order = (double)(da->sharers >= OBL_SHARERS_PREFERRED) -
				(db->sharers >= OBL_SHARERS_PREFERRED);
		if (order == 0)
			order = (double)device_free(da) - (double)device_free(db);
		break;
	case OBL_SPREAD:
		order = (double)da->soft - db->soft;
		if (order == 0)
			order = (double)da->sharers - db->sharers;
		if (order == 0)
			order = (double)device_free(db) - (double)device_free(da);
		break;
	case OBL_EXCLUSIVE:
		order = (double)da->soft - db->soft;
		/* the smallest that suffices: leave larger ones for larger requests */
		if (order == 0)
			order = (double)da->total - (double)db->total;
		break;
	case OBL_LEAST_CONNECTIONS:
		order = (double)sa->sessions - sb->sessions;
		if (order == 0)
			order = server_load(sa, a) - server_load(sb, b);
		break;
	default:
		/*
		 * A software device counts as busy: an idle CPU is slower than a GPU with a little
		 * work.
		 */
		order = server_load(sa, a) + 2.0 * da->soft - server_load(sb, b) - 2.0 * db->soft;
		break;
	}
	return order != 0 ? order : obl_device_score(sb, b) - obl_device_score(sa, a);
}

enum obl_fit obl_fits(const struct obl_server *server, const struct obl_request *request,
	enum obl_policy policy, uint32_t *ret_device)
{
	enum obl_fit reason = OBL_REASONS;
	bool any = false;

	*ret_device = 0;
	if (!server->alive)
		return OBL_DEAD;
	if (server->draining)
		return OBL_DRAINING;
	if (server->sessions >= server->max_sessions)
		return OBL_FULL;
	/* the devices are unknown: type and exclusive use cannot be guaranteed */
	if (server->n_devices == 0)
		return request->type[0]                               ? OBL_NO_TYPE
			: policy == OBL_EXCLUSIVE && server->sessions ? OBL_SHARED
								      : OBL_FITS;
	for (uint32_t i = 0; i < ob_min(server->n_devices, OBL_DEVICES_MAX); i++) {
		enum obl_fit one = device_fits(&server->devices[i], request, policy);

		if (one == OBL_FITS &&
			(!any || device_compare(server, i, server, *ret_device, policy) < 0)) {
			*ret_device = i;
			any = true;
		}
		if (!any && (reason == OBL_REASONS || one > reason))
			reason = one; /* report the reason of the device that passed most filters */
	}
	return any ? OBL_FITS : reason;
}

/* ---- the policies ---- */

struct fitting {
	const struct obl_server *servers;
	enum obl_policy policy;
	uint32_t n;
	uint16_t server[OBL_SERVERS_MAX];
	uint8_t device[OBL_SERVERS_MAX];
};

/* Steele, Lea, Flood: SplitMix64. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Uniform in [0, n); the bias is below n / 2^32. */
static uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

static double compare(const struct fitting *f, uint32_t a, uint32_t b)
{
	const struct obl_server *sa = &f->servers[f->server[a]], *sb = &f->servers[f->server[b]];

	return device_compare(sa, f->device[a], sb, f->device[b], f->policy);
}

/*
 * The best; among equal ones a random one, so that clients with the same data do not all choose the
 * first.
 */
static uint32_t pick_best(const struct fitting *f, uint64_t *random)
{
	uint32_t best = 0, equal = 1;

	for (uint32_t i = 1; i < f->n; i++) {
		double order = compare(f, i, best);

		if (order < 0) {
			best = i;
			equal = 1;
		} else if (order == 0 && random_below(random, ++equal) == 0) {
			best = i;
		}
	}
	return best;
}

/*
 * The first fitting server at or after the turn, which then moves behind it: a server that did not
 * fit keeps its position.
 */
static uint32_t pick_turn(const struct fitting *f, uint32_t n, uint64_t *turn)
{
	uint32_t at = (uint32_t)(*turn % n), pick = 0;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->server[i] >= at) {
			pick = i;
			break;
		}
	*turn = (uint64_t)f->server[pick] + 1;
	return pick;
}

static double weight_of(const struct fitting *f, uint32_t i)
{
	const struct obl_server *server = &f->servers[f->server[i]];

	if (server->weight)
		return server->weight;
	return server->n_devices ? obl_device_score(server, f->device[i]) : 1;
}

static uint32_t pick_weighted(const struct fitting *f, uint64_t *random)
{
	double total = 0, at;

	for (uint32_t i = 0; i < f->n; i++)
		total += weight_of(f, i);
	at = (double)(random_next(random) >> 11) / 9007199254740992.0 * total;
	for (uint32_t i = 0; i < f->n; i++) {
		at -= weight_of(f, i);
		if (at < 0)
			return i;
	}
	return f->n - 1; /* after rounding errors */
}

static uint32_t pick_of_two(const struct fitting *f, uint64_t *random)
{
	uint32_t a = random_below(random, f->n), b;

	if (f->n == 1)
		return 0;
	b = random_below(random, f->n - 1);
	b += b >= a;
	return compare(f, b, a) < 0 ? b : a;
}

bool obl_place(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	enum obl_policy policy, struct obl_state *state, struct obl_choice *ret)
{
	struct fitting fitting = { .servers = servers, .policy = policy };
	uint32_t device, pick;

	*ret = (struct obl_choice){ .server = 0 };
	n = ob_min(n, OBL_SERVERS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		enum obl_fit reason = obl_fits(&servers[i], request, policy, &device);

		ret->left_out[reason]++;
		if (reason == OBL_FITS) {
			fitting.server[fitting.n] = (uint16_t)i;
			fitting.device[fitting.n++] = (uint8_t)device;
		} else if (reason == OBL_NO_MEMORY) {
			for (uint32_t k = 0; k < ob_min(servers[i].n_devices, OBL_DEVICES_MAX); k++)
				ret->most_free =
					ob_max(ret->most_free, device_free(&servers[i].devices[k]));
		}
	}
	if (fitting.n == 0)
		return false;
	switch (policy) {
	case OBL_ROUND_ROBIN:
		pick = pick_turn(&fitting, n, &state->turn);
		break;
	case OBL_WEIGHTED:
		pick = pick_weighted(&fitting, &state->random);
		break;
	case OBL_POWER_OF_TWO:
		pick = pick_of_two(&fitting, &state->random);
		break;
	default:
		pick = pick_best(&fitting, &state->random);
		break;
	}
	ret->server = fitting.server[pick];
	ret->device = fitting.device[pick];
	return true;
}

void obl_explain(const struct obl_choice *choice, const struct obl_request *request, char *ret_text,
	size_t size)
{
	static const char *const texts[OBL_REASONS] = {
		[OBL_FITS] = "fit",
		[OBL_DEAD] = "do not answer",
		[OBL_DRAINING] = "are shutting down",
		[OBL_FULL] = "are full",
		[OBL_NO_TYPE] = "have no device of that type",
		[OBL_NO_UNITS] = "have too few multiprocessors",
		[OBL_NO_MEMORY] = "have too little free memory",
		[OBL_SHARED] = "have only devices that are taken",
	};
	char wanted[32], most[32];
	size_t at = 0;

	if (size)
		ret_text[0] = 0;
	for (unsigned r = OBL_DEAD; r < OBL_REASONS; r++)
		if (choice->left_out[r] && at < size)
			at += (size_t)snprintf(ret_text + at, size - at, "%s%u %s", at ? ", " : "",
				choice->left_out[r], texts[r]);
	if (choice->left_out[OBL_NO_MEMORY] && at < size) {
		ob_text_print_size(request->memory, wanted, sizeof wanted);
		ob_text_print_size(choice->most_free, most, sizeof most);
		snprintf(ret_text + at, size - at, " (%s wanted, the largest free block is %s)",
			wanted, most);
	}
}
