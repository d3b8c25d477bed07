/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "server/worker/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/thread.h"
#include "server/common/refuse.h"
#include "server/worker/reply.h"
#include "transport/shm.h"

#define ATTACH_TIMEOUT_NS (60 * OB_SECOND) /* for retransmission */
#define COMM_BYTES        15               /* bytes of a process's name in /proc/PID/comm */

/* ---- is the client on this machine? ---- */

static bool same_machine(int fd)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t n = sizeof here, m = sizeof there;

	if (getsockname(fd, (struct sockaddr *)&here, &n) ||
		getpeername(fd, (struct sockaddr *)&there, &m) || here.ss_family != there.ss_family)
		return false;
	if (here.ss_family == AF_UNIX)
		return true;
	if (here.ss_family == AF_INET)
		return ((struct sockaddr_in *)&here)->sin_addr.s_addr ==
			((struct sockaddr_in *)&there)->sin_addr.s_addr;
	return here.ss_family == AF_INET6 &&
		memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr,
			&((struct sockaddr_in6 *)&there)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/*
 * True when process `pid` of this machine has the name that the client gave. If the client runs in
 * another PID namespace, its pid does not identify a process here.
 */
static bool process_named(uint64_t pid, const char *program)
{
	char path[64], name[COMM_BYTES + 2] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/%llu/comm", (unsigned long long)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof name, file))
		name[0] = '\0';
	fclose(file);
	name[strcspn(name, "\n")] = '\0';
	return name[0] && strncmp(name, program, COMM_BYTES) == 0;
}

/*
 * Watches the process of a client on the same machine: when it ends without a goodbye, the session
 * need not wait for it.
 */
static int client_watch(int fd, const struct obp_hello *hello)
{
	if (hello->pid == 0 || hello->pid > INT32_MAX || !same_machine(fd) ||
		!process_named(hello->pid, hello->program))
		return -1;
	return (int)syscall(SYS_pidfd_open, (pid_t)hello->pid, 0);
}

/*
 * True when the client has closed the connection. Before the welcome it has no secret and cannot
 * join again.
 */
static bool client_left(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLRDHUP };

	return poll(&pfd, 1, 0) > 0 && (pfd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static uint32_t grace_of(const struct obs_session *session, const struct obp_hello *hello)
{
	return ob_opt_on(OB_OPT_RESUME) ? ob_min(hello->grace_s, session->options->grace_s) : 0;
}

void obs_link_watch(struct obs_session *session, const struct obp_hello *hello)
{
	session->link.client =
		grace_of(session, hello) ? client_watch(session->data.fd, hello) : -1;
}

bool obs_link_agree(struct obs_session *session, const struct obp_hello *hello)
{
	struct obs_link *link = &session->link;
	uint32_t seconds = grace_of(session, hello);

	if (!seconds)
		return true;
	/*
	 * obs_link_watch ran first: if the process was not found then because it had already ended,
	 * its connection is closed by now.
	 */
	if (link->client < 0 && client_left(session->data.fd))
		return true;
	if (!obs_retransmit_init(&session->replies.retransmit))
		return false;
	link->grace_ns = seconds * OB_SECOND;
	session->welcome->welcome.grace_s = seconds;
	pthread_cond_init(&link->changed, NULL);
	atomic_store(&link->on, true);
	return true;
}

/* ---- breaking ---- */

void obs_link_await(struct obs_session *session)
{
	struct obs_link *link = &session->link;
	struct obs_replies *replies = &session->replies;
	struct obt_stream old = session->data;

	pthread_mutex_lock(&replies->lock);
	if (!link->next_ready && !atomic_load(&link->down))
		obs_link_broken_locked(session);
	while (!link->next_ready)
		pthread_cond_wait(&link->changed, &replies->lock);
	session->data = link->next;
	link->next_ready = false;
	pthread_mutex_unlock(&replies->lock);
	obt_stream_close(&old);
}

/* ---- acknowledgements ---- */

bool obs_link_acked(struct obs_session *session, uint64_t number)
{
	struct obs_replies *replies = &session->replies;
	uint64_t before = atomic_load_explicit(&session->link.client_ack, memory_order_relaxed);

	if (number <= before || !session->link.on)
		return true;
	if (number >= atomic_load_explicit(&replies->next, memory_order_acquire))
		return false;
	while (number > before)
		if (atomic_compare_exchange_weak(&session->link.client_ack, &before, number))
			break;
	if (atomic_load(&replies->waiting)) {
		pthread_mutex_lock(&replies->lock);
		obs_replies_trim(session);
		pthread_mutex_unlock(&replies->lock);
	}
	return true;
}

/* ---- joining again ---- */

struct attach {
	struct obs_session *session;
	struct obt_stream stream;
};

static bool joined_send(struct obs_session *session, struct obt_stream *stream, uint64_t deadline)
{
	OB_CLEANUP(ob_freep) struct obp_message *message = calloc(1, sizeof *message);
	struct ob_buf frame;
	bool sent = false;

	if (!message)
		return false;
	message->type = OBP_MSG_JOINED;
	message->received = atomic_load(&session->replies.executed);
	message->shm = obt_shm_taken(stream);
	ob_buf_init(&frame, sizeof(struct obp_frame) + OBP_CONTROL_MAX);
	if (obp_message_encode(message, &frame)) {
		struct iovec iov = { frame.data, frame.size };

		sent = obt_stream_send_all(stream, &iov, 1, deadline) == OB_ERR_NONE;
	}
	obt_shm_settle(stream, message->shm);
	ob_buf_fini(&frame);
	return sent;
}

static bool retransmit_send(
	struct obs_session *session, struct obt_stream *stream, uint64_t deadline)
{
	struct obs_retransmit *queue = &session->replies.retransmit;

	for (uint64_t number = queue->first; number < queue->next; number++) {
		struct iovec iov[3];
		int n = obs_retransmit_iov(&queue->list[number % OBS_RETRANSMIT_MAX], iov);

		if (obt_stream_send_all(stream, iov, n, deadline) != OB_ERR_NONE)
			return false;
	}
	return true;
}

/*
 * Runs on a thread of its own: retransmission may take long, and neither the loop nor the executor
 * may be held up.
 */
static void *attach_main(void *argument)
{
	OB_CLEANUP(ob_freep) struct attach *attach = argument;
	struct obs_session *session = attach->session;
	struct obs_replies *replies = &session->replies;
	struct obs_link *link = &session->link;
	uint64_t deadline = ob_clock_ns() + ATTACH_TIMEOUT_NS;

	pthread_mutex_lock(&replies->lock);
	obs_replies_trim(session);
	if (link->next_ready) { /* an earlier join that the executor never took */
		obt_stream_close(&link->next);
		link->next_ready = false;
	}
	replies->stream = attach->stream;
	atomic_store(&link->down, false);
	if (!joined_send(session, &attach->stream, deadline) ||
		!retransmit_send(session, &attach->stream, deadline))
		obs_link_broken_locked(session);
	/*
	 * Also when the connection has just broken: the executor reads its end and waits for the
	 * next.
	 */
	link->next = attach->stream;
	link->next_ready = true;
	link->resumed++;
	pthread_cond_broadcast(&link->changed);
	atomic_store(&link->attaching, false);
	pthread_mutex_unlock(&replies->lock);
	return NULL;
}

static bool refuse(const struct obt_stream *joining, enum ob_err code, const char *why)
{
	struct obt_stream stream = *joining;

	obs_refuse_stream(&stream, code, why);
	obt_stream_close(&stream);
	return false;
}

bool obs_link_attach(struct obs_session *session, struct obt_stream *stream,
	const struct obp_message *join, int old_fd)
{
	struct obs_link *link = &session->link;
	struct ob_cause cause;
	struct attach *attach;

	if (!link->on)
		return refuse(stream, OB_ERR_REFUSED,
			"this session cannot be resumed: the client (OUTBOARD_GRACE) or the server "
			"(--grace) has that switched off");
	if (join->received < atomic_load(&link->client_ack) ||
		!obs_link_acked(session, join->received))
		return refuse(stream, OB_ERR_REFUSED,
			"the client's number of received replies does not match what the server "
			"sent");
	if (obt_shm_take(stream, join->shm, &cause)) /* the next attempt may bring it */
		return refuse(stream, cause.code, cause.text);
	if (atomic_exchange(&link->attaching, true)) {
		/* the attempt before may be blocked in sending; the client has given it up */
		shutdown(old_fd, SHUT_RDWR);
		return refuse(stream, OB_ERR_LIMIT, "another connection is joining this session");
	}
	attach = malloc(sizeof *attach);
	if (!attach) {
		atomic_store(&link->attaching, false);
		return refuse(stream, OB_ERR_LIMIT, "no memory");
	}
	/*
	 * The client has given the old connection up, noticed here or not: wake readers and writers
	 * that are blocked in it.
	 */
	if (old_fd >= 0)
		shutdown(old_fd, SHUT_RDWR);
	fcntl(stream->fd, F_SETFL, 0);
	attach->session = session;
	attach->stream = *stream;
	if (!ob_thread_start(attach_main, attach, 0, NULL)) {
		atomic_store(&link->attaching, false);
		free(attach);
		/* the client retries */
		return refuse(stream, OB_ERR_LIMIT, "the worker can start no thread");
	}
	return true;
}
