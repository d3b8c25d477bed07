/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/later.h"

#include "client-shim/session/inside.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"

struct obc_later {
	struct log_wait wait;
	bool asked;
	bool dropped; /* under wait_lock: freed when the reply has come */
};

static OBC_PER_SERVER _Atomic uint32_t unanswered_first;
#define unanswered OBC_HERE(unanswered_first)

static void later_free(struct obc_later *later)
{
	atomic_fetch_sub_explicit(&unanswered, 1, memory_order_relaxed);
	free(later);
}

struct obc_later *obc_later_new(void)
{
	struct obc_later *later = NULL;

	if (atomic_fetch_add_explicit(&unanswered, 1, memory_order_relaxed) < OBC_LATER_MAX)
		later = calloc(1, sizeof *later);
	if (!later)
		atomic_fetch_sub_explicit(&unanswered, 1, memory_order_relaxed);
	return later;
}

void obc_later_ask(struct obc_later *later, struct obc_slot *slot)
{
	later->wait.number = slot->number;
	later->wait.opcode = slot->opcode;
	later->wait.later = true;
	later->asked = true;
	log_wait_add(&later->wait);
	log_commit_unanswered(slot);
}

bool obc_later_look(struct obc_later *later, CUresult *ret)
{
	struct log *log = &obc_log_state;
	OBC_WAITS();

	if (obc_ring_pending(&log->ring))
		log_drain(); /* the sender may doze, and the answer depends on these records */
	if (!atomic_load_explicit(&later->wait.done, memory_order_acquire) && !log_broken() &&
		log_try_right(&log->recv_right)) {
		log_read_some(false);
		log_recv_release();
	}
	if (atomic_load_explicit(&later->wait.done, memory_order_acquire)) {
		*ret = later->wait.result ? later->wait.result : later->wait.deferred;
		return true;
	}
	*ret = log_broken() ? obc_log_alive() : CUDA_SUCCESS;
	return log_broken();
}

void obc_later_drop(struct obc_later *later)
{
	bool done;

	if (!later)
		return;
	if (!later->asked) {
		later_free(later);
		return;
	}
	log_lock(&obc_log_state.wait_lock);
	done = atomic_load_explicit(&later->wait.done, memory_order_relaxed);
	later->dropped = true;
	log_unlock(&obc_log_state.wait_lock);
	if (done)
		later_free(later);
}

bool log_later_answered(struct log_wait *wait)
{
	return ((struct obc_later *)wait)->dropped;
}

void log_later_free(struct log_wait *wait)
{
	later_free((struct obc_later *)wait);
}

void log_later_forget(void)
{
	atomic_store(&unanswered, 0);
}
