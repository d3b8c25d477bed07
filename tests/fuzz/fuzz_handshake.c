/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Input of the admission process from a new connection over TCP, for which the server requires a
 * token. The first byte says whether the input is raw bytes, the map for a frame, or the fields of
 * a hello with the right token or one that differs by a byte. Admission must hand over only a hello
 * with the right token, and must remove the token from it. A worker's handshake continues with that
 * hello.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/admission/caller.h"
#include "server/worker/end.h"
#include "server/worker/exec.h"
#include "server/worker/greet.h"
#include "server/worker/start.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_child.h"
#include "tests/fuzz/fuzz_stream.h"
#include "transport/token.h"

#define INPUT_MAX 65536u

static struct obs_session fresh, session;
static struct obs_options options;
static struct obs_handoff handed;
static char token[OBT_TOKEN_TEXT];
static struct obs_callers admission;
static const struct obs_pool_page no_pool;
static struct sockaddr_in here;
static int listener = -1, channel = -1;
static unsigned long greeted; /* for a debugger, to check that this code is reached */

/* The client sends nothing after the hello. */
static ssize_t nothing_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	(void)stream;
	(void)data;
	(void)size;
	(void)block;
	return 0;
}

static const struct obt_ops silent_ops = { .name = "fuzz",
	.send = fuzz_stream_send,
	.recv = nothing_recv,
	.close = fuzz_stream_close };

/* Makes connections look like TCP: the peer is not a Unix socket. */
static void listener_make(void)
{
	here = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof here;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 1) ||
		getsockname(listener, (struct sockaddr *)&here, &length)) {
		perror("a listener");
		exit(1);
	}
}

static void remove_tokens(void)
{
	unlink(options.tokens);
}

static void start(void)
{
	static char path[] = "/tmp/outboard-fuzz-XXXXXX";
	char *argv[] = { "outboard-server", "--admission", "--hello-timeout", "1", "--driver",
		"null", "--tokens", path, "--upload-cache", "0", NULL };
	struct ob_cause cause = { .code = OB_ERR_NONE };
	struct obt_tokens tokens = { 0 };
	int fd = mkstemp(path);

	ob_log_set_level(OB_LOG_ERROR);
	if (fd < 0 || obt_tokens_add(&tokens, "fuzz", OBT_SCOPE_USE, 0, NULL, token) ||
		obt_tokens_write(path, &tokens, &cause) || obs_options_parse(&options, 10, argv) ||
		obs_session_init(&fresh, &options, &cause)) {
		fprintf(stderr, "the null driver does not start: %s\n", cause.text);
		exit(1);
	}
	close(fd);
	atexit(remove_tokens);
	obt_tokens_fini(&tokens);
	obp_conn_fini(&fresh.conn);
	admission.options = &options;
	admission.pool = &no_pool;
	if (uv_loop_init(&admission.loop) != 0)
		exit(1);
	listener_make();
}

/*
 * Makes a hello with fields from the input. A byte of the token may be changed, and then bytes of
 * the whole message.
 */
static void hello_make(const uint8_t *data, size_t size)
{
	static struct obp_message message;
	struct obp_hello *hello = &message.hello;
	uint8_t fields[sizeof *hello] = { 0 };

	memcpy(fields, data, ob_min(size, sizeof fields));
	memcpy(hello, fields, sizeof *hello);
	hello->version[sizeof hello->version - 1] = hello->program[sizeof hello->program - 1] =
		hello->token[sizeof hello->token - 1] = '\0';
	hello->ticket_size %= OBP_HELLO_TICKET + 1;
	hello->n_ranges %= OBP_RANGE_MAX + 1;
	hello->pid = 0;
	if (fields[0] & 1)
		snprintf(hello->token, sizeof hello->token, "%s", token);
	if (fields[0] & 2)
		hello->token[fields[1] % sizeof token] ^= (char)(fields[2] & 0x7f);
	message.type = OBP_MSG_HELLO;
	fuzz_wire_put_message(&message);
	for (size_t i = sizeof fields; i + 2 < size && fuzz_wire.size; i += 3)
		fuzz_wire.data[(data[i] | data[i + 1] << 8) % fuzz_wire.size] = data[i + 2];
}

/* Whether the bytes contain the token. */
static bool shown(void)
{
	return memmem(fuzz_wire.data, fuzz_wire.size, token, strlen(token)) != NULL;
}

/*
 * Sends the bytes after a preface, then the end of the connection; runs admission until it has
 * handled them.
 */
static void caller_run(void)
{
	const struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = OBP_INTENT_NEW
	};
	int theirs = socket(AF_INET, SOCK_STREAM, 0), ours;

	if (theirs < 0 || connect(theirs, (struct sockaddr *)&here, sizeof here) ||
		(ours = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0) {
		perror("a connection");
		exit(1);
	}
	if (send(theirs, &preface, sizeof preface, MSG_NOSIGNAL) < 0 ||
		(fuzz_wire.size && send(theirs, fuzz_wire.data, fuzz_wire.size, MSG_NOSIGNAL) < 0))
		perror("send");
	shutdown(theirs, SHUT_WR);
	obs_caller_admit(&admission, ours, false);
	for (int i = 0; i < 1000 && uv_loop_alive(&admission.loop); i++)
		uv_run(&admission.loop, UV_RUN_NOWAIT);
	obs_caller_sweep(&admission, OB_NEVER);
	obs_caller_sweep(&admission, OB_NEVER);
	while (uv_loop_alive(&admission.loop))
		uv_run(&admission.loop, UV_RUN_NOWAIT);
	close(theirs);
}

/* The worker's part. */
static void greet(int fd)
{
	if (!shown() || memmem(&handed, sizeof handed, token, strlen(token)))
		abort();
	session = fresh;
	session.data = (struct obt_stream){ .ops = &silent_ops, .fd = fd };
	if (obp_conn_init(&session.conn, OBP_ACCEPT_CONTROL))
		return;
	session.identity = handed.identity;
	greeted += obs_session_greet(&session, handed.body, handed.size);
	obp_conn_fini(&session.conn);
	obp_packer_fini(&session.packer);
	free(session.replies.retransmit.ring);
	free(session.replies.retransmit.list);
	if (session.link.client > 0)
		close(session.link.client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fds[OBS_HANDOFF_FDS];

	if (channel < 0) {
		channel = fuzz_child_channel();
		start();
	}
	if (size < 1 || size > INPUT_MAX)
		return 0;
	fuzz_wire_clear();
	if (data[0] % 3 == 2) {
		hello_make(data + 1, size - 1);
	} else if (data[0] % 3 == 1) {
		size_t n = ob_min(size - 1, (size_t)OBP_CONTROL_MAX - 64);
		struct obp_frame frame;

		obp_frame_fill(&frame, OBP_FRAME_CONTROL, (uint32_t)ob_round_up(n, 8), 0, 0, 0);
		frame.raw_size = (uint32_t)n;
		fuzz_wire_put_frame(&frame, data + 1, n);
	} else {
		fuzz_wire_put(data + 1, size - 1);
	}
	caller_run();
	while (obs_handoff_recv(channel, &handed, fds) > 0) {
		if (handed.type == OBS_HANDOFF_NEW)
			greet(fds[0]);
		obs_handoff_close(fds);
	}
	return 0;
}
