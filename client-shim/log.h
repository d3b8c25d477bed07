/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_log: the session's one totally ordered log of calls. Every thread's calls go into one ring;
 * whoever holds the send right writes what is committed to the data connection; whoever holds the
 * receive right reads replies, its own and others'.
 *
 * A call that has returned stands in the ring before a call made after it, in whichever thread:
 * reserving a place is the order. Async calls return after the commit; the sender thread writes
 * them. A call with a result drains the ring itself and then reads the socket itself: one send and
 * one receive, no hand-over between threads.
 *
 * Exactly one log exists in a process (one session). All functions may be called by any thread.
 */
#ifndef OBC_LOG_H
#define OBC_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "base/err.h"
#include "protocol/pack.h"
#include "protocol/resume.h"
#include "transport/stream.h"

/* copies from this size on leave from the caller's memory */
#define OBC_BYREF_MIN        (8u << 20)
/* through shared memory, where the answer that this waits for is there in a microsecond */
#define OBC_BYREF_SHARED_MIN (256u << 10)

/* A reserved place: between obc_log_begin and commit or call the caller writes slot->body. */
struct obc_slot {
	void *body;
	void *record;
	uint64_t number;
	uint32_t size;
	uint16_t opcode, lane;
};

/*
 * Reserve a record with body_size bytes (rounded up to 8 by the log; bytes past body_size are
 * zeroed). Adds a ctx_use record before it when this thread's current context changed since its
 * last record, unless the operation needs none; a context's id on the wire is
 * (uint64_t)obf_ctx.backend. May wait for room. NULL: the session is lost; return obc_log_error().
 * Every begin must be followed at once by commit or call: the log is held up until then.
 */
void *obc_log_begin(struct obc_slot *slot, uint16_t opcode, uint32_t body_size);
/*
 * Async: the call is in the log. CUDA_SUCCESS, or with OUTBOARD_OPT=-async what the server made of
 * it.
 */
CUresult obc_log_commit(struct obc_slot *slot);
/*
 * Sync: send, wait for the reply, whose body goes to ret_body. capacity: the most body bytes that
 * this call can be answered with; a reply with more, or one that does not fit the operation
 * (obp_check_reply), ends the session. The server's result, a deferred error, or obc_log_error().
 */
CUresult obc_log_call(struct obc_slot *slot, void *ret_body, uint32_t capacity, uint32_t *ret_size);

/*
 * A record whose last `size` bytes stay in the caller's memory: the fixed part is `head`, the data
 * follows on the wire (head_size a multiple of 8). Returns when it is in the log; the memory must
 * stay as it is until a later obc_log_call of this thread has returned. size <= OBP_CHUNK_MAX.
 */
CUresult obc_log_commit_byref(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size);
/*
 * Data to the server in chunks: chunk k is a record of `opcode` whose body is `head` (first 8
 * bytes: destination address, next 8: bytes of this chunk; both advanced by this function) followed
 * by the bytes. From OBC_BYREF_MIN on by reference, then waits until the server has it all.
 */
CUresult obc_log_write(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size);
/*
 * Data from the server: the reply bodies, several with OBP_REPLY_MORE, go straight to dst. After
 * CUDA_SUCCESS they were `size` bytes.
 */
CUresult obc_log_read(uint16_t opcode, const void *req, uint32_t req_size, void *dst, size_t size);

/* The error every call returns once the session is lost; CUDA_SUCCESS while it lives. No lock. */
CUresult obc_log_alive(void);
/*
 * Likewise; and, once, why this thread's last obc_log_begin gave nothing although the session
 * lives.
 */
CUresult obc_log_error(void);

/*
 * The number of this thread's last record; 0 before the first. What a later synchronising record
 * has behind it is complete.
 */
uint64_t obc_log_last(void);
/* This thread's lane number; allocated at its first record. */
unsigned obc_log_lane(void);
/* Called at thread exit, before the lane_end record, when the thread had a lane. Set once. */
void obc_log_on_thread_exit(void (*fn)(void));

/* ---- counters ---- */

struct obc_log_stats {
	uint64_t records, round_trips, frames_out, frames_in, bytes_out, bytes_in, wait_ns,
		first_wait_ns;
	uint64_t records_by_group[256];
};
void obc_log_stats(struct obc_log_stats *ret);
/* What was packed on its way out, and unpacked on its way in. */
void obc_log_pack_stats(struct obp_pack_stats *ret_out, struct obp_pack_stats *ret_in);
/* The data connection does not leave the machine. */
bool obc_log_path_local(void);
/* Round trips of one opcode. */
uint64_t obc_log_trips(uint16_t opcode);
uint64_t obc_log_count(uint16_t opcode);
uint64_t obc_log_trip_ns(uint16_t opcode);

/* ---- for client-shim/session.c only ---- */

/*
 * The hello is done: take over the stream. Numbers start at 1. codecs, wish: what was agreed on for
 * packed frames (protocol/pack.h). resumable: a broken connection is made again
 * (client-shim/resume.h).
 */
enum ob_err obc_log_open(const struct obt_stream *stream, unsigned codecs, unsigned codec_wish,
	bool resumable, uint64_t ring_size);
/* A round trip made outside the log (the hello). */
void obc_log_note_trip(uint64_t ns);
/*
 * Everything committed is sent; the bye call is made by the session. Then no thread of ours touches
 * the stream any more.
 */
void obc_log_close(void);
/*
 * Waits from now on end at `deadline` (ns, ob_clock_ns): with OB_ERR_TIMEOUT for the session. For
 * the goodbye.
 */
void obc_log_set_deadline(uint64_t deadline);
/*
 * The goodbye is being said: a server that ends the session, or no longer knows it, does as it was
 * told, and nobody need read about it.
 */
bool obc_log_ending(void);
/* First cause wins; wakes every waiter; logged once by the caller. */
void obc_log_fail(enum ob_err err);
/* Looks alive and is not: break it, so that it is made again. Control thread. */
void obc_log_link_broken(void);
/*
 * The number of a connection's descriptor is free, or another file's: the program closed it. The
 * data connection is made again where that is possible, else the session ends with a line that says
 * so.
 */
void obc_log_descriptor_gone(void);
/*
 * False: the program has closed the descriptor of the data or the control connection. Both must be
 * checked to name the cause: without resuming, the server answers the loss of one connection by
 * closing the other.
 */
bool obc_log_descriptors_ours(void);
/*
 * How to check the control connection's descriptor; true without a connection. Called on any
 * thread. Set once, before the control thread starts.
 */
void obc_log_on_control_check(bool (*fn)(void));
/* This side's part of what is known about the data connection. */
void obc_log_progress(struct obp_progress *ret);
/*
 * Acknowledgements of replies that no call takes along go out through this. Set before the log is
 * opened.
 */
void obc_log_on_ack(void (*fn)(uint64_t replies));
/* After fork, in the child: forget everything, touch no lock. */
void obc_log_forget(void);
/* True while some thread waits for a reply. */
bool obc_log_waiting(void);

#endif
