/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The stream's contract through shared memory, the handshake that sets it up, memory that is
 * refused, and a peer that dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/opt.h"
#include "protocol/format.h"
#include "tests/test.h"
#include "transport/shm_inside.h"

#define BYTES (48u << 20)

static struct obt_stream client, server;

static void sockets(void)
{
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	obt_stream_adopt(&client, fds[0]);
	obt_stream_adopt(&server, fds[1]);
}

static uint64_t soon(void)
{
	return ob_clock_ns() + WAITING_LONG_S * OB_SECOND;
}

static void send_text(struct obt_stream *stream, const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };

	CHECK_INT(obt_stream_send_all(stream, &iov, 1, soon()), OB_ERR_NONE);
}

static void expect_text(struct obt_stream *stream, const char *text)
{
	char have[64] = "";

	CHECK_INT(obt_stream_recv_all(stream, have, strlen(text), soon()), OB_ERR_NONE);
	CHECK_STR(have, text);
}

/*
 * As in the server: the preface is read by a process that does not handle shared memory, then a
 * hello brings the memory, then comes an answer.
 */
static void shake_hands(uint32_t version)
{
	struct ob_cause cause = { .code = OB_ERR_NONE };
	char preface[17] = "";

	sockets();
	CHECK_INT(obt_shm_offer(&client, &cause), OB_ERR_NONE);
	CHECK_INT(obt_shm_offered(&client), OBT_SHM_VERSION);
	send_text(&client, "0123456789abcdefhello");
	CHECK_INT(recv(server.fd, preface, sizeof(struct obp_preface), 0),
		sizeof(struct obp_preface));
	CHECK_STR(preface, "0123456789abcdef");
	obt_shm_expect(&server);
	expect_text(&server, "hello");
	CHECK_INT(obt_shm_take(&server, version, &cause), OB_ERR_NONE);
	send_text(&server, "welcome");
	version = obt_shm_taken(&server);
	obt_shm_settle(&server, version);
	expect_text(&client, "welcome");
	obt_shm_settle(&client, version);
}

static void end(void)
{
	obt_stream_close(&client);
	obt_stream_close(&server);
}

TEST(bytes_leave_the_socket)
{
	shake_hands(OBT_SHM_VERSION);
	CHECK(obt_shm_on(&client) && obt_shm_on(&server));
	send_text(&client, "question");
	CHECK(obt_stream_pending(&server));
	expect_text(&server, "question");
	CHECK(!obt_stream_pending(&server));
	send_text(&server, "answer");
	CHECK_INT(recv(client.fd, &(char){ 0 }, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	expect_text(&client, "answer");
	end();
}

/* Another version, or none: the session continues over the socket. */
TEST(a_side_that_does_not_want_it)
{
	for (uint32_t version = 0; version < 3; version += 2) {
		shake_hands(version);
		CHECK(!obt_shm_on(&client) && !obt_shm_on(&server));
		send_text(&client, "question");
		expect_text(&server, "question");
		send_text(&server, "answer");
		expect_text(&client, "answer");
		end();
	}
	ob_opt_set(OB_OPT_SHM, false);
	shake_hands(OBT_SHM_VERSION);
	CHECK(!obt_shm_on(&client) && !obt_shm_on(&server));
	end();
}

/* ---- invalid memory ---- */

static void send_descriptors(const int *fds, size_t n)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { (char[]){ 'x' }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	CHECK_INT(sendmsg(client.fd, &msg, 0), 1);
}

static bool taken(const int *fds, size_t n)
{
	struct ob_cause cause = { .code = OB_ERR_NONE };
	bool good;

	sockets();
	obt_shm_expect(&server);
	if (n)
		send_descriptors(fds, n);
	else
		send_text(&client, "x");
	expect_text(&server, "x");
	good = !obt_shm_take(&server, OBT_SHM_VERSION, &cause);
	CHECK(good == !cause.text[0]);
	end();
	return good;
}

static int memory(off_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, size) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static bool taken_once(int fd)
{
	bool good = taken(&fd, 1);

	close(fd);
	return good;
}

TEST(memory_is_looked_at_before_it_is_mapped)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	char path[] = "/tmp/outboard-test-XXXXXX";
	int pipes[2], many[2], file;

	CHECK(taken_once(memory((off_t)OBT_SHM_BYTES, seals)));
	CHECK(!taken_once(memory((off_t)OBT_SHM_BYTES, 0)));
	CHECK(!taken_once(memory((off_t)OBT_SHM_BYTES, F_SEAL_GROW)));
	CHECK(!taken_once(memory((off_t)OBT_SHM_BYTES - 1, seals)));
	CHECK(!taken_once(memory((off_t)OBT_SHM_BYTES * 2, seals)));
	CHECK(!taken_once(memory(0, seals)));
	CHECK(!taken_once(memory((off_t)OBT_SHM_BYTES, seals | F_SEAL_WRITE)));
	CHECK(!taken(NULL, 0)); /* a forwarded socket loses the descriptor */
	file = mkstemp(path);
	CHECK(file >= 0 && unlink(path) == 0 && ftruncate(file, (off_t)OBT_SHM_BYTES) == 0);
	CHECK(!taken_once(file));
	CHECK(pipe(pipes) == 0);
	CHECK(!taken_once(pipes[0]));
	close(pipes[1]);
	/* The harness checks for leaked descriptors. */
	many[0] = memory((off_t)OBT_SHM_BYTES, seals);
	many[1] = memory((off_t)OBT_SHM_BYTES, seals);
	CHECK(taken(many, 2));
	close(many[0]);
	close(many[1]);
}

TEST(memory_that_is_never_asked_for_is_closed)
{
	int fd = memory((off_t)OBT_SHM_BYTES, F_SEAL_SHRINK | F_SEAL_GROW);

	sockets();
	obt_shm_expect(&server);
	send_descriptors(&fd, 1);
	send_descriptors(&fd, 1);
	expect_text(&server, "xx");
	obt_shm_settle(&server, 0);
	send_descriptors(&fd, 1);
	expect_text(&server, "x");
	close(fd);
	end();
}

/* ---- both directions at once ---- */

static uint8_t byte_at(uint64_t at, unsigned salt)
{
	return (uint8_t)((at * 2654435761u >> 13) + salt);
}

struct flow {
	struct obt_stream *stream;
	unsigned salt;
	bool ok;
};

static uint64_t next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

static void *send_main(void *user)
{
	struct flow *flow = user;
	uint8_t *data = malloc(2u << 20);
	uint64_t at = 0, random = 88172645463325252u + flow->salt;

	flow->ok = data != NULL;
	while (flow->ok && at < BYTES) {
		static const size_t most[] = { 48, 8, 300, 600u << 10 };
		struct iovec iov[3];
		size_t all = 0;

		for (int i = 0; i < 3; i++) {
			size_t size =
				ob_min(next(&random) % most[random >> 60 & 3], BYTES - at - all);

			iov[i] = (struct iovec){ data + all, size };
			for (size_t k = 0; k < size; k++)
				data[all + k] = byte_at(at + all + k, flow->salt);
			all += size;
		}
		flow->ok = obt_stream_send_all(flow->stream, iov, 3, soon()) == OB_ERR_NONE;
		at += all;
		if (next(&random) % 64 == 0)
			let_pass(300, "the other side may go to sleep or not");
	}
	free(data);
	return NULL;
}

static void *recv_main(void *user)
{
	struct flow *flow = user;
	static _Thread_local uint8_t data[100000];
	uint64_t at = 0, random = 1234567;

	flow->ok = true;
	while (flow->ok && at < BYTES) {
		bool block = next(&random) % 2;
		ssize_t n = flow->stream->ops->recv(
			flow->stream, data, 1 + random % sizeof data, block);

		if (n < 0 && errno == EAGAIN) {
			flow->ok = block || obt_stream_wait(flow->stream, POLLIN, soon()) == POLLIN;
			continue;
		}
		flow->ok = n > 0;
		for (ssize_t i = 0; flow->ok && i < n; i++)
			flow->ok = data[i] == byte_at(at + (uint64_t)i, flow->salt);
		at += (uint64_t)ob_max(n, 0);
		if (next(&random) % 256 == 0)
			let_pass(3000, "the ring may fill or not");
	}
	return NULL;
}

static void both_ways(void)
{
	struct flow flows[4] = { { &client, 1, false }, { &server, 1, false },
		{ &server, 7, false }, { &client, 7, false } };
	pthread_t threads[4];

	shake_hands(OBT_SHM_VERSION);
	obt_stream_set_recv_timeout(&client, 1000);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, i % 2 ? recv_main : send_main, &flows[i]) ==
			0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(flows[i].ok);
	end();
}

TEST(both_directions_at_once)
{
	both_ways();
}

TEST(both_directions_without_spinning)
{
	ob_opt_set(OB_OPT_SPIN, false);
	both_ways();
}

/* ---- the end ---- */

TEST(what_was_sent_before_the_end_arrives)
{
	char byte;

	shake_hands(OBT_SHM_VERSION);
	send_text(&server, "the last words");
	obt_stream_close(&server);
	expect_text(&client, "the last words");
	CHECK_INT(obt_stream_recv_all(&client, &byte, 1, soon()), OB_ERR_CLOSED);
	CHECK_INT(client.ops->recv(&client, &byte, 1, true), 0);
	CHECK_INT(client.ops->send(&client, &(struct iovec){ &byte, 1 }, 1, false), -1);
	CHECK_INT(errno, EPIPE);
	obt_stream_close(&client);
}

static pid_t peer_start(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(client.fd);
		pause();
		_exit(0);
	}
	close(server.fd); /* the child has it; this copy would keep the connection open */
	server.fd = -1;
	return pid;
}

struct killing {
	pid_t pid, waiter;
};

/* Acts once the waiting thread is asleep. */
static void *kill_later(void *user)
{
	const struct killing *killing = user;

	UNTIL(thread_asleep(killing->waiter));
	kill(killing->pid, SIGKILL);
	return NULL;
}

/* Every waiter notices the end: for bytes or for room, spinning or asleep. */
TEST(a_peer_that_is_killed)
{
	static uint8_t data[OBT_SHM_RING_BYTES];

	for (unsigned way = 0; way < 3; way++) {
		struct iovec iov = { data, sizeof data };
		struct killing killing = { .waiter = gettid() };
		pthread_t killer;

		shake_hands(OBT_SHM_VERSION);
		killing.pid = peer_start();
		CHECK(pthread_create(&killer, NULL, kill_later, &killing) == 0);
		if (way == 0) {
			CHECK_INT(obt_stream_recv_all(&client, data, 1, soon()), OB_ERR_CLOSED);
		} else if (way == 1) {
			CHECK_INT(obt_stream_send_all(&client, &iov, 1, soon()), OB_ERR_NONE);
			iov = (struct iovec){ data, sizeof data };
			CHECK_INT(obt_stream_send_all(&client, &iov, 1, soon()), OB_ERR_CLOSED);
		} else {
			CHECK_INT(client.ops->send(&client, &iov, 1, false), sizeof data);
			CHECK_INT(obt_stream_wait(&client, POLLIN | POLLOUT, soon()),
				POLLIN | POLLOUT);
			CHECK_INT(client.ops->recv(&client, data, 1, false), 0);
		}
		pthread_join(killer, NULL);
		waitpid(killing.pid, NULL, 0);
		end();
	}
}

/* Ending the own side wakes a thread that is blocked in the stream. */
static void *shut_later(void *waiter)
{
	UNTIL(thread_asleep(*(pid_t *)waiter));
	shutdown(client.fd, SHUT_RDWR);
	return NULL;
}

TEST(a_socket_that_is_shut)
{
	pid_t self = gettid();
	pthread_t thread;
	char byte;

	shake_hands(OBT_SHM_VERSION);
	CHECK(pthread_create(&thread, NULL, shut_later, &self) == 0);
	while (client.ops->recv(&client, &byte, 1, true) != 0)
		CHECK_INT(errno, EAGAIN);
	pthread_join(thread, NULL);
	end();
}

TEST(waits_end)
{
	static uint8_t data[OBT_SHM_RING_BYTES + 1];
	struct iovec iov = { data, sizeof data };
	uint64_t began = ob_clock_ns();

	shake_hands(OBT_SHM_VERSION);
	CHECK_INT(obt_stream_wait(&client, POLLIN, began + 30 * OB_MS), 0);
	CHECK(ob_clock_ns() - began >= 30 * OB_MS);
	CHECK_INT(obt_stream_wait(&client, POLLIN | POLLOUT, began), POLLOUT);
	obt_stream_set_recv_timeout(&client, 40);
	CHECK_INT(client.ops->recv(&client, data, 1, true), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(
		obt_stream_send_all(&client, &iov, 1, ob_clock_ns() + 30 * OB_MS), OB_ERR_TIMEOUT);
	CHECK_INT(obt_stream_wait(&client, POLLOUT, ob_clock_ns() + 30 * OB_MS), 0);
	end();
}

/* For a thread that polls descriptors and does not receive. */
TEST(an_armed_descriptor_becomes_readable)
{
	struct pollfd pfd;

	shake_hands(OBT_SHM_VERSION);
	pfd = (struct pollfd){ .fd = server.fd, .events = POLLIN };
	CHECK(!obt_stream_arm(&server));
	CHECK_INT(poll(&pfd, 1, 0), 0);
	send_text(&client, "first");
	CHECK_INT(poll(&pfd, 1, 0), 1);
	CHECK(obt_stream_arm(&server));
	expect_text(&server, "first");
	/* The byte is still in the socket; it must not wake a sleeper again. */
	CHECK_INT(obt_stream_wait(&server, POLLIN, ob_clock_ns() + 20 * OB_MS), 0);
	CHECK_INT(poll(&pfd, 1, 0), 0);
	end();
}

/* An invalid number ends the stream, in this and in every later call. */
TEST(a_peer_that_breaks_the_rules)
{
	struct obt_shm_memory *memory;
	uint8_t bytes[64];

	shake_hands(OBT_SHM_VERSION);
	memory = client.shm->map;
	atomic_store(&memory->rings[OBT_SHM_TO_SERVER].head, 1ull << 40);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(server.ops->recv(&server, bytes, sizeof bytes, true), -1);
		CHECK_INT(errno, EPROTO);
	}
	CHECK_INT(obt_stream_recv_all(&server, bytes, 1, soon()), OB_ERR_IO);
	end();
}

int main(int argc, char **argv)
{
	test_needs("shm");
	return test_main(argc, argv);
}
