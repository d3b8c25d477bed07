/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The inside of obc_log, shared by log.c (reserve, commit), log_send.c (drain) and log_recv.c (replies, waiting). Not for others. */
#ifndef OBC_LOG_INSIDE_H
#define OBC_LOG_INSIDE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "client-shim/log.h"
#include "protocol/conn.h"
#include "protocol/obp_calls.h"
#include "protocol/pack.h"
#include "transport/path.h"

#define RING_MASK (OBC_RING_BYTES - 1)
#define PAD_MARK 0xfffffff8u          /* in a record's size: nothing more up to the ring's end */
#define LANE_BYREF 0x8000u            /* in a record's lane, in the ring only: the data stays outside */
#define FRAME_TARGET (128u << 10)     /* bytes: a frame is closed here when more is waiting */
#define INFLIGHT_MAX 4096u            /* frames not yet acknowledged; beyond, neighbours are merged */
#define RECV_TIMEOUT_MS 1000u         /* how often a blocked reader looks around */
#define SPIN_NS 50000u                /* a waiting thread spins this long before it sleeps */

_Static_assert((OBC_RING_BYTES & RING_MASK) == 0, "power of two");
_Static_assert(OBP_LANE_MAX <= LANE_BYREF, "the mark must not be a lane");

/* A by-reference entry in the ring; head_size bytes of head follow. */
struct log_byref {
	struct obp_record record;     /* size: as on the wire */
	uint32_t entry_size;          /* bytes in the ring */
	uint32_t head_size;
	const void *data;
	uint64_t size;
};

enum { WAIT_IDLE, WAIT_ASLEEP, WAIT_WOKEN };

/*
 * A thread that waits for the answer to call `number`; on that thread's stack. It is in the list from before its record can be sent until its last reply
 * has come or it gives up: so a further reply to the same call finds nobody.
 */
struct log_wait {
	struct log_wait *next;
	uint64_t number;
	uint8_t *dst;
	size_t capacity, got;         /* bytes; got <= capacity */
	uint16_t opcode;
	_Atomic uint32_t word;        /* WAIT_* */
	_Atomic bool done;
	CUresult result;
	CUresult deferred;
};

struct log_frame {                    /* sent, not yet acknowledged */
	uint64_t number, end;         /* its last record; ring offset behind it */
};

struct log {
	/* reserving; under `lock` but for the atomic reads of head */
	_Alignas(64) _Atomic uint32_t lock;
	uint64_t last_number;
	_Atomic uint64_t head;
	uint8_t *ring;
	_Atomic uint64_t tail;        /* everything before is acknowledged */
	_Atomic int error;            /* enum ob_err */
	_Atomic uint64_t deadline;    /* ns; a wait beyond it fails the session. 0: none */
	_Atomic uint32_t down;        /* 1: the connection broke and is being made again; a futex */
	bool open;
	_Atomic bool resuming;        /* the thread that makes it again holds both rights: no waiter's memory is written to */
	bool resumable;               /* set before any thread starts */
	size_t byref_min;             /* bytes; likewise */
	int trace_fd;                 /* OUTBOARD_TRACE; 0: none */
	uint64_t records;
	/* sending; under the send right but for atomic reads */
	_Alignas(64) _Atomic uint32_t send_right;
	_Atomic uint64_t sent;        /* ring offset */
	uint64_t sent_number;
	uint64_t sent_most;           /* the highest there was before the last break; lower than sent_number until then */
	_Atomic uint64_t sent_shown;  /* sent_number, for other threads to look at */
	_Atomic uint64_t sent_done;   /* the same once the frame has left; back with a break */
	_Atomic uint64_t sent_ack;    /* the last acknowledgement that left with calls */
	struct obt_stream stream;
	struct obp_packer packer;     /* `on` and what it cuts are set before the first send, and read by all */
	struct obt_meter meter;       /* of the packer's */
	bool trust_reader;            /* OUTBOARD_CODEC=auto */
	uint64_t frames_out;
	_Atomic uint64_t bytes_out;   /* one writer */
	_Atomic uint32_t sender_asleep;
	bool membarrier;              /* the kernel offers it; set before any thread starts */
	_Atomic bool sender_stop;
	/* receiving; under the receive right */
	_Alignas(64) _Atomic uint32_t recv_right;
	struct obp_conn conn;
	_Atomic uint64_t replies;     /* number of the last reply taken: what we acknowledge */
	_Atomic uint64_t heard;       /* bytes received, for other threads to look at */
	uint64_t ack_first, ack_small; /* replies since the last acknowledgement: the first one's number; bytes of the small ones */
	uint32_t ack_big;
	unsigned spin_misses;
	/* waiting threads and frames in flight; under wait_lock */
	_Alignas(64) _Atomic uint32_t wait_lock;
	struct log_wait *waits;
	struct log_frame inflight[INFLIGHT_MAX];
	uint32_t inflight_first, inflight_count;
	uint64_t acked;
	uint64_t tail_number;         /* the record that ends at tail */
	uint64_t trips, wait_ns;
};

extern struct log obc_log_state;
extern uint64_t obc_log_counts[OBP_OPCODE_END], obc_log_trip_counts[OBP_OPCODE_END], obc_log_trip_time[OBP_OPCODE_END];

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

static inline _Atomic uint32_t *log_size_of(struct obp_record *record)
{
	return (_Atomic uint32_t *)&record->size;
}

/* log_send.c */
bool log_pending(void);               /* something committed waits to be sent */
bool log_drain(void);                 /* send it, unless another thread is at it; true when something was sent */
enum ob_err log_sender_start(void);
void log_sender_stop(void);

/* resume.c */
/* The data connection gave this error: it is made again, or the session is lost. Who calls holds a right of the connection, or is the control thread. */
void log_link_broken(enum ob_err err);
/* A short sleep while the connection is being made again. */
void log_down_wait(void);

/* log_recv.c */
void log_ack(uint64_t number);
void log_wait_add(struct log_wait *wait);
void log_wait_for(struct log_wait *wait);
/* Read what is there, holding the receive right. `block`: sleep up to the stream's time-out when nothing is. */
void log_read_some(bool block);
void log_recv_release(void);

#endif
