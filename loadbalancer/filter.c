/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/filter.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"

/* ---- the filter ---- */

struct obl_search obl_search_of(const struct obl_server *servers, uint32_t n,
	const struct obl_request *request, enum obl_policy policy, enum obl_view view)
{
	bool exclusive = request->exclusive || policy == OBL_EXCLUSIVE;

	return (struct obl_search){ .servers = servers,
		.request = request,
		.n = ob_min(n, OBL_SERVERS_MAX),
		.policy = policy,
		.view = view,
		.named = request->type[0] || request->where,
		.exclusive = exclusive,
		.need = ob_max(request->gpus, 1u),
		.parts_max = request->one_server ? 1 : OBL_PARTS_MAX,
		.share_most = OBL_SHARE_ALL - ob_min(request->share, OBL_SHARE_ALL),
		.sharers_most = exclusive      ? 1
			: request->max_sharers ? request->max_sharers
					       : UINT32_MAX,
		.memory = ob_max(request->memory, 1u) };
}

enum obl_fit obl_server_reason(const struct obl_search *s, uint32_t i)
{
	const struct obl_server *server = &s->servers[i];
	const struct obl_request *request = s->request;

	if (s->view != OBL_VIEW_EMPTY) {
		if (!server->alive)
			return OBL_DEAD;
		if (server->draining)
			return OBL_DRAINING;
		if (server->cordoned)
			return OBL_CORDONED;
		if (server->unhealthy)
			return OBL_UNWELL;
	}
	if (s->view == OBL_VIEW_NOW) {
		if (server->sessions >= server->max_sessions)
			return OBL_FULL;
		if (server->fresh_max && server->fresh >= server->fresh_max)
			return OBL_STARTING;
	}
	if (request->cuda && server->cuda && server->cuda < request->cuda)
		return OBL_OLD_CUDA;
	if (request->where &&
		!obl_where_server(request->where, server->name ? server->name : "", server->cuda,
			server->labels))
		return OBL_NOT_WHERE;
	if (s->view != OBL_VIEW_EMPTY && request->apart && (request->apart[i / 64] >> i % 64 & 1))
		return OBL_APART;
	return OBL_FITS;
}

static bool name_fits(const struct obl_request *request, const struct obl_device *device)
{
	return (!request->type[0] ||
		       strcasestr(device->model ? device->model : "", request->type)) &&
		(!request->where || obl_where_device(request->where, device));
}

enum obl_fit obl_device_reason(
	const struct obl_search *s, const struct obl_device *device, bool kept)
{
	if (device->mig_mode || (s->named && !name_fits(s->request, device)))
		return OBL_NO_TYPE;
	if (device->units < s->request->min_units)
		return OBL_NO_UNITS;
	if (s->view != OBL_VIEW_EMPTY &&
		(device->faulty || device->withdrawn || device->celsius > OBL_CELSIUS_MAX))
		return OBL_FAULTY;
	if (s->view != OBL_VIEW_NOW)
		return device->total && device->total < s->memory ? OBL_NO_MEMORY : OBL_FITS;
	if (obl_device_free(device) < s->memory)
		return OBL_NO_MEMORY;
	if (device->share > s->share_most)
		return OBL_NO_SHARE;
	if (device->held || device->sharers >= s->sharers_most)
		return OBL_SHARED;
	return kept ? OBL_KEPT : OBL_FITS;
}

enum obl_fit obl_unknown_reason(const struct obl_search *s, const struct obl_server *server)
{
	if (s->request->type[0])
		return OBL_NO_TYPE;
	return s->view == OBL_VIEW_NOW && s->exclusive && server->sessions ? OBL_SHARED : OBL_FITS;
}

uint32_t obl_kept_of(const struct obl_search *s, uint32_t i)
{
	const struct obl_choice *kept = s->request->kept;
	uint32_t mask = 0;

	if (!kept || s->view != OBL_VIEW_NOW)
		return 0;
	for (uint32_t p = 0; p < kept->n_parts; p++)
		for (uint32_t d = 0; kept->parts[p].server == i && d < kept->parts[p].n; d++)
			mask |= 1u << kept->parts[p].devices[d];
	return mask;
}

/* ---- the order of devices and servers: the smallest key is the best ---- */

static uint64_t mib(uint64_t bytes)
{
	return ob_min(bytes >> 20, (UINT64_C(1) << 41) - 1);
}

/*
 * What must end on a device before the request fits: 20 bits, about how many of its sharers; 42 bits
 * of MiB. The number comes first, because the time until the last of them ends grows with it.
 */
static uint64_t excess(const struct obl_search *s, const struct obl_device *device)
{
	uint64_t bytes = 0, all = ob_min(device->sharers, (1u << 20) - 1), sharers = 0;

	if (device->total && obl_device_free(device) < s->memory)
		bytes = s->memory - obl_device_free(device);
	if (device->held || device->sharers >= s->sharers_most) {
		bytes = s->exclusive || device->held ? device->reserved : bytes;
		sharers = s->exclusive || device->held ? all : all - (s->sharers_most - 1);
	}
	if (bytes)
		sharers = ob_max(sharers,
			(uint64_t)((double)bytes / (double)ob_max(device->reserved, 1u) *
					(double)all +
				0.999));
	if (device->share > s->share_most)
		sharers = ob_max(sharers, all * (device->share - s->share_most) / device->share);
	return ob_min(sharers, (UINT64_C(1) << 20) - 1) << 42 | mib(bytes);
}

static inline uint64_t load(const struct obl_device *device)
{
	return (uint64_t)(obl_device_load(device) * 1e6);
}

/* At most 63 bits, so that the keys of several devices can be added after a shift. */
static inline __attribute__((always_inline)) uint64_t device_key(const struct obl_search *s,
	const struct obl_server *server, const struct obl_device *device, enum obl_policy policy)
{
	uint64_t share = ob_min(device->share, OBL_SHARE_ALL);

	switch (policy) {
	case OBL_BINPACK:
		return (uint64_t)(s->spare_idle ? device->sharers == 0
						: device->sharers >= OBL_SHARERS_PREFERRED)
			<< 61 |
			mib(obl_device_free(device)) << 20 | share;
	case OBL_SPREAD:
		return (uint64_t)ob_min(device->sharers, (1u << 20) - 1) << 42 |
			(mib(UINT64_MAX) - mib(obl_device_free(device)));
	case OBL_EXCLUSIVE: /* the smallest that suffices: leave larger ones for larger requests */
		return mib(device->total);
	case OBL_LEAST_CONNECTIONS:
		return (uint64_t)ob_min(server->sessions, (1u << 20) - 1) << 42 |
			ob_min(load(device), (UINT64_C(1) << 42) - 1);
	case OBL_POLICY_COUNT: /* of a claim */
		return excess(s, device);
	default:
		return load(device);
	}
}

uint64_t obl_rank_second(const struct obl_search *s, const struct obl_server *server, uint32_t best)
{
	const struct obl_device *device = &server->devices[best];
	uint32_t score, idle = 0;

	switch (s->policy) {
	case OBL_BINPACK:
	case OBL_EXCLUSIVE:
		/* Use up servers that are in use already, so that others stay whole; then the nearest. */
		for (uint32_t i = 0; i < ob_min(server->n_devices, OBL_DEVICES_MAX); i++)
			idle += !server->devices[i].sharers && !server->devices[i].held;
		return (uint64_t)idle << 48 | ob_min(server->link_ns, (UINT64_C(1) << 48) - 1);
	case OBL_SPREAD:
		return server->n_devices ? load(device) : 0;
	default: /* the higher score; the bits of floats above 0 are in the order of their values */
		memcpy(&score, &device->score, sizeof score);
		return server->n_devices ? UINT32_MAX - score : UINT32_MAX;
	}
}

/*
 * The same as obl_device_reason without names, in the view NOW, and without branches that a
 * processor would have to predict: this is done for every device of the pool.
 */
static inline __attribute__((always_inline)) bool fits_now(
	const struct obl_search *s, const struct obl_device *device, bool kept)
{
	uint32_t flags;

	memcpy(&flags, &device->mig_mode, sizeof flags);
	return !(flags | (unsigned)(device->units < s->request->min_units) |
		(unsigned)(device->celsius > OBL_CELSIUS_MAX) |
		(unsigned)(obl_device_free(device) < s->memory) |
		(unsigned)(device->share > s->share_most) |
		(unsigned)(device->sharers >= s->sharers_most) | (unsigned)kept);
}

_Static_assert(offsetof(struct obl_device, held) == offsetof(struct obl_device, mig_mode) + 1 &&
		offsetof(struct obl_device, faulty) == offsetof(struct obl_device, mig_mode) + 2 &&
		offsetof(struct obl_device, withdrawn) == offsetof(struct obl_device, mig_mode) + 3,
	"fits_now reads four flags at once");

/* plain and policy are constants, so that the loop is compiled for each. */
static inline __attribute__((always_inline)) bool scan(
	const struct obl_search *s, bool plain, enum obl_policy policy, struct obl_rank *ret)
{
	const struct obl_server *server = &s->servers[ret->server];
	uint32_t kept = obl_kept_of(s, ret->server), n = ob_min(server->n_devices, OBL_DEVICES_MAX);

	for (uint32_t d = 0; d < n; d++) {
		const struct obl_device *device = &server->devices[d];
		uint64_t key;

		if ((device->kind == OBL_SOFTWARE) != s->software ||
			!(plain ? fits_now(s, device, kept >> d & 1)
				: obl_device_reason(s, device, kept >> d & 1) == OBL_FITS))
			continue;
		key = device_key(s, server, device, policy);
		if (key < ret->first ||
			(key == ret->first && device->score > server->devices[ret->device].score)) {
			ret->first = key;
			ret->device = d;
		}
	}
	return ret->first != UINT64_MAX;
}

bool obl_rank_one(const struct obl_search *s, uint32_t i, struct obl_rank *ret)
{
	const struct obl_server *server = &s->servers[i];

	ret->server = i;
	ret->device = 0;
	ret->first = UINT64_MAX;
	ret->has_second = false;
	if (server->n_devices == 0) {
		ret->first = s->policy == OBL_LEAST_CONNECTIONS
			? (uint64_t)server->sessions << 42
			: server->busy * 1000ull + server->sessions * 100000ull;
		return !s->software && obl_unknown_reason(s, server) == OBL_FITS;
	}
	if (s->named || s->view != OBL_VIEW_NOW)
		return scan(s, false, s->policy, ret);
	switch (s->policy) {
	case OBL_BINPACK:
		return scan(s, true, OBL_BINPACK, ret);
	case OBL_SPREAD:
		return scan(s, true, OBL_SPREAD, ret);
	case OBL_EXCLUSIVE:
		return scan(s, true, OBL_EXCLUSIVE, ret);
	case OBL_LEAST_CONNECTIONS:
		return scan(s, true, OBL_LEAST_CONNECTIONS, ret);
	default:
		return scan(s, true, OBL_LEAST_LOAD, ret);
	}
}

uint32_t obl_rank_many(const struct obl_search *s, uint32_t i, uint32_t k,
	uint8_t ret_devices[OBL_DEVICES_MAX], uint64_t *ret_sum)
{
	const struct obl_server *server = &s->servers[i];
	uint32_t kept = obl_kept_of(s, i), fits = 0, n = 0;
	uint64_t keys[OBL_DEVICES_MAX];

	for (uint32_t d = 0; d < ob_min(server->n_devices, OBL_DEVICES_MAX); d++) {
		const struct obl_device *device = &server->devices[d];
		uint64_t key;
		uint32_t at;

		if ((device->kind == OBL_SOFTWARE) != s->software ||
			obl_device_reason(s, device, kept >> d & 1) != OBL_FITS)
			continue;
		fits++;
		key = device_key(s, server, device, s->policy);
		for (at = n; at && keys[at - 1] > key; at--)
			if (at < k) {
				keys[at] = keys[at - 1];
				ret_devices[at] = ret_devices[at - 1];
			}
		if (at < k) {
			keys[at] = key;
			ret_devices[at] = (uint8_t)d;
			n = ob_min(n + 1, k);
		}
	}
	*ret_sum = 0;
	for (uint32_t d = 0; d < n; d++)
		*ret_sum += keys[d] >> 4; /* OBL_DEVICES_MAX keys of 63 bits */
	return fits;
}
