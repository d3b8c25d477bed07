/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "loadbalancer/balancer/balancer.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "loadbalancer/balancer/asks.h"
#include "loadbalancer/balancer/audit.h"
#include "loadbalancer/balancer/commands.h"
#include "loadbalancer/balancer/credits.h"
#include "loadbalancer/balancer/events.h"
#include "loadbalancer/balancer/follows.h"
#include "loadbalancer/balancer/line.h"
#include "loadbalancer/balancer/members.h"
#include "loadbalancer/balancer/moves.h"
#include "loadbalancer/balancer/offers.h"
#include "loadbalancer/balancer/pages.h"
#include "loadbalancer/balancer/queries.h"
#include "loadbalancer/balancer/rounds.h"
#include "loadbalancer/balancer/state_folder.h"
#include "loadbalancer/balancer/tenants.h"
#include "loadbalancer/balancer/work.h"

#define SECOND_MS       1000u
#define ASKS_MS         250u
#define STOP_MS         3000u /* after SIGTERM: what is not closed by then is dropped */
#define LEASE_S         10u
#define REGISTRY_MS     800u
#define ORPHANS_EVERY_S 10u

struct balancer {
	struct obl_core core;
	uv_loop_t loop;
	uv_async_t turn;
	uv_timer_t second, asks, rest, stop;
	uv_signal_t term, interrupt;
	bool registry_closed, closing;
	unsigned seconds;
	char name[OBP_POOL_NAME_MAX];
	char state[PATH_MAX]; /* "static:" and the file */
};

static struct balancer balancer; /* large */

/* ---- turns ---- */

static void wake(struct obl_core *core)
{
	(void)core;
	if (!balancer.closing)
		uv_async_send(&balancer.turn);
}

static void rested(uv_timer_t *timer)
{
	(void)timer;
	wake(&balancer.core);
}

/* Begins the next transaction, if there is something to do. */
static void turn(uv_async_t *async)
{
	static bool (*const sources[])(struct obl_core * core) = { obl_members_start,
		obl_commands_start, obl_credits_start, obl_offers_start, obl_asks_start,
		obl_moves_start, obl_audit_start, obl_events_start };
	static unsigned next;
	struct obl_core *core = &balancer.core;
	uint64_t now = ob_clock_ns();

	(void)async;
	if (!obl_work_ready(core) || core->stopping)
		return;
	if (now < core->work.rest_until) {
		uv_timer_start(
			&balancer.rest, rested, (core->work.rest_until - now) / OB_MS + 1, 0);
		return;
	}
	/* In turn: none can keep the others from the registry. */
	for (unsigned i = 0; i < ob_count(sources); i++) {
		unsigned which = (next + i) % ob_count(sources);

		if (sources[which](core)) {
			next = which + 1;
			return;
		}
	}
}

/* ---- the registry ---- */

static void registry_reset(void *user)
{
	struct obl_core *core = user;

	core->synced = false;
	core->hold.active = false;
	obl_mirror_reset(&core->mirror);
}

static void registry_changed(void *user, const struct obl_entry *entry, bool deleted)
{
	struct obl_core *core = user;

	obl_mirror_apply(
		&core->mirror, entry->key, deleted ? NULL : entry->value, entry->revision, true);
}

static void registry_synced(void *user, uint64_t revision)
{
	struct obl_core *core = user;

	core->mirror.seen = ob_max(core->mirror.seen, revision);
	core->mirror.newest = ob_max(core->mirror.newest, revision);
	core->synced_ns = ob_clock_ns();
	core->synced = core->orphans = core->check_alive = core->asks_changed = true;
	for (struct obl_member *m = core->members; m; m = m->next)
		m->check = true;
	wake(core);
}

static void registry_usable(void *user, bool usable, const struct ob_cause *why)
{
	struct obl_core *core = user;

	if (core->usable && !usable)
		obl_event_add(core, "registry-lost", core->name, "%.200s", why ? why->text : "");
	if (!core->usable && usable && core->unusable_ns)
		obl_event_add(core, "registry-back", core->name, "after %u s",
			(unsigned)((ob_clock_ns() - core->unusable_ns) / OB_SECOND));
	if (!usable) {
		core->unusable_ns = ob_clock_ns();
		snprintf(core->unusable, sizeof core->unusable, "%s",
			why ? why->text : "it does not answer");
	}
	core->usable = usable;
	core->asks_changed = true;
	wake(core);
}

/* Leased keys are written again: the watch reports that they are gone. */
static void registry_lease(void *user)
{
	wake(user);
}

static void mirror_changed(void *user, const struct obl_item *item)
{
	struct obl_core *core = user;

	struct obl_member *member;
	char name[OBP_POOL_NAME_MAX];

	if (item->kind == OBL_ITEM_SERVER) {
		core->orphans = true;
		core->hold.active &= !item->gone; /* it names servers by their place in the list */
	}
	if (item->kind == OBL_ITEM_ALIVE)
		core->check_alive = true;
	if (item->kind == OBL_ITEM_ALIVE || item->kind == OBL_ITEM_SERVER) {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(item->name, "/"), item->name);
		member = obl_member_find(core, name);
		if (member)
			member->check = true;
	}
	if (item->kind != OBL_ITEM_EVENT && item->kind != OBL_ITEM_ALIVE) {
		core->asks_changed = true;
		wake(core);
	}
}

static enum ob_err registry_open(struct obl_core *core, struct ob_cause *ret_cause)
{
	const struct obl_settings *s = core->settings;
	const struct obl_registry_options options = { .url = core->registry_url,
		.prefix = s->registry_prefix,
		.ca = s->registry_ca,
		.cert = s->registry_cert,
		.key = s->registry_key,
		.user = s->registry_user,
		.password_file = s->registry_password,
		.balancer = core->name,
		.lease_s = LEASE_S,
		.timeout_ms = REGISTRY_MS };
	const struct obl_watcher watcher = { .user = core,
		.reset = registry_reset,
		.changed = registry_changed,
		.synced = registry_synced,
		.usable = registry_usable,
		.lease_renewed = registry_lease };

	snprintf(core->unusable, sizeof core->unusable, "it has not answered yet");
	return obl_registry_open(core->loop, &options, &watcher, &core->registry, ret_cause);
}

/* ---- messages ---- */

static void from_member(struct obl_member *member, struct obp_pool_message *message)
{
	if (message->type == OBP_POOL_BEAT) {
		obl_member_beat(member, &message->u.beat);
	} else if (message->type == OBP_POOL_OBEYED) {
		if (message->u.obeyed.kind == OBP_POOL_ORDER_VOID ||
			message->u.obeyed.kind == OBP_POOL_ORDER_END)
			obl_credits_obeyed(member, &message->u.obeyed);
		obl_commands_obeyed(member, &message->u.obeyed);
	} else {
		obl_link_refuse(member->link, OBP_POOL_INVALID, 0,
			"a server sends heartbeats and answers to orders, nothing else");
		obl_link_end(member->link);
	}
}

static void link_message(void *user, struct obl_link *link, struct obp_pool_message *message)
{
	struct obl_core *core = user;

	if (link->member) {
		from_member(link->user, message);
		return;
	}
	switch (message->type) {
	case OBP_POOL_ASK:
		obl_ask(core, link, &message->u.ask);
		break;
	case OBP_POOL_CANCEL:
		obl_ask_cancel(core, link, &message->u.cancel);
		break;
	case OBP_POOL_FOLLOW:
		obl_follow(core, link, &message->u.follow);
		break;
	case OBP_POOL_QUERY:
		obl_query(core, link, &message->u.query);
		break;
	case OBP_POOL_COMMAND:
		obl_command(core, link, &message->u.command);
		break;
	case OBP_POOL_REGISTER:
		if (!link->user) {
			obl_member_register(core, link, &message->u.join);
			break;
		}
		/* fall through */
	default:
		obl_link_refuse(link, OBP_POOL_INVALID, 0,
			"a message that has no place here: the versions of the two programs "
			"differ, or one of them is wrong");
		obl_link_end(link);
	}
}

static void link_ended(void *user, struct obl_link *link)
{
	struct obl_core *core = user;
	void *owner = link->user;

	link->user = NULL;
	obl_commands_link_gone(core, link);
	obl_follows_link_gone(core, link);
	if (!owner)
		return;
	if (link->member)
		obl_member_gone(owner);
	else
		obl_asker_gone(owner);
}

/* ---- timers ---- */

static void every_second(uv_timer_t *timer)
{
	struct obl_core *core = &balancer.core;

	(void)timer;
	obl_members_sweep(core);
	obl_credits_sweep(core);
	obl_commands_sweep(core);
	obl_moves_sweep(core);
	obl_rounds_sweep(core);
	obl_audit_sweep(core);
	obl_mirror_prune(&core->mirror);
	core->orphans |= ++balancer.seconds % ORPHANS_EVERY_S == 0;
	core->asks_changed = true;
	wake(core);
}

static void asks_due(uv_timer_t *timer)
{
	(void)timer;
	obl_offers_sweep(&balancer.core);
	obl_asks_sweep(&balancer.core);
	obl_follows_sweep(&balancer.core, ob_clock_ns());
}

/* ---- the end ---- */

static void close_rest(uv_handle_t *handle, void *user)
{
	(void)user;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* When nothing is left, or the time is over, everything is closed, and the loop ends. */
static void end_if_done(bool late)
{
	struct balancer *b = &balancer;

	if (b->closing || !b->core.stopping ||
		(!late && (b->core.gate.links.n || !b->registry_closed)))
		return;
	b->closing = true;
	if (late)
		uv_stop(&b->loop); /* whatever is left ends with the process */
	obl_gate_fini(&b->core.gate);
	uv_walk(&b->loop, close_rest, NULL);
}

static void link_freed(void *user)
{
	(void)user;
	end_if_done(false);
}

static void registry_closed(void *user)
{
	(void)user;
	balancer.registry_closed = true;
	balancer.core.registry = NULL;
	end_if_done(false);
}

static void stop_late(uv_timer_t *timer)
{
	(void)timer;
	end_if_done(true);
}

static void stop(uv_signal_t *signal, int number)
{
	struct obl_core *core = &balancer.core;

	(void)signal;
	(void)number;
	if (core->stopping)
		return;
	ob_info("stopping");
	core->stopping = true;
	obl_gate_shut(&core->gate);
	obl_pages_close();
	obl_asks_refuse_all(core, "this balancer stops; ask another one");
	obl_links_end_all(&core->gate.links);
	uv_timer_start(&balancer.stop, stop_late, STOP_MS, 0);
	core->usable = false;
	core->registry->ops->close(core->registry, registry_closed, core);
}

/* ---- the beginning ---- */

static bool name_choose(struct obl_core *core)
{
	char host[OBP_POOL_NAME_MAX - 8] = "";

	if (getrandom(&core->instance, sizeof core->instance, 0) != sizeof core->instance)
		return false;
	core->instance |= 1;
	srandom((unsigned)core->instance);
	core->chance.random = core->instance;
	core->name = core->settings->name;
	if (core->name)
		return true;
	gethostname(host, sizeof host - 1);
	host[strcspn(host, ".")] = '\0';
	snprintf(balancer.name, sizeof balancer.name, "%s-%04x",
		obl_name_valid(host) ? host : "balancer", (unsigned)(core->instance >> 48));
	core->name = balancer.name;
	return true;
}

static enum ob_err parts_open(struct obl_core *core, struct ob_cause *ret_cause)
{
	const struct obl_settings *s = core->settings;
	enum ob_err err;

	if (!name_choose(core) || !obl_mirror_init(&core->mirror) || !(core->line = obl_line_new()))
		return ob_cause_set(ret_cause, OB_ERR_NO_MEMORY, "no memory");
	core->mirror.changed = mirror_changed;
	core->mirror.user = core;
	core->key = s->ticket_key ? obt_sign_key_open(s->ticket_key, ret_cause)
				  : obt_sign_key_new(ret_cause);
	if (!core->key)
		return ret_cause->code;
	obt_sign_key_public(core->key, core->public_key);
	if ((err = obl_auth_open(s->tokens, &core->auth, ret_cause)))
		return err;
	if (s->tenants && (err = obl_tenants_read(s->tenants, &core->tenants, ret_cause)))
		return err;
	core->gate.links.loop = core->loop;
	core->gate.links.user = core;
	core->gate.links.message = link_message;
	core->gate.links.ended = link_ended;
	core->gate.links.freed = link_freed;
	core->registry_url = s->registry ? s->registry : balancer.state;
	if (!s->registry &&
		(err = obl_state_registry(balancer.state, sizeof balancer.state, ret_cause)))
		return err;
	if ((err = registry_open(core, ret_cause)))
		return err;
	if ((err = obl_gate_open(&core->gate, &s->gate, ret_cause)))
		return err;
	return obl_pages_open(core, ret_cause);
}

static void timers_start(struct balancer *b)
{
	uv_async_init(&b->loop, &b->turn, turn);
	uv_timer_init(&b->loop, &b->second);
	uv_timer_init(&b->loop, &b->asks);
	uv_timer_init(&b->loop, &b->rest);
	uv_timer_init(&b->loop, &b->stop);
	uv_timer_start(&b->second, every_second, SECOND_MS, SECOND_MS);
	uv_timer_start(&b->asks, asks_due, ASKS_MS, ASKS_MS);
	uv_signal_init(&b->loop, &b->term);
	uv_signal_init(&b->loop, &b->interrupt);
	uv_signal_start(&b->term, stop, SIGTERM);
	uv_signal_start(&b->interrupt, stop, SIGINT);
}

int obl_balancer_run(const struct obl_settings *settings)
{
	struct balancer *b = &balancer;
	struct obl_core *core = &b->core;
	struct ob_cause cause;

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&b->loop);
	core->settings = settings;
	core->loop = &b->loop;
	core->wake = wake;
	core->started_ns = ob_clock_ns();
	timers_start(b);
	if (parts_open(core, &cause)) {
		ob_error("%s", cause.text);
		return 1;
	}
	ob_info("balancer %s, registry %s", core->name, core->registry_url);
	if (strncmp(core->registry_url, "memory", 6) == 0)
		ob_warn("reservations are kept in memory and are lost at the end of this process; "
			"--registry static:FILE or etcd:URLS keeps them");
	uv_run(&b->loop, UV_RUN_DEFAULT);
	obl_commands_free(core);
	obl_line_free(core->line);
	obl_mirror_fini(&core->mirror);
	obl_tenants_free(core->tenants);
	obl_auth_close(core->auth);
	obt_sign_key_free(core->key);
	ob_info("stopped");
	return 0;
}
