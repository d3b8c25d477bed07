/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Internals of obc_log, shared by log.c (reserve, commit), log_data.c (copies), log_send.c (drain),
 * log_recv.c (replies, waiting), log_state.c (open, fail, count) and resume.c. No other file
 * includes it.
 */
#ifndef OBC_LOG_INSIDE_H
#define OBC_LOG_INSIDE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "client-shim/session/log.h"
#include "client-shim/session/ring.h"
#include "protocol/conn.h"
#include "protocol/obp_calls.h"
#include "protocol/pack.h"
#include "transport/path.h"

/* receive time-out: a blocked reader checks the session's state this often */
#define RECV_TIMEOUT_MS 1000u
#define SPIN_NS         50000u /* a waiting thread spins this long before it sleeps */

enum { WAIT_IDLE, WAIT_ASLEEP, WAIT_WOKEN };

/*
 * A thread that waits for the reply to record `number`; on that thread's stack. It is added to the
 * list before its record can be sent, and removed when its last reply has arrived or the thread
 * gives up. A later reply to the same record finds no entry.
 */
struct log_wait {
	struct log_wait *next;
	uint64_t number;
	uint8_t *dst;
	size_t capacity, got; /* bytes; got <= capacity */
	uint16_t opcode;
	_Atomic uint32_t word; /* WAIT_* */
	_Atomic bool done;
	CUresult result;
	CUresult deferred;
};

struct log {
	struct obc_ring ring;
	/* read by every call, rarely written */
	_Alignas(64) _Atomic int error; /* enum ob_err */
	bool open;
	/* the kernel supports membarrier; set before any thread starts, like the next four */
	bool membarrier;
	bool resumable;
	uint32_t body_max; /* limit of a record's body in the ring, in bytes */
	size_t byref_min;  /* see obc_log_byref_min */
	int trace_fd;      /* OUTBOARD_TRACE; 0: none */
	struct ob_file trace_file;
	_Atomic uint64_t deadline; /* ns; a wait that reaches it fails the session. 0: none */
	_Atomic uint32_t down;     /* futex; 1: the connection broke and is being resumed */
	/* the resuming thread holds both rights: no thread writes to the memory of a waiter */
	_Atomic bool resuming;
	/* sending; under the send right, except for atomic reads */
	_Alignas(64) _Atomic uint32_t send_right;
	_Atomic uint64_t sent_ack; /* the last acknowledgement that was sent with calls */
	struct obt_stream stream;
	/* ns: last time the stream's descriptor was checked and still belonged to the library */
	_Atomic uint64_t checked_at;
	/* `on` and the codecs are set before the first send; any thread reads them */
	struct obp_packer packer;
	struct obt_meter meter; /* used by the packer */
	bool trust_reader;      /* OUTBOARD_CODEC=auto */
	uint64_t frames_out;
	_Atomic uint64_t bytes_out; /* one writer */
	_Atomic uint32_t sender_asleep;
	_Atomic bool sender_stop;
	/* receiving; under the receive right */
	_Alignas(64) _Atomic uint32_t recv_right;
	struct obp_conn conn;
	_Atomic uint64_t replies; /* number of the last reply received; the value to acknowledge */
	_Atomic uint64_t heard;   /* bytes received; read by other threads */
	/* replies since the last acknowledgement: number of the first; bytes of the small ones */
	uint64_t ack_first, ack_small;
	uint32_t ack_big;
	unsigned spin_misses;
	/* waiting threads, and the ring's acknowledgements; under wait_lock */
	_Alignas(64) _Atomic uint32_t wait_lock;
	struct log_wait *waits;
	uint64_t trips, wait_ns;
};

extern struct log obc_log_state;
extern uint64_t obc_log_counts[OBP_OPCODE_END], obc_log_trip_counts[OBP_OPCODE_END],
	obc_log_trip_time[OBP_OPCODE_END];

static inline void log_lock(_Atomic uint32_t *lock)
{
	for (unsigned spins = 0; atomic_exchange_explicit(lock, 1, memory_order_acquire); spins++) {
		while (atomic_load_explicit(lock, memory_order_relaxed)) {
			ob_clock_relax();
			if (++spins > 200) {
				sched_yield(); /* the holder may have been preempted */
				spins = 0;
			}
		}
	}
}

static inline void log_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

static inline bool log_try_right(_Atomic uint32_t *right)
{
	return atomic_load_explicit(right, memory_order_relaxed) == 0 &&
		atomic_exchange_explicit(right, 1, memory_order_acquire) == 0;
}

static inline enum ob_err log_broken(void)
{
	return (enum ob_err)atomic_load_explicit(&obc_log_state.error, memory_order_relaxed);
}

static inline bool log_down(void)
{
	return atomic_load_explicit(&obc_log_state.down, memory_order_relaxed);
}

/* ---- log_send.c ---- */
/* sends what is committed unless another thread is sending; true if something was sent */
bool log_drain(void);
enum ob_err log_sender_start(void);
void log_sender_stop(void);

/* ---- resume.c ---- */
/*
 * The data connection failed with this error: it is resumed, or the session is lost. The caller
 * holds the send or receive right, or is the control thread.
 */
void log_link_broken(enum ob_err err);
/* Sleeps briefly while the connection is being resumed. */
void log_down_wait(void);

/* ---- log.c ---- */
CUresult log_wait_reply(struct obc_slot *slot, struct log_wait *wait);
/*
 * Waits until the server has received everything that this thread has written so far, and no
 * library thread reads memory that those records refer to.
 */
CUresult log_sync(void);
void log_lanes_forget(void);

/* ---- log_state.c ---- */
/* Ends the session like obc_log_fail and records the reason `why`. */
void log_fail_because(enum ob_err err, const char *why);
/*
 * An operation on the data connection failed with this errno. An error that the network or the peer
 * can cause breaks the connection. Any other error ends the session, and one line is logged that
 * names the operation ("sending calls"). The caller holds the send or receive right.
 */
void log_io_failed(int error, const char *doing);
/*
 * Whether the data connection's descriptor still belongs to the library. The program may have
 * closed it, and its number may now name another file. Costs a clock reading, and a system call at
 * times. False: the connection is broken, or the session has ended. The caller holds the send or
 * receive right.
 */
bool log_stream_ours(void);

/* log_recv.c */
void log_wait_add(struct log_wait *wait);
void log_wait_for(struct log_wait *wait);
/*
 * Reads the available bytes; the caller holds the receive right. `block`: if there are none, sleeps
 * up to the stream's time-out. Does nothing while the connection is down.
 */
void log_read_some(bool block);
void log_recv_release(void);

#endif
