/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The inside of obc_log, shared by log.c (reserve, commit), log_data.c (copies), log_send.c
 * (drain), log_recv.c (replies, waiting), log_state.c (open, fail, count) and resume.c. Not for
 * others.
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
#include "client-shim/log.h"
#include "client-shim/ring.h"
#include "protocol/conn.h"
#include "protocol/obp_calls.h"
#include "protocol/pack.h"
#include "transport/path.h"

#define RECV_TIMEOUT_MS 1000u  /* how often a blocked reader looks around */
#define SPIN_NS         50000u /* a waiting thread spins this long before it sleeps */

enum { WAIT_IDLE, WAIT_ASLEEP, WAIT_WOKEN };

/*
 * A thread that waits for the answer to call `number`; on that thread's stack. It is in the list
 * from before its record can be sent until its last reply has come or it gives up: so a further
 * reply to the same call finds nobody.
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
	/* read by every call, seldom written */
	_Alignas(64) _Atomic int error; /* enum ob_err */
	bool open;
	/* the kernel offers it; set before any thread starts, like the next four */
	bool membarrier;
	bool resumable;
	uint32_t body_max; /* bytes of a record's body that lies in the ring */
	/* bytes: copies from this size on leave from the caller's memory */
	size_t byref_min;
	int trace_fd; /* OUTBOARD_TRACE; 0: none */
	struct ob_file trace_file;
	_Atomic uint64_t deadline; /* ns; a wait beyond it fails the session. 0: none */
	_Atomic uint32_t down;     /* 1: the connection broke and is being made again; a futex */
	/* the thread that makes it again holds both rights: no waiter's memory is written to */
	_Atomic bool resuming;
	/* sending; under the send right but for atomic reads */
	_Alignas(64) _Atomic uint32_t send_right;
	_Atomic uint64_t sent_ack; /* the last acknowledgement that left with calls */
	struct obt_stream stream;
	/* ns: when the stream's descriptor was last seen to be ours */
	_Atomic uint64_t looked_at;
	/* `on` and what it cuts are set before the first send, and read by all */
	struct obp_packer packer;
	struct obt_meter meter; /* of the packer's */
	bool trust_reader;      /* OUTBOARD_CODEC=auto */
	uint64_t frames_out;
	_Atomic uint64_t bytes_out; /* one writer */
	_Atomic uint32_t sender_asleep;
	_Atomic bool sender_stop;
	/* receiving; under the receive right */
	_Alignas(64) _Atomic uint32_t recv_right;
	struct obp_conn conn;
	_Atomic uint64_t replies; /* number of the last reply taken: what we acknowledge */
	_Atomic uint64_t heard;   /* bytes received, for other threads to look at */
	/*
	 * replies since the last acknowledgement: the first one's number; bytes of the small ones
	 */
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
				sched_yield(); /* the holder may have lost its core */
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

/* log_send.c */
/* send it, unless another thread is at it; true when something was sent */
bool log_drain(void);
enum ob_err log_sender_start(void);
void log_sender_stop(void);

/* resume.c */
/*
 * The data connection gave this error: it is made again, or the session is lost. Who calls holds a
 * right of the connection, or is the control thread.
 */
void log_link_broken(enum ob_err err);
/* A short sleep while the connection is being made again. */
void log_down_wait(void);

/* log.c */
CUresult log_wait_reply(struct obc_slot *slot, struct log_wait *wait);
/*
 * Until the server has everything this thread has written so far, and no thread of ours looks at
 * memory that it refers to.
 */
CUresult log_sync(void);
void log_lanes_forget(void);

/* log_state.c */
/* Ends the session like obc_log_fail, with a reason of its own. */
void log_fail_because(enum ob_err err, const char *why);
/*
 * An operation on the data connection failed with this errno. What the link or the peer can cause
 * breaks the link; what they cannot ends the session with a line that says what was being done
 * ("sending calls"). The caller holds a right of the connection.
 */
void log_io_failed(int error, const char *doing);
/*
 * Is the data connection's descriptor still ours? A program may have closed it, and have been given
 * its number for a file of its own. Costs a clock, and a system call now and then. False: the link
 * is broken, or the session ended. The caller holds a right of the connection.
 */
bool log_stream_ours(void);

/* log_recv.c */
void log_wait_add(struct log_wait *wait);
void log_wait_for(struct log_wait *wait);
/*
 * Read what is there, holding the receive right. `block`: sleep up to the stream's time-out when
 * nothing is.
 */
void log_read_some(bool block);
void log_recv_release(void);

#endif
