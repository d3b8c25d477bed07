/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "base/opt.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"

/* Control thread only. */
struct idle_state {
	uint64_t moved; /* sum of counters that only grow: unchanged if nothing happened */
	uint64_t since; /* ns: time when it changed last */
	bool ring, sending, receiving; /* released since then */
};

static OBC_PER_SERVER struct idle_state idle_first;
#define idle OBC_HERE(idle_first)

/* False: a record was reserved meanwhile. */
static bool ring_release(struct obc_ring *ring)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), at = 0;
	bool same = true;

	/* In steps, so that a writer never waits long for the lock. */
	while (same && at <= ring->mask) {
		log_lock(&ring->lock);
		same = atomic_load_explicit(&ring->head, memory_order_relaxed) == head;
		if (same)
			at = obc_ring_release(ring, at);
		log_unlock(&ring->lock);
	}
	return same;
}

/* False: another thread sends. */
static bool sending_release(struct log *log)
{
	if (!log_try_right(&log->send_right))
		return false;
	obp_packer_release(&log->packer);
	atomic_store_explicit(&log->send_right, 0, memory_order_release);
	/*
	 * A thread that committed a record meanwhile saw the right taken and left the record to its
	 * holder. The sender sends it: this thread must not wait for the socket.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (obc_ring_pending(&log->ring))
		log_sender_notify();
	return true;
}

/* False: another thread receives. */
static bool receiving_release(struct log *log)
{
	if (!log_try_right(&log->recv_right))
		return false;
	obp_conn_release(&log->conn);
	log_recv_release();
	return true;
}

void obc_log_release_idle(uint64_t now)
{
	struct log *log = &obc_log_state;
	uint64_t moved = atomic_load_explicit(&log->ring.head, memory_order_relaxed) +
		atomic_load_explicit(&log->bytes_out, memory_order_relaxed) +
		atomic_load_explicit(&log->heard, memory_order_relaxed);

	if (moved != idle.moved) {
		idle.moved = moved;
		idle.since = now;
		idle.ring = idle.sending = idle.receiving = false;
	}
	if (now - idle.since < OBC_IDLE_NS || !ob_opt_on(OB_OPT_RELEASE))
		return;
	idle.ring = idle.ring || ring_release(&log->ring);
	idle.sending = idle.sending || sending_release(log);
	idle.receiving = idle.receiving || receiving_release(log);
}
