/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>

#include "base/log.h"
#include "base/opt.h"
#include "base/thread.h"
#include "client-shim/session/futex.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/times.h"
#include "transport/shm.h"

#define GATHER_NS    4000         /* about the duration of the system call that is avoided */
#define SENDER_STACK (256u << 10) /* bytes of stack; the codecs need the most */

static pthread_t sender_thread;
static bool sender_running, sender_gathers;

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
	struct obt_stream *stream = &obc_log_state.stream;
	int i = 0;

	while (i < n && !log_broken() && !log_down()) {
		ssize_t done = stream->ops->send(stream, iov + i, n - i, false);

		if (done >= 0) {
			atomic_store_explicit(&obc_log_state.bytes_out,
				atomic_load_explicit(
					&obc_log_state.bytes_out, memory_order_relaxed) +
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
	obc_log_state.frames_out++;
}

static void batch_send(const struct obc_batch *batch)
{
	struct log *log = &obc_log_state;
	uint64_t zero = 0, replies = atomic_load_explicit(&log->replies, memory_order_relaxed);
	uint64_t first = atomic_load_explicit(&log->ring.sent_number, memory_order_relaxed) + 1;
	struct obp_frame frame;
	struct obp_record record;
	struct iovec iov[5];
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
	} else {
		iov[n++] = (struct iovec){ obc_ring_at(&log->ring, batch->start), batch->bytes };
	}
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
	log_lock(&log->wait_lock);
	obc_ring_left(&log->ring, batch);
	log_unlock(&log->wait_lock);
}

static bool can_send(void)
{
	return !log_broken() && !log_down();
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
		while (can_send() && obc_ring_pending(&log->ring) && log_stream_ours() &&
			obc_ring_gather(&log->ring, &batch)) {
			batch_send(&batch);
			any = true;
		}
		atomic_store_explicit(&log->send_right, 0, memory_order_release);
		/*
		 * This thread must send a record that was committed after its last check by a
		 * thread that saw the right taken.
		 */
		atomic_thread_fence(memory_order_seq_cst);
	} while (can_send() && obc_ring_pending(&log->ring));
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

static void *sender_main(void *unused)
{
	struct log *log = &obc_log_state;

	(void)unused;
	while (!atomic_load_explicit(&log->sender_stop, memory_order_acquire) && !log_broken()) {
		uint64_t until = ob_opt_on(OB_OPT_SPIN) ? ob_clock_ns() + SPIN_NS : 0;

		if (log_drain()) {
			gather_more();
			continue;
		}
		if (log_down()) {
			log_down_wait();
			continue;
		}
		while (!obc_ring_pending(&log->ring) && ob_clock_ns() < until)
			for (int i = 0; i < 32; i++)
				ob_clock_relax();
		if (obc_ring_pending(&log->ring))
			continue;
		atomic_store_explicit(&log->sender_asleep, 1, memory_order_relaxed);
		/*
		 * Pairs with sender_wake: either that thread sees this thread asleep, or this
		 * thread sees its record.
		 */
		atomic_thread_fence(memory_order_seq_cst);
		if (log->membarrier)
			syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
		if (!obc_ring_pending(&log->ring) &&
			!atomic_load_explicit(&log->sender_stop, memory_order_acquire))
			obc_futex_wait(&log->sender_asleep, 1, 1000);
		atomic_store_explicit(&log->sender_asleep, 0, memory_order_relaxed);
	}
	return NULL;
}

enum ob_err log_sender_start(void)
{
	sender_gathers = obt_shm_on(&obc_log_state.stream) && ob_opt_on(OB_OPT_BATCH);
	sender_running = ob_thread_start(sender_main, NULL, SENDER_STACK, &sender_thread);
	return sender_running ? OB_ERR_NONE : OB_ERR_NO_MEMORY;
}

void log_sender_stop(void)
{
	if (!sender_running)
		return;
	atomic_store_explicit(&obc_log_state.sender_stop, true, memory_order_release);
	atomic_store(&obc_log_state.sender_asleep, 0);
	obc_futex_wake(&obc_log_state.sender_asleep, 1);
	pthread_join(sender_thread, NULL);
	sender_running = false;
}
