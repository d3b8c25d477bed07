/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/member.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/supervisor/advertise.h"
#include "server/supervisor/beat.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/pending.h"
#include "server/supervisor/pool.h"
#include "transport/url.h"

#define MESSAGES_PER_TURN 64
#define STABLE_NS         (10 * OB_SECOND) /* a process that has run for so long is restarted at once */
#define RESTART_MS        100 /* else after this time, doubled for each death in a row */
#define RESTART_DOUBLINGS 6u
#define STOP_MS           1000 /* time to send the last heartbeat */
#define DRAIN_MAX_MS      (7ull * 86400 * 1000)

/* ---- heartbeats ---- */

static void beat_send(struct obs_super *super)
{
	static struct obs_member_message message;
	struct obs_membership *m = &super->membership;
	struct ob_buf frame;

	ob_buf_init(&frame, OBS_MEMBER_FRAME);
	if (obs_beat_encode(super, OBS_MEMBER_FRAME, &frame)) {
		message.type = OBS_MEMBER_BEAT;
		message.size = (uint32_t)frame.size;
		memcpy(message.frame, frame.data, frame.size);
		/* A full channel is no error: it takes the next one. */
		for (uint32_t i = 0; i < m->n_members; i++)
			if (m->members[i].fd >= 0)
				obs_member_send(m->members[i].fd, &message);
	}
	ob_buf_fini(&frame);
	m->beat_ns = ob_clock_ns();
	m->reservations.changed = false;
	m->told_draining = super->draining;
}

static void drain_over(struct obs_super *super)
{
	struct obs_reservation *next;

	super->membership.drain_ns = 0;
	ob_warn("drain: %zu sessions did not end in time and are ended", super->n_busy);
	for (struct obs_proc *p = super->procs; p; p = p->next)
		obs_pool_end(p, "the server was drained by its operator");
	for (struct obs_reservation *r = super->membership.reservations.first; r; r = next) {
		next = r->next;
		obs_reservations_kill(&super->membership.reservations, r);
	}
	super->membership.drained = true;
	obs_pending_refuse_killed(super);
}

static void tick(uv_timer_t *timer)
{
	struct obs_super *super = timer->data;
	struct obs_membership *m = &super->membership;

	obs_reservations_tick(&m->reservations, obs_lease_now());
	obs_pool_end_overdue(super);
	if (m->drain_ns && ob_clock_ns() >= m->drain_ns)
		drain_over(super);
	if (m->reservations.changed || m->told_draining != super->draining ||
		ob_clock_ns() - m->beat_ns >= OBP_POOL_BEAT_MS * OB_MS)
		beat_send(super);
}

/* ---- orders ---- */

static void cordon_set(struct obs_super *super, bool on)
{
	struct obs_membership *m = &super->membership;

	if (on == m->cordoned && !m->drain_ns && !m->drained)
		return;
	ob_info("pool: %s%s",
		on ? "cordoned: no new reservations are taken"
		   : "uncordoned: new reservations are taken",
		m->drain_ns ? ", and running ones are not ended" : "");
	m->cordoned = on;
	m->drain_ns = 0;
	m->drained = false;
}

static void drain(struct obs_super *super, uint64_t ms)
{
	struct obs_membership *m = &super->membership;

	m->cordoned = true;
	if (m->drained)
		return;
	m->drain_ns = ob_clock_ns() + ob_min(ms, DRAIN_MAX_MS) * OB_MS;
	ob_info("pool: drained: %zu sessions are ended in %llu s", super->n_busy,
		(unsigned long long)ob_min(ms, DRAIN_MAX_MS) / 1000);
}

/*
 * All balancers order what operators want, and repeat it until a heartbeat says that it is so; each
 * has its own idea of the time that a drain has left. The first order counts.
 */
static uint32_t close_or_open(struct obs_super *super, const struct obp_pool_order *order)
{
	struct obs_membership *m = &super->membership;
	bool drains = order->kind == OBP_POOL_ORDER_DRAIN, is_drained = m->drain_ns || m->drained;
	bool known = order->as_of && order->as_of == m->as_of;

	if (known && drains == is_drained && (drains || (order->number != 0) == m->cordoned))
		return 1;
	if (!order->force && order->as_of &&
		(order->as_of < m->as_of || (known && (drains || order->number))))
		return 0;
	m->as_of = order->as_of;
	m->reservations.changed = true;
	if (drains)
		drain(super, order->number);
	else
		cordon_set(super, order->number != 0);
	return 1;
}

/* By a command, and not because its program was moved. */
static bool is_operators(const struct obp_pool_order *order)
{
	return strncmp(order->text, OBP_POOL_MOVED_TEXT, sizeof OBP_POOL_MOVED_TEXT - 1) != 0;
}

static const char *kill_text(const struct obp_pool_order *order, char *ret, size_t size)
{
	snprintf(ret, size, "ended%s%s%.200s", is_operators(order) ? " by the pool's operator" : "",
		order->text[0] ? ": " : "", order->text);
	return ret;
}

static uint32_t reservation_kill(struct obs_super *super, const struct obp_pool_order *order)
{
	struct obs_reservations *table = &super->membership.reservations;
	struct obs_reservation *r = obs_reservations_find(table, order->id);
	char text[OBP_SANDBOX_MAX];

	if (!r) {
		obs_reservations_void(table, order->id, obs_lease_now());
		r = obs_reservations_find(table, order->id);
	}
	if (!r)
		return 0; /* there is no room to remember it */
	for (struct obs_proc *p = super->procs; p; p = p->next)
		if (p->reservation == r)
			obs_pool_end(p, kill_text(order, text, sizeof text));
	r->ordered = true;
	r->moved = !is_operators(order);
	obs_reservations_kill(table, r);
	obs_pending_refuse_killed(super);
	return 1;
}

/* Its sessions go on: what is left of them is being cleared away. */
static uint32_t reservation_end(struct obs_super *super, const uint8_t id[OBP_RESERVATION_BYTES])
{
	struct obs_reservations *table = &super->membership.reservations;
	struct obs_reservation *r = obs_reservations_find(table, id);

	if (!r)
		return obs_reservations_void(table, id, obs_lease_now());
	obs_reservations_kill(table, r);
	obs_pending_refuse_killed(super);
	return r->state;
}

static uint32_t session_kill(struct obs_super *super, const struct obp_pool_order *order)
{
	char text[OBP_SANDBOX_MAX];

	for (struct obs_proc *p = super->procs; p; p = p->next)
		if (p->state == OBS_PROC_BUSY && p->id == order->number) {
			obs_pool_end(p, kill_text(order, text, sizeof text));
			return 1;
		}
	return 0;
}

uint32_t obs_member_obey(struct obs_super *super, const struct obp_pool_order *order)
{
	struct obs_reservations *table = &super->membership.reservations;

	switch (order->kind) {
	case OBP_POOL_ORDER_VOID:
		return obs_reservations_void(table, order->id, obs_lease_now());
	case OBP_POOL_ORDER_CREDITED:
		return obs_reservations_credit(table, order->id);
	case OBP_POOL_ORDER_CORDON:
	case OBP_POOL_ORDER_DRAIN:
		return close_or_open(super, order);
	case OBP_POOL_ORDER_KILL:
		return reservation_kill(super, order);
	case OBP_POOL_ORDER_KILL_SESSION:
		return session_kill(super, order);
	case OBP_POOL_ORDER_END:
		return reservation_end(super, order->id);
	case OBP_POOL_ORDER_KEEP:
		return obs_reservations_keep(table, order->id, order->number, obs_lease_now());
	default:
		return 0;
	}
}

/* ---- messages of a member process ---- */

static void registered(struct obs_member *member, const struct obp_pool_registered *from)
{
	struct obs_super *super = member->super;
	int64_t ahead = (int64_t)(from->time_s - (uint64_t)time(NULL));

	if (!obs_pool_page_add(super->membership.page, from->key, ahead))
		ob_error("pool: more than %u balancers have registered this server: the tickets "
			 "of balancer %s are refused; restart the server",
			OBS_POOL_KEYS_MAX, from->balancer);
	if (ahead > (int64_t)OBP_TICKET_SKEW_S || ahead < -(int64_t)OBP_TICKET_SKEW_S)
		ob_warn("pool: the clock of balancer %s is %llu s %s this server's: its tickets "
			"may be refused; set both by the network (NTP)",
			from->balancer,
			(unsigned long long)(ahead < 0 ? 0 - (uint64_t)ahead : (uint64_t)ahead),
			ahead < 0 ? "behind" : "ahead of");
	memcpy(member->balancer, from->balancer, sizeof member->balancer);
	/* That it is open, or not drained any more, must be an order: a balancer may not have heard. */
	if (from->cordoned && !super->membership.cordoned)
		cordon_set(super, true);
	beat_send(super);
}

static void order_take(struct obs_member *member, struct obs_member_message *message)
{
	const struct obp_pool_order order = message->u.order;

	message->type = OBS_MEMBER_OBEYED;
	message->size = 0;
	message->u.obeyed = (struct obp_pool_obeyed){ .kind = order.kind,
		.number = order.number,
		.result = obs_member_obey(member->super, &order) };
	memcpy(message->u.obeyed.id, order.id, sizeof order.id);
	obs_member_send(member->fd, message);
	obs_lease_changed(member->super);
}

static void channel_readable(uv_poll_t *poll, int status, int events)
{
	static struct obs_member_message message;
	struct obs_member *member = poll->data;
	int got = 1;

	(void)status;
	(void)events;
	for (int i = 0; i < MESSAGES_PER_TURN && got > 0; i++) {
		got = obs_member_recv(member->fd, &message);
		if (got <= 0)
			break;
		if (message.type == OBS_MEMBER_REGISTERED)
			registered(member, &message.u.registered);
		else if (message.type == OBS_MEMBER_LOST)
			member->balancer[0] = '\0';
		else if (message.type == OBS_MEMBER_ORDER)
			order_take(member, &message);
	}
	if (got > 0 || (got < 0 && errno == EAGAIN))
		return;
	/* The exit callback does the rest. */
	uv_poll_stop(poll);
	if (!member->super->membership.stopping)
		uv_process_kill(&member->process, SIGKILL);
}

/* ---- the processes ---- */

static void process_start(struct obs_member *member);

/* Also runs while the process is being stopped, if it does not end in time. */
static void restart_due(uv_timer_t *timer)
{
	struct obs_member *member = timer->data;

	if (!member->super->membership.stopping)
		process_start(member);
	else if (member->fd >= 0)
		uv_process_kill(&member->process, SIGKILL);
}

static void closed(uv_handle_t *handle)
{
	struct obs_member *member = handle->data;

	if (--member->closes_left > 0)
		return;
	close(member->fd);
	member->fd = -1;
	member->balancer[0] = '\0';
	if (member->super->membership.stopping)
		uv_close((uv_handle_t *)&member->restart, NULL);
	else
		uv_timer_start(&member->restart, restart_due,
			(uint64_t)RESTART_MS << ob_min(member->deaths, RESTART_DOUBLINGS), 0);
}

static void exited(uv_process_t *process, int64_t status, int signal)
{
	struct obs_member *member = process->data;

	if (!member->super->membership.stopping) {
		member->deaths =
			ob_clock_ns() - member->started_ns > STABLE_NS ? 0 : member->deaths + 1;
		if (signal)
			ob_error("the member process of %s was killed by signal %d (%s); it is "
				 "restarted",
				member->url, signal, strsignal(signal));
		else
			ob_error("the member process of %s ended with status %d; it is restarted",
				member->url, (int)status);
	}
	member->closes_left = 2;
	uv_close((uv_handle_t *)&member->process, closed);
	uv_close((uv_handle_t *)&member->channel, closed);
}

static int spawn(struct obs_member *member, int child_end)
{
	struct obs_super *super = member->super;
	char *args[OBS_WORKER_ARGS_MAX];
	uv_stdio_container_t stdio[4] = { { .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = 1 }, { .flags = UV_INHERIT_FD, .data.fd = 2 },
		[OBS_MEMBER_FD] = { .flags = UV_INHERIT_FD, .data.fd = child_end } };
	uv_process_options_t options = { .exit_cb = exited,
		.file = super->self,
		.args = args,
		.stdio = stdio,
		.stdio_count = 4 };

	super->options->incarnation = super->membership.incarnation;
	obs_options_member_args(super->options, super->self, member->url,
		super->membership.page->server, super->membership.advertised, args);
	return uv_spawn(&super->loop, &member->process, &options);
}

static void process_start(struct obs_member *member)
{
	int fds[2], err;

	if (obs_member_pair(fds) != 0) {
		ob_error("the member process of %s cannot be started: %s", member->url,
			strerror(errno));
		uv_timer_start(&member->restart, restart_due, RESTART_MS << RESTART_DOUBLINGS, 0);
		return;
	}
	member->process.data = member->channel.data = member;
	member->started_ns = ob_clock_ns();
	err = spawn(member, fds[1]);
	close(fds[1]);
	if (err) {
		ob_error("the member process of %s cannot be started: %s", member->url,
			uv_strerror(err));
		close(fds[0]);
		member->deaths++;
		uv_close((uv_handle_t *)&member->process, NULL);
		uv_timer_start(&member->restart, restart_due, RESTART_MS << RESTART_DOUBLINGS, 0);
		return;
	}
	member->fd = fds[0];
	uv_poll_init(&member->super->loop, &member->channel, member->fd);
	uv_poll_start(&member->channel, UV_READABLE | UV_DISCONNECT, channel_readable);
}

/* ---- start and stop ---- */

static enum ob_err members_list(struct obs_super *super, struct ob_cause *ret_cause)
{
	struct obs_membership *m = &super->membership;
	char *rest = NULL;

	m->balancers_here = true;
	m->urls = strdup(super->options->pool);
	for (char *url = m->urls ? strtok_r(m->urls, ",", &rest) : NULL; url;
		url = strtok_r(NULL, ",", &rest)) {
		struct obt_url parsed;
		struct ob_cause cause;

		if (obt_url_parse(url, &parsed, &cause))
			return ob_cause_set(
				ret_cause, OB_ERR_URL, "--pool %.200s: %s", url, cause.text);
		if (m->n_members == OBS_BALANCERS_MAX)
			return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
				"--pool takes at most %u addresses", OBS_BALANCERS_MAX);
		m->balancers_here = m->balancers_here && obt_url_loopback(&parsed);
		m->members[m->n_members++] =
			(struct obs_member){ .super = super, .url = url, .fd = -1 };
	}
	return m->n_members ? OB_ERR_NONE
			    : ob_cause_set(ret_cause, OB_ERR_ARGUMENT, "--pool names no balancer");
}

enum ob_err obs_member_start(struct obs_super *super, struct ob_cause *ret_cause)
{
	struct obs_membership *m = &super->membership;
	enum ob_err err;

	if (!super->options->pool)
		return OB_ERR_NONE;
	if (!obs_lease_open(super))
		return ob_cause_set_system(ret_cause, OB_ERR_NO_MEMORY, errno, "--pool");
	err = members_list(super, ret_cause);
	if (!err)
		err = obs_advertise_find(super, ret_cause);
	if (err)
		return err;
	uv_timer_init(&super->loop, &m->timer);
	m->timer.data = super;
	m->tick = tick;
	uv_timer_start(&m->timer, tick, OBS_MEMBERSHIP_TICK_MS, OBS_MEMBERSHIP_TICK_MS);
	for (uint32_t i = 0; i < m->n_members; i++) {
		uv_timer_init(&super->loop, &m->members[i].restart);
		m->members[i].restart.data = &m->members[i];
		process_start(&m->members[i]);
	}
	return OB_ERR_NONE;
}

void obs_member_stop(struct obs_super *super)
{
	struct obs_membership *m = &super->membership;
	struct obs_reservation *next;

	if (!m->tick || m->stopping)
		return;
	for (struct obs_reservation *r = m->reservations.first; r; r = next) {
		next = r->next;
		obs_reservations_kill(&m->reservations, r);
	}
	beat_send(super);
	m->stopping = true;
	uv_close((uv_handle_t *)&m->timer, NULL);
	for (uint32_t i = 0; i < m->n_members; i++) {
		struct obs_member *member = &m->members[i];

		if (member->fd < 0) {
			uv_close((uv_handle_t *)&member->restart, NULL);
			continue;
		}
		shutdown(member->fd, SHUT_WR);
		uv_timer_start(&member->restart, restart_due, STOP_MS, 0);
	}
}
