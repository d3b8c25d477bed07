/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/member/member.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "server/common/member_channel.h"
#include "server/member/balancer.h"
#include "transport/tls.h"

static struct {
	const char *url_text;
	struct obt_url url;
	struct obp_pool_register join;
	struct obs_balancer balancer;
	uint64_t beats;                 /* sent on this connection */
	struct obs_member_message down; /* from the supervisor */
	struct obs_member_message up;   /* to it */
	char complaint[OB_CAUSE_TEXT];  /* the last that was logged */
	uint32_t backoff_ms;
} member;

/* ---- what the server is, for REGISTER ---- */

static enum ob_err token_read(const char *path, char ret[OBP_TOKEN_MAX], struct ob_cause *ret_cause)
{
	FILE *file = fopen(path, "re");
	char line[2 * OBP_TOKEN_MAX] = "";
	bool read = file && fgets(line, sizeof line, file);

	if (!file)
		return ob_cause_set_system(
			ret_cause, OB_ERR_IO, errno, "--pool-token-file %.180s", path);
	fclose(file);
	line[strcspn(line, " \t\r\n")] = '\0';
	if (!read || !line[0] || strlen(line) >= OBP_TOKEN_MAX) {
		explicit_bzero(line, sizeof line);
		return ob_cause_set(ret_cause, OB_ERR_ARGUMENT,
			"--pool-token-file %.180s: its first line is no token", path);
	}
	snprintf(ret, OBP_TOKEN_MAX, "%s", line);
	explicit_bzero(line, sizeof line);
	return OB_ERR_NONE;
}

static enum ob_err join_fill(const struct obs_options *options, struct ob_cause *ret_cause)
{
	struct obp_pool_register *join = &member.join;
	uint8_t pin[OBT_TLS_PIN_BYTES];

	join->incarnation = options->incarnation;
	snprintf(join->name, sizeof join->name, "%s", options->pool_name);
	snprintf(join->version, sizeof join->version, "%s", OB_VERSION);
	snprintf(join->urls, sizeof join->urls, "%s", options->advertise);
	snprintf(join->labels, sizeof join->labels, "%s", options->labels ? options->labels : "");
	if (options->tls_cert && !obt_tls_read_pin(options->tls_cert, pin))
		ob_text_hex(pin, sizeof pin, join->pin);
	return options->pool_token ? token_read(options->pool_token, join->token, ret_cause)
				   : OB_ERR_NONE;
}

/* ---- the supervisor ---- */

static void tell(enum obs_member_type type)
{
	member.up.type = type;
	member.up.size = 0;
	if (!obs_member_send(OBS_MEMBER_FD, &member.up))
		ob_warn("pool: the supervisor does not take a message of balancer %s: %s",
			member.url_text, strerror(errno));
}

/* Logs what is wrong, once until it changes. */
static void complain(const char *what)
{
	if (strcmp(member.complaint, what) == 0)
		return;
	snprintf(member.complaint, sizeof member.complaint, "%s", what);
	ob_warn("pool: not registered at balancer %s: %s; trying again", member.url_text, what);
}

static void connection_lost(const char *why)
{
	obs_balancer_close(&member.balancer);
	member.complaint[0] = '\0';
	complain(why);
	snprintf(member.up.u.order.text, sizeof member.up.u.order.text, "%s", why);
	tell(OBS_MEMBER_LOST);
}

static void pool_send(const struct obp_pool_message *message)
{
	if (obs_balancer_send(&member.balancer, message))
		connection_lost("it does not take the heartbeats");
}

/* Sets the number, which counts on each connection, and sends the heartbeat on. */
static void beat_send(void)
{
	static struct obp_pool_message beat;
	const struct obp_frame *head = (const struct obp_frame *)member.down.frame;

	if (member.down.size < sizeof *head || head->raw_size > member.down.size - sizeof *head ||
		obp_pool_decode(head + 1, head->raw_size, &beat))
		return;
	if (beat.type == OBP_POOL_BEAT) {
		beat.u.beat.number = ++member.beats;
		pool_send(&beat);
	}
	obp_pool_fini(&beat);
}

/* Takes what the supervisor sends. False: it is gone. */
static bool channel_read(void)
{
	static struct obp_pool_message answer;
	int got;

	while ((got = obs_member_recv(OBS_MEMBER_FD, &member.down)) > 0) {
		if (member.balancer.stream.fd < 0)
			continue;
		if (member.down.type == OBS_MEMBER_BEAT) {
			beat_send();
		} else if (member.down.type == OBS_MEMBER_OBEYED) {
			answer.type = OBP_POOL_OBEYED;
			answer.u.obeyed = member.down.u.obeyed;
			pool_send(&answer);
		}
	}
	return got < 0;
}

/* ---- the balancer ---- */

static void orders_read(void)
{
	static struct obp_pool_message message;
	enum ob_err err;

	while (member.balancer.stream.fd >= 0 &&
		(err = obs_balancer_receive(&member.balancer, &message)) != OB_ERR_NOT_FOUND) {
		if (err == OB_ERR_CLOSED) {
			connection_lost("it closed the connection");
		} else if (err || message.type != OBP_POOL_ORDER) {
			if (!err)
				obp_pool_fini(&message);
			connection_lost("it sent something that is no order: balancer and server "
					"versions may differ");
		} else {
			member.up.u.order = message.u.order;
			obp_pool_fini(&message);
			tell(OBS_MEMBER_ORDER);
		}
	}
}

/* True: the server is registered. */
static bool connect_once(void)
{
	struct obp_pool_registered registered;
	struct ob_cause cause = { .code = OB_ERR_NONE };

	if (obs_balancer_open(&member.balancer, &member.url, &member.join, &registered, &cause)) {
		complain(cause.text[0] ? cause.text : "no connection");
		return false;
	}
	/* Heartbeats from before are out of date: the balancer would believe what they lack. */
	while (obs_member_recv(OBS_MEMBER_FD, &member.down) > 0)
		;
	ob_info("pool: registered as %s at balancer %s (%s)", member.join.name, registered.balancer,
		member.url_text);
	member.complaint[0] = '\0';
	member.beats = 0;
	member.up.u.registered = registered;
	tell(OBS_MEMBER_REGISTERED);
	return true;
}

/* The waiting time before the next attempt: doubled each time, half of it random. */
static int backoff_next(void)
{
	uint32_t random = 0, now = member.backoff_ms;

	if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
		random = (uint32_t)ob_clock_ns();
	member.backoff_ms = ob_min(now * 2, OBS_MEMBER_BACKOFF_MAX_MS);
	return (int)(now / 2 + random % (now / 2 + 1));
}

/* False: the supervisor is gone. */
static bool turn(void)
{
	struct pollfd fds[2] = { { .fd = OBS_MEMBER_FD, .events = POLLIN },
		{ .fd = member.balancer.stream.fd, .events = POLLIN } };

	if (member.balancer.stream.fd < 0) {
		uint64_t until;

		if (connect_once()) {
			member.backoff_ms = OBS_MEMBER_BACKOFF_MIN_MS;
			return true;
		}
		until = ob_clock_ns() + (uint64_t)backoff_next() * OB_MS;
		while (ob_clock_ns() < until && poll(fds, 1, ob_clock_poll_ms(until)) > 0)
			if (!channel_read())
				return false;
		return true;
	}
	if (!obt_stream_pending(&member.balancer.stream))
		poll(fds, 2, -1);
	orders_read();
	return channel_read();
}

/* ---- the process ---- */

/*
 * Gives up root, now that the files are read: this process reads what other machines send. The user
 * is that of the admission process, which has no file of its own.
 */
static bool privileges_drop(const struct obs_options *options)
{
	uid_t uid = options->sandbox.uid;

	if (geteuid() != 0 || uid == 0)
		return true;
	return setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 &&
		setresuid(uid, uid, uid) == 0;
}

int obs_member_run(const struct obs_options *options)
{
	struct ob_cause cause;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	ob_log_set_name("outboard-server[member]");
	fcntl(OBS_MEMBER_FD, F_SETFD, FD_CLOEXEC);
	syscall(SYS_close_range, OBS_MEMBER_FD + 1u, ~0u, 0u);
	member.balancer.stream.fd = -1;
	member.url_text = options->pool;
	member.backoff_ms = OBS_MEMBER_BACKOFF_MIN_MS;
	if (!options->pool || !options->pool_name || !options->advertise)
		return 1;
	if (obs_balancer_address(options->pool, &member.url, &cause) ||
		join_fill(options, &cause) ||
		(member.url.scheme == OBT_TLS && obt_tls_client_load(&cause))) {
		ob_error("pool: %s", cause.text);
		return 1;
	}
	if (!privileges_drop(options)) {
		ob_error("pool: the member process cannot give up root: %s", strerror(errno));
		return 1;
	}
	/* After a change of the user the kernel forgets it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (turn())
		;
	explicit_bzero(&member.join, sizeof member.join);
	return 0;
}
