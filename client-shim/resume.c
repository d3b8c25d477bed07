/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/resume.h"

#include <sys/socket.h>
#include <time.h>

#include "base/log.h"
#include "base/thread.h"
#include "client-shim/futex.h"
#include "client-shim/log_inside.h"

#define RESUME_STACK (256u << 10) /* bytes; name look-up wants some */
#define RIGHT_PAUSE_NS 100000     /* between attempts to get a right that another thread still holds */

static struct obc_resume_stats stats; /* under wait_lock */

void obc_resume_stats(struct obc_resume_stats *ret)
{
	log_lock(&obc_log_state.wait_lock);
	*ret = stats;
	log_unlock(&obc_log_state.wait_lock);
}

void obc_resume_forget(void)
{
	stats = (struct obc_resume_stats){ 0 };
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
 * With both rights: the server has everything up to record `number`. The next to be sent is the one behind it: the log is walked there from
 * its tail, where record `tail_number` ended. The server may know more than this connection sent: it goes on with what an earlier one had brought
 * after it has said how far it was. False: the server says what cannot be.
 */
static bool log_rewind(uint64_t number)
{
	struct log *log = &obc_log_state;
	uint64_t at, n;
	bool known, walked;

	log_lock(&log->wait_lock);
	at = atomic_load_explicit(&log->tail, memory_order_relaxed);
	n = log->tail_number;
	walked = number > n;
	log->sent_most = ob_max(log->sent_most, log->sent_number);
	known = number >= n && number >= log->acked && number <= log->sent_most;
	while (known && n < number) {
		struct obp_record *record = (struct obp_record *)(log->ring + (at & RING_MASK));
		uint32_t size = atomic_load_explicit(log_size_of(record), memory_order_acquire);

		if (size == PAD_MARK) {
			at += OBC_RING_BYTES - (at & RING_MASK);
			continue;
		}
		at += record->lane & LANE_BYREF ? ((const struct log_byref *)record)->entry_size : size;
		n++;
	}
	if (known) {
		stats.records_again += log->sent_number - ob_min(number, log->sent_number);
		log->acked = log->tail_number = log->sent_number = number;
		atomic_store_explicit(&log->sent_done, number, memory_order_relaxed);
		log->inflight_first = log->inflight_count = 0;
		atomic_store_explicit(&log->sent, at, memory_order_relaxed);
		/* With nothing under way the tail is moved by whoever starts the ring over. */
		if (walked)
			atomic_store_explicit(&log->tail, at, memory_order_release);
	}
	log_unlock(&log->wait_lock);
	return known;
}

/* With both rights. False: the session is lost. */
static bool connect_again(void)
{
	struct log *log = &obc_log_state;
	struct obt_stream stream;
	uint64_t received = 0;
	struct obc_dial dial;
	enum ob_err err;

	obp_conn_restart(&log->conn);
	atomic_store_explicit(&log->replies, log->conn.expect - 1, memory_order_relaxed);
	obc_dial_begin(&dial, OBP_JOIN_DATA, log->conn.expect - 1);
	err = obc_dial_run(&dial, &stream, &received);
	if (err) {
		obc_log_fail(err);
		return false;
	}
	if (!log_rewind(received)) {
		ob_error("the server broke the protocol: it resumes after call %llu; acknowledged are %llu, sent %llu", (unsigned long long)received,
			(unsigned long long)log->acked, (unsigned long long)log->sent_most);
		obt_stream_close(&stream);
		obc_log_fail(OB_ERR_PROTOCOL);
		return false;
	}
	obt_stream_close(&log->stream);
	log->stream = stream;
	obt_stream_set_recv_timeout(&log->stream, RECV_TIMEOUT_MS);
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
	if (!log_broken() && connect_again()) {
		took = ob_clock_ns() - began;
		log_lock(&log->wait_lock);
		stats.resumed++;
		stats.down_ns += took;
		stats.longest_down_ns = ob_max(stats.longest_down_ns, took);
		log_unlock(&log->wait_lock);
		ob_info("the connection to the server was made again after %llu ms", (unsigned long long)(took / OB_MS));
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
	shutdown(log->stream.fd, SHUT_RDWR); /* wakes who sleeps in the socket; its descriptor is ours until the thread below has both rights */
	ob_debug("the connection broke: %s", ob_err_text(err));
	log_lock(&log->wait_lock);
	stats.breaks++;
	log_unlock(&log->wait_lock);
	if (!ob_thread_start(resume_main, NULL, RESUME_STACK, NULL))
		obc_log_fail(OB_ERR_NO_MEMORY);
}

void obc_log_link_broken(void)
{
	log_link_broken(OB_ERR_TIMEOUT);
}

void obc_log_progress(struct obp_progress *ret)
{
	struct log *log = &obc_log_state;

	ret->sent = atomic_load_explicit(&log->sent_shown, memory_order_relaxed);
	ret->received = atomic_load_explicit(&log->replies, memory_order_relaxed);
	ret->bytes_out = atomic_load_explicit(&log->bytes_out, memory_order_relaxed);
	ret->bytes_in = atomic_load_explicit(&log->heard, memory_order_relaxed);
	ret->waiting = obc_log_waiting();
}
