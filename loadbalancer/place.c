/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/place.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "loadbalancer/filter.h"
#include "loadbalancer/pick.h"

#define RANDOM_TRIES 16u /* servers that POWER_OF_TWO looks at before it looks at all */

/* ---- parts ---- */

/* The largest number of devices that servers_max servers can give; *counts: what each can. */
static uint32_t count_devices(const struct obl_search *s, uint8_t counts[OBL_SERVERS_MAX])
{
	uint32_t of[OBL_DEVICES_MAX + 1] = { 0 }, total = 0, left = s->parts_max;
	uint8_t devices[OBL_DEVICES_MAX];
	uint64_t sum;

	for (uint32_t i = 0; i < s->n; i++) {
		counts[i] = 0;
		if (obl_server_reason(s, i) != OBL_FITS)
			continue;
		if (s->servers[i].n_devices)
			counts[i] = (uint8_t)obl_rank_many(s, i, 0, devices, &sum);
		else
			counts[i] =
				!s->software && obl_unknown_reason(s, &s->servers[i]) == OBL_FITS;
		of[counts[i]]++;
	}
	for (uint32_t k = OBL_DEVICES_MAX; k && left; k--) {
		total += k * ob_min(of[k], left);
		left -= ob_min(of[k], left);
	}
	return total;
}

/*
 * Whether idle devices are scarce (OBL_SHARERS_PREFERRED). Ends as soon as enough are found, so that
 * this costs little where there are many.
 */
static bool idle_scarce(const struct obl_search *s)
{
	uint64_t devices = 0, idle = 0;

	for (uint32_t i = 0; i < s->n; i++)
		devices += ob_min(s->servers[i].n_devices, OBL_DEVICES_MAX);
	if (devices < OBL_SPARING_DEVICES)
		return false;
	for (uint32_t i = 0; i < s->n && idle * idle < devices; i++) {
		const struct obl_server *server = &s->servers[i];

		if (obl_server_reason(s, i) != OBL_FITS)
			continue;
		for (uint32_t d = 0; d < ob_min(server->n_devices, OBL_DEVICES_MAX); d++)
			idle += server->devices[d].sharers == 0;
	}
	return idle * idle < devices;
}

/*
 * Two servers at random, each pair of those that fit with the same probability: others are passed
 * over. Gives up after some attempts.
 */
static bool offer_at_random(const struct obl_search *s, struct obl_picker *picker)
{
	for (uint32_t tries = 0; tries < RANDOM_TRIES && picker->seen < 2; tries++) {
		uint32_t i = obl_random_below(&picker->state->random, s->n);
		struct obl_rank rank;

		if ((picker->seen == 0 || i != picker->best.server) &&
			obl_server_reason(s, i) == OBL_FITS && obl_rank_one(s, i, &rank))
			obl_offer(picker, &rank);
	}
	return picker->seen == 2;
}

static void offer_all(const struct obl_search *s, struct obl_picker *picker)
{
	struct obl_rank rank;

	picker->seen = 0;
	for (uint32_t k = 0; k < s->n; k++) {
		uint32_t i = s->policy == OBL_ROUND_ROBIN ? (picker->turn + k) % s->n : k;

		if (obl_server_reason(s, i) != OBL_FITS || !obl_rank_one(s, i, &rank))
			continue;
		obl_offer(picker, &rank);
		if (s->policy == OBL_ROUND_ROBIN)
			return;
	}
}

/* Chooses a server for one device. */
static bool choose_one(struct obl_search *s, struct obl_state *state, struct obl_part *ret)
{
	struct obl_picker picker = { .search = s, .state = state };
	struct obl_rank rank;

	picker.turn = (uint32_t)(state->turn % s->n);
	s->spare_idle = s->policy == OBL_BINPACK && idle_scarce(s);
	if (s->policy != OBL_POWER_OF_TWO || !offer_at_random(s, &picker))
		offer_all(s, &picker);
	if (!obl_picked(&picker, &rank))
		return false;
	*ret = (struct obl_part){ .server = rank.server,
		.n = s->servers[rank.server].n_devices ? 1 : 0,
		.devices = { (uint8_t)rank.device } };
	return true;
}

/* Chooses a server for k devices among those that have so many. */
static void choose_many(const struct obl_search *s, const uint8_t *counts, uint32_t k,
	struct obl_state *state, struct obl_part *ret)
{
	struct obl_picker picker = { .search = s, .state = state };
	uint8_t devices[OBL_DEVICES_MAX] = { 0 };
	struct obl_rank rank;
	uint64_t sum;

	picker.turn = (uint32_t)(state->turn % s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		if (counts[i] < k)
			continue;
		rank = (struct obl_rank){ .server = i };
		if (s->servers[i].n_devices)
			obl_rank_many(s, i, k, devices, &rank.first);
		rank.device = devices[0];
		obl_offer(&picker, &rank);
	}
	obl_picked(&picker, &rank);
	*ret = (struct obl_part){ .server = rank.server,
		.n = s->servers[rank.server].n_devices ? k : 0 };
	if (ret->n)
		obl_rank_many(s, rank.server, k, ret->devices, &sum);
}

static void devices_sort(struct obl_part *part)
{
	for (uint32_t i = 1; i < part->n; i++)
		for (uint32_t k = i; k && part->devices[k - 1] > part->devices[k]; k--) {
			uint8_t device = part->devices[k];

			part->devices[k] = part->devices[k - 1];
			part->devices[k - 1] = device;
		}
}

/*
 * Several devices. Taking the server that has most of them, until one has all that are left, gives
 * the smallest number of servers.
 */
static bool place_many(const struct obl_search *s, struct obl_state *state, struct obl_choice *ret)
{
	uint8_t counts[OBL_SERVERS_MAX];
	uint32_t left = s->need;

	if (count_devices(s, counts) < s->need)
		return false;
	while (left) {
		struct obl_part *part = &ret->parts[ret->n_parts++];
		uint32_t k = 0;

		for (uint32_t i = 0; i < s->n; i++)
			k = ob_max(k, counts[i]);
		k = ob_min(k, left);
		choose_many(s, counts, k, state, part);
		devices_sort(part);
		counts[part->server] = 0;
		left -= k;
	}
	return true;
}

/* GPUs, or else software devices. */
static bool place_any(struct obl_search *s, struct obl_state *state, struct obl_choice *ret)
{
	if (s->n == 0 || s->need > OBL_GPUS_MAX)
		return false;
	for (int software = 0; software < 2; software++) {
		s->software = software;
		if (s->need > 1 ? place_many(s, state, ret) : choose_one(s, state, ret->parts)) {
			ret->n_parts = ob_max(ret->n_parts, 1u);
			return true;
		}
	}
	return false;
}

/* ---- why not ---- */

static uint32_t most_of(struct obl_search *s)
{
	uint8_t counts[OBL_SERVERS_MAX];
	uint32_t hard, soft;

	s->software = false;
	hard = count_devices(s, counts);
	s->software = true;
	soft = count_devices(s, counts);
	return ob_max(hard, soft);
}

static void nearest_note(
	const struct obl_search *s, uint32_t i, uint32_t d, bool kept, struct obl_choice *ret)
{
	const struct obl_device *device = &s->servers[i].devices[d];

	if (kept || device->held || device->sharers >= s->sharers_most ||
		device->share > s->share_most || obl_device_free(device) <= ret->nearest.bytes)
		return;
	ret->nearest.server = i;
	ret->nearest.device = d;
	ret->nearest.bytes = obl_device_free(device);
}

static void reasons_count(const struct obl_search *s, struct obl_choice *ret)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct obl_server *server = &s->servers[i];
		enum obl_fit reason = obl_server_reason(s, i);
		uint32_t kept = obl_kept_of(s, i);

		if (reason != OBL_FITS || server->n_devices == 0) {
			reason = reason != OBL_FITS ? reason : obl_unknown_reason(s, server);
			ret->left_out[reason]++;
			continue;
		}
		for (uint32_t d = 0; d < ob_min(server->n_devices, OBL_DEVICES_MAX); d++) {
			reason = obl_device_reason(s, &server->devices[d], kept >> d & 1);
			ret->left_out[reason]++;
			if (reason == OBL_NO_MEMORY)
				nearest_note(s, i, d, kept >> d & 1, ret);
		}
	}
}

bool obl_place_try(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	enum obl_policy policy, struct obl_state *state, struct obl_choice *ret)
{
	struct obl_search s = obl_search_of(servers, n, request, policy, OBL_VIEW_NOW);

	*ret = (struct obl_choice){ .outlook = OBL_PLACED };
	if (place_any(&s, state, ret))
		return true;
	*ret = (struct obl_choice){ .outlook = OBL_LATER };
	return false;
}

bool obl_place(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	enum obl_policy policy, struct obl_state *state, struct obl_choice *ret)
{
	struct obl_search s = obl_search_of(servers, n, request, policy, OBL_VIEW_NOW);

	if (obl_place_try(servers, n, request, policy, state, ret))
		return true;
	reasons_count(&s, ret);
	ret->most = most_of(&s);
	s.view = OBL_VIEW_EMPTY;
	ret->most_ever = most_of(&s);
	ret->outlook = ret->most_ever < s.need || s.need > OBL_GPUS_MAX ? OBL_CAPACITY : OBL_LATER;
	return false;
}

/* ---- claims ---- */

bool obl_claim(const struct obl_server *servers, uint32_t n, const struct obl_request *request,
	struct obl_choice *ret)
{
	struct obl_search s = obl_search_of(servers, n, request, OBL_POLICY_COUNT, OBL_VIEW_CLAIM);
	struct obl_state state = { 0, 0 };

	*ret = (struct obl_choice){ .outlook = OBL_LATER };
	return place_any(&s, &state, ret);
}

bool obl_claim_holds(const struct obl_server *servers, uint32_t n,
	const struct obl_request *request, const struct obl_choice *claim)
{
	struct obl_search s = obl_search_of(servers, n, request, OBL_POLICY_COUNT, OBL_VIEW_CLAIM);

	for (uint32_t p = 0; p < claim->n_parts; p++) {
		const struct obl_part *part = &claim->parts[p];

		if (part->server >= s.n || obl_server_reason(&s, part->server) != OBL_FITS)
			return false;
		for (uint32_t d = 0; d < part->n; d++)
			if (part->devices[d] >= servers[part->server].n_devices ||
				obl_device_reason(&s,
					&servers[part->server].devices[part->devices[d]],
					false) != OBL_FITS)
				return false;
	}
	return claim->n_parts > 0;
}

/* ---- accounting ---- */

void obl_take(struct obl_server *servers, const struct obl_request *request,
	const struct obl_choice *choice)
{
	for (uint32_t p = 0; p < choice->n_parts; p++) {
		const struct obl_part *part = &choice->parts[p];
		struct obl_server *server = &servers[part->server];

		server->sessions++;
		server->fresh++;
		for (uint32_t d = 0; d < part->n; d++)
			obl_device_take(&server->devices[part->devices[d]], request->memory,
				request->share, request->exclusive);
	}
}

void obl_give(struct obl_server *servers, const struct obl_request *request,
	const struct obl_choice *choice)
{
	for (uint32_t p = 0; p < choice->n_parts; p++) {
		const struct obl_part *part = &choice->parts[p];
		struct obl_server *server = &servers[part->server];

		server->sessions -= server->sessions > 0;
		for (uint32_t d = 0; d < part->n; d++)
			obl_device_give(&server->devices[part->devices[d]], request->memory,
				request->share, request->exclusive);
	}
}

/* ---- for people ---- */

struct text {
	char *at;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...)
{
	va_list list;
	int n;

	if (text->used >= text->size)
		return;
	va_start(list, format);
	n = vsnprintf(text->at + text->used, text->size - text->used, format, list);
	va_end(list);
	text->used += n > 0 ? (size_t)n : 0;
}

static const char *const reason_texts[OBL_REASONS] = {
	[OBL_DEAD] = "do not answer",
	[OBL_DRAINING] = "are shutting down",
	[OBL_CORDONED] = "are cordoned",
	[OBL_UNWELL] = "report a fault",
	[OBL_FULL] = "are full",
	[OBL_STARTING] = "have just joined and take few sessions a second",
	[OBL_OLD_CUDA] = "have an older CUDA driver",
	[OBL_NOT_WHERE] = "are not selected",
	[OBL_APART] = "run a reservation that must be on another server",
	[OBL_NO_TYPE] = "are of another type",
	[OBL_NO_UNITS] = "have too few multiprocessors",
	[OBL_FAULTY] = "are faulty, too hot or withdrawn",
	[OBL_NO_MEMORY] = "have too little free memory",
	[OBL_NO_SHARE] = "have too little compute left",
	[OBL_SHARED] = "are taken",
	[OBL_KEPT] = "are kept for a request that has waited longer",
};

static void memory_print(const struct obl_choice *choice, const struct obl_server *servers,
	const struct obl_request *request, struct text *text)
{
	const char *name = servers[choice->nearest.server].name;
	char wanted[32], most[32];

	ob_text_print_size(request->memory, wanted, sizeof wanted);
	ob_text_print_size(choice->nearest.bytes, most, sizeof most);
	append(text, " (%s wanted", wanted);
	if (choice->nearest.bytes)
		append(text, ", the largest free block is %s, on gpu%u of %s", most,
			choice->nearest.device, name ? name : "a server");
	append(text, ")");
}

void obl_explain(const struct obl_choice *choice, const struct obl_server *servers,
	const struct obl_request *request, char *ret_text, size_t size)
{
	struct text text = { ret_text, size, 0 };
	uint32_t need = ob_max(request->gpus, 1u);
	const char *head = "servers: ";

	if (size)
		ret_text[0] = 0;
	for (unsigned r = OBL_DEAD; r < OBL_REASONS; r++) {
		if (r == OBL_NO_TYPE)
			head = text.used ? "; devices: " : "devices: ";
		if (!choice->left_out[r])
			continue;
		append(&text, "%s%u %s", head, choice->left_out[r], reason_texts[r]);
		head = ", ";
		if (r == OBL_NO_MEMORY)
			memory_print(choice, servers, request, &text);
	}
	if (need > 1 && choice->outlook != OBL_PLACED)
		append(&text, "%s%u of %u devices could be had now%s", text.used ? "; " : "",
			choice->most, need, request->one_server ? " on one server" : "");
	if (choice->outlook == OBL_CAPACITY)
		append(&text, "%s%u of %u such devices exist in all", text.used ? "; " : "",
			choice->most_ever, need);
}
