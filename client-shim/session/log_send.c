/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "base/log.h"
#include "base/opt.h"
#include "client-shim/session/futex.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"
#include "client-shim/session/times.h"
#include "transport/shm.h"

#define GATHER_NS    4000         /* about the duration of the system call that is avoided */
#define SENDER_STACK (256u << 10) /* bytes of stack; the codecs need the most */

/*
 * The sender sends records that no caller sends: those of asynchronous calls. Waking it costs a
 * system call in a call that otherwise takes 100 ns, and one of the cores. Many programs wait for a
 * result right after a few asynchronous calls; the waiting caller then sends all of them in one
 * frame, and the sender is not needed. So the sender has two ways to sleep:
 *
 *   asleep   the next record wakes it;
 *   dozing   it looks for records after DOZE_NS, then at intervals that double up to DOZE_MAX_NS.
 *            Before that only a record wakes it that finds DOZE_BYTES unsent, or another record
 *            that has waited for DOZE_WAIT_NS.
 *
 * It dozes while callers have lately sent what it would have sent (`lazy`). For dozing counts each
 * caller that waits for a reply within SPARED_NS after the sender has sent something, and each that
 * sends earlier records while the sender dozes. Against it counts, three times, that the sender
 * finds a record while it dozes.
 */
#define DOZE_NS      200000u
#define DOZE_MAX_NS  3200000u
#define DOZE_WAIT_NS 10000u
#define DOZE_BYTES   (128u << 10)
#define DOZE_TICKS   2u /* without a new record; then the sender is asleep */
#define SPARED_NS    20000u
#define LAZY_MAX     12
#define LAZY_MISS    3

static OBC_PER_SERVER pthread_t sender_thread_first;
#define sender_thread OBC_HERE(sender_thread_first)
static OBC_PER_SERVER bool sender_running_first, sender_gathers_first;
#define sender_running OBC_HERE(sender_running_first)
#define sender_gathers OBC_HERE(sender_gathers_first)
static OBC_PER_SERVER struct ob_spin sender_spin_first = { .credit = 1 };
#define sender_spin OBC_HERE(sender_spin_first)
static _Thread_local bool is_sender;

/*
 * The socket's send buffer is full. The server may be blocked in a write to this client with full
 * buffers, so a thread that waits here also reads. On both sides, writing never blocks reading.
 */
static void send_blocked(void)
{
	bool reading = log_try_right(&obc_log_state.recv_right);
	short events = (short)(POLLOUT | (reading ? POLLIN : 0));
	int ready;

	/*
	 * If another thread reads, this thread waits only for room to write. The other thread may
	 * stop reading at any time, so the wait is short.
	 */
	ready = obt_stream_wait(
		&obc_log_state.stream, events, ob_clock_ns() + (reading ? 1000 : 10) * OB_MS);
	if (ready > 0 && reading && ready & POLLIN)
		log_read_some(false);
	if (reading)
		log_recv_release();
}

static void frame_send(struct iovec *iov, int n)
{
	struct log *log = &obc_log_state;
	struct obt_stream *stream = &log->stream;
	int i = 0;

	while (i < n && log_works(log)) {
		ssize_t done = stream->ops->send(stream, iov + i, n - i, false);

		if (done >= 0) {
			atomic_store_explicit(&log->bytes_out,
				atomic_load_explicit(&log->bytes_out, memory_order_relaxed) +
					(uint64_t)done,
				memory_order_relaxed);
			i += obt_iov_advance(iov + i, n - i, (size_t)done);
		} else if (errno == EAGAIN) {
			send_blocked();
			if (!log_stream_ours())
				break;
		} else {
			log_io_failed(errno, "sending calls to the server");
		}
	}
	log->frames_out++;
}

static void batch_send(const struct obc_batch *batch)
{
	struct log *log = &obc_log_state;
	uint64_t zero = 0, replies = atomic_load_explicit(&log->replies, memory_order_relaxed);
	uint64_t first = atomic_load_explicit(&log->ring.sent_number, memory_order_relaxed) + 1;
	uint64_t began = log->watched ? ob_clock_ns() : 0;
	struct obp_frame frame;
	struct obp_record record;
	struct iovec iov[6];
	uint64_t inside = batch->start; /* ring offset of the records whose data is in the ring */
	int n = 0;

	obp_frame_fill(&frame, OBP_FRAME_CALLS, batch->bytes, batch->count, first, replies);
	iov[n++] = (struct iovec){ &frame, sizeof frame };
	if (batch->byref) {
		record = batch->byref->record;
		record.lane &= (uint16_t)~OBC_LANE_BYREF;
		iov[n++] = (struct iovec){ &record, sizeof record };
		iov[n++] = (struct iovec){ (void *)(batch->byref + 1), batch->byref->head_size };
		iov[n++] = (struct iovec){ (void *)batch->byref->data, batch->byref->size };
		iov[n++] = (struct iovec){ &zero,
			record.size - sizeof record - batch->byref->head_size -
				batch->byref->size };
		inside += batch->byref->entry_size;
	}
	if (inside < batch->end)
		iov[n++] = (struct iovec){ obc_ring_at(&log->ring, inside), batch->end - inside };
	if (ob_unlikely(log->packer.on))
		n = obp_packer_frame(&log->packer, &frame, iov, n);
	atomic_store_explicit(&log->sent_ack, replies, memory_order_relaxed);
	/*
	 * Before the bytes are sent: if the connection blocks at the first byte, it must be visible
	 * that a send is in progress.
	 */
	obc_ring_leaving(&log->ring, batch);
	if (ob_unlikely(obc_times_on))
		obc_times_sent(first + batch->count - 1);
	frame_send(iov, n);
	if (ob_unlikely(began))
		log_watch_frame(&frame, began, is_sender);
	log_lock(&log->wait_lock);
	obc_ring_left(&log->ring, batch);
	log_unlock(&log->wait_lock);
}

bool log_drain(void)
{
	struct log *log = &obc_log_state;
	struct obc_batch batch;
	bool any = false;

	do {
		if (!log_try_right(&log->send_right))
			return any;
		/*
		 * The descriptor is checked before each batch: while this thread was in the system
		 * call for one batch, the program may have reused the number and made more calls.
		 */
		while (log_works(log) && obc_ring_pending(&log->ring) && log_stream_ours() &&
			obc_ring_gather(&log->ring, !log->packer.on, &batch)) {
			batch_send(&batch);
			any = true;
		}
		atomic_store_explicit(&log->send_right, 0, memory_order_release);
		/*
		 * This thread must send a record that was committed after its last check by a
		 * thread that saw the right taken.
		 */
		atomic_thread_fence(memory_order_seq_cst);
	} while (log_works(log) && obc_ring_pending(&log->ring));
	return any;
}

/*
 * Over shared memory a frame is sent without a system call, so no further records accumulate during
 * the send. Each record would be sent in its own frame, and this thread and the caller would
 * contend for the log's cache lines. Therefore this thread pauses. A thread that needs a reply
 * sends by itself and does not wait for this thread.
 */
static void gather_more(void)
{
	uint64_t until;

	if (!sender_gathers)
		return;
	until = ob_clock_ns() + GATHER_NS;
	while (ob_clock_ns() < until)
		ob_clock_relax();
}

/* ---- waiting for records ---- */

static void lazy_add(int n)
{
	_Atomic int *lazy = &obc_log_state.lazy;
	int now = atomic_load_explicit(lazy, memory_order_relaxed) + n;

	atomic_store_explicit(lazy, ob_min(ob_max(now, -LAZY_MAX), LAZY_MAX), memory_order_relaxed);
}

void log_sender_spared(uint64_t now, bool earlier_too)
{
	struct log *log = &obc_log_state;
	bool dozes = atomic_load_explicit(&log->sender, memory_order_relaxed) == SENDER_DOZING;

	if (dozes ? earlier_too
		  : now - atomic_load_explicit(&log->sender_sent, memory_order_relaxed) < SPARED_NS)
		lazy_add(1);
}

/*
 * Whether there is a record that nobody sends. A thread that holds the send right looks for more
 * records after it has released the right (log_drain).
 */
static bool sender_needed(struct log *log)
{
	return obc_ring_pending(&log->ring) &&
		!atomic_load_explicit(&log->send_right, memory_order_relaxed);
}

/* A record was committed while the sender dozes: whether it can wait. */
static bool can_wait(struct log *log)
{
	uint64_t at = obc_ring_unsent(&log->ring), now = ob_clock_ns();

	if (atomic_load_explicit(&log->ring.head, memory_order_relaxed) - at > DOZE_BYTES)
		return false;
	if (atomic_load_explicit(&log->unsent_at, memory_order_relaxed) == at)
		return now - atomic_load_explicit(&log->unsent_since, memory_order_relaxed) <
			DOZE_WAIT_NS;
	atomic_store_explicit(&log->unsent_at, at, memory_order_relaxed);
	atomic_store_explicit(&log->unsent_since, now, memory_order_relaxed);
	return true;
}

void log_sender_notify(void)
{
	struct log *log = &obc_log_state;

	if (atomic_load_explicit(&log->sender, memory_order_relaxed) == SENDER_DOZING &&
		can_wait(log))
		return;
	if (atomic_exchange_explicit(&log->sender, SENDER_AWAKE, memory_order_relaxed) !=
		SENDER_AWAKE)
		obc_futex_wake(&log->sender, 1);
}
/*
 * Polls for records. Not while a caller waits for a reply: nothing follows, or that caller's core
 * is wanted.
 */
static void sender_poll(struct log *log)
{
	uint64_t start = ob_clock_ns(), budget = ob_spin_budget(&sender_spin, 0), now = start;

	while (now - start < budget && !sender_needed(log) &&
		!atomic_load_explicit(&log->n_waits, memory_order_relaxed)) {
		for (int i = 0; i < 16; i++)
			ob_clock_relax();
		ob_clock_relax();
		now = ob_clock_ns();
	}
}

/* Sleeps until a record wakes this thread. */
static void sender_sleep(struct log *log)
{
	atomic_store_explicit(&log->sender, SENDER_ASLEEP, memory_order_relaxed);
	/*
	 * Pairs with sender_wake: either that thread sees this thread asleep, or this thread sees
	 * its record.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (log->membarrier)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	if (!sender_needed(log) && !atomic_load_explicit(&log->sender_stop, memory_order_acquire))
		obc_futex_wait(&log->sender, SENDER_ASLEEP, 1000);
	atomic_store_explicit(&log->sender, SENDER_AWAKE, memory_order_relaxed);
}

/* Dozes until there is something to send, or nothing new has come for a while. */
static void sender_doze(struct log *log)
{
	uint64_t before = atomic_load_explicit(&log->ring.head, memory_order_relaxed), head;
	uint64_t tick = DOZE_NS;
	unsigned idle = 0;

	while (idle < DOZE_TICKS && !sender_needed(log) && !log_broken() && !log_down() &&
		!atomic_load_explicit(&log->sender_stop, memory_order_acquire)) {
		/* A record missed here is found at the next tick, so no barrier is needed. */
		atomic_store_explicit(&log->sender, SENDER_DOZING, memory_order_relaxed);
		obc_futex_wait_ns(&log->sender, SENDER_DOZING, tick);
		head = atomic_load_explicit(&log->ring.head, memory_order_relaxed);
		idle = head == before ? idle + 1 : 0;
		tick = ob_min(2 * tick, DOZE_MAX_NS);
		before = head;
	}
	atomic_store_explicit(&log->sender, SENDER_AWAKE, memory_order_relaxed);
	if (sender_needed(log))
		lazy_add(-LAZY_MISS);
}

static void sender_wait(struct log *log)
{
	uint64_t start, head;

	if (atomic_load_explicit(&log->lazy, memory_order_relaxed) > 0 && ob_opt_on(OB_OPT_DOZE)) {
		start = ob_clock_ns();
		sender_doze(log);
		if (ob_unlikely(log->watched))
			log_watch_sleep(start);
		if (sender_needed(log))
			return;
	} else {
		sender_poll(log);
		if (sender_needed(log)) {
			ob_spin_learn(&sender_spin, 0, 0);
			return;
		}
	}
	start = ob_clock_ns();
	head = atomic_load_explicit(&log->ring.head, memory_order_relaxed);
	sender_sleep(log);
	if (ob_unlikely(log->watched))
		log_watch_sleep(start);
	ob_spin_learn(&sender_spin, ob_clock_ns() - start, 0);
	/* Woken too late: a caller has sent the record. */
	if (head != atomic_load_explicit(&log->ring.head, memory_order_relaxed) &&
		!sender_needed(log))
		lazy_add(1);
}

static void *sender_main(void *unused)
{
	struct log *log = &obc_log_state;

	(void)unused;
	prctl(PR_SET_TIMERSLACK, 1);
	is_sender = true;
	while (!atomic_load_explicit(&log->sender_stop, memory_order_acquire) && !log_broken()) {
		if (log_drain()) {
			atomic_store_explicit(
				&log->sender_sent, ob_clock_ns(), memory_order_relaxed);
			gather_more();
		} else if (log_down()) {
			log_down_wait();
		} else {
			sender_wait(log);
		}
	}
	return NULL;
}

enum ob_err log_sender_start(void)
{
	sender_gathers = obt_shm_on(&obc_log_state.stream) && ob_opt_on(OB_OPT_BATCH);
	sender_running = obc_thread_start(sender_main, NULL, SENDER_STACK, &sender_thread);
	return sender_running ? OB_ERR_NONE : OB_ERR_NO_MEMORY;
}

void log_sender_stop(void)
{
	if (!sender_running)
		return;
	atomic_store_explicit(&obc_log_state.sender_stop, true, memory_order_release);
	atomic_store(&obc_log_state.sender, SENDER_AWAKE);
	obc_futex_wake(&obc_log_state.sender, 1);
	pthread_join(sender_thread, NULL);
	sender_running = false;
}
