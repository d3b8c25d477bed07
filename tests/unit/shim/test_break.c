/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The connection breaks at every position of a reply. Until it is resumed, another thread that gets
 * the receive right must not read on in the broken stream; then the whole reply must arrive.
 */
#include <pthread.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/thread.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/resume.h"
#include "protocol/obp_calls.h"
#include "tests/test.h"

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

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
