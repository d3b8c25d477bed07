/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * HTTP to the metrics address: several connections whose requests come in pieces, pipelined, with
 * NULs, too long, without an end, or malformed, while workers write any values into their stats
 * pages. Afterwards a correct request must get its answer, every line of which must have the
 * metrics format. The server's source file is included, for its inner state.
 */
#include "server/supervisor/metrics.c"

#include <netinet/in.h>
#include <signal.h>

#include "base/check.h"
#include "server/supervisor/pending.h"
#include "server/supervisor/pool.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"
#include "tests/fuzz/fuzz_super.h"

#define STEPS_MAX 40u
#define PEERS_MAX 4u
#define TURNS_MAX 10000
#define REQUEST   "GET /metrics HTTP/1.1\r\nHost: fuzz\r\nConnection: close\r\n\r\n"

static struct sockaddr_in here;
static int peers[PEERS_MAX];
static bool started;

static void turn(void)
{
	fuzz_super_turn();
	work();
}

/* Adds a piece of a request. */
static void peer_send(int fd)
{
	static const char *const words[] = { "GET ", "POST ", "HEAD ", "/metrics", "/",
		" HTTP/1.1\r\n", " HTTP/1.0\r\n", "\r\n", "\n", "\r", "Host: a\r\n",
		"Content-Length: ", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n",
		"Connection: keep-alive\r\n", "Upgrade: x\r\n", "%", "?a=b&", " ", ":", "\t",
		"18446744073709551615\r\n", "5\r\n", "0\r\n\r\n", "ffffffffffffffff\r\n", REQUEST,
		"Cookie: ", "Authorization: Basic " };
	static char many[20000];
	uint8_t data[64];
	const char *word;
	size_t n;

	switch (fuzz_take(4)) {
	case 0:
		n = fuzz_take(sizeof data);
		fuzz_take_bytes(data, n);
		fuzz_send(fd, data, n, NULL, 0, false);
		break;
	case 1:
		memset(many, (int)fuzz_take(256), sizeof many);
		n = (size_t)fuzz_take(256) * 78;
		fuzz_send(fd, many, n, NULL, 0, false);
		break;
	default:
		for (unsigned i = 1 + fuzz_take(8); i; i--) {
			word = words[fuzz_take(ob_count(words))];
			fuzz_send(fd, word, strlen(word) + (fuzz_take(16) == 15), NULL, 0, false);
		}
		break;
	}
}

/* "name{label="value",...} number", or a comment. */
static void line_check(const char *line)
{
	static const char names[] = "abcdefghijklmnopqrstuvwxyz_";
	char *end;

	fuzz_text_check(line, strlen(line) + 1);
	if (strncmp(line, "# HELP outboard_", 16) == 0 ||
		strncmp(line, "# TYPE outboard_", 16) == 0)
		return;
	if (strncmp(line, "outboard_", 9) != 0)
		abort();
	line += strspn(line, names);
	for (bool first = true; *line && *line != ' ' && *line != '}'; first = false) {
		if (*line++ != (first ? '{' : ','))
			abort();
		line += strspn(line, "abcdefghijklmnopqrstuvwxyzNUID");
		if (*line++ != '=' || *line++ != '"')
			abort();
		for (; *line != '"'; line++)
			if (*line == '\0' || (*line == '\\' && !strchr("\\\"n", *++line)))
				abort();
		line++;
	}
	line += *line == '}';
	if (*line++ != ' ')
		abort();
	strtod(line, &end);
	if (end == line || *end)
		abort();
}

/* Sends a correct request at the end. */
static void scrape(void)
{
	static char text[TEXT_MAX + 4096];
	const char *body;
	size_t size = 0;
	ssize_t n = -1;
	int fd = fuzz_connect(&here);

	fuzz_send(fd, REQUEST, sizeof REQUEST - 1, NULL, 0, false);
	for (int i = 0; i < TURNS_MAX && n != 0; i++) {
		turn();
		n = recv(fd, text + size, sizeof text - 1 - size, MSG_DONTWAIT);
		size += n > 0 ? (size_t)n : 0;
	}
	text[size] = '\0';
	body = strstr(text, "\r\n\r\n");
	if (n != 0 || strlen(text) != size || strncmp(text, "HTTP/1.1 200 ", 13) != 0 || !body ||
		text[size - 1] != '\n')
		abort();
	for (char *line = text + (body - text) + 4, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		line_check(line);
	}
	fuzz_reset(&fd);
}

static void sessions_begin(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct obs_handoff ready = { .type = OBS_HANDOFF_READY },
				   session = { .type = OBS_HANDOFF_NEW };
		int fds[OBS_HANDOFF_FDS] = { -1, -1, -1 }, ends[2];

		fuzz_stats_page_spoil(i);
		obs_pool_take(fuzz_worker[i], &ready, (int[OBS_HANDOFF_FDS]){ -1, -1, -1 });
		fuzz_pair(SOCK_STREAM, ends);
		fds[0] = ends[0];
		obs_pending_admit(&fuzz_super, &session, fds);
		close(ends[1]);
	}
}

static void step(void)
{
	unsigned what = fuzz_take(8), i = fuzz_take(PEERS_MAX);

	if (what == 0)
		fuzz_stats_page_spoil(fuzz_take(FUZZ_WORKERS));
	else if (peers[i] < 0)
		peers[i] = fuzz_connect(&here);
	else if (what < 6)
		peer_send(peers[i]);
	else if (what == 6)
		shutdown(peers[i], SHUT_WR);
	else
		fuzz_reset(&peers[i]);
	if (peers[i] >= 0)
		fuzz_drain(peers[i]);
	turn();
}

static void start(void)
{
	socklen_t length = sizeof here;

	signal(SIGPIPE, SIG_IGN);
	fuzz_super_start();
	if (obs_metrics_open(&fuzz_super, "tcp://127.0.0.1:0", NULL) ||
		getsockname(metrics.fd, (struct sockaddr *)&here, &length) != 0)
		exit(1);
	started = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before;

	if (!started)
		start();
	for (unsigned i = 0; i < PEERS_MAX; i++)
		peers[i] = -1;
	fuzz_input_start(data, ob_min(size, (size_t)8192));
	before = fuzz_descriptors();
	fuzz_super_begin();
	sessions_begin();
	for (unsigned i = 0; i < STEPS_MAX && !fuzz_used_up(); i++)
		step();
	scrape();
	for (unsigned i = 0; i < PEERS_MAX; i++)
		fuzz_reset(&peers[i]);
	for (int i = 0; i < TURNS_MAX && metrics.newest; i++)
		turn();
	if (metrics.newest || metrics.oldest || metrics.n_open)
		abort();
	fuzz_super_end();
	if (fuzz_descriptors() != before)
		abort();
	return 0;
}
