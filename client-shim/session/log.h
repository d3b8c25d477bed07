/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_log: the session log, one total order of the calls of all threads. All calls go into one
 * command ring. The thread that holds the send right writes committed records to the data
 * connection. The thread that holds the receive right reads the replies for all threads.
 *
 * The order of reservations is the order of calls: a call that has returned precedes every call
 * made after it, in any thread. Async calls return after the commit; the sender thread sends them.
 * A thread that needs a reply sends the committed records and then reads the socket itself: one
 * send and one receive, without a switch to another thread.
 *
 * There is one log for each server (client-shim/session/server.h); the functions use that of the
 * calling thread's current server. All functions may be called by any thread.
 */
#ifndef OBC_LOG_H
#define OBC_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/cuda_types.h"
#include "base/err.h"
#include "protocol/pack.h"
#include "protocol/resume.h"
#include "transport/stream.h"

/*
 * How a call that copies data to the server waits for the copy. NULL: it does not, except that a
 * copy by reference waits until the server has received the data.
 */
typedef CUresult obc_settle(void *user);

/* copies of at least this size are sent from the caller's memory */
#define OBC_BYREF_MIN        (8u << 20)
/*
 * A call that waits for its copy sends from the caller's memory if copying into the ring would take
 * longer than the round trip; at least this size.
 */
#define OBC_BYREF_WAIT_MIN   (128u << 10)
/* the same over shared memory, where the reply that this waits for takes a microsecond */
#define OBC_BYREF_SHARED_MIN (256u << 10)

/* ns; after so long without traffic, memory that earlier calls used is given back */
#define OBC_IDLE_NS (2 * OB_SECOND)

/* Before obc_servers_make: threads change their log with their server. */
void obc_log_prepare(void);

/* A reserved record: between obc_log_begin and commit or call the caller writes slot->body. */
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
 * Every begin must be followed at once by commit or call: later records are not sent until then.
 */
void *obc_log_begin(struct obc_slot *slot, uint16_t opcode, uint32_t body_size);
/*
 * Async: commits the record. Returns CUDA_SUCCESS, or with OUTBOARD_OPT=-async the server's result.
 */
CUresult obc_log_commit(struct obc_slot *slot);
/*
 * Sync: commits and sends the record and waits for the reply, whose body is stored in ret_body.
 * capacity: the maximum size of the reply body in bytes. A larger reply, or one that does not match
 * the operation (obp_check_reply), ends the session. Returns the server's result, a deferred error,
 * or obc_log_error().
 */
CUresult obc_log_call(struct obc_slot *slot, void *ret_body, uint32_t capacity, uint32_t *ret_size);

/*
 * Commits a record whose last `size` bytes stay in the caller's memory: `head` is the fixed part
 * (head_size is a multiple of 8), and the data follows it on the wire. The caller must not change
 * the memory until a later obc_log_call of this thread has returned. size <= OBP_CHUNK_MAX.
 */
CUresult obc_log_commit_byref(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size);
/*
 * Send data to the server in chunks: chunk k is a record of `opcode` whose body is `head` followed
 * by the bytes. The first 8 bytes of `head` are the destination address, the next 8 the size of the
 * chunk; both are set for each chunk. inline: the bytes are copied into the ring. byref: they are
 * sent from the caller's memory, and the function waits until the server has received all of them:
 * with `settle` if it is not NULL, which makes a call that is answered after the copy. Called by
 * obc_transfer, which chooses.
 */
CUresult obc_log_write_inline(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size);
CUresult obc_log_write_byref(uint16_t opcode, const void *head, uint32_t head_size,
	const void *data, size_t size, obc_settle *settle, void *user);
/*
 * Bytes; smallest data that is sent by reference, if the call waits for the copy (`waits`) or does
 * not. SIZE_MAX: none is.
 */
size_t obc_log_byref_min(bool waits);
/*
 * Reads data from the server: the reply bodies, several with OBP_REPLY_MORE, are received directly
 * into dst. CUDA_SUCCESS: exactly `size` bytes were received.
 */
CUresult obc_log_read(uint16_t opcode, const void *req, uint32_t req_size, void *dst, size_t size);

/*
 * The error that every call returns after the session was lost; CUDA_SUCCESS before. Takes no lock.
 */
CUresult obc_log_alive(void);
/*
 * Like obc_log_alive. If this thread's last obc_log_begin failed and the session is not lost,
 * returns the reason, once.
 */
CUresult obc_log_error(void);

/*
 * For a thread that is interrupted inside of a call: whether it is between begin and commit. Then
 * it must not wait for the server, which would wait for the record. May be true wrongly.
 */
bool obc_log_writing(void);
/*
 * The number of this thread's last record; 0 before the first. A record is complete when a later
 * synchronising record has been answered.
 */
uint64_t obc_log_last(void);
/* This thread's lane number; allocated at its first record. */
unsigned obc_log_lane(void);
/* fn is called at the exit of a thread that has a lane, before its lane_end record. Set once. */
void obc_log_on_thread_exit(void (*fn)(void));

/* ---- counters ---- */

struct obc_log_stats {
	uint64_t records, round_trips, frames_out, frames_in, bytes_out, bytes_in, wait_ns,
		first_wait_ns, run_ns; /* run_ns: since the log was opened */
	uint64_t records_by_group[256];
};
void obc_log_stats(struct obc_log_stats *ret);
/* Compression statistics of sent and received frames. */
void obc_log_pack_stats(struct obp_pack_stats *ret_out, struct obp_pack_stats *ret_in);
/* True if the data connection stays on this machine. */
bool obc_log_path_local(void);
/* Round trips of one opcode. */
uint64_t obc_log_trips(uint16_t opcode);
uint64_t obc_log_count(uint16_t opcode);
/* Records reserved so far that are of none of these opcodes. */
uint64_t obc_log_others(const uint16_t *opcodes, size_t n);
uint64_t obc_log_trip_ns(uint16_t opcode);

/* ---- for client-shim/session/session.c only ---- */

/*
 * After the hello: takes ownership of the stream. Record numbers start at 1. codecs, codec_request:
 * the negotiated codecs of packed frames (protocol/pack.h). resumable: a broken connection is
 * resumed (client-shim/session/resume.h). rate: of the link in an earlier session, bytes/s; 0:
 * unknown.
 */
enum ob_err obc_log_open(const struct obt_stream *stream, unsigned codecs, unsigned codec_request,
	bool resumable, uint64_t ring_size, uint64_t rate);
/* The link's rate as measured in this session, bytes/s; 0: too little was sent. Any thread. */
uint64_t obc_log_rate_learned(void);
/* Counts a round trip made outside the log (the hello). */
uint64_t obc_log_trip_least(void); /* ns: a short round trip; 0: none was measured */
void obc_log_note_trip(uint64_t ns);
/*
 * Sends everything that is committed, at the end of the process. The session makes the bye call before
 * this. Afterwards the connection moves nothing more; threads of the program that are in a call fail.
 */
void obc_log_close(void);
/*
 * From now on a wait that reaches `deadline` (ns, ob_clock_ns) fails the session with
 * OB_ERR_TIMEOUT. Used for the goodbye.
 */
void obc_log_set_deadline(uint64_t deadline);
/*
 * True during the goodbye: if the server ends the session or no longer knows it, that is expected
 * and is not logged.
 */
bool obc_log_ending(void);
/*
 * Ends the session with an error. Only the first error is kept. Wakes every waiter. The caller logs
 * the error once.
 */
void obc_log_fail(enum ob_err err);
/* Breaks a data connection that is open but dead, so that it is resumed. Control thread only. */
void obc_log_link_broken(void);
/*
 * The program closed the descriptor of a connection; its number is free or names another file. The
 * data connection is resumed where possible. Otherwise the session ends and one line is logged.
 */
void obc_log_descriptor_gone(void);
/*
 * False: the program has closed the descriptor of the data or the control connection. Both must be
 * checked to name the cause: without resuming, the server answers the loss of one connection by
 * closing the other.
 */
bool obc_log_descriptors_ours(void);
/*
 * fn checks the control connection's descriptor; it returns true if there is no connection. Called
 * on any thread. Set once, before the control thread starts.
 */
void obc_log_on_control_check(bool (*fn)(void));
/* Returns the client's part of the progress of the data connection. */
void obc_log_progress(struct obp_progress *ret);
/* fn sends an acknowledgement of replies when no call carries it. Set before the log is opened. */
void obc_log_on_ack(void (*fn)(uint64_t replies));
/*
 * Control thread, about once a second: when nothing was called, sent or received for OBC_IDLE_NS,
 * gives the memory that earlier calls used back to the system: pages of the ring, buffers, the
 * codecs' state.
 */
void obc_log_release_idle(uint64_t now);
/*
 * fn is called after each call while a timeline is recorded: number of its record; whether it
 * waited. It may make calls itself. NULL: nothing is called.
 */
void obc_log_on_watched(void (*fn)(uint64_t number, bool waited));
/* After fork, in the child: drops all state and takes no lock. */
void obc_log_forget(void);
/* True while some thread waits for a reply. */
bool obc_log_waiting(void);

#endif
