/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/admission/admission.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/admission/address.h"
#include "server/admission/auth.h"
#include "server/admission/caller.h"
#include "server/common/sandbox.h"
#include "transport/tls.h"

#define REPORTS_PER_SWEEP 8 /* refusals reported one by one; the rest in one */
#define REPORTS_AT_END    32
/*
 * The supervisor answers at once, if at all; on a busy machine that may take as long as it lets a program
 * wait for a worker.
 */
#define TOKENS_MS         30000
/* memory per connection, rounded up: its message, TLS */
#define CALLER_BYTES      (192u << 10)
#define OWN_BYTES         (64ull << 20)
#define DESCRIPTORS_KEPT  64u /* for the listening sockets, the channel, the token file */

static struct {
	struct obs_callers callers;
	uv_poll_t channel, listeners[OBS_LISTEN_MAX];
	bool secure[OBS_LISTEN_MAX];
	size_t n_listeners;
	bool resting; /* nothing is accepted until the next sweep */
	uv_timer_t sweep;
} admission;
static struct {
	bool waiting;
	int fd, error;
} asked; /* the request for the token file */

/* ---- the channel ---- */

static void refused_tell(const char *address, const char *why, uint32_t count)
{
	static struct obs_handoff message;

	message.type = OBS_HANDOFF_REFUSED;
	message.count = count;
	snprintf(message.identity.address, sizeof message.identity.address, "%s", address);
	snprintf(message.text, sizeof message.text, "%s", why);
	if (!obs_handoff_send_up(&message, -1, -1))
		ob_debug("the supervisor was not told of %u refused connections from %s", count,
			address);
}

/* Stores the answer to the request for the token file. Late answers are ignored. */
static void tokens_note(const struct obs_handoff *message, int fds[OBS_HANDOFF_FDS])
{
	if (!asked.waiting)
		return;
	asked.waiting = false;
	asked.fd = fds[0];
	fds[0] = -1;
	asked.error = (int)message->count;
}

/*
 * The supervisor sends only answers to requests for the token file. To end this process it closes
 * its direction, and still reads the last reports.
 */
static void channel_drain(void)
{
	static struct obs_handoff message;
	int fds[OBS_HANDOFF_FDS], got;

	while ((got = obs_handoff_recv(OBS_HANDOFF_FD, &message, fds)) > 0) {
		if (message.type == OBS_HANDOFF_TOKENS)
			tokens_note(&message, fds);
		obs_handoff_close(fds);
	}
	if (got == 0) {
		obs_address_report(OB_NEVER, REPORTS_AT_END, refused_tell);
		_exit(0);
	}
}

static void channel_readable(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)status;
	(void)events;
	channel_drain();
}

/* Replaces open(), which the sandbox denies: asks the supervisor. */
static int tokens_open(const char *path)
{
	static const struct obs_handoff question = { .type = OBS_HANDOFF_TOKENS };
	uint64_t deadline = ob_clock_ns() + TOKENS_MS * OB_MS;
	struct pollfd channel = { .fd = OBS_HANDOFF_FD, .events = POLLOUT };

	(void)path;
	while (!obs_handoff_send_up(&question, -1, -1))
		if (errno != EAGAIN || poll(&channel, 1, ob_clock_poll_ms(deadline)) <= 0)
			return -1;
	channel.events = POLLIN;
	asked.waiting = true;
	while (asked.waiting && ob_clock_ns() < deadline)
		if (poll(&channel, 1, ob_clock_poll_ms(deadline)) > 0)
			channel_drain();
	errno = asked.waiting ? ETIMEDOUT : asked.error;
	asked.waiting = false;
	return errno ? -1 : asked.fd;
}

/* ---- connections ---- */

static void accept_ready(uv_poll_t *poll, int status, int events);

/*
 * Nothing can be accepted or evicted. The sockets stay readable, so polling them now would use a
 * whole processor: wait for the next sweep.
 */
static void listeners_rest(void)
{
	for (size_t i = 0; i < admission.n_listeners; i++)
		uv_poll_stop(&admission.listeners[i]);
	admission.resting = true;
}

static void listeners_go_on(void)
{
	for (size_t i = 0; admission.resting && i < admission.n_listeners; i++)
		uv_poll_start(&admission.listeners[i], UV_READABLE, accept_ready);
	admission.resting = false;
}

static void accept_ready(uv_poll_t *poll, int status, int events)
{
	size_t index = (size_t)(poll - admission.listeners);
	int listener;

	(void)status;
	(void)events;
	uv_fileno((uv_handle_t *)poll, &listener);
	for (int i = 0; i < OBS_ACCEPTS_PER_TURN; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 &&
			(errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM)) {
			/*
			 * The resources of an evicted connection are free in the loop's next turn.
			 */
			if (!obs_caller_make_room(&admission.callers))
				listeners_rest();
			return;
		}
		if (fd < 0)
			return;
		obs_caller_admit(&admission.callers, fd, admission.secure[index]);
	}
}

static void sweep(uv_timer_t *timer)
{
	uint64_t now = ob_clock_ns();

	(void)timer;
	obs_caller_sweep(&admission.callers, now);
	obs_address_report(now, REPORTS_PER_SWEEP, refused_tell);
	listeners_go_on();
}

/* "tsc": one letter for each listening socket, s for one with TLS. */
static bool listeners_take(const char *letters)
{
	for (; *letters; letters++) {
		size_t i = admission.n_listeners++;
		int fd = OBS_ADMISSION_LISTENERS_FD + (int)i;

		fcntl(fd, F_SETFD, FD_CLOEXEC);
		admission.secure[i] = *letters == 's';
		if (uv_poll_init(&admission.callers.loop, &admission.listeners[i], fd) != 0 ||
			uv_poll_start(&admission.listeners[i], UV_READABLE, accept_ready) != 0)
			return false;
	}
	return true;
}

static bool secrets_load(const struct obs_options *options)
{
	struct ob_cause cause;

	if (options->tls_cert)
		admission.callers.tls = obt_tls_server_new(
			options->tls_cert, options->tls_key, options->tls_client_ca, &cause);
	if ((options->tls_cert && !admission.callers.tls) || obs_auth_open(options, &cause)) {
		ob_error("admission: %s", cause.text);
		return false;
	}
	return true;
}

/* Each connection needs a descriptor, and one more while it is handed on. */
static void connections_bound(struct obs_options *options)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur =
		ob_min(limit.rlim_max, (rlim_t)options->connections + 2 * DESCRIPTORS_KEPT);
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < options->connections + DESCRIPTORS_KEPT) {
		options->connections = limit.rlim_cur > 2 * DESCRIPTORS_KEPT
			? (uint32_t)limit.rlim_cur - DESCRIPTORS_KEPT
			: DESCRIPTORS_KEPT;
		ob_warn("admission: room for %u connections only; raise the limit of descriptors "
			"(ulimit -n)",
			options->connections);
	}
}

/* Signs and checks something, so that the library has loaded what it needs for tickets. */
static void signatures_warm(void)
{
	uint8_t public[OBT_SIGN_KEY_BYTES], sealed[OBT_SIGN_OVERHEAD + 1];
	struct obt_sign_key *key;
	struct ob_cause cause;
	const uint8_t *text;
	size_t size;

	key = obt_sign_key_new(&cause);
	if (!key)
		return;
	obt_sign_key_public(key, public);
	if (!obt_sign_seal(key, "", 1, sealed) ||
		obt_sign_open(&public, 1, sealed, sizeof sealed, &text, &size, &cause))
		ob_warn("admission: OpenSSL checks no Ed25519 signatures: every ticket will be "
			"refused");
	obt_sign_key_free(key);
}

static bool sandbox_close(const struct obs_options *options)
{
	struct ob_cause cause;

	/* Lets the library read its files now. */
	if (admission.callers.tls)
		obt_tls_warm();
	if (admission.callers.pool->on)
		signatures_warm();
	if (obs_sandbox_admission(&options->sandbox,
		    options->connections * (uint64_t)CALLER_BYTES + OWN_BYTES, &cause)) {
		ob_error("admission: %s", cause.text);
		return false;
	}
	obs_auth_open_tokens =
		options->sandbox.mode == OBS_SANDBOX_OFF ? obs_auth_open_tokens : tokens_open;
	obs_sandbox_describe(admission.callers.sandbox);
	ob_info("sandbox of admission: %s", admission.callers.sandbox);
	return true;
}

int obs_admission_run(const struct obs_options *given)
{
	static struct obs_options options;
	int failed;

	options = *given;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Keep other processes of this user, and core files, from reading the keys in memory. */
	prctl(PR_SET_DUMPABLE, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	ob_log_set_name("outboard-server[admission]");
	fcntl(OBS_HANDOFF_FD, F_SETFD, FD_CLOEXEC);
	fcntl(OBS_HANDOFF_FD, F_SETFL, O_NONBLOCK);
	/* Close descriptors that the server inherited. */
	syscall(SYS_close_range,
		(unsigned)OBS_ADMISSION_LISTENERS_FD +
			(unsigned)strlen(options.listeners ? options.listeners : ""),
		~0u, 0u);
	connections_bound(&options);
	admission.callers.options = &options;
	admission.callers.routes = obs_routes_adopt();
	if (!admission.callers.routes) {
		ob_error("admission: the table of sessions cannot be mapped: %s", strerror(errno));
		return 1;
	}
	admission.callers.pool = obs_pool_page_adopt();
	if (!admission.callers.pool) {
		ob_error("admission: what it has to know of the pool cannot be mapped: %s",
			strerror(errno));
		return 1;
	}
	if (!secrets_load(&options) || !sandbox_close(&options))
		return 1;
	/*
	 * Inside the sandbox: libuv tries io_uring when it creates the loop and falls back if that
	 * is denied. If it were denied only later, libuv would abort.
	 */
	failed = uv_loop_init(&admission.callers.loop);
	if (failed) {
		ob_error("admission: the event loop cannot be created: %s. If the server starts "
			 "with --sandbox off, report that the sandbox denies "
			 "what this libuv needs",
			uv_strerror(failed));
		return 1;
	}
	uv_timer_init(&admission.callers.loop, &admission.sweep);
	uv_poll_init(&admission.callers.loop, &admission.channel, OBS_HANDOFF_FD);
	uv_poll_start(&admission.channel, UV_READABLE | UV_DISCONNECT, channel_readable);
	admission.callers.swept = ob_clock_ns();
	uv_timer_start(&admission.sweep, sweep, OBS_SWEEP_MS, OBS_SWEEP_MS);
	if (!listeners_take(options.listeners ? options.listeners : "")) {
		ob_error("admission: the listening sockets cannot be watched; report this with the "
			 "versions of libuv and of the kernel");
		return 1;
	}
	uv_run(&admission.callers.loop, UV_RUN_DEFAULT);
	return 0;
}
