/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The connection breaks at every position of a reply. Until it is resumed, another thread that gets
 * the receive right must not read on in the broken stream; then the whole reply must arrive. If the
 * session is lost, no thread may use the program's memory once its call has returned.
 */
#include <pthread.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/thread.h"
#include "client-shim/session/background.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/resume.h"
#include "protocol/obp_calls.h"
#include "tests/test.h"
#include "tests/waiting.h"

#define BODY_MAX (2 * OBP_CONN_BIG)
#define CALL     7u
/* the number of positions tried at each end of a reply; between them, every STEP bytes */
#define EDGE     640u
#define STEP     4099u

static uint8_t wire[sizeof(struct obp_frame) + sizeof(struct obp_reply) + BODY_MAX + 8];
static size_t wire_size;
static int server_fd;
static pthread_t resume_thread;

/* Connects the client's stream to server_fd. */
static void connect_pair(struct obt_stream *ret)
{
	int fds[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	server_fd = fds[1];
	obt_stream_adopt(ret, fds[0]);
}

static void server_send(size_t size)
{
	CHECK_INT(send(server_fd, wire, size, MSG_NOSIGNAL), size);
}

enum ob_err __wrap_obc_dial_run(
	struct obc_dial *dial, struct obt_stream *ret, uint64_t *ret_received);

/* The server kept the reply, because the client did not receive it completely. */
enum ob_err __wrap_obc_dial_run(
	struct obc_dial *dial, struct obt_stream *ret, uint64_t *ret_received)
{
	CHECK_INT(dial->received, 0);
	connect_pair(ret);
	server_send(wire_size);
	*ret_received = 0;
	return OB_ERR_NONE;
}

bool __real_ob_thread_start(
	void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread);
bool __wrap_ob_thread_start(
	void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread);

/* The only thread that is started is the one that resumes. The test joins it. */
bool __wrap_ob_thread_start(
	void *(*fn)(void *), void *argument, size_t stack, pthread_t *ret_thread)
{
	CHECK(!ret_thread);
	return __real_ob_thread_start(fn, argument, stack, &resume_thread);
}

static void wire_fill(size_t body)
{
	struct obp_reply reply = { .call = CALL, .body = (uint32_t)body };
	struct obp_frame frame;

	reply.size = (uint32_t)(sizeof reply + ob_round_up(body, 8));
	obp_frame_fill(&frame, OBP_FRAME_REPLIES, reply.size, 1, 1, 0);
	memcpy(wire, &frame, sizeof frame);
	memcpy(wire + sizeof frame, &reply, sizeof reply);
	for (size_t i = 0; i < body; i++)
		wire[sizeof frame + sizeof reply + i] = (uint8_t)(i % 251);
	memset(wire + sizeof frame + sizeof reply + body, 0, 8);
	wire_size = sizeof frame + reply.size;
}

static void log_begin(void)
{
	static struct obc_ring ring;
	struct log *log = &obc_log_state;

	if (!ring.map)
		CHECK_INT(obc_ring_init(&ring, OBC_RING_DEFAULT), OB_ERR_NONE);
	memset(log, 0, sizeof *log);
	log->ring = ring;
	CHECK_INT(obp_conn_init(&log->conn, OBP_ACCEPT_REPLIES), OB_ERR_NONE);
	connect_pair(&log->stream);
	log->resumable = log->open = true;
	obc_resume_forget();
}

static void read_with_right(bool block)
{
	CHECK(log_try_right(&obc_log_state.recv_right));
	log_read_some(block);
	log_recv_release();
}

static void break_at(size_t position, size_t body)
{
	static uint8_t block[BODY_MAX];
	struct log_wait wait = {
		.number = CALL, .opcode = OBP_OP_READ, .dst = block, .capacity = body
	};
	struct log *log = &obc_log_state;

	memset(block, 0xff, sizeof block);
	log_begin();
	log_wait_add(&wait);
	/* as a thread that sends: resuming waits for it */
	CHECK(log_try_right(&log->send_right));
	server_send(position);
	CHECK(close(server_fd) == 0);
	while (!log_down())
		read_with_right(true);
	read_with_right(false);
	read_with_right(true);
	CHECK_INT(log->error, OB_ERR_NONE);
	CHECK(!atomic_load(&wait.done));
	atomic_store(&log->send_right, 0);
	log_wait_for(&wait);
	CHECK_INT(log->error, OB_ERR_NONE);
	CHECK_INT(wait.result, CUDA_SUCCESS);
	CHECK_INT(wait.got, body);
	CHECK_MEM(block, wire + sizeof(struct obp_frame) + sizeof(struct obp_reply), body);
	CHECK_INT(pthread_join(resume_thread, NULL), 0);
	CHECK(close(server_fd) == 0);
	obt_stream_close(&log->stream);
	obp_conn_fini(&log->conn);
}

static void break_everywhere(size_t body)
{
	struct obc_resume_terms terms = { .grace_ns = 60 * OB_SECOND };

	obc_resume_init(&terms);
	wire_fill(body);
	for (size_t i = 0; i < wire_size;
		i = i >= EDGE && i + STEP + EDGE < wire_size ? i + STEP : i + 1)
		break_at(i, body);
}

TEST(small_reply)
{
	break_everywhere(300);
}

TEST(large_reply)
{
	break_everywhere(BODY_MAX);
}

TEST(large_reply_with_padding)
{
	break_everywhere(OBP_CONN_BIG + 301);
}

/* A thread within a send or a receive when the session is lost. */
struct user {
	_Atomic uint32_t *right;
	atomic_bool has_begun, has_ended;
};

static void *user_main(void *argument)
{
	struct user *user = argument;

	CHECK(log_try_right(user->right));
	atomic_store(&user->has_begun, true);
	let_pass(30000, "a wait that returns too early returns before this ends");
	atomic_store(&user->has_ended, true);
	atomic_store(user->right, 0);
	return NULL;
}

static void left_wait(void)
{
	CHECK(!log_left_wait(CALL));
}

/* Loses the session while a thread has the right; then `wait` must return after that thread. */
static void lost_while(_Atomic uint32_t *right, void (*wait)(void))
{
	struct user user = { .right = right };
	pthread_t thread;

	log_begin();
	obc_log_state.resumable = false;
	CHECK_INT(pthread_create(&thread, NULL, user_main, &user), 0);
	while (!atomic_load(&user.has_begun))
		sched_yield();
	obc_log_fail(OB_ERR_CLOSED);
	wait();
	CHECK(atomic_load(&user.has_ended));
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK(close(server_fd) == 0);
	obt_stream_close(&obc_log_state.stream);
	obp_conn_fini(&obc_log_state.conn);
}

TEST(memory_is_unused_when_a_lost_session_returns)
{
	lost_while(&obc_log_state.send_right, left_wait);
	lost_while(&obc_log_state.recv_right, left_wait);
	lost_while(&obc_log_state.send_right, obc_background_wait);
	lost_while(&obc_log_state.recv_right, obc_background_wait);
}

/* What was received before the loss, but not yet handed out. */
TEST(a_lost_session_writes_nothing_more)
{
	static uint8_t block[300];
	struct log_wait wait = {
		.number = CALL, .opcode = OBP_OP_READ, .dst = block, .capacity = sizeof block
	};
	struct log *log = &obc_log_state;
	size_t room;
	void *data;

	wire_fill(sizeof block);
	log_begin();
	log->resumable = false;
	log_wait_add(&wait);
	obp_conn_space(&log->conn, &data, &room);
	CHECK(room >= wire_size);
	memcpy(data, wire, wire_size);
	obp_conn_fed(&log->conn, wire_size);
	obc_log_fail(OB_ERR_CLOSED);
	read_with_right(false);
	CHECK(!atomic_load(&wait.done));
	for (size_t i = 0; i < sizeof block; i++)
		CHECK_INT(block[i], 0);
	CHECK(close(server_fd) == 0);
	obt_stream_close(&log->stream);
	obp_conn_fini(&log->conn);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
