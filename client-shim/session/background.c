/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/background.h"

#include <pthread.h>

#include "base/opt.h"
#include "client-shim/session/futex.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log_inside.h"
#include "client-shim/session/request.h"
#include "client-shim/session/server.h"
#include "protocol/obc_calls.h"

#define STACK         (256u << 10) /* bytes; a codec may run on it */
#define PARTS_MAX     16u
#define PART_MIN      (64u << 10) /* bytes */
#define WINDOW_MIN    (2u * PART_MIN)
#define WINDOW_MAX    ((uint64_t)OBP_PART_PIECES_MAX * OBP_PART_PIECE)
#define WINDOW_FIRST  (8u * PART_MIN)
#define DELAY_NS      250000  /* how much later than an idle server the parts may be answered */
#define READ_PAUSE_NS 200000  /* the reader's, while another thread receives */
#define LINGER_NS     1000000 /* interval at which an idle reader looks for work, and how often */
#define LINGER_MAX    64u
#define SILENCE_NS    (60 * OB_SECOND) /* without a byte, while a reply is on its way */

struct upload {
	struct upload *next;
	uint64_t id, dst, size;
	const uint8_t *src;
};

/* A part that is not answered. */
struct part {
	struct log_wait wait;
	struct upload *last_of; /* the upload ends with this part; NULL: it does not */
	uint64_t size, sent_at;
};

struct read {
	struct log_wait wait; /* first: log_background_landed gets its address */
	struct read *next;
};

struct copies_state {
	pthread_mutex_t order; /* uploads are in the queue in the order of their records */
	pthread_mutex_t lock;  /* all of this, except for what belongs to one thread */
	pthread_cond_t changed;
	bool sender_runs, reader_runs;
	pthread_t sender, reader;
	struct upload *first, **last; /* not taken by the sender yet */
	uint64_t last_id;             /* under `order` */
	struct read *reads;
	uint32_t n_reads;
	_Atomic uint32_t pending; /* copies of both kinds; futex */
	_Atomic uint32_t waiters; /* threads that wait for `pending` to fall */
	_Atomic uint32_t work;    /* futex; reads are pending, or the reader must end */
	_Atomic bool idle;        /* the reader sleeps on `work` */
	_Atomic bool stop;
	_Atomic bool sending; /* the sender makes the record of a part */
	/* the sender's */
	struct part parts[PARTS_MAX];
	unsigned oldest, n_parts, n_pieces;
	uint64_t under_way, window; /* bytes */
};

static OBC_PER_SERVER struct copies_state copies_first = {
	.order = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.window = WINDOW_FIRST,
};
#define copies OBC_HERE(copies_first)

static unsigned pieces_of(uint64_t size)
{
	return (unsigned)((size + OBP_PART_PIECE - 1) / OBP_PART_PIECE);
}

static bool is_on(uint32_t line)
{
	return ob_opt_on(OB_OPT_BACKGROUND) && ob_opt_on(OB_OPT_ASYNC) && ob_opt_on(OB_OPT_BYREF) &&
		obc_lines_known >= line && !obc_log_ending() && obc_log_alive() == CUDA_SUCCESS;
}

/* Under the lock. */
static void pending_add(void)
{
	if (atomic_fetch_add(&copies.pending, 1) == 0)
		log_hold(true);
}

/* Under the lock. */
static void pending_drop(void)
{
	if (atomic_fetch_sub(&copies.pending, 1) == 1)
		log_hold(false);
	if (atomic_load(&copies.waiters))
		obc_futex_wake(&copies.pending, INT32_MAX);
}

/* ---- the thread that sends uploads ---- */

/* Waits for the oldest part. False: the session is lost. */
static bool part_land(void)
{
	struct part *part = &copies.parts[copies.oldest];
	uint64_t least = atomic_load_explicit(&obc_log_state.trip_least, memory_order_relaxed),
		 took, step = part->size;

	log_wait_for(&part->wait);
	if (!atomic_load_explicit(&part->wait.done, memory_order_acquire))
		return false;
	took = ob_clock_ns() - part->sent_at;
	if (took > least + DELAY_NS)
		copies.window = ob_max(copies.window - copies.window / 8, (uint64_t)WINDOW_MIN);
	else if (copies.under_way + OBP_PART_MAX > copies.window)
		copies.window = ob_min(copies.window + step, WINDOW_MAX);
	copies.under_way -= part->size;
	copies.n_pieces -= pieces_of(part->size);
	copies.oldest = (copies.oldest + 1) % PARTS_MAX;
	copies.n_parts--;
	if (!part->last_of)
		return true;
	/* After a break the part may be sent again although it was answered. */
	if (!log_left_wait(part->wait.number))
		return false;
	free(part->last_of);
	pthread_mutex_lock(&copies.lock);
	pending_drop();
	pthread_mutex_unlock(&copies.lock);
	return true;
}

static bool oldest_is_answered(void)
{
	return copies.n_parts &&
		atomic_load_explicit(&copies.parts[copies.oldest].wait.done, memory_order_acquire);
}

/* Waits until `size` more bytes may be under way. False: the session ends. */
static bool room_await(uint64_t size)
{
	while (copies.n_parts &&
		(oldest_is_answered() || copies.n_parts == PARTS_MAX ||
			copies.n_pieces + pieces_of(size) > OBP_PART_PIECES_MAX ||
			copies.under_way + size > copies.window))
		if (atomic_load(&copies.stop) || !part_land())
			return false;
	return !atomic_load(&copies.stop);
}

static bool part_send(struct upload *upload, uint64_t at, uint64_t size)
{
	struct part *part = &copies.parts[(copies.oldest + copies.n_parts) % PARTS_MAX];
	const struct obp_upload_part_req head = { .upload = upload->id,
		.dst = upload->dst + at,
		.size = size,
		.last = at + size == upload->size };

	*part = (struct part){
		.size = size, .sent_at = ob_clock_ns(), .last_of = head.last ? upload : NULL
	};
	if (log_commit_byref_answered(OBP_OP_UPLOAD_PART, &head, sizeof head, upload->src + at,
		    size, &part->wait) != CUDA_SUCCESS)
		return false;
	copies.n_parts++;
	copies.under_way += size;
	copies.n_pieces += pieces_of(size);
	return true;
}

/* A quarter of the window, and whole pieces if it is larger than one. */
static uint64_t part_size(void)
{
	uint64_t size = copies.window / 4, unit = size < OBP_PART_PIECE ? PART_MIN : OBP_PART_PIECE;

	return ob_min(ob_max(size / unit * unit, unit), (uint64_t)OBP_PART_MAX);
}

static bool upload_send(struct upload *upload)
{
	bool sent;

	for (uint64_t at = 0, n; at < upload->size; at += n) {
		n = ob_min(part_size(), upload->size - at);
		if (!room_await(n))
			return false;
		/* Pairs with obc_background_abandon: no part after `stop` was set. */
		atomic_store(&copies.sending, true);
		sent = !atomic_load(&copies.stop) && part_send(upload, at, n);
		atomic_store(&copies.sending, false);
		if (!sent)
			return false;
	}
	return true;
}

/* The next upload; waits for parts to be answered while there is none. NULL: the session ends. */
static struct upload *upload_next(void)
{
	struct upload *upload;

	for (;;) {
		pthread_mutex_lock(&copies.lock);
		/* No time-out: an upload is added, or the session ends. */
		while (!copies.first && !copies.n_parts && !atomic_load(&copies.stop))
			pthread_cond_wait(&copies.changed, &copies.lock);
		upload = atomic_load(&copies.stop) ? NULL : copies.first;
		if (upload) {
			copies.first = upload->next;
			if (!copies.first)
				copies.last = &copies.first;
		}
		pthread_mutex_unlock(&copies.lock);
		if (upload || !copies.n_parts || atomic_load(&copies.stop))
			return upload;
		if (!part_land())
			return NULL;
	}
}

static void *sender_main(void *unused)
{
	struct upload *upload;

	(void)unused;
	log_lane_transfer();
	while ((upload = upload_next()) && upload_send(upload))
		;
	/* At the session's end nobody waits for uploads, and what remains is not freed. */
	return NULL;
}

/* ---- the thread that receives ---- */

static void reader_step(void)
{
	const struct timespec pause = { .tv_nsec = READ_PAUSE_NS };
	struct log *log = &obc_log_state;

	if (log_down()) {
		log_down_wait();
	} else if (!atomic_load_explicit(&log->n_waits, memory_order_relaxed) &&
		log_try_right(&log->recv_right)) {
		log_read_some(true);
		log_recv_release();
	} else {
		nanosleep(&pause, NULL);
	}
}

static void *reader_main(void *unused)
{
	unsigned idle = 0;

	(void)unused;
	while (!atomic_load(&copies.stop) && !log_broken()) {
		if (atomic_load_explicit(&copies.work, memory_order_acquire)) {
			idle = 0;
			reader_step();
			continue;
		}
		atomic_store(&copies.idle, ++idle > LINGER_MAX);
		obc_futex_wait_ns(&copies.work, 0, idle > LINGER_MAX ? OB_SECOND : LINGER_NS);
	}
	return NULL;
}

void log_background_landed(struct log_wait *wait)
{
	struct read *read = (struct read *)wait, **at = &copies.reads;

	pthread_mutex_lock(&copies.lock);
	while (*at != read)
		at = &(*at)->next;
	*at = read->next;
	copies.n_reads--;
	atomic_store(&copies.work, copies.n_reads > 0);
	pending_drop();
	pthread_mutex_unlock(&copies.lock);
	free(read);
}

/* ---- beginning ---- */

/* Under the lock. */
static bool thread_have(bool *runs, void *(*fn)(void *), pthread_t *ret)
{
	*runs = *runs || obc_thread_start(fn, NULL, STACK, ret);
	return *runs;
}

/* Under the order lock. */
static bool upload_begin(struct upload *upload, uint64_t stream, uint64_t *ret_number)
{
	struct obp_upload_begin_req *req;
	struct obc_slot slot;

	upload->id = ++copies.last_id;
	req = obc_log_begin(&slot, OBP_OP_UPLOAD_BEGIN, sizeof *req);
	if (!req)
		return false;
	*req = (struct obp_upload_begin_req){ .upload = upload->id, .stream = stream };
	*ret_number = slot.number;
	obc_log_commit(&slot);
	pthread_mutex_lock(&copies.lock);
	if (!copies.last)
		copies.last = &copies.first;
	*copies.last = upload;
	copies.last = &upload->next;
	pthread_cond_signal(&copies.changed);
	pthread_mutex_unlock(&copies.lock);
	return true;
}

bool obc_background_write(
	uint64_t dst, const void *src, uint64_t size, uint64_t stream, uint64_t *ret_number)
{
	struct upload *upload;
	bool begun;
	OBC_WAITS();

	if (!is_on(OBP_LINE_upload_part) || !size || !(upload = malloc(sizeof *upload)))
		return false;
	*upload = (struct upload){ .dst = dst, .src = src, .size = size };
	pthread_mutex_lock(&copies.lock);
	begun = thread_have(&copies.sender_runs, sender_main, &copies.sender);
	if (begun)
		pending_add();
	pthread_mutex_unlock(&copies.lock);
	if (begun) {
		pthread_mutex_lock(&copies.order);
		begun = upload_begin(upload, stream, ret_number);
		pthread_mutex_unlock(&copies.order);
		if (begun)
			return true;
		pthread_mutex_lock(&copies.lock);
		pending_drop();
		pthread_mutex_unlock(&copies.lock);
	}
	free(upload);
	return false;
}

/* Enters a read in the list. False: there are too many, or the reader cannot be started. */
static bool read_add(struct read *read)
{
	bool added;

	pthread_mutex_lock(&copies.lock);
	added = copies.n_reads < OBC_BACKGROUND_READS &&
		thread_have(&copies.reader_runs, reader_main, &copies.reader);
	if (added) {
		read->next = copies.reads;
		copies.reads = read;
		copies.n_reads++;
		atomic_store(&copies.work, 1);
		pending_add();
	}
	pthread_mutex_unlock(&copies.lock);
	return added;
}

bool obc_background_read(
	void *dst, uint64_t src, uint64_t size, uint64_t stream, uint64_t *ret_number)
{
	struct obp_read_later_req *req;
	struct obc_slot slot;
	struct read *read;
	OBC_WAITS();

	if (!is_on(OBP_LINE_read_later) || !size || !(read = calloc(1, sizeof *read)))
		return false;
	read->wait = (struct log_wait){ .dst = dst,
		.capacity = size,
		.opcode = OBP_OP_READ_LATER,
		.number = UINT64_MAX,
		.later = true,
		.background = true };
	if (!read_add(read)) {
		free(read);
		return false;
	}
	req = obc_log_begin(&slot, OBP_OP_READ_LATER, sizeof *req);
	if (!req) {
		log_background_landed(&read->wait);
		return false;
	}
	*req = (struct obp_read_later_req){ .src = src, .size = size, .stream = stream };
	*ret_number = read->wait.number = slot.number;
	log_wait_add(&read->wait);
	log_commit_unanswered(&slot);
	if (atomic_load(&copies.idle))
		obc_futex_wake(&copies.work, 1);
	return true;
}

/* ---- waiting ---- */

bool obc_background_pending(void)
{
	return atomic_load_explicit(&copies.pending, memory_order_relaxed) > 0;
}

/* Waits until less is pending than `seen`, for a short time. */
static void pending_wait(uint32_t seen)
{
	log_drain(); /* the sender may doze */
	/* Before the kernel compares: either it sees less, or this waiter is seen. */
	atomic_fetch_add(&copies.waiters, 1);
	obc_futex_wait_ns(&copies.pending, seen, READ_PAUSE_NS);
	atomic_fetch_sub(&copies.waiters, 1);
}

void obc_background_wait(void)
{
	uint32_t seen;
	OBC_WAITS();

	while ((seen = atomic_load(&copies.pending)) && !log_broken())
		pending_wait(seen);
	if (log_broken())
		log_lost_wait();
}

enum obc_received obc_background_received(uint64_t number)
{
	struct log *log = &obc_log_state;
	uint64_t heard = atomic_load(&log->heard), since = ob_clock_ns(), now;

	while (atomic_load(&copies.work) && !log_broken() &&
		atomic_load_explicit(&log->replies, memory_order_acquire) < number) {
		if (atomic_load(&copies.stop))
			return OBC_ABANDONED;
		reader_step();
		now = atomic_load(&log->heard);
		if (now == heard && ob_clock_ns() - since > SILENCE_NS)
			return OBC_SILENT;
		if (now != heard || log_down()) /* a link that is restored in time is no silence */
			since = ob_clock_ns();
		heard = now;
	}
	return OBC_RECEIVED;
}

void obc_background_abandon(uint64_t deadline)
{
	const struct timespec pause = { .tv_nsec = READ_PAUSE_NS };

	pthread_mutex_lock(&copies.lock);
	atomic_store(&copies.stop, true);
	pthread_cond_broadcast(&copies.changed);
	pthread_mutex_unlock(&copies.lock);
	while (atomic_load(&copies.sending) && !log_broken() && ob_clock_ns() < deadline)
		nanosleep(&pause, NULL);
	log_hold(false); /* the goodbye needs room */
}

void obc_background_stop(void)
{
	if (!copies.sender_runs && !copies.reader_runs)
		return;
	obc_log_fail(OB_ERR_CLOSED); /* wakes both, which may wait for replies */
	atomic_store(&copies.work, 1);
	obc_futex_wake(&copies.work, 1);
	if (copies.sender_runs)
		pthread_join(copies.sender, NULL);
	if (copies.reader_runs)
		pthread_join(copies.reader, NULL);
	copies.sender_runs = copies.reader_runs = false;
}

void obc_background_forget(void)
{
	pthread_mutex_init(&copies.order, NULL);
	pthread_mutex_init(&copies.lock, NULL);
	pthread_cond_init(&copies.changed, NULL);
	copies.sender_runs = copies.reader_runs = false;
	copies.first = NULL;
	copies.last = &copies.first;
	copies.reads = NULL;
	copies.n_reads = copies.n_parts = copies.oldest = 0;
	copies.n_pieces = 0;
	copies.under_way = 0;
	atomic_store(&copies.pending, 0);
	atomic_store(&copies.waiters, 0);
	atomic_store(&copies.work, 0);
	atomic_store(&copies.idle, false);
	atomic_store(&copies.stop, false);
	atomic_store(&copies.sending, false);
}
