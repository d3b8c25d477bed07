/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/resume.h"

#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "client-shim/session/futex.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"

#define RESUME_STACK   (256u << 10) /* bytes of stack; name look-up needs some */
/* interval between attempts to get a right that another thread holds */
#define RIGHT_PAUSE_NS 100000

static OBC_PER_SERVER struct obc_resume_stats stats_first; /* under wait_lock */
#define stats OBC_HERE(stats_first)
static OBC_PER_SERVER struct obp_futile futile_first; /* the thread that holds both rights */
#define futile OBC_HERE(futile_first)
static OBC_PER_SERVER _Atomic int last_break_first; /* enum ob_err */
#define last_break OBC_HERE(last_break_first)

void obc_resume_stats(struct obc_resume_stats *ret)
{
	log_lock(&obc_log_state.wait_lock);
	*ret = stats;
	log_unlock(&obc_log_state.wait_lock);
}

void obc_resume_forget(void)
{
	stats = (struct obc_resume_stats){ 0 };
	futile = (struct obp_futile){ 0 };
}

void log_down_wait(void)
{
	if (log_down() && !log_broken())
		obc_futex_wait(&obc_log_state.down, 1, 50);
}

/* Waits for a right. False: the session is lost. */
static bool right_take(_Atomic uint32_t *right)
{
	const struct timespec ts = { .tv_nsec = RIGHT_PAUSE_NS };

	while (!log_try_right(right)) {
		if (log_broken())
			return false;
		nanosleep(&ts, NULL);
	}
	return true;
}

/*
 * With both rights: the server has all records up to `number`, and sending continues with the next
 * one. The server may later acknowledge more than this connection sent, because it still processes
 * what an earlier connection delivered. False: the server reported an impossible number.
 */
static bool log_rewind(uint64_t number)
{
	struct log *log = &obc_log_state;
	uint64_t sent;
	bool known;

	log_lock(&log->wait_lock);
	sent = atomic_load_explicit(&log->ring.sent_number, memory_order_relaxed);
	known = obc_ring_rewind(&log->ring, number);
	if (known)
		stats.records_again += sent - ob_min(number, sent);
	log_unlock(&log->wait_lock);
	return known;
}

/*
 * With both rights: the connection broke. False: too many resumes made no progress; the session is
 * lost.
 */
static bool making_progress(void)
{
	struct log *log = &obc_log_state;
	uint64_t items = atomic_load_explicit(&log->ring.acked, memory_order_relaxed) +
		atomic_load_explicit(&log->replies, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&log->bytes_out, memory_order_relaxed) +
		atomic_load_explicit(&log->heard, memory_order_relaxed);
	char why[240];

	if (!obp_futile_broke(&futile, ob_clock_ns(), items, bytes, obc_resume_grace()))
		return true;
	snprintf(why, sizeof why,
		"the connection broke %u times in a row after it was restored, before a call or a "
		"reply was delivered; the last error: %s. "
		"Check the network path to the server (proxy, firewall)",
		futile.dead + futile.partial, ob_err_text((enum ob_err)atomic_load(&last_break)));
	log_fail_because(OB_ERR_IO, why);
	return false;
}

/* With both rights. False: the session is lost. */
static bool reconnect(void)
{
	struct log *log = &obc_log_state;
	struct obt_stream stream;
	uint64_t received = 0;
	struct obc_dial dial;
	enum ob_err err;

	obp_conn_restart(&log->conn);
	atomic_store_explicit(&log->replies, log->conn.expect - 1, memory_order_relaxed);
	obc_dial_begin(&dial, OBP_JOIN_DATA, log->conn.expect - 1);
	dial.backoff.attempts = futile.dead;
	err = obc_dial_run(&dial, &stream, &received);
	if (err) {
		obc_log_fail(err);
		return false;
	}
	if (!log_rewind(received)) {
		ob_error("the server broke the protocol: it resumes after call %llu, but "
			 "acknowledged call %llu, and the last call sent was %llu",
			(unsigned long long)received, (unsigned long long)log->ring.acked,
			(unsigned long long)log->ring.sent_most);
		obt_stream_close(&stream);
		obc_log_fail(OB_ERR_PROTOCOL);
		return false;
	}
	obt_stream_close(&log->stream);
	log->stream = stream;
	obt_stream_set_recv_timeout(&log->stream, RECV_TIMEOUT_MS);
	obp_futile_made(&futile, ob_clock_ns());
	return true;
}

static void *resume_main(void *unused)
{
	struct log *log = &obc_log_state;
	uint64_t began = ob_clock_ns(), took;

	(void)unused;
	if (!right_take(&log->send_right))
		return NULL;
	if (!right_take(&log->recv_right)) {
		atomic_store_explicit(&log->send_right, 0, memory_order_release);
		return NULL;
	}
	atomic_store(&log->resuming, true);
	if (!log_broken() && making_progress() && reconnect()) {
		took = ob_clock_ns() - began;
		log_lock(&log->wait_lock);
		stats.resumed++;
		stats.down_ns += took;
		stats.longest_down_ns = ob_max(stats.longest_down_ns, took);
		log_unlock(&log->wait_lock);
		ob_info("the connection to %s was restored after %llu ms",
			*obc_server_name() ? obc_server_name() : "the server",
			(unsigned long long)(took / OB_MS));
		atomic_store(&log->down, 0);
	}
	atomic_store(&log->resuming, false);
	atomic_store_explicit(&log->send_right, 0, memory_order_release);
	log_recv_release();
	obc_futex_wake(&log->down, INT32_MAX);
	if (!log_broken())
		log_drain();
	return NULL;
}

void log_link_broken(enum ob_err err)
{
	struct log *log = &obc_log_state;

	if (!log->resumable || log_broken()) {
		obc_log_fail(err);
		return;
	}
	if (atomic_exchange(&log->down, 1))
		return;
	atomic_store(&last_break, (int)err);
	/*
	 * wakes a thread that is blocked on the socket, which is closed only when the thread below
	 * has both rights
	 */
	obt_stream_shutdown(&log->stream);
	ob_debug("the connection broke: %s", ob_err_text(err));
	log_lock(&log->wait_lock);
	stats.breaks++;
	log_unlock(&log->wait_lock);
	if (!obc_thread_start(resume_main, NULL, RESUME_STACK, NULL))
		obc_log_fail(OB_ERR_NO_MEMORY);
}

void obc_log_link_broken(void)
{
	log_link_broken(OB_ERR_TIMEOUT);
}

void obc_log_progress(struct obp_progress *ret)
{
	struct log *log = &obc_log_state;

	ret->sent = atomic_load_explicit(&log->ring.sent_number, memory_order_relaxed);
	ret->received = atomic_load_explicit(&log->replies, memory_order_relaxed);
	ret->bytes_out = atomic_load_explicit(&log->bytes_out, memory_order_relaxed);
	ret->bytes_in = atomic_load_explicit(&log->heard, memory_order_relaxed);
	ret->waiting = obc_log_waiting();
}
