/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "server/supervisor/audit.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/status.h"

/* Enters the session so that it can be joined. Before its worker learns of it. */
static void route_put(struct obs_super *super, const struct obs_proc *proc)
{
	/* The table has as many entries as there can be sessions. */
	if (super->admit.routes && !obs_routes_put(super->admit.routes, proc->route, proc->secret))
		ob_error("a session cannot be joined: the table of sessions is full");
}

static void route_remove(struct obs_super *super, uint64_t route)
{
	if (super->admit.routes)
		obs_routes_remove(super->admit.routes, route);
}

static void set_state(struct obs_proc *proc, enum obs_proc_state state)
{
	struct obs_super *super = proc->super;
	size_t *const counters[] = { &super->n_starting, &super->n_idle, &super->n_busy, NULL };

	if (counters[proc->state])
		(*counters[proc->state])--;
	if (counters[state])
		(*counters[state])++;
	proc->state = state;
	proc->since_ns = ob_clock_ns();
}

static void proc_closed(uv_handle_t *handle)
{
	struct obs_proc *proc = handle->data;
	struct obs_super *super = proc->super;

	if (--proc->closes_left > 0)
		return;
	close(proc->fd);
	obs_stats_page_free(proc->page);
	if (proc->prev)
		proc->prev->next = proc->next;
	else
		super->procs = proc->next;
	if (proc->next)
		proc->next->prev = proc->prev;
	super->n_procs--;
	free(proc);
	super->part_gone(super);
}

static void retry_due(uv_timer_t *timer)
{
	struct obs_super *super = timer->data;

	super->retrying = false;
	obs_pool_refill(super);
}

static void start_failed(struct obs_super *super, const char *why)
{
	snprintf(super->start_error, sizeof super->start_error, "%s", why);
	ob_error("a worker could not start: %s", why);
	super->start_failed(super, super->start_error);
	super->retrying = true;
	uv_timer_start(&super->retry, retry_due, OBS_RETRY_MS, 0);
}

/* Reads the worker's last messages, which may have come with its end. */
static void channel_rest(struct obs_proc *proc)
{
	static struct obs_handoff message;
	int fds[OBS_HANDOFF_FDS];

	while (obs_handoff_recv(proc->fd, &message, fds) > 0) {
		obs_handoff_close(fds);
		if (message.type == OBS_HANDOFF_ENDED)
			memcpy(proc->end_reason, message.text, sizeof proc->end_reason);
	}
}

static void session_audit_end(const struct obs_proc *proc, bool killed, const char *why)
{
	const struct obs_stats_page *page = proc->page;
	const struct obs_audit_counts counts = {
		.seconds = (double)(ob_clock_ns() - proc->began_ns) / 1e9,
		.calls = obs_stats_page_read(&page->calls),
		.bytes_in = obs_stats_page_read(&page->bytes_in),
		.bytes_out = obs_stats_page_read(&page->bytes_out)
	};

	if (killed)
		obs_audit_killed(proc->id, why);
	else
		obs_audit_closed(proc->id, proc->identity.who, &counts,
			proc->end_reason[0] ? proc->end_reason : "the client left");
}

static void proc_exited(uv_process_t *process, int64_t status, int signal)
{
	struct obs_proc *proc = process->data;
	struct obs_super *super = proc->super;
	enum obs_proc_state state = proc->state;
	char why[128];

	if (signal)
		snprintf(why, sizeof why, "killed by signal %d (%s)", signal, strsignal(signal));
	else
		snprintf(why, sizeof why, "exit status %d", (int)status);
	set_state(proc, OBS_PROC_ENDING);
	channel_rest(proc);
	if (state == OBS_PROC_BUSY)
		obs_status_session_ended(proc);
	super->deaths_total += !super->draining && (signal || (status && state != OBS_PROC_BUSY));
	if (state == OBS_PROC_BUSY) {
		obs_lease_drop(super, proc->reservation, proc->page);
		proc->reservation = NULL;
		obs_broker_forget(&super->broker, proc->id);
		route_remove(super, proc->route);
		session_audit_end(proc, signal != 0, why);
	}
	if (state == OBS_PROC_BUSY && (signal || status))
		ob_warn("session %016llx ended: worker %d: %s", (unsigned long long)proc->id,
			process->pid, why);
	else if (state == OBS_PROC_BUSY)
		ob_info("session %016llx ended", (unsigned long long)proc->id);
	else if (state == OBS_PROC_IDLE && !super->draining)
		ob_warn("idle worker %d: %s", process->pid, why);
	uv_close((uv_handle_t *)&proc->process, proc_closed);
	uv_close((uv_handle_t *)&proc->channel, proc_closed);
	uv_close((uv_handle_t *)&proc->timer, proc_closed);
	/* A single death may be an accident; several in a row mean a broken driver. */
	if (state == OBS_PROC_STARTING && !super->draining &&
		++super->start_deaths >= OBS_START_DEATHS_MAX)
		start_failed(super, why);
	obs_pool_refill(super);
}

/* Which objects are named with the device on which they lie. */
static bool has_device(const struct obs_ipc *ipc)
{
	return ipc->kind == OBS_IPC_MEMORY || ipc->kind == OBS_IPC_POOL;
}

/*
 * The broker's numbers of devices are the server's. A session that has a ticket names its own, and
 * cannot name, or import from, a device that is not in it.
 */
static bool ipc_execute(struct obs_proc *proc, struct obs_ipc *ipc, int *fd, int *ret_fd)
{
	if (ipc->op == OBS_IPC_PUT && has_device(ipc) &&
		!obs_place_to_server(&proc->place, ipc->device, &ipc->device)) {
		ipc->status = OBS_IPC_REFUSED;
		return true;
	}
	if (!obs_broker_request(&proc->super->broker, proc->id, &proc->identity, ipc, fd, ret_fd))
		return false;
	if (ipc->status == OBS_IPC_OK && has_device(ipc) &&
		!obs_place_to_session(&proc->place, ipc->device, &ipc->device)) {
		*ipc = (struct obs_ipc){ .op = ipc->op, .kind = ipc->kind, .status = OBS_IPC_NONE };
		*ret_fd = -1;
	}
	return true;
}

/* Executes a request for shared objects and answers it. Takes the first descriptor. */
static void ipc_request(struct obs_proc *proc, struct obs_handoff *message, int *fd)
{
	struct obs_ipc ipc;
	int answer[OBS_HANDOFF_FDS] = { -1, -1, -1 };

	if (proc->state != OBS_PROC_BUSY || message->size != sizeof ipc)
		return;
	memcpy(&ipc, message->body, sizeof ipc);
	if (!ipc_execute(proc, &ipc, fd, &answer[0]))
		return;
	memcpy(message->body, &ipc, sizeof ipc);
	/* A worker that does not read its answers waits in vain, for a limited time. */
	obs_handoff_send(proc->fd, message, answer);
}

void obs_pool_take(struct obs_proc *proc, struct obs_handoff *message, int fds[OBS_HANDOFF_FDS])
{
	struct obs_super *super = proc->super;

	if (message->type == OBS_HANDOFF_IPC)
		ipc_request(proc, message, &fds[0]);
	obs_handoff_close(fds);
	if (message->type == OBS_HANDOFF_ENDED)
		memcpy(proc->end_reason, message->text, sizeof proc->end_reason);
	if (proc->state != OBS_PROC_STARTING)
		return;
	uv_timer_stop(&proc->timer);
	if (message->type == OBS_HANDOFF_READY) {
		snprintf(proc->driver, sizeof proc->driver, "%s", message->text);
		ob_debug("worker %d is ready: %s", proc->process.pid, message->text);
		set_state(proc, OBS_PROC_IDLE);
		obs_status_worker_ready(proc);
		super->start_deaths = 0;
		super->worker_ready(super);
		obs_pool_refill(super);
	} else if (message->type == OBS_HANDOFF_FAILED) {
		set_state(proc, OBS_PROC_ENDING);
		start_failed(super, message->text);
	}
}

static void channel_readable(uv_poll_t *poll, int status, int events)
{
	struct obs_proc *proc = poll->data;
	static struct obs_handoff message;
	int fds[OBS_HANDOFF_FDS], got = obs_handoff_recv(proc->fd, &message, fds);

	(void)status;
	(void)events;
	if (got < 0 && errno == EAGAIN)
		return;
	if (got > 0) {
		obs_pool_take(proc, &message, fds);
		return;
	}
	/* The exit callback does the rest; a worker that only closed its channel is useless. */
	uv_poll_stop(poll);
	uv_process_kill(&proc->process, SIGKILL);
}

static void start_too_long(uv_timer_t *timer)
{
	struct obs_proc *proc = timer->data;

	ob_error("worker %d did not load its driver within %d s", proc->process.pid,
		OBS_START_TIMEOUT_MS / 1000);
	uv_process_kill(&proc->process, SIGKILL);
}

static int spawn(struct obs_proc *proc, int worker_end, int page)
{
	struct obs_super *super = proc->super;
	char *args[OBS_WORKER_ARGS_MAX];
	uv_stdio_container_t stdio[5] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = 1 },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
		{ .flags = UV_INHERIT_FD, .data.fd = worker_end },
		{ .flags = UV_INHERIT_FD, .data.fd = page },
	};
	uv_process_options_t options = { .exit_cb = proc_exited,
		.file = super->self,
		.args = args,
		.stdio = stdio,
		.stdio_count = 5 };

	obs_options_worker_args(super->options, super->self, super->driver, args);
	return uv_spawn(&super->loop, &proc->process, &options);
}

static bool proc_start(struct obs_super *super)
{
	struct obs_proc *proc = calloc(1, sizeof *proc);
	int fds[2], page = -1, err;

	if (!proc || !(proc->page = obs_stats_page_new(&page)) || obs_handoff_pair(fds) != 0) {
		int failed = errno;
		char why[240];

		if (page >= 0)
			close(page);
		if (proc)
			obs_stats_page_free(proc->page);
		free(proc);
		snprintf(why, sizeof why, "what a worker shares with the server cannot be made: %s",
			failed == ENOSYS || failed == EPERM
				? "this kernel, or the filter of system calls that the server runs "
				  "under, has no memfd_create"
				: strerror(failed));
		start_failed(super, why);
		return false;
	}
	proc->super = super;
	proc->process.data = proc->channel.data = proc->timer.data = proc;
	proc->fd = fds[0];
	uv_timer_init(&super->loop, &proc->timer);
	uv_poll_init(&super->loop, &proc->channel, proc->fd);
	err = spawn(proc, fds[1], page);
	close(fds[1]);
	close(page);
	proc->next = super->procs;
	if (super->procs)
		super->procs->prev = proc;
	super->procs = proc;
	super->n_procs++;
	proc->closes_left = 3;
	if (err) {
		proc->state = OBS_PROC_ENDING;
		uv_close((uv_handle_t *)&proc->process, proc_closed);
		uv_close((uv_handle_t *)&proc->channel, proc_closed);
		uv_close((uv_handle_t *)&proc->timer, proc_closed);
		start_failed(super, uv_strerror(err));
		return false;
	}
	proc->state = OBS_PROC_STARTING;
	super->n_starting++;
	proc->since_ns = ob_clock_ns();
	uv_poll_start(&proc->channel, UV_READABLE | UV_DISCONNECT, channel_readable);
	uv_timer_start(&proc->timer, start_too_long, OBS_START_TIMEOUT_MS, 0);
	return true;
}

void obs_pool_refill(struct obs_super *super)
{
	size_t warm = ob_opt_on(OB_OPT_WARM) ? super->options->warm : 0, want;

	if (super->draining || super->retrying)
		return;
	want = ob_max(super->n_waiting, warm);
	if (super->n_devices == 0)
		want = ob_max(want, 1); /* the first worker tells which devices there are */
	if (want > super->options->max_sessions - super->n_busy)
		want = super->options->max_sessions - super->n_busy;
	while (super->n_idle + super->n_starting < want &&
		super->n_starting < super->options->refill)
		if (!proc_start(super))
			return;
}

/*
 * Draws the session's id, route and secret. Route and secret are unguessable and unrelated to the
 * id, which logs show. False: no random bytes.
 */
static bool session_name(struct obs_handoff *handoff)
{
	if (getrandom(&handoff->id, sizeof handoff->id, 0) != sizeof handoff->id ||
		getrandom(&handoff->route, sizeof handoff->route, 0) != sizeof handoff->route ||
		getrandom(handoff->secret, sizeof handoff->secret, 0) != sizeof handoff->secret)
		return false;
	return handoff->id != 0 && handoff->route != 0;
}

static const char *transport_of(const struct obs_handoff *handoff)
{
	return handoff->secure                                ? "tls"
		: strcmp(handoff->identity.from, "unix") == 0 ? "unix"
							      : "tcp";
}

bool obs_pool_start_session(struct obs_super *super, struct obs_handoff *handoff,
	struct obs_reservation *reservation, const int fds[OBS_HANDOFF_FDS])
{
	const int passed[OBS_HANDOFF_FDS] = { fds[0], fds[1],
		reservation ? reservation->page_fd : -1 };
	struct obs_proc *proc;

	for (;;) {
		for (proc = super->procs; proc && proc->state != OBS_PROC_IDLE; proc = proc->next)
			;
		if (!proc || super->n_busy >= super->options->max_sessions ||
			!session_name(handoff))
			return false;
		proc->route = handoff->route;
		memcpy(proc->secret, handoff->secret, sizeof proc->secret);
		route_put(super, proc); /* before the client can join */
		if (obs_handoff_send(proc->fd, handoff, passed) == 0)
			break;
		route_remove(super, proc->route);
		set_state(proc, OBS_PROC_ENDING);
		uv_process_kill(&proc->process, SIGKILL);
	}
	proc->id = handoff->id;
	proc->identity = handoff->identity;
	proc->began_ns = ob_clock_ns();
	proc->place = handoff->place;
	proc->reservation = reservation;
	set_state(proc, OBS_PROC_BUSY);
	super->sessions_total++;
	obs_status_session_began(proc, fds[0]);
	ob_info("session %016llx starts on worker %d for %s from %s", (unsigned long long)proc->id,
		proc->process.pid, proc->identity.who, proc->identity.from);
	obs_audit_opened(proc->id, &proc->identity, transport_of(handoff), handoff->program,
		handoff->pid, super->n_devices ? super->devices[0].name : "");
	obs_pool_refill(super);
	return true;
}

enum ob_err obs_pool_join_session(
	struct obs_super *super, const struct obs_handoff *handoff, const int fds[OBS_HANDOFF_FDS])
{
	for (struct obs_proc *proc = super->procs; proc; proc = proc->next)
		if (proc->state == OBS_PROC_BUSY && proc->route == handoff->route)
			return obs_handoff_send(proc->fd, handoff, fds) == 0 ? OB_ERR_NONE
									     : OB_ERR_LIMIT;
	return OB_ERR_NOT_FOUND;
}

void obs_pool_kill(struct obs_super *super, bool busy_too)
{
	for (struct obs_proc *proc = super->procs; proc; proc = proc->next)
		if (proc->state == OBS_PROC_STARTING || proc->state == OBS_PROC_IDLE ||
			(busy_too && proc->state == OBS_PROC_BUSY))
			uv_process_kill(&proc->process, SIGKILL);
}

void obs_pool_end(struct obs_proc *proc, const char *why)
{
	static struct obs_handoff message;

	if (proc->state != OBS_PROC_BUSY || proc->kill_ns)
		return;
	message.type = OBS_HANDOFF_END;
	snprintf(message.text, sizeof message.text, "%s", why);
	if (obs_handoff_send(proc->fd, &message, NULL) != 0)
		uv_process_kill(&proc->process, SIGKILL);
	proc->kill_ns = ob_clock_ns() + OBS_END_MS * OB_MS;
}

void obs_pool_end_overdue(struct obs_super *super)
{
	uint64_t now = ob_clock_ns();

	for (struct obs_proc *proc = super->procs; proc; proc = proc->next)
		if (proc->state == OBS_PROC_BUSY && proc->kill_ns && now >= proc->kill_ns)
			uv_process_kill(&proc->process, SIGKILL);
}
