/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/supervisor/admit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/supervisor/audit.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/pending.h"
#include "server/supervisor/status.h"

#define MESSAGES_PER_TURN 64
#define STOP_MS           1000 /* time for its last reports */
/* a process that has run for so long is restarted at once */
#define STABLE_NS         (10 * OB_SECOND)
#define RESTART_MS        100 /* else after this time, doubled for each death in a row */
#define RESTART_DOUBLINGS 5u

/* ---- its messages ---- */

static void refused(struct obs_super *super, const struct obs_handoff *message)
{
	super->refused_total += message->count;
	obs_audit_refused(message->identity.address, "anonymous", message->text, message->count);
}

/* Sends the token file to admission, which can open no files. */
static void tokens_give(struct obs_super *super)
{
	static struct obs_handoff answer;
	OB_CLEANUP(ob_closep)
	int fd = super->options->tokens ? open(super->options->tokens, O_RDONLY | O_CLOEXEC) : -1;

	answer.type = OBS_HANDOFF_TOKENS;
	answer.count = fd < 0 ? (uint32_t)errno : 0;
	/* Admission waits for this answer, so the channel has room for it. */
	if (obs_handoff_send(
		    super->admit.fd, &answer, (const int[OBS_HANDOFF_FDS]){ fd, -1, -1 }) != 0)
		ob_error("the token file cannot be sent to the admission process: %s",
			strerror(errno));
}

void obs_admit_take(struct obs_super *super, struct obs_handoff *message, int fds[OBS_HANDOFF_FDS])
{
	obs_handoff_drop(&fds[2]); /* the supervisor's own: the page of a reservation */
	if (message->type == OBS_HANDOFF_REFUSED) {
		refused(super, message);
	} else if (message->type == OBS_HANDOFF_TICKET) {
		obs_lease_refused(super, message->count);
	} else if (message->type == OBS_HANDOFF_TOKENS) {
		tokens_give(super);
	} else if (super->admit.stopping) {
		obs_handoff_close(fds);
	} else if (fds[0] >= 0 && message->type == OBS_HANDOFF_NEW) {
		obs_pending_admit(super, message, fds);
		return;
	} else if (fds[0] >= 0 && message->type == OBS_HANDOFF_JOIN) {
		obs_pending_join(super, message, fds);
		return;
	} else if (fds[0] >= 0 && message->type == OBS_HANDOFF_LOAD &&
		!obs_status_answer(super, fds[0], message->route)) {
		/*
		 * the answer was sent in part: end the connection, or the client would wait for the
		 * rest
		 */
		shutdown(fds[0], SHUT_RDWR);
	}
	obs_handoff_close(fds);
}

static void channel_readable(uv_poll_t *poll, int status, int events)
{
	static struct obs_handoff message;
	struct obs_super *super = poll->data;
	int fds[OBS_HANDOFF_FDS], got = 1;

	(void)status;
	(void)events;
	for (int i = 0; i < MESSAGES_PER_TURN && got > 0; i++) {
		got = obs_handoff_recv(super->admit.fd, &message, fds);
		if (got > 0)
			obs_admit_take(super, &message, fds);
	}
	got = got > 0 || (got < 0 && errno == EAGAIN);
	/* it held keys of sessions or secrets of joins */
	explicit_bzero(&message, sizeof message);
	if (got)
		return;
	/* The exit callback does the rest. */
	uv_poll_stop(poll);
	if (!super->admit.stopping)
		uv_process_kill(&super->admit.process, SIGKILL);
}

/* ---- the process ---- */

/* Also runs while the process is being stopped, if it does not end in time. */
static void restart_due(uv_timer_t *timer)
{
	struct obs_super *super = timer->data;

	if (super->admit.stopping)
		uv_process_kill(&super->admit.process, SIGKILL);
	else
		obs_admit_start(super);
}

static void closed(uv_handle_t *handle)
{
	struct obs_super *super = handle->data;
	struct obs_admit *admit = &super->admit;
	unsigned doublings = ob_min(admit->deaths, RESTART_DOUBLINGS);

	if (--admit->closes_left > 0)
		return;
	close(admit->fd);
	admit->fd = -1;
	if (admit->stopping)
		uv_close((uv_handle_t *)&admit->restart, NULL);
	else
		uv_timer_start(&admit->restart, restart_due,
			admit->deaths ? (uint64_t)RESTART_MS << doublings : 0, 0);
}

static void exited(uv_process_t *process, int64_t status, int signal)
{
	struct obs_super *super = process->data;
	struct obs_admit *admit = &super->admit;

	if (!admit->stopping) {
		admit->deaths =
			ob_clock_ns() - admit->started_ns > STABLE_NS ? 0 : admit->deaths + 1;
		super->deaths_total++;
		if (signal)
			ob_error("the admission process was killed by signal %d (%s); it is "
				 "restarted",
				signal, strsignal(signal));
		else
			ob_error("the admission process ended with status %d; it is restarted",
				(int)status);
	}
	admit->closes_left = 2;
	uv_close((uv_handle_t *)&admit->process, closed);
	uv_close((uv_handle_t *)&admit->channel, closed);
}

static int spawn(struct obs_super *super, int child_end)
{
	char *args[OBS_WORKER_ARGS_MAX], letters[OBS_LISTEN_MAX + 1];
	uv_stdio_container_t stdio[OBS_ADMISSION_LISTENERS_FD + OBS_LISTEN_MAX] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = 1 },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
		[OBS_HANDOFF_FD] = { .flags = UV_INHERIT_FD, .data.fd = child_end },
		[OBS_ROUTES_FD] = { .flags = UV_INHERIT_FD, .data.fd = super->admit.routes_fd },
		[OBS_POOL_PAGE_FD] = { .flags = UV_INHERIT_FD,
			.data.fd = super->membership.page_fd },
	};
	uv_process_options_t options = { .exit_cb = exited,
		.file = super->self,
		.args = args,
		.stdio = stdio,
		.stdio_count = OBS_ADMISSION_LISTENERS_FD + (int)super->n_listeners };

	for (size_t i = 0; i < super->n_listeners; i++) {
		stdio[OBS_ADMISSION_LISTENERS_FD + i] =
			(uv_stdio_container_t){ .flags = UV_INHERIT_FD,
				.data.fd = super->listeners[i].fd };
		letters[i] = super->listeners[i].secure ? 's' : 'c';
	}
	letters[super->n_listeners] = '\0';
	obs_options_admission_args(super->options, super->self, letters, args);
	return uv_spawn(&super->loop, &super->admit.process, &options);
}

bool obs_admit_start(struct obs_super *super)
{
	struct obs_admit *admit = &super->admit;
	int fds[2], err;

	if (!admit->restart.data) {
		admit->fd = -1;
		admit->routes = obs_lease_open(super) ? obs_routes_new(&admit->routes_fd) : NULL;
		if (!admit->routes) {
			ob_error("the table of sessions cannot be made: %s",
				errno == ENOSYS || errno == EPERM
					? "this kernel, or the filter of system calls that the "
					  "server runs under, has no memfd_create"
					: strerror(errno));
			return false;
		}
		uv_timer_init(&super->loop, &admit->restart);
		admit->restart.data = super;
	}
	if (obs_handoff_pair(fds) != 0) {
		ob_error("the admission process cannot be started: %s", strerror(errno));
		uv_timer_start(&admit->restart, restart_due, RESTART_MS << RESTART_DOUBLINGS, 0);
		return false;
	}
	admit->process.data = admit->channel.data = super;
	admit->started_ns = ob_clock_ns();
	err = spawn(super, fds[1]);
	close(fds[1]);
	if (err) {
		ob_error("the admission process cannot be started: %s", uv_strerror(err));
		close(fds[0]);
		admit->deaths++;
		uv_close((uv_handle_t *)&admit->process, NULL);
		uv_timer_start(&admit->restart, restart_due, RESTART_MS << RESTART_DOUBLINGS, 0);
		return false;
	}
	admit->fd = fds[0];
	uv_poll_init(&super->loop, &admit->channel, admit->fd);
	uv_poll_start(&admit->channel, UV_READABLE | UV_DISCONNECT, channel_readable);
	return true;
}

void obs_admit_stop(struct obs_super *super)
{
	struct obs_admit *admit = &super->admit;

	if (admit->stopping || !admit->restart.data)
		return;
	admit->stopping = true;
	obs_routes_free(admit->routes);
	close(admit->routes_fd);
	admit->routes = NULL;
	uv_timer_stop(&admit->restart);
	if (admit->fd >= 0) {
		shutdown(admit->fd, SHUT_WR);
		uv_timer_start(&admit->restart, restart_due, STOP_MS, 0);
	} else {
		uv_close((uv_handle_t *)&admit->restart, NULL);
	}
}
