/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/common/stats_page.h"
#include "server/common/handoff.h"
#include "server/common/reservation_page.h"
#include "server/common/refuse.h"
#include "server/common/sandbox.h"
#include "server/worker/end.h"
#include "server/worker/exec.h"
#include "server/worker/greet.h"
#include "server/worker/loop.h"
#include "server/worker/start.h"
#include "transport/shm.h"
#include "transport/tls.h"

static struct obs_session session; /* large; one per process */

/* The page of the session's reservation is the last descriptor. */
static void page_take(const struct obs_handoff *message, int fds[OBS_HANDOFF_FDS])
{
	int *page = fds[2] >= 0 ? &fds[2] : &fds[1];

	if (message->place.reserved && !obs_reservation_page_adopt(*page))
		ob_error("the page of the session's reservation cannot be mapped: the memory of "
			 "its processes is limited for each alone");
	if (message->place.reserved)
		*page = -1;
}

/* Blocks until the supervisor sends a session. -1: the supervisor is gone. */
static int session_await(struct obs_handoff *ret, int *ret_memfd)
{
	int fds[OBS_HANDOFF_FDS];

	while (obs_handoff_recv(OBS_HANDOFF_FD, ret, fds) > 0) {
		if (ret->type == OBS_HANDOFF_NEW && fds[0] >= 0) {
			page_take(ret, fds);
			*ret_memfd = fds[1];
			return fds[0];
		}
		obs_handoff_close(fds);
	}
	return -1;
}

/*
 * Makes the stream: on tls:// the session's own TLS layer, with the key that admission and the
 * client derived. False: the client left, or does not have the key; session.end_reason says which.
 */
static bool stream_make(int fd, int memfd, const struct obs_handoff *handoff)
{
	uint64_t deadline = ob_clock_ns() + session.options->hello_timeout_s * OB_SECOND;
	const struct ob_cause *cause;
	bool ready = false;
	enum ob_err err;

	fcntl(fd, F_SETFL, 0);
	obt_stream_adopt(&session.data, fd);
	if (!handoff->secure) {
		obt_shm_expect(&session.data);
		obt_shm_put(&session.data, memfd);
		return true;
	}
	obs_handoff_drop(&memfd);
	if (obt_tls_accept_data(fd, handoff->psk, &session.data))
		return false;
	while ((err = obt_tls_answer(&session.data, &ready)) == OB_ERR_NONE && !ready)
		if (obt_stream_wait(&session.data, POLLIN, deadline) <= 0) {
			snprintf(session.end_reason, sizeof session.end_reason,
				"the client did not begin the session's TLS layer in time");
			return false;
		}
	cause = obt_stream_cause(&session.data);
	if (err && cause)
		snprintf(session.end_reason, sizeof session.end_reason, "%.190s", cause->text);
	return !err;
}

static void tell(enum obs_handoff_type type, const char *text)
{
	struct obs_handoff message = { .type = type };

	snprintf(message.text, sizeof message.text, "%.*s", (int)sizeof message.text - 1, text);
	obs_handoff_send(OBS_HANDOFF_FD, &message, NULL);
}

int obs_worker_run(const struct obs_options *options)
{
	static struct obs_handoff first;
	struct ob_cause cause;
	int fd, memfd = -1;

	/* The channel's end is noticed too; this also ends a worker that hangs in its driver. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/*
	 * Signals to the whole process group, from a terminal or service manager, are meant for the
	 * supervisor, which drains.
	 */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	ob_log_set_name("outboard-server[worker]");
	fcntl(OBS_HANDOFF_FD, F_SETFD, FD_CLOEXEC);
	if (obs_sandbox_begin(&options->sandbox, &cause)) {
		tell(OBS_HANDOFF_FAILED, cause.text);
		return 1;
	}
	obs_stats_page_adopt();
	if (obs_session_init(&session, options, &cause)) {
		tell(OBS_HANDOFF_FAILED, cause.text);
		return 1;
	}
	if (!obs_output_capture(&session.output))
		ob_warn("output of kernels goes to the server's log, not to the client: no memory "
			"file can be created");
	obs_sandbox_describe(obs_stats_page->sandbox);
	tell(OBS_HANDOFF_READY, session.lib.name);
	fd = session_await(&first, &memfd);
	if (fd < 0)
		return 0;
	obs_session_name(&session, &first);
	if (!stream_make(fd, memfd, &first))
		obs_session_exit(&session, 0);
	if (!obs_loop_start(&session, OBS_HANDOFF_FD)) {
		obs_refuse_send(fd, OB_ERR_NO_MEMORY, "the worker can start no thread");
		return 1;
	}
	if (!obs_session_greet(&session, first.body, first.size))
		obs_session_exit(&session, 0); /* end_reason is set and goes to the audit log */
	obs_exec_run(&session);
}

int obs_worker_probe(const struct obs_options *options)
{
	static struct obs_driver_lib lib;
	struct ob_cause cause;

	if (!obs_driver_open(options->driver, &lib, &cause))
		_exit(0);
	fprintf(stderr, "%s\n", cause.text); /* the supervisor quotes it */
	_exit(1);
}
