/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "loadbalancer/access.h"
#include "loadbalancer/ask.h"

#define WANT     (OBP_LOAD_WANT_OWN | OBP_LOAD_WANT_FACTS)
#define PAUSE_NS 50000000l /* between questions to a server that knows no devices yet */

static uint64_t fact(const struct obp_load_device *device, enum obp_fact which)
{
	uint64_t value = 0;

	obp_fact_get(&device->facts, which, &value);
	return value;
}

/* The PCI address as one number. */
static uint64_t address(const struct obp_load_device *device)
{
	return fact(device, OBP_FACT_PCI_DOMAIN) << 16 | fact(device, OBP_FACT_PCI_BUS) << 8 |
		fact(device, OBP_FACT_PCI_DEVICE);
}

static bool is_shown(const struct obl_view *view, const struct obp_load_device *device)
{
	for (uint32_t i = 0; i < view->n_only; i++)
		if (memcmp(view->only[i], device->uuid, sizeof device->uuid) == 0)
			return true;
	return view->n_only == 0;
}

/* Devices with the same address, or without one, keep the driver's order. */
static void sort(struct obl_view *view)
{
	const struct obp_load_device *devices = view->load.devices;
	uint32_t n = 0;

	for (uint32_t i = 0; i < view->load.n_devices; i++) {
		uint32_t at = n;

		if (!is_shown(view, &devices[i]))
			continue;
		while (at && address(&devices[view->order[at - 1]]) > address(&devices[i])) {
			view->order[at] = view->order[at - 1];
			at--;
		}
		view->order[at] = i;
		n++;
	}
	view->load.n_devices = n;
}

static enum ob_err ask(struct obl_view *view, uint64_t deadline, struct ob_cause *ret_cause)
{
	struct obp_load load = { .sessions = 0 };
	enum ob_err err = view->local ? view->local(&load, ret_cause)
				      : obl_ask(&view->url, WANT, deadline, NULL, &load, ret_cause);

	if (err)
		return err;
	obp_load_fini(&view->load);
	view->load = load;
	sort(view);
	return OB_ERR_NONE;
}

/* Of several servers: the one that lists a session of this process. False: none does. */
static bool find_own(struct obl_view *view, struct obl_answer *answers, uint32_t n)
{
	uint64_t pid = (uint64_t)getpid();
	bool found = false;

	obl_ask_all(answers, n, OBP_LOAD_WANT_OWN, ob_min(view->terms.timeout_ns, OBL_ASK_NS));
	for (uint32_t i = 0; i < n; i++) {
		const struct obp_load *load = &answers[i].load;

		for (uint32_t s = 0; !found && s < load->n_sessions; s++)
			if (load->listed[s].pid == pid) {
				memcpy(view->url_text, answers[i].url, sizeof view->url_text);
				found = true;
			}
		obp_load_fini(&answers[i].load);
	}
	return found;
}

static enum ob_err server_find(struct obl_view *view, struct ob_cause *ret_cause)
{
	const struct obl_view_terms *terms = &view->terms;
	const struct obl_request request = { .memory = terms->memory };
	OB_CLEANUP(ob_freep) struct obl_answer *answers = calloc(OBL_LIST_MAX, sizeof *answers);
	uint32_t n;
	enum ob_err err;

	if (!answers)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	err = obl_list_parse(terms->servers, answers, &n, ret_cause);
	if (err)
		return err;
	if (n == 1)
		memcpy(view->url_text, answers[0].url, sizeof view->url_text);
	else if (!find_own(view, answers, n))
		err = obl_pick(terms->servers, &request, terms->policy, terms->timeout_ns,
			view->url_text, ret_cause);
	if (!err && terms->tickets &&
		!obl_access_devices(terms->tickets, view->url_text, view->only, &view->n_only))
		view->n_only = 0;
	return err ? err : obt_url_parse(view->url_text, &view->url, ret_cause);
}

enum ob_err obl_view_open(
	struct obl_view *view, const struct obl_view_terms *terms, struct ob_cause *ret_cause)
{
	enum ob_err (*local)(struct obp_load *, struct ob_cause *) = view->local;
	uint64_t deadline = ob_clock_ns() + terms->timeout_ns;
	enum ob_err err = OB_ERR_NONE;

	*view = (struct obl_view){ .terms = *terms, .local = local };
	if (!local)
		err = server_find(view, ret_cause);
	if (!err)
		err = ask(view, deadline, ret_cause);
	while (!err && !view->load.n_devices && ob_clock_ns() + PAUSE_NS < deadline) {
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		err = ask(view, deadline, ret_cause);
	}
	view->asked_ns = view->answered_ns = ob_clock_ns();
	if (err)
		obl_view_close(view);
	return err;
}

enum ob_err obl_view_refresh(struct obl_view *view)
{
	uint64_t now = ob_clock_ns();
	uint32_t n_before = view->load.n_devices;
	struct ob_cause cause = { .code = OB_ERR_NONE };
	enum ob_err err;

	if (now - view->asked_ns < (view->failed ? OBL_VIEW_RETRY_NS : OBL_VIEW_FRESH_NS))
		return view->cause.code;
	err = ask(view, now + view->terms.timeout_ns, &cause);
	/* Handles of devices are their places: a server with others is another one. */
	if (!err && view->load.n_devices != n_before)
		err = ob_cause_set(
			&cause, OB_ERR_CLOSED, "the server has started again with other devices");
	view->asked_ns = ob_clock_ns();
	view->failed = err != OB_ERR_NONE;
	if (!err)
		view->answered_ns = view->asked_ns;
	if (!err || view->cause.code || view->asked_ns - view->answered_ns > OBL_VIEW_KEEP_NS) {
		view->cause = cause;
		view->cause.code = err;
	}
	return view->cause.code;
}

void obl_view_close(struct obl_view *view)
{
	obp_load_fini(&view->load);
}

const struct obp_load_device *obl_view_device(const struct obl_view *view, uint32_t place)
{
	return &view->load.devices[view->order[place]];
}

const struct obp_load_session *obl_view_own(const struct obl_view *view)
{
	uint64_t pid = (uint64_t)getpid();

	for (uint32_t i = 0; i < view->load.n_sessions; i++)
		if (view->load.listed[i].pid == pid)
			return &view->load.listed[i];
	return NULL;
}

/* The bytes on each device that a session may use; 0: all of it. */
static uint64_t limit_of(const struct obl_view *view)
{
	const struct obp_load_session *own = obl_view_own(view);
	uint64_t limit = view->terms.memory, server = view->load.memory_limit;

	if (own)
		return own->memory_limit;
	if (server && (!limit || server < limit))
		limit = server;
	return limit;
}

void obl_view_memory(const struct obl_view *view, uint32_t place, struct obl_view_memory *ret)
{
	const struct obp_load_device *device = obl_view_device(view, place);
	const struct obp_load_session *own = obl_view_own(view);
	uint64_t limit = limit_of(view);

	*ret = (struct obl_view_memory){ .total = device->total, .used = device->used };
	obp_fact_get(&device->facts, OBP_FACT_MEMORY_TOTAL, &ret->total);
	obp_fact_get(&device->facts, OBP_FACT_MEMORY_RESERVED, &ret->reserved);
	obp_fact_get(&device->facts, OBP_FACT_MEMORY_USED, &ret->used);
	if (limit && limit < ret->total) {
		*ret = (struct obl_view_memory){ .total = limit };
		for (uint32_t i = 0; i < view->load.n_sessions; i++)
			if (!own || own == &view->load.listed[i])
				ret->used += view->load.listed[i].used[view->order[place]];
	}
	ret->reserved = ob_min(ret->reserved, ret->total);
	ret->used = ob_min(ret->used, ret->total - ret->reserved);
	ret->free = ret->total - ret->reserved - ret->used;
}
