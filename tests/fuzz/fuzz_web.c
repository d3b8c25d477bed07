/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * HTTP to a balancer's dashboard: several connections whose requests come in pieces, pipelined, too
 * long or malformed, with tokens and without, streams that are left open, and commands that end at
 * once, late, or after their connection. Afterwards a correct request must get its answer, and
 * nothing may be left. The server's source file is included, for its inner state.
 */
#include "loadbalancer/dashboard/web.c"

#include <netinet/in.h>
#include <signal.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"

#define STEPS_MAX 60u
#define PEERS_MAX 4u
#define HELD_MAX  64u
#define TURNS_MAX 20000

static const char request[] =
	"GET /api/v1/info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n"
	"Connection: close\r\n\r\n";
static const char cordon[] =
	"POST /api/v1/servers/a/cordon HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n"
	"Content-Type: application/json\r\nContent-Length: 0\r\n\r\n";
static const char drain[] =
	"POST /api/v1/servers/a/drain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n"
	"Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"grace_s\": 1}";
static uv_loop_t loop;
static struct obl_web *server;
static struct sockaddr_in here;
static int peers[PEERS_MAX];
static struct {
	obl_web_done *done;
	void *user;
} held[HELD_MAX];
static unsigned n_held;
static uint64_t events;

/* ---- the pool ---- */

static enum ob_err caller(
	void *user, int fd, const char *token, struct obl_caller *ret, struct ob_cause *ret_cause)
{
	(void)user;
	(void)fd;
	*ret = (struct obl_caller){
		.all = !token || *token != 'u', .admin = token && *token == 'a', .tenant = "t"
	};
	return token && *token == 'x' ? ob_cause_set(ret_cause, OB_ERR_DENIED, "wrong")
				      : OB_ERR_NONE;
}

static bool document(void *user, const struct obl_caller *who, const char *what, uint64_t since,
	char **ret_text, size_t *ret_size)
{
	(void)user;
	(void)who;
	*ret_text = malloc(4096);
	if (!*ret_text)
		return false;
	*ret_size =
		(size_t)snprintf(*ret_text, 4096, "{\"schema\":1,\"%s\":%llu,\"fill\":\"%0*d\"}",
			what, (unsigned long long)since, (int)(events % 3000), 0);
	return true;
}

static uint64_t last_event(void *user)
{
	(void)user;
	return events;
}

static void command(void *user, const struct obl_caller *who, const char *verb, const char *target,
	const char *argument, obl_web_done *done, void *done_user)
{
	(void)user;
	if (!who->admin || !*verb || !*target || strpbrk(target, "/ \r\n\"") ||
		strpbrk(argument, "/ \r\n\"") ||
		(strcmp(verb, "move") != 0 && strspn(argument, "0123456789") != strlen(argument)))
		abort();
	if (events % 2 || n_held == HELD_MAX) {
		done(done_user, (uint32_t)(events % 7), "text");
		return;
	}
	held[n_held].done = done;
	held[n_held++].user = done_user;
}

static void seen(void *user, struct obl_seen *ret)
{
	(void)user;
	*ret = (struct obl_seen){ .balancer = "b", .version = "1" };
}

static void refresh(void *user)
{
	(void)user;
}

static void servers(void *user, void (*each)(void *to, const struct obl_seen_server *), void *to)
{
	(void)user;
	each(to, &(struct obl_seen_server){ .name = "n" });
}

static void gpus(void *user, void (*each)(void *to, const struct obl_seen_gpu *), void *to)
{
	(void)user;
	each(to, &(struct obl_seen_gpu){ .server = "n", .model = "m" });
}

static void tenants(void *user, void (*each)(void *to, const struct obl_seen_tenant *), void *to)
{
	(void)user;
	each(to, &(struct obl_seen_tenant){ .name = "t" });
}

static const struct obl_source source = { .caller = caller,
	.document = document,
	.last_event = last_event,
	.command = command,
	.seen = seen,
	.refresh = refresh,
	.servers = servers,
	.gpus = gpus,
	.tenants = tenants };

static void commands_end(void)
{
	while (n_held) {
		n_held--;
		held[n_held].done(held[n_held].user, n_held % 6, "late");
	}
}

/* ---- peers ---- */

static void turn(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
	work(server);
}

static void peer_send(int fd)
{
	static const char *const words[] = { "GET ", "POST ", "HEAD ", "OPTIONS ", "/", "/api/v1/",
		"/api/v1/stream", "/api/v1/fleet",
		"/api/v1/history?gpu=", "GPU-01234567-89ab-cdef-0123-456789abcdef", ",",
		"/api/v1/events?since=", "/api/v1/servers/", "node-1", "/cordon", "/drain",
		"/api/v1/sessions/", "/kill", "/move", "/metrics", "/healthz", "/app.js",
		" HTTP/1.1\r\n", " HTTP/1.0\r\n", "\r\n", "Host: localhost\r\n", "Host: evil\r\n",
		"Origin: http://evil\r\n", "Authorization: Bearer a\r\n",
		"Authorization: Bearer u\r\n", "Authorization: Bearer x\r\n",
		"Content-Type: application/json\r\n", "Content-Length: ", "0\r\n\r\n", "16\r\n\r\n",
		"99999\r\n", "{\"grace_s\": 123}", "{\"server\": \"node-1\"}",
		"Transfer-Encoding: chunked\r\n", "Transfer-Encoding : chunked\r\n", "ffff\r\n",
		"If-None-Match: \"1\"\r\n", "Last-Event-ID: 0000000000000000-1\r\n",
		"Connection: close\r\n", request,
		"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n", cordon, drain };
	static char many[20000];
	uint8_t data[64];
	const char *word;
	size_t n;

	switch (fuzz_take(6)) {
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
			fuzz_send(fd, word, strlen(word), NULL, 0, false);
		}
		break;
	}
}

static void step(void)
{
	unsigned what = fuzz_take(10), i = fuzz_take(PEERS_MAX);

	events++;
	if (what == 0)
		commands_end();
	else if (what == 1) /* as if time had passed: streams are filled, commands time out */
		obl_api_tick(&server->api, ob_clock_ns() + fuzz_take(40) * OB_SECOND);
	else if (peers[i] < 0)
		peers[i] = fuzz_connect(&here);
	else if (what < 8)
		peer_send(peers[i]);
	else if (what == 8)
		shutdown(peers[i], SHUT_WR);
	else
		fuzz_reset(&peers[i]);
	if (peers[i] >= 0 && what != 2)
		fuzz_drain(peers[i]);
	turn();
}

static void correct_request(void)
{
	char text[8192];
	size_t size = 0;
	ssize_t n = -1;
	int fd = fuzz_connect(&here);

	fuzz_send(fd, request, sizeof request - 1, NULL, 0, false);
	for (int i = 0; i < TURNS_MAX && n != 0; i++) {
		turn();
		n = recv(fd, text + size, sizeof text - 1 - size, MSG_DONTWAIT);
		size += n > 0 ? (size_t)n : 0;
	}
	text[size] = '\0';
	if (n != 0 || strncmp(text, "HTTP/1.1 200 ", 13) != 0 ||
		!strstr(text, "\r\n\r\n{\"schema\":1"))
		abort();
	fuzz_reset(&fd);
}

static void server_closed(void *user)
{
	*(bool *)user = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct obl_web_options options = { .url = "tcp://127.0.0.1:0",
		.limits_local = true };
	socklen_t length = sizeof here;
	bool gone = false;
	unsigned before;
	char url[600];

	signal(SIGPIPE, SIG_IGN);
	if (!loop.data) {
		uv_loop_init(&loop);
		loop.data = &loop;
	}
	before = fuzz_descriptors();
	for (unsigned i = 0; i < PEERS_MAX; i++)
		peers[i] = -1;
	fuzz_input_start(data, ob_min(size, (size_t)8192));
	if (obl_web_open(&loop, &options, &source, &server, url, sizeof url, NULL) ||
		getsockname(server->fd, (struct sockaddr *)&here, &length) != 0)
		exit(1);
	for (unsigned i = 0; i < STEPS_MAX && !fuzz_used_up(); i++)
		step();
	correct_request();
	for (unsigned i = 0; i < PEERS_MAX; i++) /* some connections stay open to the end */
		if (i % 2)
			fuzz_reset(&peers[i]);
	obl_web_close(server, server_closed, &gone);
	for (int i = 0; i < TURNS_MAX && !gone; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	commands_end();
	for (unsigned i = 0; i < PEERS_MAX; i++)
		fuzz_reset(&peers[i]);
	if (!gone || fuzz_descriptors() != before)
		abort();
	return 0;
}
