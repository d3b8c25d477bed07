/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "tests/unit/server/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/clock.h"

#define PATIENCE   (60 * OB_SECOND) /* a longer wait counts as a hang */
#define RANGE_BASE 0x200000000000ull
#define RANGE_SIZE (1ull << 40)

/* ---- the server ---- */

static void read_urls(struct server *server)
{
	static const char mark[] = "listening on tcp://";
	uint64_t deadline = ob_clock_ns() + 2 * PATIENCE;
	char text[4096] = "";
	size_t n = 0;
	char *at;

	/* Reads both lines: the last one ends the start. */
	while (!strstr(text, mark) || !strchr(strstr(text, mark), '\n')) {
		ssize_t got = pread(server->log, text + n, sizeof text - n - 1, (off_t)n);

		CHECK(got >= 0 && ob_clock_ns() < deadline);
		n += (size_t)got;
		text[n] = '\0';
		if (!got)
			waiting_look();
	}
	at = strstr(text, mark) + strlen("listening on ");
	at[strcspn(at, "\n")] = '\0';
	snprintf(server->tcp, sizeof server->tcp, "%s", at);
}

/* The servers that were started and not waited for; pid 0: none. */
static struct server started[8];

static bool folder_remove(const struct server *server)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf '%s'", server->dir);
	return system(command) == 0;
}

/* Replaces the entry that has process `pid`. */
static void remember(pid_t pid, struct server server)
{
	for (size_t i = 0; i < sizeof started / sizeof *started; i++)
		if (started[i].pid == pid) {
			started[i] = server;
			return;
		}
}

/* A test has failed: shows the end of the logs, and leaves no folder. */
static void remove_all(void)
{
	for (size_t i = 0; i < sizeof started / sizeof *started; i++) {
		const struct server *server = &started[i];
		char text[4096];
		off_t size;
		ssize_t n;

		if (server->pid <= 0)
			continue;
		size = lseek(server->log, 0, SEEK_END);
		n = pread(server->log, text, sizeof text, size > 4096 ? size - 4096 : 0);
		fprintf(stderr, "the server's log:\n%.*s", n > 0 ? (int)n : 0, text);
		kill(server->pid, SIGKILL);
		waitpid(server->pid, NULL, 0);
		if (!folder_remove(server))
			fprintf(stderr, "%s could not be removed\n", server->dir);
	}
}

void server_start_env(
	struct server *server, const char *const *options, const char *name, const char *value)
{
	const char *exe = getenv("OUTBOARD_SERVER_EXE");
	char *args[32];
	char url[128], log[128];
	int n = 0;

	if (!exe)
		TEST_SKIP("OUTBOARD_SERVER_EXE names no server");
	*server = (struct server){ .dir = "/tmp/outboard-test-XXXXXX" };
	CHECK(mkdtemp(server->dir));
	snprintf(server->path, sizeof server->path, "%s/s", server->dir);
	snprintf(url, sizeof url, "unix:%s", server->path);
	const char *fixed[] = { exe, "--listen", url, "--listen", "tcp://127.0.0.1:0", "--driver",
		"null", "--nvml", "none", /* no process for sensors: the tests count workers */
		"--cache", server->dir };

	for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
		args[n++] = (char *)(uintptr_t)fixed[i];
	for (; options && *options; options++)
		args[n++] = (char *)(uintptr_t)*options;
	args[n] = NULL;
	/* A file, not a pipe: later output of the server is not read. */
	snprintf(log, sizeof log, "%s/log", server->dir);
	server->log = open(log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	CHECK(server->log >= 0);
	server->pid = fork();
	if (server->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(server->log, STDERR_FILENO);
		setenv("OUTBOARD_LOG", "info", 1);
		if (name)
			setenv(name, value, 1);
		/* ThreadSanitizer would delay each exit by a second. */
		char tsan[256];
		snprintf(tsan, sizeof tsan, "%s:atexit_sleep_ms=0",
			getenv("TSAN_OPTIONS") ? getenv("TSAN_OPTIONS") : "");
		setenv("TSAN_OPTIONS", tsan, 1);
		execv(exe, args);
		_exit(127);
	}
	CHECK(server->pid > 0);
	if (!started[0].pid)
		atexit(remove_all);
	remember(0, *server);
	read_urls(server);
}

void server_start(struct server *server, const char *const *options)
{
	server_start_env(server, options, NULL, NULL);
}

int server_wait(struct server *server, unsigned ms)
{
	uint64_t deadline = ob_clock_ns() + ms * OB_MS;
	int status;

	while (waitpid(server->pid, &status, WNOHANG) == 0) {
		CHECK(ob_clock_ns() < deadline);
		waiting_look();
	}
	close(server->log);
	remember(server->pid, (struct server){ .pid = 0 });
	CHECK(folder_remove(server));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int server_stop(struct server *server)
{
	kill(server->pid, SIGTERM);
	return server_wait(server, 60000);
}

void server_await_log(const struct server *server, const char *words)
{
	uint64_t deadline = ob_clock_ns() + PATIENCE;
	char text[1 << 16];
	ssize_t n;

	do {
		waiting_look();
		n = pread(server->log, text, sizeof text - 1, 0);
		CHECK(n >= 0 && ob_clock_ns() < deadline);
		text[n] = '\0';
	} while (!strstr(text, words));
}

/* The admission process is a child too, and always exists. */
static bool is_admission(pid_t pid)
{
	char path[64], args[4096] = "";
	FILE *file;
	size_t n;

	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	n = fread(args, 1, sizeof args - 1, file);
	fclose(file);
	return memmem(args, n, "--admission", sizeof "--admission") != NULL;
}

static int children(const struct server *server, bool admission, pid_t *ret, int max)
{
	char path[64];
	FILE *file;
	int n = 0, pid;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", server->pid, server->pid);
	file = fopen(path, "r");
	CHECK(file);
	while (n < max && fscanf(file, "%d", &pid) == 1)
		if (is_admission(pid) == admission)
			ret[n++] = pid;
	fclose(file);
	return n;
}

pid_t server_admission(const struct server *server)
{
	pid_t pid = 0;

	UNTIL(children(server, true, &pid, 1) == 1);
	return pid;
}

int server_children(const struct server *server, pid_t *ret, int max)
{
	return children(server, false, ret, max);
}

void server_await_children(const struct server *server, int n)
{
	pid_t pids[64];

	UNTIL(server_children(server, pids, 64) == n);
}

bool process_alive(pid_t pid)
{
	char path[64], state = 'X';
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(file);
	return state != 'Z' && state != 'X';
}

/* ---- the client ---- */

void peer_connect(struct peer *peer, const struct server *server)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*peer = (struct peer){ .next = 1 };
	peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", server->path);
	CHECK(connect(peer->fd, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK(obp_conn_init(&peer->conn, OBP_ACCEPT_CONTROL | OBP_ACCEPT_REPLIES) == OB_ERR_NONE);
}

void peer_close(struct peer *peer)
{
	obp_message_fini(&peer->got);
	obp_conn_fini(&peer->conn);
	close(peer->fd);
}

void peer_send(struct peer *peer, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = send(peer->fd, p, size, MSG_NOSIGNAL);

		if (n <= 0)
			return; /* the server may have closed already; tests check its answer */
		p += n;
		size -= (size_t)n;
	}
}

void peer_await_taken(const struct peer *peer)
{
	int left = 0;

	UNTIL(ioctl(peer->fd, SIOCOUTQ, &left) != 0 || left == 0);
}

void peer_preface(struct peer *peer, uint8_t intent, uint64_t route)
{
	struct obp_preface preface = {
		.magic = OBP_MAGIC, .version = OBP_VERSION, .intent = intent, .route = route
	};

	peer_send(peer, &preface, sizeof preface);
}

void peer_message(struct peer *peer, const struct obp_message *message)
{
	struct ob_buf frame;

	ob_buf_init(&frame, OBP_CONTROL_MAX);
	CHECK(obp_message_encode(message, &frame));
	peer_send(peer, frame.data, frame.size);
	ob_buf_fini(&frame);
}

/* Receives more bytes within the time. False: the connection was closed. */
static bool fill(struct peer *peer, uint64_t deadline)
{
	struct pollfd pfd = { .fd = peer->fd, .events = POLLIN };
	void *data;
	size_t size;
	ssize_t n;

	CHECK(poll(&pfd, 1, ob_clock_poll_ms(deadline)) > 0);
	obp_conn_space(&peer->conn, &data, &size);
	n = recv(peer->fd, data, size, 0);
	if (n <= 0)
		return false;
	obp_conn_fed(&peer->conn, (size_t)n);
	return true;
}

bool peer_control(struct peer *peer)
{
	uint64_t deadline = ob_clock_ns() + PATIENCE;
	enum obp_event event;

	while ((event = obp_conn_next(&peer->conn, &peer->item)) != OBP_CONTROL) {
		CHECK(event == OBP_NEED || event == OBP_REPLY || event == OBP_ACK);
		if (event == OBP_NEED && !fill(peer, deadline))
			return false;
	}
	obp_message_fini(&peer->got);
	CHECK(obp_message_decode(peer->item.body, peer->item.size, &peer->got) == OB_ERR_NONE);
	return true;
}

bool peer_ended(struct peer *peer)
{
	struct pollfd pfd = { .fd = peer->fd, .events = POLLIN };
	uint64_t deadline = ob_clock_ns() + PATIENCE;
	char bytes[4096];

	while (poll(&pfd, 1, ob_clock_poll_ms(deadline)) > 0)
		if (recv(peer->fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0)
			return true;
	return false;
}

bool peer_join(struct peer *peer, const struct server *server, uint64_t route,
	const uint8_t *secret, enum obp_join_purpose purpose, uint64_t received, uint64_t attempt)
{
	struct obp_message *message = calloc(1, sizeof *message);
	bool answered;

	CHECK(message);
	peer_connect(peer, server);
	peer_preface(peer, OBP_INTENT_JOIN, route);
	message->type = OBP_MSG_JOIN;
	message->code = purpose;
	message->received = received;
	message->attempt = attempt;
	memcpy(message->secret, secret, sizeof message->secret);
	peer_message(peer, message);
	free(message);
	peer->conn.expect = peer->conn.arriving = received + 1;
	answered = peer_control(peer);
	return answered;
}

void peer_session(struct peer *peer, const struct server *server)
{
	peer_session_grace(peer, server, 0);
}

void peer_hello(struct peer *peer, uint32_t seconds)
{
	struct obp_message *hello = calloc(1, sizeof *hello);

	CHECK(hello);
	peer_preface(peer, OBP_INTENT_NEW, 0);
	hello->type = OBP_MSG_HELLO;
	snprintf(hello->hello.program, sizeof hello->hello.program, "test");
	hello->hello.grace_s = seconds;
	hello->hello.slabs = peer->slabs;
	hello->hello.n_ranges = 1;
	hello->hello.ranges[0] = (struct obp_range){ RANGE_BASE, RANGE_SIZE };
	peer_message(peer, hello);
	free(hello);
}

static void await_welcome(struct peer *peer)
{
	CHECK(peer_control(peer));
	if (peer->got.type == OBP_MSG_REFUSED)
		fprintf(stderr, "refused: %s\n", peer->got.text);
	CHECK_INT(peer->got.type, OBP_MSG_WELCOME);
}

void peer_session_slabs(struct peer *peer, const struct server *server)
{
	peer_connect(peer, server);
	peer->slabs = true;
	peer_hello(peer, 0);
	await_welcome(peer);
}

void peer_session_grace(struct peer *peer, const struct server *server, uint32_t seconds)
{
	peer_connect(peer, server);
	peer_hello(peer, seconds);
	await_welcome(peer);
}

void peer_call(struct peer *peer, uint16_t lane, uint16_t opcode, const void *body, size_t size)
{
	size_t padded = (size + 7) & ~(size_t)7,
	       whole = sizeof(struct obp_frame) + sizeof(struct obp_record) + padded;
	uint8_t *bytes = calloc(1, whole);
	struct obp_record record = {
		.size = (uint32_t)(sizeof record + padded), .opcode = opcode, .lane = lane
	};

	CHECK(bytes);
	obp_frame_fill((struct obp_frame *)bytes, OBP_FRAME_CALLS, record.size, 1, peer->next++,
		peer->acknowledges ? peer->conn.expect - 1 : 0);
	memcpy(bytes + sizeof(struct obp_frame), &record, sizeof record);
	if (size)
		memcpy(bytes + sizeof(struct obp_frame) + sizeof record, body, size);
	peer_send(peer, bytes, whole);
	free(bytes);
}

const struct obp_reply *peer_reply(struct peer *peer)
{
	uint64_t deadline = ob_clock_ns() + PATIENCE;
	enum obp_event event;
	size_t left;

	while ((event = obp_conn_next(&peer->conn, &peer->item)) != OBP_REPLY && event != OBP_BIG) {
		if (event == OBP_NEED)
			CHECK(fill(peer, deadline));
		else
			CHECK(event == OBP_ACK);
	}
	while ((left = obp_conn_body_left(&peer->conn)) > 0)
		if (obp_conn_body_buffered(&peer->conn, NULL, left) == 0)
			CHECK(fill(peer, deadline));
	return &peer->item.reply;
}

uint32_t peer_ping(struct peer *peer, uint16_t lane)
{
	const struct obp_reply *reply;

	peer_call(peer, lane, OBP_OP_PING, NULL, 0);
	reply = peer_reply(peer);
	CHECK_INT(reply->result, 0);
	CHECK_INT(reply->call, peer->next - 1);
	CHECK_INT(reply->lane, lane);
	return reply->deferred;
}

void peer_call_fatal(struct peer *peer, uint16_t opcode, const void *body, size_t size)
{
	peer_call(peer, 0, opcode, body, size);
	CHECK(peer_control(peer));
	CHECK_INT(peer->got.type, OBP_MSG_FATAL);
	CHECK_INT(peer->got.code, OB_ERR_PROTOCOL);
	CHECK(peer->got.text[0]);
	CHECK(peer_ended(peer));
}

void peer_use_context(struct peer *peer, uint16_t lane, uint64_t context)
{
	struct obp_ctx_use_req req = { .ctx = context };

	peer_call(peer, lane, OBP_OP_CTX_USE, &req, sizeof req);
}
