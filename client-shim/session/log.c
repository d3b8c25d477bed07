/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/log.h"

#include <pthread.h>
#include <time.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/opt.h"
#include "client-shim/session/futex.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/server.h"
#include "front/front.h"
#include "protocol/obp_calls.h"

#define RESEND_PAUSE_NS 100000 /* interval between checks of what is being sent again */
#define ROOM_PAUSE_NS   200000 /* interval between checks of the tail while another thread reads */

static OBC_PER_SERVER struct log log_first = { .error = OB_ERR_NONE };
_Thread_local struct log *obc_log_here = &log_first;

/* A client thread that has made calls. */
struct lane {
	bool live;
	bool urgent; /* finds room also while the ring is held */
	uint16_t id;
	/* why the last begin failed although the session is not lost; returned once */
	enum ob_err refused;
	uint64_t ctx;             /* id of this lane's context on the server */
	uint64_t last;            /* number of the lane's last record */
	struct obp_record *begun; /* the last record in the ring */
};

/* The thread's lane on its current server. */
static _Thread_local struct lane this_lane;
/* Its lanes on the others; NULL: it has used none. */
static _Thread_local struct lane *other_lanes;
static pthread_key_t lane_key;
static pthread_once_t lane_once = PTHREAD_ONCE_INIT;
static OBC_PER_SERVER _Atomic uint64_t lanes_used_first[OBP_LANE_MAX / 64];
#define lanes_used OBC_HERE(lanes_used_first)
static void (*thread_exit_hook)(void);

/* ---- lanes ---- */

/* The thread changes its server. A library thread for uploads never does after its start. */
static void server_switch(uint32_t from, uint32_t to)
{
	obc_log_here = &OBC_HERE(log_first);
	if (!other_lanes)
		return;
	other_lanes[from] = this_lane;
	this_lane = other_lanes[to];
}

static void lane_end_here(void)
{
	struct obc_slot slot;

	if (!this_lane.live || log_broken())
		return;
	if (obc_log_begin(&slot, OBP_OP_LANE_END, 0))
		obc_log_commit(&slot);
	atomic_fetch_and(&lanes_used[this_lane.id / 64], ~(1ull << (this_lane.id % 64)));
	this_lane.live = false;
}

static void lane_end(void *value)
{
	(void)value;
	if (!other_lanes && (!this_lane.live || log_broken()))
		return;
	if (thread_exit_hook)
		thread_exit_hook();
	for (uint32_t i = 0; other_lanes && i < obc_servers_count(); i++) {
		OBC_AT_SERVER(i);
		lane_end_here();
	}
	lane_end_here();
	free(other_lanes);
	other_lanes = NULL;
}

static void lane_key_make(void)
{
	pthread_key_create(&lane_key, lane_end);
}

static __attribute__((noinline)) bool lane_start(void)
{
	pthread_once(&lane_once, lane_key_make);
	if (obc_servers_count() > 1 && !other_lanes) {
		other_lanes = calloc(OBC_SERVERS_MAX, sizeof *other_lanes);
		if (!other_lanes) {
			this_lane.refused = OB_ERR_NO_MEMORY;
			return false;
		}
	}
	for (unsigned word = 0; word < OBP_LANE_MAX / 64; word++) {
		/* the transfer lane is not for threads of the program */
		const uint64_t kept =
			word == OBP_TRANSFER_LANE / 64 ? 1ull << OBP_TRANSFER_LANE % 64 : 0;
		uint64_t used = atomic_load(&lanes_used[word]);

		while (~(used | kept)) {
			unsigned bit = (unsigned)__builtin_ctzll(~(used | kept));

			if (!atomic_compare_exchange_weak(
				    &lanes_used[word], &used, used | 1ull << bit))
				continue;
			this_lane =
				(struct lane){ .live = true, .id = (uint16_t)(word * 64 + bit) };
			pthread_setspecific(lane_key, &this_lane);
			return true;
		}
	}
	ob_error("call refused: %u threads of this process already use CUDA, which is the maximum. "
		 "Let threads end, or make the calls from fewer threads",
		OBP_LANE_MAX - 1);
	this_lane.refused = OB_ERR_LANES;
	return false;
}

void log_lane_transfer(void)
{
	this_lane = (struct lane){ .live = true, .urgent = true, .id = OBP_TRANSFER_LANE };
}

void log_lanes_forget(void)
{
	memset((void *)lanes_used, 0, sizeof lanes_used);
	this_lane = (struct lane){ 0 };
	other_lanes = NULL; /* in a forked child */
}

void obc_log_prepare(void)
{
	obc_server_on_switch(server_switch);
}

unsigned obc_log_lane(void)
{
	if (!this_lane.live && !lane_start())
		return OBP_LANE_MAX;
	return this_lane.id;
}

uint64_t obc_log_last(void)
{
	return this_lane.last;
}

void obc_log_on_thread_exit(void (*fn)(void))
{
	thread_exit_hook = fn;
}

CUresult obc_log_alive(void)
{
	enum ob_err err = log_broken();

	if (ob_unlikely(err))
		return ob_err_to_cuda(err);
	return ob_likely(obc_log_state.open) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult obc_log_error(void)
{
	CUresult result = obc_log_alive();
	enum ob_err refused = this_lane.refused;

	this_lane.refused = OB_ERR_NONE;
	return result == CUDA_SUCCESS ? ob_err_to_cuda(refused) : result;
}

/* ---- reserving ---- */

/*
 * The ring is held: asks the server how much of what was written it holds back, and gives writers
 * the room of the rest. One thread asks at a time.
 */
static void held_ask(void)
{
	static OBC_PER_SERVER _Atomic uint32_t asking_first;
	_Atomic uint32_t *asking = &OBC_HERE(asking_first);
	struct log *log = &obc_log_state;
	struct obp_held_bytes_rep rep;
	struct obc_slot slot;
	CUresult result = CUDA_ERROR_UNKNOWN;
	uint64_t head;

	if (!log_try_right(asking))
		return;
	head = atomic_load(&log->ring.head);
	this_lane.urgent = true;
	if (obc_log_begin(&slot, OBP_OP_HELD_BYTES, 0))
		result = obc_log_call(&slot, &rep, sizeof rep, NULL);
	this_lane.urgent = this_lane.id == OBP_TRANSFER_LANE;
	if (result == CUDA_SUCCESS && rep.bytes < head) {
		log_lock(&log->wait_lock);
		obc_ring_hold_move(&log->ring, head - rep.bytes);
		log_unlock(&log->wait_lock);
	}
	atomic_store_explicit(asking, 0, memory_order_release);
}

void log_hold(bool on)
{
	log_lock(&obc_log_state.wait_lock);
	obc_ring_hold(&obc_log_state.ring, on);
	log_unlock(&obc_log_state.wait_lock);
}

/*
 * There was no room with this tail: does one step of what makes room, or waits a little for others
 * to do it. Room appears when the server has acknowledged enough.
 */
static void room_wait(uint64_t seen_tail)
{
	const struct timespec pause = { .tv_nsec = ROOM_PAUSE_NS };
	struct log *log = &obc_log_state;

	if (atomic_load_explicit(&log->ring.tail, memory_order_acquire) != seen_tail || log_drain())
		return;
	if (log_down()) {
		log_down_wait();
	} else if (atomic_load_explicit(&log->ring.held, memory_order_relaxed) &&
		!this_lane.urgent) {
		held_ask();
		if (atomic_load_explicit(&log->ring.tail, memory_order_relaxed) == seen_tail)
			nanosleep(&pause, NULL);
	} else if (log_try_right(&log->recv_right)) {
		log_read_some(true);
		log_recv_release();
	} else {
		/* another thread reads and will advance the tail */
		nanosleep(&pause, NULL);
	}
}

/* The ring's lock is held, also afterwards, unless the session is lost: NULL. */
static __attribute__((noinline)) struct obp_record *reserve_slowly(uint64_t need, unsigned numbers)
{
	struct obc_ring *ring = &obc_log_state.ring;
	struct obp_record *record;
	uint64_t tail = 0;
	OBC_WAITS();

	while (!(record = obc_ring_reserve(ring, need, numbers, &tail)) &&
		!(this_lane.urgent &&
			(record = obc_ring_reserve_urgent(ring, need, numbers, &tail)))) {
		log_unlock(&ring->lock);
		room_wait(tail);
		if (log_broken())
			return NULL;
		log_lock(&ring->lock);
	}
	return record;
}

/*
 * Determines the context in which this record is executed. True: it differs from this lane's last
 * context.
 */
static inline bool ctx_changes(uint16_t opcode, uint64_t *ret_ctx)
{
	const struct obf_ctx *current;

	if (obp_op_noctx(opcode))
		return false;
	current = obf_ctx_peek();
	*ret_ctx = current ? (uint64_t)(uintptr_t)current->backend : 0;
	return ob_unlikely(*ret_ctx != this_lane.ctx) && obc_server_has_context();
}

/*
 * Writes the ctx_use record that precedes another record in the same reservation. Returns that
 * other record, marked as not committed.
 */
static __attribute__((noinline)) struct obp_record *ctx_use_write(
	struct obp_record *record, uint64_t ctx)
{
	const uint32_t size = sizeof(struct obp_record) + sizeof(struct obp_ctx_use_req);
	struct obp_record *next = (struct obp_record *)((uint8_t *)record + size);

	*(struct obp_ctx_use_req *)(record + 1) = (struct obp_ctx_use_req){ .ctx = ctx };
	this_lane.ctx = ctx;
	atomic_store_explicit(obc_ring_size_of(next), 0, memory_order_relaxed);
	obc_ring_commit(record, OBP_OP_CTX_USE, this_lane.id, size);
	return next;
}

/* Reserves `need` ring bytes for one record, preceded by ctx_use if this lane's context changed. */
static inline struct obp_record *reserve(uint16_t opcode, uint64_t need, struct obc_slot *slot)
{
	struct obc_ring *ring = &obc_log_state.ring;
	uint64_t tail = 0, ctx = 0, began = 0;
	bool change = ctx_changes(opcode, &ctx);
	struct obp_record *record;

	if (ob_unlikely(change))
		need += sizeof(struct obp_record) + sizeof(struct obp_ctx_use_req);
	log_lock(&ring->lock);
	record = obc_ring_reserve(ring, need, 1 + change, &tail);
	if (ob_unlikely(!record)) {
		began = obc_log_state.watched ? ob_clock_ns() : 0;
		record = reserve_slowly(need, 1 + change);
		if (!record)
			return NULL;
	}
	slot->number = this_lane.last = ring->last_number;
	/* Read without the lock by obc_log_count. */
	__atomic_store_n(&obc_log_counts[opcode], obc_log_counts[opcode] + 1, __ATOMIC_RELAXED);
	obc_log_counts[OBP_OP_CTX_USE] += change;
	log_unlock(&ring->lock);
	if (ob_unlikely(began))
		log_watch_room(this_lane.id, began);
	return ob_unlikely(change) ? ctx_use_write(record, ctx) : record;
}

/* False: nothing can be reserved now; obc_log_error returns the reason. */
static inline bool can_begin(uint16_t opcode)
{
	if (ob_unlikely(log_broken() || !obc_log_state.open || opcode >= OBP_OPCODE_END))
		return false;
	return ob_likely(this_lane.live) || lane_start();
}

/* Common part of commit_byref and begin_outside: a ring entry that refers to a record's data. */
static struct obc_byref *reserve_byref(uint16_t opcode, const void *head, uint32_t head_size,
	const void *data, size_t size, struct obc_slot *slot)
{
	uint32_t entry_size = (uint32_t)sizeof(struct obc_byref) + head_size;
	struct obc_byref *entry = (struct obc_byref *)reserve(opcode, entry_size, slot);

	if (!entry)
		return NULL;
	entry->entry_size = entry_size;
	entry->head_size = head_size;
	entry->data = data;
	entry->size = size;
	if (head_size)
		memcpy(entry + 1, head, head_size);
	slot->record = entry;
	slot->opcode = opcode;
	slot->lane = (uint16_t)(this_lane.id | OBC_LANE_BYREF);
	slot->size = (uint32_t)(sizeof(struct obp_record) + head_size + ob_round_up(size, 8));
	return entry;
}

/*
 * For a record that is too large for the ring: its body is in separate memory until commit or call
 * has ensured that the server has it.
 */
static __attribute__((noinline)) void *begin_outside(
	struct obc_slot *slot, uint16_t opcode, uint32_t body_size)
{
	uint32_t padded = (uint32_t)ob_round_up(body_size, 8);

	if (body_size > OBC_RECORD_MAX) {
		ob_error("internal error: a record of %u bytes exceeds the maximum of %u bytes. "
			 "Please report this with the name of the program",
			body_size, OBC_RECORD_MAX);
		this_lane.refused = OB_ERR_LIMIT;
		return NULL;
	}
	slot->body = calloc(1, padded);
	if (!slot->body) {
		this_lane.refused = OB_ERR_NO_MEMORY;
		return NULL;
	}
	if (!reserve_byref(opcode, NULL, 0, slot->body, padded, slot)) {
		free(slot->body);
		return NULL;
	}
	return slot->body;
}

void *obc_log_begin(struct obc_slot *slot, uint16_t opcode, uint32_t body_size)
{
	uint32_t padded = (uint32_t)ob_round_up(body_size, 8);
	struct obp_record *record;

	if (ob_unlikely(!can_begin(opcode)))
		return NULL;
	if (ob_unlikely(body_size > obc_log_state.body_max))
		return begin_outside(slot, opcode, body_size);
	record = reserve(opcode, sizeof *record + padded, slot);
	if (ob_unlikely(!record))
		return NULL;
	slot->record = this_lane.begun = record;
	slot->body = record + 1;
	slot->size = (uint32_t)sizeof *record + padded;
	slot->opcode = opcode;
	slot->lane = this_lane.id;
	if (padded)
		((uint64_t *)slot->body)[padded / 8 - 1] = 0;
	return slot->body;
}

bool obc_log_writing(void)
{
	/* Later the place may belong to a record that another thread writes. */
	return this_lane.begun &&
		!atomic_load_explicit(obc_ring_size_of(this_lane.begun), memory_order_relaxed);
}

/* ---- committing ---- */

static inline void publish(struct obc_slot *slot, bool waits)
{
	if (ob_unlikely(obc_log_state.watched))
		log_publish_watched(slot, waits);
	else
		obc_ring_commit(slot->record, slot->opcode, slot->lane, slot->size);
}

static inline void sender_wake(void)
{
	struct log *log = &obc_log_state;

	/*
	 * Either this thread sees that the sender sleeps, or the sender sees the record. The sender
	 * executes the barrier for both sides (membarrier), because it is about to sleep anyway. A
	 * fence here would wait in every call for the record's cache lines from the core that read
	 * the ring last.
	 */
	if (ob_likely(log->membarrier))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
	if (ob_unlikely(atomic_load_explicit(&log->sender, memory_order_relaxed) != SENDER_AWAKE))
		log_sender_notify();
}

bool log_left_wait(uint64_t number)
{
	const struct timespec pause = { .tv_nsec = RESEND_PAUSE_NS };
	struct log *log = &obc_log_state;

	while (ob_unlikely(
		atomic_load_explicit(&log->ring.left_number, memory_order_acquire) < number)) {
		if (log_broken()) {
			log_lost_wait();
			return false;
		}
		log_drain();
		nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * The server has received everything that this thread has written so far, and no library thread
 * will read it again.
 */
CUresult log_sync(void)
{
	struct obc_slot slot;
	CUresult result;
	OBC_WAITS();

	if (!obc_log_begin(&slot, OBP_OP_PING, 0))
		return obc_log_error();
	result = obc_log_call(&slot, NULL, 0, NULL);
	log_left_wait(slot.number);
	return result;
}

static __attribute__((noinline)) CUresult commit_outside(struct obc_slot *slot)
{
	CUresult result;
	OBC_WAITS();

	publish(slot, false);
	log_drain();
	result = log_sync();
	log_left_wait(slot->number);
	free(slot->body);
	return result;
}

CUresult obc_log_commit(struct obc_slot *slot)
{
	if (ob_unlikely(slot->lane & OBC_LANE_BYREF))
		return commit_outside(slot);
	publish(slot, false);
	if (ob_unlikely(!ob_opt_on(OB_OPT_ASYNC)) && slot->opcode != OBP_OP_LANE_END)
		return log_sync();
	if (ob_unlikely(!ob_opt_on(OB_OPT_BATCH))) {
		OBC_WAITS();
		log_drain();
	} else {
		sender_wake();
	}
	return CUDA_SUCCESS;
}

void log_commit_unanswered(struct obc_slot *slot)
{
	OBC_WAITS();

	publish(slot, false);
	if (ob_unlikely(!ob_opt_on(OB_OPT_BATCH)))
		log_drain();
	else
		sender_wake();
}

/* Weight of a longer round trip in the shortest one that is kept. */
#define TRIP_RISE 256u

static void trip_note(uint16_t opcode, uint64_t took)
{
	struct log *log = &obc_log_state;
	uint64_t least = atomic_load_explicit(&log->trip_least, memory_order_relaxed);

	least = !least || took < least ? took : least + (took - least) / TRIP_RISE;
	atomic_store_explicit(&log->trip_least, least, memory_order_relaxed);

	atomic_fetch_add_explicit(&log->trips, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&log->wait_ns, took, memory_order_relaxed);
	atomic_fetch_add_explicit(&obc_log_trip_counts[opcode], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&obc_log_trip_time[opcode], took, memory_order_relaxed);
}

CUresult log_wait_reply(struct obc_slot *slot, struct log_wait *wait)
{
	uint64_t begin, took, sent;
	OBC_WAITS();

	wait->number = slot->number;
	wait->opcode = slot->opcode;
	log_wait_add(wait);
	sent = atomic_load_explicit(&obc_log_state.ring.sent_number, memory_order_relaxed);
	publish(slot, true);
	log_drain();
	begin = ob_clock_ns();
	log_sender_spared(begin, slot->number > sent + 1);
	log_wait_for(wait);
	took = ob_clock_ns() - begin;
	trip_note(slot->opcode, took);
	if (ob_unlikely(obc_log_state.watched))
		log_waited(slot, begin + took);
	if (ob_unlikely(slot->lane & OBC_LANE_BYREF)) {
		log_left_wait(slot->number);
		free(slot->body);
	}
	if (!atomic_load_explicit(&wait->done, memory_order_acquire))
		return obc_log_error();
	return wait->result ? wait->result : wait->deferred;
}

CUresult obc_log_call(struct obc_slot *slot, void *ret_body, uint32_t capacity, uint32_t *ret_size)
{
	struct log_wait wait = { .dst = ret_body, .capacity = capacity };
	CUresult result = log_wait_reply(slot, &wait);

	if (ret_size)
		*ret_size = (uint32_t)wait.got;
	return result;
}

CUresult obc_log_commit_byref(
	uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size)
{
	struct obc_slot slot;

	if (!can_begin(opcode) || !reserve_byref(opcode, head, head_size, data, size, &slot))
		return obc_log_error();
	publish(&slot, false);
	return CUDA_SUCCESS;
}

CUresult log_commit_byref_answered(uint16_t opcode, const void *head, uint32_t head_size,
	const void *data, size_t size, struct log_wait *wait)
{
	struct obc_slot slot;
	OBC_WAITS();

	if (!can_begin(opcode) || !reserve_byref(opcode, head, head_size, data, size, &slot))
		return obc_log_error();
	wait->number = slot.number;
	wait->opcode = opcode;
	log_wait_add(wait);
	publish(&slot, false);
	log_drain();
	return CUDA_SUCCESS;
}
