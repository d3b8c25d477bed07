/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A worker's loop: joining connections with the positions in the log that they claim, and messages
 * on the control connection. The client has the secret. The input chooses everything else: numbers
 * of replies, attempts, purposes, shared memory or none, in any order, valid or not. A data
 * connection must get exactly the replies that its join does not claim to have, complete and in
 * order. A wrong message ends the session (the linker wraps the exit; the run ends). The worker's
 * source file is included, for its inner functions.
 */
#include "server/worker/loop.c"

#include <sched.h>
#include <setjmp.h>

#include "server/worker/reply.h"
#include "server/worker/start.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_peer.h"
#include "tests/fuzz/fuzz_stream.h"

#define STEPS_MAX   40u
#define REPLIES_MAX 48u /* their bytes fit into a socket's buffer */
#define BODY_MAX    1024u
#define PEERS_MAX   STEPS_MAX
#define ROUTE       0x1122334455667788u

_Noreturn void __wrap_obs_session_fatal(
	struct obs_session *session, enum ob_err code, const char *format, ...);
_Noreturn void __wrap_obs_session_exit(struct obs_session *session, int status);

static struct obs_session session;
static struct obs_options options;
static jmp_buf over;
static int channel = -1;     /* the supervisor's end */
static int peers[PEERS_MAX]; /* the client's ends in the order of their joins; -1: closed */
static unsigned n_peers;
static int data_peer, control_peer; /* indices of the connections in use; -1: none */
static uint32_t sizes[REPLIES_MAX + 1];

_Noreturn void __wrap_obs_session_fatal(
	struct obs_session *s, enum ob_err code, const char *format, ...)
{
	(void)s;
	(void)code;
	(void)format;
	longjmp(over, 1);
}

_Noreturn void __wrap_obs_session_exit(struct obs_session *s, int status)
{
	(void)s;
	(void)status;
	longjmp(over, 1);
}

/* ---- the client ---- */

/* Returns a number near the true one, or any number. */
static uint64_t a_claim(uint64_t true_one)
{
	unsigned kind = fuzz_take(8), less = fuzz_take(4);

	if (kind == 7)
		return fuzz_number();
	return kind < 4 ? true_one - ob_min(true_one, (uint64_t)less) : true_one + less;
}

static uint64_t last_reply(void)
{
	return atomic_load(&session.replies.next) - 1;
}

static void wait_for_joins(void)
{
	while (atomic_load(&session.link.attaching))
		sched_yield();
}

static bool stripes_run(void)
{
	bool some;

	pthread_mutex_lock(&session.stripes.lock);
	some = session.stripes.threads > 0;
	pthread_mutex_unlock(&session.stripes.lock);
	return some;
}

/* Their ends were closed; their threads notice it. */
static void wait_for_stripes(void)
{
	while (stripes_run())
		sched_yield();
}

static void frame_read(int fd, struct obp_frame *frame, uint8_t *body, size_t most)
{
	if (recv(fd, frame, sizeof *frame, MSG_DONTWAIT | MSG_WAITALL) != sizeof *frame ||
		frame->magic != OBP_MAGIC || frame->size > most)
		abort();
	if (frame->size &&
		recv(fd, body, frame->size, MSG_DONTWAIT | MSG_WAITALL) != (ssize_t)frame->size)
		abort();
}

/* The replies (from, to] as they were first sent. */
static void replies_check(int fd, uint64_t from, uint64_t to)
{
	uint8_t body[sizeof(struct obp_reply) + BODY_MAX + 8];
	struct obp_frame frame;
	struct obp_reply reply;

	for (uint64_t number = from + 1; number <= to; number++) {
		frame_read(fd, &frame, body, sizeof body);
		memcpy(&reply, body, sizeof reply);
		if (frame.type != OBP_FRAME_REPLIES || frame.sequence != number ||
			reply.call != number || reply.body != sizes[number])
			abort();
		for (uint32_t i = 0; i < reply.body; i++)
			if (body[sizeof reply + i] != (uint8_t)number)
				abort();
	}
	if (recv(fd, body, 1, MSG_DONTWAIT) > 0)
		abort();
}

/* After a join for data: the first frame holds its result. */
static void data_joined(unsigned index, uint64_t claimed)
{
	static struct obp_message m;
	static uint8_t body[OBP_CONTROL_MAX];
	struct obp_frame frame;
	bool joined;

	wait_for_joins();
	frame_read(peers[index], &frame, body, sizeof body);
	if (frame.type != OBP_FRAME_CONTROL ||
		obp_message_decode(body, frame.raw_size, &m) != OB_ERR_NONE)
		abort();
	joined = m.type == OBP_MSG_JOINED;
	if (!joined && m.type != OBP_MSG_REFUSED)
		abort();
	if (joined &&
		(claimed > last_reply() || m.received != atomic_load(&session.replies.executed)))
		abort();
	if (joined && !m.shm)
		replies_check(peers[index], claimed, last_reply());
	obp_message_fini(&m);
	if (!joined)
		return;
	obs_link_await(&session); /* the executor takes it */
	data_peer = (int)index;
}

/* A join as the admission process hands it over: well-formed, with any numbers. */
static void join(void)
{
	static struct obs_handoff handoff;
	static struct obp_message m;
	int ends[2], fds[OBS_HANDOFF_FDS] = { -1, -1, -1 }, other = -1;
	unsigned index = n_peers;
	struct ob_buf frame;
	uint64_t claimed;

	wait_for_stripes();
	memset(&handoff, 0, sizeof handoff);
	memset(&m, 0, sizeof m);
	handoff.type = OBS_HANDOFF_JOIN;
	handoff.route = fuzz_take(16) == 15 ? fuzz_number() : ROUTE;
	m.type = fuzz_take(16) == 15 ? (enum obp_message_type)(1 + fuzz_take(OBP_MSG_LAST))
				     : OBP_MSG_JOIN;
	m.code = fuzz_take(8) == 7 ? (uint32_t)fuzz_number() : fuzz_take(OBP_JOIN_PURPOSES);
	claimed = m.received = a_claim(last_reply());
	m.attempt = fuzz_take(2) ? session.link.attempts[m.code % OBP_JOIN_PURPOSES] + 1
				 : a_claim(session.link.attempts[m.code % OBP_JOIN_PURPOSES]);
	m.shm = fuzz_take(8) == 7 ? fuzz_take(3) : 0;
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(&m, &frame)) {
		handoff.size = (uint32_t)ob_min(
			frame.size - sizeof(struct obp_frame), sizeof handoff.body);
		memcpy(handoff.body, frame.data + sizeof(struct obp_frame), handoff.size);
	}
	ob_buf_fini(&frame);
	if (fuzz_take(8) == 7) {
		fuzz_spoil(handoff.body, ob_max(handoff.size, 1u));
		claimed = UINT64_MAX; /* not known */
	}
	fuzz_pair(SOCK_STREAM, ends);
	peers[n_peers++] = ends[1];
	fds[0] = ends[0];
	if (fuzz_take(8) == 7)
		fds[1] = fuzz_descriptor(&other);
	handoff.secure = fuzz_take(16) == 15;
	if (obs_handoff_send(channel, &handoff, fds) != 0)
		abort();
	obs_handoff_close(fds);
	if (other >= 0)
		close(other);
	channel_read();
	wait_for_joins();
	if (loop.control.connection.fd >= 0 && m.code == OBP_JOIN_CONTROL && claimed != UINT64_MAX)
		control_peer = (int)index;
	if (m.type == OBP_MSG_JOIN && m.code == OBP_JOIN_DATA && handoff.route == ROUTE &&
		!handoff.secure && claimed != UINT64_MAX)
		data_joined(index, claimed);
	else if (session.link.next_ready)
		obs_link_await(&session);
	/*
	 * Another target covers the data of stripes. A wrong byte would end the run in the stripe's
	 * thread, which cannot longjmp to this one.
	 */
	if (m.code == OBP_JOIN_STRIPE || stripes_run()) {
		close(peers[index]);
		peers[index] = -1;
	}
}

static void control_says(void)
{
	static struct obp_message m;

	if (control_peer < 0 || peers[control_peer] < 0)
		return;
	fuzz_wire_clear();
	memset(&m, 0, sizeof m);
	m.type = fuzz_take(4) ? OBP_MSG_PING : (enum obp_message_type)(1 + fuzz_take(OBP_MSG_LAST));
	m.value = fuzz_number();
	m.received = a_claim(last_reply());
	fuzz_text(m.text, sizeof m.text - 1);
	fuzz_wire_put_message(&m);
	if (fuzz_take(8) == 7)
		fuzz_spoil(fuzz_wire.data, ob_max(fuzz_wire.size, (size_t)1));
	fuzz_send(peers[control_peer], fuzz_wire.data, fuzz_wire.size, NULL, 0, false);
}

/* Sends bytes, or closes, on any connection. */
static void peer_says(unsigned index)
{
	uint8_t bytes[64];
	size_t n = fuzz_take(sizeof bytes);

	if (peers[index] < 0)
		return;
	fuzz_drain(peers[index]);
	if (n == 0) {
		close(peers[index]);
		peers[index] = -1;
		return;
	}
	fuzz_take_bytes(bytes, n);
	fuzz_send(peers[index], bytes, n, NULL, 0, false);
}

/* ---- the worker ---- */

static void reply(void)
{
	struct obs_exec x = { .session = &session };
	uint8_t body[BODY_MAX];
	uint32_t size = fuzz_take(4) == 3 ? BODY_MAX : fuzz_take(64);

	if (last_reply() == REPLIES_MAX)
		return;
	x.call = last_reply() + 1;
	sizes[x.call] = size;
	memset(body, (int)x.call, size);
	atomic_fetch_add(&session.replies.executed, 1);
	obs_reply_send(&x, CUDA_SUCCESS, body, size);
	if (data_peer >= 0 && peers[data_peer] >= 0)
		fuzz_drain(peers[data_peer]);
}

/* Computes the events that poll would report to the loop. */
static void turn(void)
{
	if (loop.control.connection.fd >= 0)
		obs_control_read(&loop.control);
	for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
		if (loop.joining[i].fd >= 0) {
			if (fuzz_take(8) == 7)
				loop.joining[i].deadline = 0;
			joining_read(&loop.joining[i]);
		}
	deadlines_check();
	wait_for_joins();
	if (session.link.next_ready)
		obs_link_await(&session);
}

static void data_breaks(void)
{
	if (loop.data_fd < 0)
		return;
	if (fuzz_take(2))
		data_lost();
	pthread_mutex_lock(&session.replies.lock);
	if (!session.link.next_ready && !atomic_load(&session.link.down))
		obs_link_broken_locked(&session);
	pthread_mutex_unlock(&session.replies.lock);
}

static void step(void)
{
	switch (fuzz_take(8)) {
	case 0:
	case 1:
		reply();
		break;
	case 2:
	case 3:
		if (n_peers < PEERS_MAX)
			join();
		break;
	case 4:
	case 5:
		control_says();
		break;
	case 6:
		data_breaks();
		break;
	default:
		if (n_peers)
			peer_says(fuzz_take(n_peers));
		break;
	}
	turn();
}

static void start(void)
{
	char *argv[] = { "outboard-server", "--worker", "--driver", "null", "--upload-cache", "0",
		"--sandbox", "off", NULL };
	struct ob_cause cause = { .code = OB_ERR_NONE };
	int ends[2];

	ob_log_set_level(OB_LOG_DEBUG); /* log lines are formatted and dropped */
	ob_log_set_fd(-1);
	if (obs_options_parse(&options, 8, argv) || obs_session_init(&session, &options, &cause)) {
		fprintf(stderr, "the null driver does not start: %s\n", cause.text);
		exit(1);
	}
	fuzz_pair(SOCK_SEQPACKET, ends);
	channel = ends[1];
	loop.channel = ends[0];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	session.route = ROUTE;
	atomic_store(&session.welcomed, true);
}

static void begin(void)
{
	int kept = loop.channel, ends[2];

	memset(&loop, 0, sizeof loop);
	loop.session = &session;
	loop.channel = kept;
	obs_control_init(&loop.control, &session);
	for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
		loop.joining[i].fd = -1;
	fuzz_pair(SOCK_STREAM, ends);
	peers[0] = ends[1];
	n_peers = 1;
	data_peer = 0;
	control_peer = -1;
	obt_stream_adopt(&session.data, ends[0]);
	loop.data_fd = ends[0];
	obs_replies_init(&session.replies);
	session.replies.stream = session.data;
	memset(&session.link, 0, sizeof session.link);
	session.link.client = -1;
	session.link.grace_ns = 60 * OB_SECOND;
	pthread_cond_init(&session.link.changed, NULL);
	if (fuzz_take(16) != 15 && obs_retransmit_init(&session.replies.retransmit))
		atomic_store(&session.link.on, true);
}

static void finish(void)
{
	wait_for_joins();
	if (session.link.next_ready)
		obt_stream_close(&session.link.next);
	obs_hostfunc_control(&session.hostfuncs, NULL);
	session.hostfuncs.may_repeat = false;
	for (unsigned i = 0; i < n_peers; i++)
		if (peers[i] >= 0)
			close(peers[i]);
	for (unsigned i = 0; i < OBS_JOINING_MAX; i++)
		if (loop.joining[i].fd >= 0) {
			obp_message_fini(&loop.joining[i].join);
			obs_connection_close(&loop.joining[i]);
		}
	/* A lost one is freed at the end of the process; its session does not live longer. */
	if (loop.control.connection.fd >= 0 ||
		(!session.link.on && loop.control.connection.stream.ops))
		obs_connection_close(&loop.control.connection);
	obt_stream_close(&session.data);
	wait_for_stripes();
	obp_message_fini(&loop.control.message); /* the message that ended the session */
	if (session.replies.retransmit.ring) {
		obs_retransmit_drop(&session.replies.retransmit, UINT64_MAX);
		free(session.replies.retransmit.ring);
		free(session.replies.retransmit.list);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before;

	if (channel < 0)
		start();
	fuzz_input_start(data, ob_min(size, (size_t)8192));
	before = fuzz_descriptors();
	begin();
	if (setjmp(over) == 0)
		for (unsigned i = 0; i < STEPS_MAX && !fuzz_used_up(); i++)
			step();
	finish();
	if (fuzz_descriptors() != before)
		abort();
	return 0;
}
