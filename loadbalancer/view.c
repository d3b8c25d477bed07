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
#include "base/log.h"
#include "base/text.h"
#include "loadbalancer/ask.h"
#include "loadbalancer/pool.h"
#include "loadbalancer/ticket_text.h"
#include "transport/failure.h"

#define WANT     (OBP_LOAD_WANT_OWN | OBP_LOAD_WANT_FACTS)
#define PAUSE_NS 50000000l /* between questions to a server that knows no devices yet */

struct obl_view_terms obl_view_terms_read(const char *servers)
{
	const char *policy = getenv("OUTBOARD_POLICY"), *memory = getenv("OUTBOARD_VRAM");
	struct obl_view_terms terms = { .servers = servers,
		.policy = OBL_LEAST_LOAD,
		.timeout_ns = obl_pool_timeout_ns(),
		.tickets = getenv("OUTBOARD_TICKET") };

	if (policy && *policy && !obl_policy_parse(policy, &terms.policy))
		ob_warn("OUTBOARD_POLICY: unknown policy '%.64s'; using least-load", policy);
	if (memory && *memory && !ob_text_parse_size(memory, &terms.memory))
		terms.memory = 0;
	return terms;
}

void obl_view_failure_print(
	const struct obl_view *view, const struct ob_cause *cause, char *ret_text, size_t size)
{
	const struct obl_view_server *server = &view->servers[view->at];
	const struct obt_failure failure = { .cause = cause,
		.connected = cause->code != OB_ERR_TIMEOUT,
		.timeout_s = (unsigned)(view->terms.timeout_ns / OB_SECOND),
		.url = &server->url,
		.text = server->url_text[0] ? server->url_text : view->terms.servers };

	obt_failure_print(&failure, ret_text, size);
}

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

static const struct obp_load_device *device_at(
	const struct obl_view *view, const struct obl_view_place *place)
{
	return &view->servers[place->server].load.devices[place->device];
}

/* Devices with the same address, or without one, keep the order of servers and drivers. */
static void place_add(struct obl_view *view, uint32_t server, uint32_t device)
{
	const struct obl_view_place place = { server, device };
	uint64_t own = address(device_at(view, &place));
	uint32_t at = view->n_devices++;

	while (at && address(device_at(view, &view->order[at - 1])) > own) {
		view->order[at] = view->order[at - 1];
		at--;
	}
	view->order[at] = place;
}

static bool uuid_before(const struct obl_view *view, uint32_t server, const uint8_t uuid[16])
{
	for (uint32_t s = 0; s < server; s++)
		for (uint32_t i = 0; i < view->servers[s].load.n_devices; i++)
			if (memcmp(view->servers[s].load.devices[i].uuid, uuid, 16) == 0)
				return true;
	return false;
}

/* As the client's list of devices shows them. */
static void distinguish(struct obl_view *view, uint32_t server)
{
	struct obp_load *load = &view->servers[server].load;

	for (uint32_t i = 0; server && i < load->n_devices; i++) {
		struct obp_load_device *device = &load->devices[i];
		uint64_t domain;

		if (obp_fact_get(&device->facts, OBP_FACT_PCI_DOMAIN, &domain))
			obp_fact_set(&device->facts, OBP_FACT_PCI_DOMAIN,
				obl_together_domain((uint32_t)domain, server));
		if (uuid_before(view, server, device->uuid))
			obl_together_uuid(device->uuid, server);
	}
}

static bool is_shown(const struct obl_view_server *server, const uint8_t uuid[16])
{
	for (uint32_t i = 0; i < server->n_only; i++)
		if (memcmp(server->only[i], uuid, sizeof server->only[i]) == 0)
			return true;
	return server->n_only == 0;
}

static void arrange(struct obl_view *view)
{
	view->n_devices = view->n_sessions = 0;
	for (uint32_t s = 0; s < view->n_servers; s++) {
		for (uint32_t i = 0; i < view->servers[s].load.n_devices; i++)
			if (view->servers[s].shown & 1u << i)
				place_add(view, s, i);
		view->n_sessions += view->servers[s].load.n_sessions;
	}
}

/* Asks the server; its devices are the view's after `arrange`. */
static enum ob_err ask(
	struct obl_view *view, uint32_t server, uint64_t deadline, struct ob_cause *ret_cause)
{
	struct obl_view_server *s = &view->servers[server];
	struct obp_load load = { .sessions = 0 };
	enum ob_err err;

	view->at = server;
	err = view->local ? view->local(&load, ret_cause)
			  : obl_ask(&s->url, WANT, deadline, NULL, &load, ret_cause);
	if (err)
		return err;
	obp_load_fini(&s->load);
	s->load = load;
	s->shown = 0;
	for (uint32_t i = 0; i < load.n_devices; i++)
		s->shown |= (uint32_t)is_shown(s, load.devices[i].uuid) << i;
	/* after that, because it may change a UUID */
	distinguish(view, server);
	return OB_ERR_NONE;
}

/* Of several servers: the one that lists a session of this process. False: none does. */
static bool find_own(struct obl_view *view, struct obl_answer *answers, uint32_t n,
	char url_text[OBT_URL_MAX + 1])
{
	uint64_t pid = (uint64_t)getpid();
	bool found = false;

	obl_ask_all(answers, n, OBP_LOAD_WANT_OWN, view->terms.timeout_ns);
	for (uint32_t i = 0; i < n; i++) {
		const struct obp_load *load = &answers[i].load;

		for (uint32_t s = 0; !found && s < load->n_sessions; s++)
			if (load->listed[s].pid == pid) {
				memcpy(url_text, answers[i].url, OBT_URL_MAX + 1);
				found = true;
			}
		obp_load_fini(&answers[i].load);
	}
	return found;
}

/* What the program's ticket for the server gives to it, if it has one. */
static enum ob_err ticket_use(
	const char *tickets, struct obl_view_server *s, struct ob_cause *ret_cause)
{
	OB_CLEANUP(ob_freep) struct obp_ticket *ticket = calloc(1, sizeof *ticket);
	uint8_t bytes[OBP_TICKET_MAX];
	uint32_t size;
	enum ob_err err;

	if (!ticket)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	err = obl_ticket_find(tickets, &s->url, bytes, &size, ret_cause);
	if (err)
		return err == OB_ERR_NOT_FOUND ? OB_ERR_NONE : err;
	if (!obl_ticket_read(bytes, size, ticket))
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"OUTBOARD_TICKET: what it has for this server is no ticket; use what "
			"'outboard run --pool' sets, unchanged");
	s->n_only = ticket->n_devices;
	memcpy(s->only, ticket->devices, ticket->n_devices * sizeof *s->only);
	s->memory = ticket->memory;
	return OB_ERR_NONE;
}

static enum ob_err server_find(
	struct obl_view *view, uint32_t server, const char *list, struct ob_cause *ret_cause)
{
	const struct obl_view_terms *terms = &view->terms;
	const struct obl_request request = { .memory = terms->memory };
	OB_CLEANUP(ob_freep) struct obl_answer *answers = calloc(OBL_LIST_MAX, sizeof *answers);
	struct obl_view_server *s = &view->servers[server];
	uint32_t n;
	enum ob_err err;

	if (!answers)
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	err = obl_list_parse(list, answers, &n, ret_cause);
	if (err)
		return err;
	view->at = server;
	if (n == 1)
		memcpy(s->url_text, answers[0].url, sizeof s->url_text);
	else if (!find_own(view, answers, n, s->url_text))
		err = obl_pick(
			list, &request, terms->policy, terms->timeout_ns, s->url_text, ret_cause);
	if (!err)
		err = obt_url_parse(s->url_text, &s->url, ret_cause);
	return err ? err : ticket_use(terms->tickets, s, ret_cause);
}

static enum ob_err servers_find(struct obl_view *view, struct ob_cause *ret_cause)
{
	struct obl_together together;
	enum ob_err err = obl_together_parse(view->terms.servers, &together, ret_cause);

	if (err)
		return err;
	view->n_servers = together.n;
	for (uint32_t i = 0; !err && i < together.n; i++)
		err = server_find(view, i, together.list[i], ret_cause);
	obl_together_fini(&together);
	return err;
}

/* Waits while the server knows no devices yet. */
static enum ob_err ask_first(
	struct obl_view *view, uint32_t server, uint64_t deadline, struct ob_cause *ret_cause)
{
	enum ob_err err = ask(view, server, deadline, ret_cause);

	while (!err && !view->servers[server].load.n_devices &&
		ob_clock_ns() + PAUSE_NS < deadline) {
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
		err = ask(view, server, deadline, ret_cause);
	}
	return err;
}

enum ob_err obl_view_open(
	struct obl_view *view, const struct obl_view_terms *terms, struct ob_cause *ret_cause)
{
	enum ob_err (*local)(struct obp_load *, struct ob_cause *) = view->local;
	uint64_t deadline = ob_clock_ns() + terms->timeout_ns;
	enum ob_err err = OB_ERR_NONE;

	memset(view, 0, sizeof *view);
	view->terms = *terms;
	view->local = local;
	view->n_servers = 1;
	if (!local)
		err = servers_find(view, ret_cause);
	for (uint32_t i = 0; !err && i < view->n_servers; i++)
		err = ask_first(view, i, deadline, ret_cause);
	arrange(view);
	view->asked_ns = view->answered_ns = ob_clock_ns();
	if (err)
		obl_view_close(view);
	return err;
}

/* Asks all servers again. */
static enum ob_err ask_again(struct obl_view *view, uint64_t deadline, struct ob_cause *ret_cause)
{
	enum ob_err err = OB_ERR_NONE;

	for (uint32_t i = 0; !err && i < view->n_servers; i++) {
		uint32_t n_before = view->servers[i].load.n_devices;

		err = ask(view, i, deadline, ret_cause);
		/* Handles of devices are their places: a server with others is another one. */
		if (!err && view->servers[i].load.n_devices != n_before)
			err = ob_cause_set(ret_cause, OB_ERR_CLOSED,
				"the server has started again with other devices");
	}
	arrange(view);
	return err;
}

enum ob_err obl_view_refresh(struct obl_view *view)
{
	uint64_t now = ob_clock_ns();
	struct ob_cause cause = { .code = OB_ERR_NONE };
	enum ob_err err;

	if (now - view->asked_ns < (view->failed ? OBL_VIEW_RETRY_NS : OBL_VIEW_FRESH_NS))
		return view->cause.code;
	err = ask_again(view, now + view->terms.timeout_ns, &cause);
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
	for (uint32_t i = 0; i < view->n_servers; i++)
		obp_load_fini(&view->servers[i].load);
}

const struct obp_load *obl_view_load(const struct obl_view *view)
{
	return &view->servers[0].load;
}

const struct obp_load_device *obl_view_device(const struct obl_view *view, uint32_t place)
{
	return device_at(view, &view->order[place]);
}

const struct obp_load_session *obl_view_session(const struct obl_view *view, uint32_t i)
{
	uint32_t server = 0;

	while (i >= view->servers[server].load.n_sessions)
		i -= view->servers[server++].load.n_sessions;
	return &view->servers[server].load.listed[i];
}

uint64_t obl_view_used(
	const struct obl_view *view, const struct obp_load_session *session, uint32_t place)
{
	const struct obl_view_place *at = &view->order[place];
	const struct obp_load *load = &view->servers[at->server].load;

	for (uint32_t i = 0; i < load->n_sessions; i++)
		if (session == &load->listed[i])
			return session->used[at->device];
	return 0;
}

const char *obl_view_name(const struct obl_view *view)
{
	return view->n_servers == 1 ? view->servers[0].url_text : view->terms.servers;
}

bool obl_view_peers(
	const struct obl_view *view, uint32_t place, uint32_t other, bool atomics, bool *ret_known)
{
	uint64_t peers = 0, with_atomics = 0;
	uint32_t bit = view->order[other].device;

	*ret_known = true;
	if (view->order[place].server != view->order[other].server)
		return false;
	obp_fact_get(&obl_view_device(view, place)->facts, OBP_FACT_PEER_ATOMICS, &with_atomics);
	*ret_known = obp_fact_get(&obl_view_device(view, place)->facts, OBP_FACT_PEERS, &peers);
	return (atomics ? with_atomics : peers) >> bit & 1;
}

const struct obp_load_session *obl_view_own(const struct obl_view *view, uint32_t place)
{
	const struct obp_load *load = &view->servers[view->order[place].server].load;
	uint64_t pid = (uint64_t)getpid();

	for (uint32_t i = 0; i < load->n_sessions; i++)
		if (load->listed[i].pid == pid)
			return &load->listed[i];
	return NULL;
}

/* The bytes on the device that a session may use; 0: all of it. */
static uint64_t limit_of(const struct obl_view *view, uint32_t place)
{
	const struct obp_load_session *own = obl_view_own(view, place);
	const struct obl_view_server *server = &view->servers[view->order[place].server];
	const uint64_t limits[] = { view->terms.memory, server->load.memory_limit, server->memory };
	uint64_t least = 0;

	if (own)
		return own->memory_limit;
	for (size_t i = 0; i < ob_count(limits); i++)
		if (limits[i] && (!least || limits[i] < least))
			least = limits[i];
	return least;
}

void obl_view_memory(const struct obl_view *view, uint32_t place, struct obl_view_memory *ret)
{
	const struct obp_load_device *device = obl_view_device(view, place);
	const struct obp_load_session *own = obl_view_own(view, place);
	uint64_t limit = limit_of(view, place);

	*ret = (struct obl_view_memory){ .total = device->total, .used = device->used };
	obp_fact_get(&device->facts, OBP_FACT_MEMORY_TOTAL, &ret->total);
	obp_fact_get(&device->facts, OBP_FACT_MEMORY_RESERVED, &ret->reserved);
	obp_fact_get(&device->facts, OBP_FACT_MEMORY_USED, &ret->used);
	if (limit && limit < ret->total) {
		*ret = (struct obl_view_memory){ .total = limit };
		for (uint32_t i = 0; i < view->n_sessions; i++) {
			const struct obp_load_session *session = obl_view_session(view, i);

			if (!own || own == session)
				ret->used += obl_view_used(view, session, place);
		}
	}
	ret->reserved = ob_min(ret->reserved, ret->total);
	ret->used = ob_min(ret->used, ret->total - ret->reserved);
	ret->free = ret->total - ret->reserved - ret->used;
}
