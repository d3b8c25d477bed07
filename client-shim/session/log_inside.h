/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Internals of obc_log, shared by log.c (reserve, commit), log_data.c (copies), log_send.c (drain),
 * log_wait.c (waiting threads), log_recv.c (replies), log_state.c (open, fail, count), log_idle.c
 * (memory), log_watch.c (trace, timeline), later.c and resume.c. No other file includes it.
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
#include "base/spin.h"
#include "client-shim/session/log.h"
#include "client-shim/session/ring.h"
#include "client-shim/session/server.h"
#include "protocol/conn.h"
#include "protocol/obp_calls.h"
#include "protocol/pack.h"
#include "transport/path.h"

/* receive time-out: a blocked reader checks the session's state this often */
#define RECV_TIMEOUT_MS 1000u

enum { WAIT_IDLE, WAIT_ASLEEP, WAIT_WOKEN };
enum { SENDER_AWAKE, SENDER_ASLEEP, SENDER_DOZING }; /* see log_send.c */

/*
 * A thread that waits for the reply to record `number`; on that thread's stack. It is added to the
 * list before its record can be sent, and removed when its last reply has arrived or the thread
 * gives up. A later reply to the same record finds no entry. The wait ends when `done` is set.
 */
struct log_wait {
	struct log_wait *next;
	uint64_t number;
	uint8_t *dst;
	size_t capacity, got; /* bytes; got <= capacity */
	uint16_t opcode;
	_Atomic uint32_t word; /* WAIT_* */
	_Atomic bool done;
	bool later;      /* no thread waits; part of an obc_later, unless `background` */
	bool background; /* part of a read of background.c */
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
	bool watched;      /* a trace or a timeline is written */
	int trace_fd;      /* OUTBOARD_TRACE; 0: none */
	struct ob_file trace_file;
	uint64_t opened_ns;
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
	struct obt_meter meter;        /* used by the packer */
	bool trust_reader;             /* OUTBOARD_CODEC=auto */
	_Atomic uint64_t rate_learned; /* of the meter, for other threads; one writer */
	uint64_t frames_out;
	_Atomic uint64_t bytes_out; /* one writer */
	_Atomic uint32_t sender;    /* futex; SENDER_* */
	_Atomic bool sender_stop;
	/*
	 * Above 0: callers soon wait for a reply and send the records before it themselves, so the
	 * sender dozes. Only compared, and updated without a lock: an update may be lost.
	 */
	_Atomic int lazy;
	_Atomic uint64_t sender_sent; /* ns, when the sender last sent something */
	/* while it dozes: offset of the first unsent record, and when it was first seen, ns */
	_Atomic uint64_t unsent_at, unsent_since;
	/* receiving; under the receive right */
	_Alignas(64) _Atomic uint32_t recv_right;
	struct obp_conn conn;
	_Atomic uint64_t replies; /* number of the last reply received; the value to acknowledge */
	_Atomic uint64_t heard;   /* bytes received; read by other threads */
	/* replies since the last acknowledgement: number of the first; bytes of the small ones */
	uint64_t ack_first, ack_small;
	uint32_t ack_big;
	struct ob_spin spin;
	uint64_t sent_before; /* bytes_out at the last wait */
	uint64_t body_ns;     /* how long receiving large replies has taken so far */
	unsigned bulk;        /* reads for which another large reply is expected */
	_Atomic bool woke; /* the reader has completed calls of other threads, which want a core */
	/* waiting threads, and the ring's acknowledgements; under wait_lock */
	_Alignas(64) _Atomic uint32_t wait_lock;
	struct log_wait *waits;
	_Atomic uint32_t n_waits;        /* written under wait_lock */
	_Atomic uint64_t trips, wait_ns; /* round trips */
	/* ns, shortest round trip; rises slowly towards longer ones. 0: none yet */
	_Atomic uint64_t trip_least;
	/* records and round trips by opcode; ns */
	uint64_t counts[OBP_OPCODE_END];
	_Atomic uint64_t trip_counts[OBP_OPCODE_END], trip_time[OBP_OPCODE_END];
};

/*
 * The log of the thread's current server. A pointer of its own, not OBC_HERE: the functions of the
 * log need it so often that the addition would be noticed.
 */
extern _Thread_local struct log *obc_log_here;
#define obc_log_state       (*obc_log_here)
#define obc_log_counts      (obc_log_state.counts)
#define obc_log_trip_counts (obc_log_state.trip_counts)
#define obc_log_trip_time   (obc_log_state.trip_time)

/* The lock is taken: returns with it. */
void log_lock_wait(_Atomic uint32_t *lock);

static inline void log_lock(_Atomic uint32_t *lock)
{
	if (ob_unlikely(atomic_exchange_explicit(lock, 1, memory_order_acquire)))
		log_lock_wait(lock);
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

/* Neither of the two. */
static inline bool log_works(struct log *log)
{
	return !atomic_load_explicit(&log->error, memory_order_relaxed) &&
		!atomic_load_explicit(&log->down, memory_order_relaxed);
}

/* ---- log_send.c ---- */
/* sends what is committed unless another thread is sending; true if something was sent */
bool log_drain(void);
/* A record was committed and the sender is not awake: wakes it if it should send now. */
void log_sender_notify(void);
/*
 * A caller waits for a reply from now on and has sent what was committed; earlier_too: also records
 * before its own.
 */
void log_sender_spared(uint64_t now, bool earlier_too);
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

/* ---- later.c ---- */
/* Under wait_lock, before `done` is set: whether the reply is not wanted any more. */
bool log_later_answered(struct log_wait *wait);
/* Afterwards, without the lock, if so. */
void log_later_free(struct log_wait *wait);
/* After fork, in the child. */
void log_later_forget(void);

/* ---- background.c ---- */
/* The reply of a read has arrived, or a part of it: nothing uses the wait any more. */
void log_background_landed(struct log_wait *wait);

/* ---- log.c ---- */
/* Commits a record that has a reply for which this thread does not wait. */
void log_commit_unanswered(struct obc_slot *slot);
CUresult log_wait_reply(struct obc_slot *slot, struct log_wait *wait);
/*
 * Waits until the server has received everything that this thread has written so far, and no
 * library thread reads memory that those records refer to.
 */
CUresult log_sync(void);
/*
 * Waits until no library thread reads memory that record `number` refers to. After a break the
 * server may reply based on what it received before, while the same records are still being sent
 * again; that must end first. False: the session is lost.
 */
bool log_left_wait(uint64_t number);
/*
 * The same for a record whose data is in the caller's memory; its reply comes to `wait`. Sends it,
 * unless another thread sends.
 */
CUresult log_commit_byref_answered(uint16_t opcode, const void *head, uint32_t head_size,
	const void *data, size_t size, struct log_wait *wait);
/* This thread sends uploads: it has the lane for that, and finds room while the ring is held. */
void log_lane_transfer(void);
/* See obc_ring_hold. While it is on, a writer without room asks the server what it holds back. */
void log_hold(bool on);
void log_lanes_forget(void);

/* ---- log_watch.c: only while log->watched ---- */
/* Commits the record. waits: log_waited follows. */
void log_publish_watched(struct obc_slot *slot, bool waits);
void log_waited(const struct obc_slot *slot, uint64_t ended);
/*
 * For the timeline, something that began at `began` and ends now: a wait for room in the ring; a
 * frame, with the header that was sent; a sleep of the sender; a reply, 0: it was received at once.
 */
void log_watch_room(unsigned lane, uint64_t began);
void log_watch_frame(const struct obp_frame *frame, uint64_t began, bool by_sender);
void log_watch_sleep(uint64_t began);
void log_watch_reply(const struct obp_item *item, uint64_t began);

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

/* ---- log_wait.c ---- */
void log_wait_add(struct log_wait *wait);
/* Under wait_lock. Does nothing if the wait is not in the list. */
void log_wait_unlist(struct log_wait *wait);
/*
 * Returns the wait of record `number`, NULL if there is none. It stays valid while the caller holds
 * the receive right, because only the holder completes waits.
 */
struct log_wait *log_wait_find(uint64_t number);
/* Under wait_lock: takes the wait out of its sleep. True: log_wait_wake must follow. */
bool log_wait_rouse(struct log_wait *wait);
/*
 * Without wait_lock, for which a thread that wakes up would have to wait at once. That thread may
 * have returned already: the address is only a name here, and a futex may wake without a cause.
 */
void log_wait_wake(struct log_wait *wait);
/* Returns when the wait is done or the session is lost; receives replies if no other thread does. */
void log_wait_for(struct log_wait *wait);
/* Gives the receive right back; wakes a waiting thread, which receives from now on. */
void log_recv_release(void);
/*
 * The session is lost: waits until no library thread sends or receives, after which none uses the
 * program's memory. The caller holds neither right.
 */
void log_lost_wait(void);

/* ---- log_recv.c ---- */
/*
 * Reads the available bytes; the caller holds the receive right. `block`: if there are none, sleeps
 * up to the stream's time-out. Does nothing while the connection is down.
 */
void log_read_some(bool block);

#endif
