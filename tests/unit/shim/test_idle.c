/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Memory is given back while threads make calls, at every moment at which the log looks idle. A
 * server in the test checks that the records of each thread arrive complete and in order, and
 * answers the calls that wait.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/opt.h"
#include "client-shim/session/log_inside.h"
#include "protocol/obp_calls.h"
#include "tests/test.h"

#define WRITERS    3u
#define ROUNDS     (3000u / TEST_SLOWER)
#define BURST      24u   /* calls without an answer before one that waits */
#define WORDS_MAX  5000u /* of a record; large enough to be packed, and below OBP_CONN_BIG */
#define OPCODE     OBP_OP_WRITE
#define DONE_AFTER 2000u /* times that memory must have been given back */

static int server_fd;
static _Atomic bool over;
static _Atomic unsigned given_back;
/* so that no thread gets the lane of one that has ended */
static pthread_barrier_t started;

/* ---- the server ---- */

static void reply_send(uint64_t call, uint64_t reply_number)
{
	struct obp_reply reply = { .size = sizeof reply, .call = call };
	struct obp_frame frame;
	uint8_t wire[sizeof frame + sizeof reply];

	obp_frame_fill(&frame, OBP_FRAME_REPLIES, sizeof reply, 1, reply_number, call);
	memcpy(wire, &frame, sizeof frame);
	memcpy(wire + sizeof frame, &reply, sizeof reply);
	CHECK_INT(send(server_fd, wire, sizeof wire, MSG_NOSIGNAL), sizeof wire);
}

/* The words of a record are all its number among the records of its thread. */
static void record_check(const struct obp_item *item, uint32_t *next)
{
	const uint32_t *words = (const uint32_t *)(const void *)item->body;
	uint32_t n = words[0];

	CHECK(item->record.lane < WRITERS && n <= WORDS_MAX && n * 4 <= item->size);
	for (uint32_t i = 1; i < n; i++)
		CHECK_INT(words[i], next[item->record.lane]);
	next[item->record.lane]++;
}

static void *server_main(void *unused)
{
	uint32_t next[WRITERS] = { 0 };
	uint64_t replies = 0;
	struct obp_conn conn;
	struct obp_item item;

	(void)unused;
	CHECK_INT(obp_conn_init(&conn, OBP_ACCEPT_CALLS), OB_ERR_NONE);
	conn.codecs = OBZ_ALL_CODECS;
	for (;;) {
		enum obp_event event = obp_conn_next(&conn, &item);
		ssize_t done;
		size_t size;
		void *data;

		CHECK(event == OBP_NEED || event == OBP_RECORD || event == OBP_ACK);
		if (event == OBP_RECORD && item.record.opcode == OPCODE)
			record_check(&item, next);
		else if (event == OBP_RECORD && item.record.opcode == OBP_OP_PING)
			reply_send(item.number, ++replies);
		if (event != OBP_NEED)
			continue;
		obp_conn_space(&conn, &data, &size);
		done = recv(server_fd, data, size, 0);
		if (done <= 0)
			break;
		obp_conn_fed(&conn, (size_t)done);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		CHECK_INT(next[i], ROUNDS * BURST);
	CHECK_INT(replies, WRITERS * ROUNDS);
	obp_conn_fini(&conn);
	return NULL;
}

/* ---- the client ---- */

static void *writer_main(void *unused)
{
	struct obc_slot slot;
	uint32_t number = 0;

	(void)unused;
	CHECK(obc_log_lane() < WRITERS);
	pthread_barrier_wait(&started);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < BURST; i++, number++) {
			uint32_t n = i % 8 ? 2 + i % 5 : WORDS_MAX;
			uint32_t *words = obc_log_begin(&slot, OPCODE, n * 4);

			CHECK(words);
			words[0] = n;
			for (uint32_t k = 1; k < n; k++)
				words[k] = number;
			CHECK_INT(obc_log_commit(&slot), CUDA_SUCCESS);
			if (i % 4 == 0)
				sched_yield();
		}
		CHECK(obc_log_begin(&slot, OBP_OP_PING, 0));
		CHECK_INT(obc_log_call(&slot, NULL, 0, NULL), CUDA_SUCCESS);
	}
	return NULL;
}

/*
 * The control thread. Its clock runs so fast that the log is idle when nothing happened between two
 * checks.
 */
static void *control_main(void *unused)
{
	uint64_t now = ob_clock_ns();

	(void)unused;
	while (!atomic_load(&over)) {
		for (int i = 0; i < 3; i++)
			obc_log_release_idle(now += OBC_IDLE_NS);
		atomic_fetch_add(&given_back, 1);
		sched_yield();
	}
	return NULL;
}

TEST(memory_is_given_back_between_calls)
{
	pthread_t server, control, writers[WRITERS];
	struct obt_stream stream;
	int fds[2];

	/* also with every switch off; without the second one each record waits for an answer */
	ob_opt_set(OB_OPT_RELEASE, true);
	ob_opt_set(OB_OPT_ASYNC, true);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	server_fd = fds[1];
	obt_stream_adopt(&stream, fds[0]);
	CHECK_INT(obc_log_open(&stream, OBZ_ALL_CODECS, OBZ_LZ4, false, 1u << 20, 0), OB_ERR_NONE);
	pthread_barrier_init(&started, NULL, WRITERS);
	pthread_create(&server, NULL, server_main, NULL);
	pthread_create(&control, NULL, control_main, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_create(&writers[i], NULL, writer_main, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	while (atomic_load(&given_back) < DONE_AFTER)
		sched_yield();
	atomic_store(&over, true);
	pthread_join(control, NULL);
	CHECK_INT(obc_log_alive(), CUDA_SUCCESS);
	obc_log_close();
	pthread_join(server, NULL);
	obc_log_forget(); /* which closes the connection */
	close(server_fd);
}

int main(int argc, char **argv)
{
	return test_main(argc, argv);
}
