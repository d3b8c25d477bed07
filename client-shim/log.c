/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opt.h"
#include "client-shim/futex.h"
#include "client-shim/log_inside.h"
#include "face/face.h"
#include "protocol/obp_calls.h"
#include "transport/path.h"
#include "transport/shm.h"

#define REWIND_MIN (256u << 10)   /* an empty ring starts over at its first byte, so that few pages are ever touched */
#define PREFETCH_AHEAD 384u      /* bytes: a few records */
#define TRACE_FD_MIN 500         /* above those that programs close by habit */
#define RESEND_PAUSE_NS 100000    /* between looks at what is being sent again */

struct log obc_log_state = { .error = OB_ERR_NONE };
uint64_t obc_log_counts[OBP_OPCODE_END], obc_log_trip_counts[OBP_OPCODE_END], obc_log_trip_time[OBP_OPCODE_END];

/* A client thread that has made calls. */
struct lane {
	bool live;
	uint16_t id;
	uint64_t ctx;             /* what the server believes this lane's context to be */
	uint64_t last;            /* number of its last record */
};

static _Thread_local struct lane this_lane;
static pthread_key_t lane_key;
static pthread_once_t lane_once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t lanes_used[OBP_LANE_MAX / 64];
static void (*thread_exit_hook)(void);

/* ---- lanes ---- */

static void lane_end(void *value)
{
	struct obc_slot slot;

	(void)value;
	if (!this_lane.live || log_broken())
		return;
	if (thread_exit_hook)
		thread_exit_hook();
	if (obc_log_begin(&slot, OBP_OP_LANE_END, 0))
		obc_log_commit(&slot);
	atomic_fetch_and(&lanes_used[this_lane.id / 64], ~(1ull << (this_lane.id % 64)));
	this_lane.live = false;
}

static void lane_key_make(void)
{
	pthread_key_create(&lane_key, lane_end);
}

static bool lane_start(void)
{
	pthread_once(&lane_once, lane_key_make);
	for (unsigned word = 0; word < OBP_LANE_MAX / 64; word++) {
		uint64_t used = atomic_load(&lanes_used[word]);

		while (~used) {
			unsigned bit = (unsigned)__builtin_ctzll(~used);

			if (!atomic_compare_exchange_weak(&lanes_used[word], &used, used | 1ull << bit))
				continue;
			this_lane = (struct lane){ .live = true, .id = (uint16_t)(word * 64 + bit) };
			pthread_setspecific(lane_key, &this_lane);
			return true;
		}
	}
	ob_error("more than %u threads use CUDA at once", OBP_LANE_MAX);
	return false;
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

/* ---- reserving ---- */

/* Room is there once the server has acknowledged enough; whoever waits sends and reads meanwhile. */
static __attribute__((noinline)) bool room_wait(uint64_t seen_tail)
{
	struct log *log = &obc_log_state;

	while (atomic_load_explicit(&log->tail, memory_order_acquire) == seen_tail && !log_broken()) {
		if (log_drain())
			continue;
		if (log_down()) {
			log_down_wait();
		} else if (log_try_right(&log->recv_right)) {
			log_read_some(true);
			log_recv_release();
		} else {
			struct timespec ts = { .tv_nsec = 200000 };

			nanosleep(&ts, NULL); /* another thread reads, and will move the tail */
		}
	}
	return !log_broken();
}

static inline struct obp_record *record_at(uint64_t offset)
{
	return (struct obp_record *)(obc_log_state.ring + (offset & RING_MASK));
}

/* Under the lock: where `need` bytes can lie together, or UINT64_MAX when the ring is too full. Writes the pad mark when it skips the end. */
static inline uint64_t place(uint64_t need)
{
	struct log *log = &obc_log_state;
	uint64_t head = atomic_load_explicit(&log->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&log->tail, memory_order_acquire);
	uint64_t at = head, to_end = OBC_RING_BYTES - (head & RING_MASK);

	if (ob_unlikely(to_end < need || (head == tail && (head & RING_MASK) > REWIND_MIN))) {
		at = head + to_end;
		/*
		 * With nothing under way nobody else moves the tail; it comes along. Left behind it would make of the ring only the few bytes in front of
		 * it, and the server, which acknowledges by the megabyte, would never make that more.
		 */
		if (head == tail) {
			tail = at;
			atomic_store_explicit(&log->tail, tail, memory_order_relaxed);
		}
	}
	if (ob_unlikely(at + need - tail > OBC_RING_BYTES))
		return UINT64_MAX;
	if (ob_unlikely(at != head))
		record_at(head)->size = PAD_MARK;
	return at;
}

/* Reserve `need` ring bytes for one record, preceded by ctx_use when this lane's context changed. */
static inline struct obp_record *reserve(uint16_t opcode, uint64_t need, struct obc_slot *slot)
{
	const size_t ctx_bytes = sizeof(struct obp_record) + sizeof(struct obp_ctx_use_req);
	struct log *log = &obc_log_state;
	struct obp_record *record;
	uint64_t at, ctx = this_lane.ctx;
	bool change = false;

	if (!obp_op_noctx(opcode)) {
		const struct obf_ctx *current = obf_ctx_peek();

		ctx = current ? (uint64_t)(uintptr_t)current->host : 0;
		change = ctx != this_lane.ctx;
	}
	for (;;) {
		log_lock(&log->lock);
		at = place(need + (change ? ctx_bytes : 0));
		if (ob_likely(at != UINT64_MAX))
			break;
		log_unlock(&log->lock);
		if (!room_wait(atomic_load_explicit(&log->tail, memory_order_acquire)))
			return NULL;
	}
	if (ob_unlikely(change)) {
		record = record_at(at);
		*(struct obp_ctx_use_req *)(record + 1) = (struct obp_ctx_use_req){ .ctx = ctx };
		*record = (struct obp_record){ (uint32_t)ctx_bytes, OBP_OP_CTX_USE, this_lane.id };
		this_lane.ctx = ctx;
		log->last_number++;
		obc_log_counts[OBP_OP_CTX_USE]++;
		at += ctx_bytes;
	}
	record = record_at(at);
	atomic_store_explicit(log_size_of(record), 0, memory_order_relaxed);
	slot->number = this_lane.last = ++log->last_number;
	obc_log_counts[opcode]++;
	/* Release: the sender that sees the new head sees size 0 (or what commit made of it) and the pad mark. */
	atomic_store_explicit(&log->head, at + need, memory_order_release);
	log_unlock(&log->lock);
	return record;
}

void *obc_log_begin(struct obc_slot *slot, uint16_t opcode, uint32_t body_size)
{
	uint32_t padded = (uint32_t)ob_round_up(body_size, 8);
	struct obp_record *record;

	if (ob_unlikely(log_broken() || !obc_log_state.open || body_size > OBC_RECORD_MAX || opcode >= OBP_OPCODE_END))
		return NULL;
	if (ob_unlikely(!this_lane.live) && !lane_start())
		return NULL;
	record = reserve(opcode, sizeof *record + padded, slot);
	if (ob_unlikely(!record))
		return NULL;
	slot->record = record;
	slot->body = record + 1;
	slot->size = (uint32_t)sizeof *record + padded;
	slot->opcode = opcode;
	slot->lane = this_lane.id;
	if (padded)
		((uint64_t *)slot->body)[padded / 8 - 1] = 0;
	return slot->body;
}

/* ---- committing ---- */

/* OUTBOARD_TRACE: one line a record, as it enters the log. */
static __attribute__((noinline)) void trace(const struct obc_slot *slot)
{
	char line[1024];
	size_t n = (size_t)snprintf(line, sizeof line, "%llu.%09llu #%llu lane %u ", (unsigned long long)(ob_clock_ns() / OB_SECOND),
				    (unsigned long long)(ob_clock_ns() % OB_SECOND), (unsigned long long)slot->number, slot->lane & ~LANE_BYREF);

	if (slot->lane & LANE_BYREF)
		n += (size_t)snprintf(line + n, sizeof line - n, "%s(%u bytes by reference)", obp_call_info(slot->opcode)->name, slot->size);
	else
		n += obp_print_call(line + n, sizeof line - n - 1, slot->opcode, (const struct obp_record *)slot->record + 1,
				    slot->size - (uint32_t)sizeof(struct obp_record));
	line[n++] = '\n';
	/* A trace that cannot be written is cut short; the program is not to suffer for it. */
	ssize_t written = write(obc_log_state.trace_fd, line, n);
	(void)written;
}

static inline void publish(struct obc_slot *slot)
{
	struct obp_record *record = slot->record;

	if (ob_unlikely(obc_log_state.trace_fd))
		trace(slot);
	record->opcode = slot->opcode;
	record->lane = slot->lane;
	/* Release: who sees the size sees the whole record. */
	atomic_store_explicit(log_size_of(record), slot->size, memory_order_release);
}

static inline void sender_wake(void)
{
	struct log *log = &obc_log_state;

	/*
	 * Either we see the sender asleep or it sees our record. The sender, which is about to sleep anyway, pays for both sides (membarrier): a fence here
	 * would wait for the record's lines to come from the core that read the ring last, in every call.
	 */
	if (ob_likely(log->membarrier))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
	if (ob_unlikely(atomic_load_explicit(&log->sender_asleep, memory_order_relaxed)) &&
	    atomic_exchange_explicit(&log->sender_asleep, 0, memory_order_relaxed))
		obc_futex_wake(&log->sender_asleep, 1);
}

static CUresult sync_now(void)
{
	struct obc_slot slot;

	if (!obc_log_begin(&slot, OBP_OP_PING, 0))
		return obc_log_error();
	return obc_log_call(&slot, NULL, 0, NULL);
}

CUresult obc_log_commit(struct obc_slot *slot)
{
	publish(slot);
	if (ob_unlikely(!ob_opt_on(OB_OPT_ASYNC)) && slot->opcode != OBP_OP_LANE_END)
		return sync_now();
	if (ob_unlikely(!ob_opt_on(OB_OPT_BATCH)))
		log_drain();
	else
		sender_wake();
	return CUDA_SUCCESS;
}

static CUresult wait_reply(struct obc_slot *slot, struct log_wait *wait)
{
	uint64_t begin, took;

	wait->number = slot->number;
	wait->opcode = slot->opcode;
	log_wait_add(wait);
	publish(slot);
	begin = ob_clock_ns();
	log_drain();
	log_wait_for(wait);
	took = ob_clock_ns() - begin;
	log_lock(&obc_log_state.wait_lock);
	obc_log_state.trips++;
	obc_log_state.wait_ns += took;
	obc_log_trip_counts[slot->opcode]++;
	obc_log_trip_time[slot->opcode] += took;
	log_unlock(&obc_log_state.wait_lock);
	if (!atomic_load_explicit(&wait->done, memory_order_acquire))
		return obc_log_error();
	return wait->result ? wait->result : wait->deferred;
}

CUresult obc_log_call(struct obc_slot *slot, void *ret_body, uint32_t capacity, uint32_t *ret_size)
{
	struct log_wait wait = { .dst = ret_body, .capacity = capacity };
	CUresult result = wait_reply(slot, &wait);

	if (ret_size)
		*ret_size = (uint32_t)wait.got;
	return result;
}

CUresult obc_log_commit_byref(uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size)
{
	struct log_byref *entry;
	uint32_t entry_size = (uint32_t)sizeof *entry + head_size;
	struct obc_slot slot;

	if (log_broken() || !obc_log_state.open || opcode >= OBP_OPCODE_END)
		return obc_log_error();
	if (!this_lane.live && !lane_start())
		return ob_err_to_cuda(OB_ERR_LANES);
	entry = (struct log_byref *)reserve(opcode, entry_size, &slot);
	if (!entry)
		return obc_log_error();
	entry->entry_size = entry_size;
	entry->head_size = head_size;
	entry->data = data;
	entry->size = size;
	memcpy(entry + 1, head, head_size);
	slot.record = entry;
	slot.opcode = opcode;
	slot.lane = (uint16_t)(this_lane.id | LANE_BYREF);
	slot.size = (uint32_t)(sizeof(struct obp_record) + head_size + ob_round_up(size, 8));
	publish(&slot);
	return CUDA_SUCCESS;
}

/* ---- data ---- */

static CUresult write_inline(uint16_t opcode, const uint64_t *head, uint32_t head_size, const void *data, size_t size)
{
	struct obc_slot slot;
	uint8_t *body = obc_log_begin(&slot, opcode, (uint32_t)(head_size + size));

	if (!body)
		return obc_log_error();
	memcpy(body, head, head_size);
	memcpy(body + head_size, data, size);
	return obc_log_commit(&slot);
}

/*
 * The server has everything this thread has written so far, and no thread of ours will look at it again. After a break the server may answer out of what
 * it had received before, while the same records are still being sent to it once more out of the caller's memory: that must end first.
 */
static CUresult sync_data(void)
{
	const struct timespec pause = { .tv_nsec = RESEND_PAUSE_NS };
	struct log *log = &obc_log_state;
	struct obc_slot slot;
	CUresult result;

	if (!obc_log_begin(&slot, OBP_OP_PING, 0))
		return obc_log_error();
	result = obc_log_call(&slot, NULL, 0, NULL);
	while (ob_unlikely(atomic_load_explicit(&log->sent_done, memory_order_acquire) < slot.number) && !log_broken()) {
		log_drain();
		nanosleep(&pause, NULL);
	}
	return result;
}

CUresult obc_log_write(uint16_t opcode, const void *head, uint32_t head_size, const void *data, size_t size)
{
	bool byref = size >= obc_log_state.byref_min && ob_opt_on(OB_OPT_BYREF);
	const uint8_t *p = data;
	uint64_t words[16];
	CUresult result = CUDA_SUCCESS;

	if (head_size > sizeof words || head_size < 16 || head_size % 8)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(words, head, head_size);
	while (size && result == CUDA_SUCCESS) {
		size_t n = ob_min(size, byref && !obp_packer_cuts(&obc_log_state.packer) ? OBP_CHUNK_MAX : OBP_PACK_CHUNK);

		words[1] = n;
		if (byref) {
			result = obc_log_commit_byref(opcode, words, head_size, p, n);
			log_drain();
		} else {
			result = write_inline(opcode, words, head_size, p, n);
		}
		words[0] += n;
		p += n;
		size -= n;
	}
	/* The caller's memory is free again once the server has everything. */
	return byref && result == CUDA_SUCCESS ? sync_data() : result;
}

CUresult obc_log_read(uint16_t opcode, const void *req, uint32_t req_size, void *dst, size_t size)
{
	struct log_wait wait = { .dst = dst, .capacity = size };
	struct obc_slot slot;

	if (!obc_log_begin(&slot, opcode, req_size))
		return obc_log_error();
	memcpy(slot.body, req, req_size);
	return wait_reply(&slot, &wait);
}

/* ---- state ---- */

CUresult obc_log_error(void)
{
	enum ob_err err = log_broken();

	if (err)
		return ob_err_to_cuda(err);
	return obc_log_state.open ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

bool obc_log_waiting(void)
{
	bool waiting;

	log_lock(&obc_log_state.wait_lock);
	waiting = obc_log_state.waits != NULL;
	log_unlock(&obc_log_state.wait_lock);
	return waiting;
}

void obc_log_fail(enum ob_err err)
{
	struct log *log = &obc_log_state;
	int none = OB_ERR_NONE;

	if (!atomic_compare_exchange_strong(&log->error, &none, (int)err))
		return;
	/* Once the goodbye is said a server may be faster than its answer. */
	if (atomic_load(&log->deadline))
		ob_debug("the session ended before the goodbye was answered: %s", ob_err_text(err));
	else
		ob_error("the session is lost: %s", ob_err_text(err));
	if (!log_down()) /* else nobody reads, and the descriptor is the resuming thread's */
		shutdown(log->stream.fd, SHUT_RDWR); /* wakes a reader that sleeps in the socket */
	log_lock(&log->wait_lock);
	for (struct log_wait *wait = log->waits; wait; wait = wait->next)
		if (atomic_exchange(&wait->word, WAIT_WOKEN) == WAIT_ASLEEP)
			obc_futex_wake(&wait->word, 1);
	log_unlock(&log->wait_lock);
	obc_futex_wake(&log->down, INT32_MAX);
}

void obc_log_set_deadline(uint64_t deadline)
{
	atomic_store(&obc_log_state.deadline, deadline);
}

void obc_log_note_trip(uint64_t ns)
{
	log_lock(&obc_log_state.wait_lock);
	obc_log_state.trips++;
	obc_log_state.wait_ns += ns;
	log_unlock(&obc_log_state.wait_lock);
}

void obc_log_stats(struct obc_log_stats *ret)
{
	struct log *log = &obc_log_state;

	*ret = (struct obc_log_stats){
		.records = log->last_number,
		.round_trips = log->trips,
		.frames_out = log->frames_out,
		.frames_in = log->conn.frames,
		.bytes_out = log->bytes_out,
		.bytes_in = log->conn.bytes,
		.wait_ns = log->wait_ns,
	};
	for (unsigned i = 0; i < OBP_OPCODE_END; i++)
		ret->records_by_group[i >> 8] += obc_log_counts[i];
}

uint64_t obc_log_trips(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END ? obc_log_trip_counts[opcode] : 0;
}

uint64_t obc_log_count(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END ? obc_log_counts[opcode] : 0;
}

uint64_t obc_log_trip_ns(uint16_t opcode)
{
	return opcode < OBP_OPCODE_END ? obc_log_trip_time[opcode] : 0;
}

static void trace_open(void)
{
	const char *path = getenv("OUTBOARD_TRACE");
	int fd = path && *path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

	if (path && *path && fd < 0)
		ob_warn("OUTBOARD_TRACE: %s: %s", path, strerror(errno));
	if (fd >= 0)
		obc_log_state.trace_fd = fcntl(fd, F_DUPFD_CLOEXEC, TRACE_FD_MIN);
	if (fd >= 0)
		close(fd);
	if (obc_log_state.trace_fd < 0)
		obc_log_state.trace_fd = 0;
}

static double path_rate(void *unused)
{
	(void)unused;
	return obt_meter_rate(&obc_log_state.meter, &obc_log_state.stream, obc_log_state.trust_reader);
}

bool obc_log_path_local(void)
{
	return obt_path_local(&obc_log_state.stream);
}

void obc_log_pack_stats(struct obp_pack_stats *ret_out, struct obp_pack_stats *ret_in)
{
	*ret_out = obc_log_state.packer.stats;
	*ret_in = obc_log_state.conn.unpacker.stats;
}

enum ob_err obc_log_open(const struct obt_stream *stream, unsigned codecs, unsigned codec_wish, bool resumable)
{
	struct log *log = &obc_log_state;
	enum ob_err err = obp_conn_init(&log->conn, OBP_ACCEPT_REPLIES | OBP_ACCEPT_CONTROL);

	if (err)
		return err;
	log->ring = mmap(NULL, OBC_RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (log->ring == MAP_FAILED)
		return OB_ERR_NO_MEMORY;
	trace_open();
	log->stream = *stream;
	log->byref_min = obt_shm_on(stream) ? OBC_BYREF_SHARED_MIN : OBC_BYREF_MIN;
	log->conn.codecs = codecs;
	log->trust_reader = codec_wish == OBP_CODEC_MEASURE;
	obp_packer_init(&log->packer, codecs, codec_wish, obt_path_local(stream), path_rate, NULL);
	log->resumable = resumable;
	obt_stream_set_recv_timeout(&log->stream, RECV_TIMEOUT_MS);
	log->membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
	log->open = true;
	return log_sender_start();
}

void obc_log_close(void)
{
	if (!obc_log_state.open)
		return;
	log_sender_stop();
	obc_log_state.open = false;
	obt_stream_close(&obc_log_state.stream);
}

void obc_log_forget(void)
{
	struct log *log = &obc_log_state;

	obt_stream_forget(&log->stream);
	memset(log, 0, sizeof *log);
	memset(obc_log_counts, 0, sizeof obc_log_counts);
	memset(obc_log_trip_counts, 0, sizeof obc_log_trip_counts);
	memset(obc_log_trip_time, 0, sizeof obc_log_trip_time);
	memset((void *)lanes_used, 0, sizeof lanes_used);
	this_lane = (struct lane){ 0 };
}
