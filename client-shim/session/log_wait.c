/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <time.h>

#include "client-shim/session/futex.h"
#include "client-shim/session/log_inside.h"

#define LOST_PAUSE_NS 50000 /* interval between checks of a right that another thread holds */

void log_wait_add(struct log_wait *wait)
{
	struct log *log = &obc_log_state;

	log_lock(&log->wait_lock);
	wait->next = log->waits;
	log->waits = wait;
	atomic_fetch_add_explicit(&log->n_waits, !wait->later, memory_order_relaxed);
	log_unlock(&log->wait_lock);
}

void log_wait_unlist(struct log_wait *wait)
{
	struct log *log = &obc_log_state;

	for (struct log_wait **p = &log->waits; *p; p = &(*p)->next)
		if (*p == wait) {
			*p = wait->next;
			atomic_fetch_sub_explicit(
				&log->n_waits, !wait->later, memory_order_relaxed);
			return;
		}
}

/* The thread gives up. If the reply is being taken now, `done` is set under the lock. */
static void wait_remove(struct log_wait *wait)
{
	log_lock(&obc_log_state.wait_lock);
	log_wait_unlist(wait);
	log_unlock(&obc_log_state.wait_lock);
}

struct log_wait *log_wait_find(uint64_t number)
{
	struct log *log = &obc_log_state;
	struct log_wait *wait;

	log_lock(&log->wait_lock);
	for (wait = log->waits; wait && wait->number != number;)
		wait = wait->next;
	log_unlock(&log->wait_lock);
	return wait;
}

bool log_wait_rouse(struct log_wait *wait)
{
	return atomic_exchange_explicit(&wait->word, WAIT_WOKEN, memory_order_acq_rel) ==
		WAIT_ASLEEP;
}

void log_wait_wake(struct log_wait *wait)
{
	obc_futex_wake(&wait->word, 1);
	/* Atomic: log_recv_release wakes when another thread may already read. */
	atomic_store_explicit(&obc_log_state.woke, true, memory_order_relaxed);
}

void log_recv_release(void)
{
	struct log *log = &obc_log_state;
	struct log_wait *next;

	atomic_store_explicit(&log->recv_right, 0, memory_order_release);
	/*
	 * Pairs with the fence in log_wait_for: either a waiter sees that the right is free, or
	 * this thread sees that the waiter sleeps.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&log->n_waits, memory_order_relaxed))
		return;
	log_lock(&log->wait_lock);
	for (next = log->waits;
		next && atomic_load_explicit(&next->word, memory_order_relaxed) != WAIT_ASLEEP;)
		next = next->next;
	if (next)
		log_wait_rouse(next);
	log_unlock(&log->wait_lock);
	if (next)
		log_wait_wake(next);
}

static void deadline_check(struct log *log)
{
	uint64_t deadline = atomic_load_explicit(&log->deadline, memory_order_relaxed);

	if (ob_unlikely(deadline && ob_clock_ns() > deadline))
		obc_log_fail(OB_ERR_TIMEOUT);
}

static bool read_goes_on(struct log *log, const struct log_wait *wait)
{
	return !atomic_load_explicit(&wait->done, memory_order_acquire) && log_works(log);
}

/* With the receive right: bytes sent since the last call. */
static uint64_t sent_lately(struct log *log)
{
	uint64_t now = atomic_load_explicit(&log->bytes_out, memory_order_relaxed),
		 sent = now - log->sent_before;

	log->sent_before = now;
	return sent;
}

/* A wait for bytes. */
struct gap {
	uint64_t heard, since, sent;
	uint64_t body; /* body_ns when it began: receiving a large reply is not waiting */
};

static inline uint64_t gap_ns(const struct log *log, const struct gap *gap, uint64_t now)
{
	return now - gap->since - (log->body_ns - gap->body);
}

/* If bytes have come: learns from the wait and begins the next. */
static inline void gap_end(struct log *log, struct gap *gap, uint64_t now)
{
	if (log->conn.bytes == gap->heard)
		return;
	ob_spin_learn(&log->spin, gap_ns(log, gap, now), gap->sent);
	*gap = (struct gap){ .heard = log->conn.bytes, .since = now, .body = log->body_ns };
}

/* With the receive right: reads until this wait is done. Polls first if that pays (base/spin.h). */
static void read_until(struct log_wait *wait)
{
	struct log *log = &obc_log_state;
	uint64_t now = ob_clock_ns(), sent = sent_lately(log),
		 budget = ob_spin_budget(&log->spin, sent);
	struct gap gap = { log->conn.bytes, now, sent, log->body_ns };

	atomic_store_explicit(&log->woke, false, memory_order_relaxed);
	while (!atomic_load_explicit(&log->woke, memory_order_relaxed) && read_goes_on(log, wait) &&
		gap_ns(log, &gap, now) < budget) {
		log_read_some(false);
		now = ob_clock_ns();
		gap_end(log, &gap, now);
	}
	while (read_goes_on(log, wait)) {
		log_read_some(true);
		gap_end(log, &gap, ob_clock_ns());
		deadline_check(log);
	}
}

/*
 * The session is lost: takes the right once, so that its holder has ended, and later holders see the
 * loss. The holder's send or receive fails at once or ends with the stream's time-out. False: a
 * thread resumes the session. It has both rights, but neither sends nor receives.
 */
static bool right_take(_Atomic uint32_t *right)
{
	const struct timespec pause = { .tv_nsec = LOST_PAUSE_NS };

	while (!atomic_load(&obc_log_state.resuming)) {
		if (log_try_right(right))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static void lost_receiver_wait(void)
{
	if (right_take(&obc_log_state.recv_right))
		log_recv_release();
}

void log_lost_wait(void)
{
	struct log *log = &obc_log_state;

	if (right_take(&log->send_right))
		atomic_store_explicit(&log->send_right, 0, memory_order_release);
	lost_receiver_wait();
}

void log_wait_for(struct log_wait *wait)
{
	struct log *log = &obc_log_state;

	while (!atomic_load_explicit(&wait->done, memory_order_acquire) &&
		!atomic_load_explicit(&log->error, memory_order_relaxed)) {
		if (ob_unlikely(atomic_load_explicit(&log->down, memory_order_relaxed))) {
			log_down_wait();
			deadline_check(log);
			continue;
		}
		if (log_try_right(&log->recv_right)) {
			read_until(wait);
			log_recv_release();
			continue;
		}
		atomic_store_explicit(&wait->word, WAIT_ASLEEP, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&wait->done, memory_order_acquire) &&
			atomic_load_explicit(&log->recv_right, memory_order_relaxed))
			obc_futex_wait(&wait->word, WAIT_ASLEEP, 1000);
		deadline_check(log);
		atomic_store_explicit(&wait->word, WAIT_IDLE, memory_order_relaxed);
	}
	/* The session was lost during a reply: a reader may still write to this destination. */
	if (!atomic_load_explicit(&wait->done, memory_order_acquire)) {
		lost_receiver_wait();
		wait_remove(wait);
	}
}
