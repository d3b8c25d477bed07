/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a worker may get where it waits for a client's hello, from "another machine": the server wants a token. The first byte says whether the input is raw
 * bytes, the map that goes into a frame, or the fields of a hello, whose token then is the right one or nearly so. Whoever gets in has shown the token.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "server/exec.h"
#include "tests/fuzz/fuzz.h"
#include "transport/token.h"

#define INPUT_MAX 65536u

static struct obs_session fresh, session;
static struct obs_options options;
static char token[OBT_TOKEN_TEXT];
static int ours = -1, theirs = -1;
static uint8_t wire[INPUT_MAX + 4096];
static size_t wire_size, wire_at;
static unsigned long greeted; /* for a look with the debugger that this is reached */

static ssize_t fuzz_send(struct obt_stream *stream, const struct iovec *iov, int n, bool block)
{
	size_t total = 0;

	(void)stream;
	(void)block;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return (ssize_t)total;
}

static ssize_t fuzz_recv(struct obt_stream *stream, void *data, size_t size, bool block)
{
	size_t n = ob_min(size, wire_size - wire_at);

	(void)stream;
	(void)block;
	memcpy(data, wire + wire_at, n);
	wire_at += n;
	return (ssize_t)n;
}

static void fuzz_close(struct obt_stream *stream)
{
	(void)stream;
}

static const struct obt_ops fuzz_ops = { "fuzz", fuzz_send, fuzz_recv, fuzz_close };

/* A connection over TCP whose other end has said its last word: always readable, and its peer is no unix socket. */
static void connection_make(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof here;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	theirs = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&here, &length) ||
	    connect(theirs, (struct sockaddr *)&here, sizeof here) || (ours = accept(listener, NULL, NULL)) < 0 || shutdown(theirs, SHUT_WR)) {
		perror("a connection");
		exit(1);
	}
	close(listener);
}

static void remove_tokens(void)
{
	unlink(options.tokens);
}

static void start(void)
{
	static char path[] = "/tmp/outboard-fuzz-XXXXXX";
	char *argv[] = { "outboard-server", "--worker", "--driver", "null", "--tokens", path, "--upload-cache", "0", NULL }, why[512] = "";
	struct obt_tokens tokens = { 0 };
	int fd = mkstemp(path);

	ob_log_set_level(OB_LOG_ERROR);
	if (fd < 0 || !obt_tokens_add(&tokens, "fuzz", OBT_SCOPE_USE, 0, NULL, token) || !obt_tokens_write(path, &tokens, why, sizeof why) ||
	    obs_options_parse(&options, 8, argv) || !obs_session_init(&fresh, &options, why, sizeof why)) {
		fprintf(stderr, "the null driver does not start: %s\n", why);
		exit(1);
	}
	close(fd);
	atexit(remove_tokens);
	obt_tokens_fini(&tokens);
	obp_conn_fini(&fresh.conn);
	connection_make();
}

/* Fields from the input, the token with a byte changed or not, then bytes of the whole changed or not. */
static void hello_make(const uint8_t *data, size_t size)
{
	static struct obp_message message;
	struct obp_hello *hello = &message.hello;
	uint8_t fields[sizeof *hello] = { 0 };
	struct ob_buf frame;

	memcpy(fields, data, ob_min(size, sizeof fields));
	memcpy(hello, fields, sizeof *hello);
	hello->version[sizeof hello->version - 1] = hello->program[sizeof hello->program - 1] = hello->token[sizeof hello->token - 1] = '\0';
	hello->n_ranges %= OBP_RANGE_MAX + 1;
	hello->pid = 0;
	if (fields[0] & 1)
		snprintf(hello->token, sizeof hello->token, "%s", token);
	if (fields[0] & 2)
		hello->token[fields[1] % sizeof token] ^= (char)(fields[2] & 0x7f);
	message.type = OBP_MSG_HELLO;
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(&message, &frame)) {
		memcpy(wire, frame.data, frame.size);
		wire_size = frame.size;
	}
	ob_buf_fini(&frame);
	for (size_t i = sizeof fields; i + 2 < size && wire_size; i += 3)
		wire[(data[i] | data[i + 1] << 8) % wire_size] = data[i + 2];
}

/* Is the token in the bytes at all? */
static bool shown(void)
{
	return memmem(wire, wire_size, token, strlen(token)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (ours < 0)
		start();
	if (size < 1 || size > INPUT_MAX)
		return 0;
	wire_at = wire_size = 0;
	if (data[0] % 3 == 2) {
		hello_make(data + 1, size - 1);
	} else if (data[0] % 3 == 1) {
		size_t n = ob_min(size - 1, (size_t)OBP_CONTROL_MAX - 64);

		obp_frame_fill((struct obp_frame *)wire, OBP_FRAME_CONTROL, (uint32_t)ob_round_up(n, 8), 0, 0, 0);
		((struct obp_frame *)wire)->raw_size = (uint32_t)n;
		memcpy(wire + sizeof(struct obp_frame), data + 1, n);
		memset(wire + sizeof(struct obp_frame) + n, 0, ob_round_up(n, 8) - n);
		wire_size = sizeof(struct obp_frame) + ob_round_up(n, 8);
	} else {
		memcpy(wire, data + 1, size - 1);
		wire_size = size - 1;
	}
	session = fresh;
	session.data = (struct obt_stream){ .ops = &fuzz_ops, .fd = ours };
	if (obp_conn_init(&session.conn, OBP_ACCEPT_CONTROL))
		return 0;
	if (obs_session_greet(&session)) {
		greeted++;
		if (!shown())
			abort();
	}
	obp_conn_fini(&session.conn);
	obp_packer_fini(&session.packer);
	free(session.replies.kept.ring);
	free(session.replies.kept.list);
	if (session.link.client > 0)
		close(session.link.client);
	return 0;
}
