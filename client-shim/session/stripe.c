/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
#include "client-shim/session/stripe.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/text.h"
#include "base/thread.h"
#include "client-shim/session/inside.h"
#include "client-shim/session/log.h"
#include "client-shim/session/resume.h"
#include "client-shim/session/stripe_choice.h"
#include "protocol/obc_calls.h"
#include "transport/part.h"
#include "transport/path.h"

#define WORKER_STACK   (256u << 10) /* bytes of stack; codecs and TLS need the most */
/* after the server's reply: bytes under way arrive within this time or never */
#define STALL_NS       (5 * OB_SECOND)
#define LOOK_NS        (200 * OB_MS)
/* delay after stripes broke, before new ones are tried; doubled each time */
#define AGAIN_FIRST_NS (50 * OB_MS)
#define AGAIN_MAX_NS   (60 * OB_SECOND)
/* both ends on one machine: with fewer processors, one connection keeps all of them busy */
#define LOCAL_CPUS     4

enum direction { OUT, IN };
enum state { CONNECTING, IDLE, BUSY, ENDED };

struct worker {
	pthread_t thread;
	struct obt_stripe link;
	enum state state; /* under lock */
};

/* The current copy. Its caller writes this under the lock while no worker is busy. */
struct job {
	uint64_t id;
	enum direction direction;
	uint8_t *data;
	uint64_t size;
	_Atomic uint64_t next; /* out: offset of the next part to be sent */
	_Atomic uint64_t got;  /* in: bytes received */
	_Atomic bool stop;     /* out: no further part */
};

static struct stripes {
	/* held during a copy, and to open or close the set */
	pthread_mutex_t turn;
	pthread_mutex_t lock; /* states, job, counters */
	pthread_cond_t changed;
	bool usable, forced; /* set once */
	uint32_t want;
	uint64_t min_bytes, timeout_ns;
	unsigned codecs, codec_request;
	struct obt_gate gate;
	struct worker workers[OBP_STRIPES_MAX];
	uint32_t n;   /* workers with a thread */
	uint64_t set; /* its number */
	struct job job;
	uint64_t last_id, not_before, pause_ns; /* under turn */
	struct obc_choice choice[2];            /* under turn */
	struct obc_stripe_stats stats;          /* under lock */
	_Atomic bool ending;
} stripes = { .turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- workers ---- */

/* Under the lock: ends all stripes. A thread that is blocked on a socket returns. */
static void gate_close(void)
{
	if (atomic_exchange(&stripes.gate.closed, true))
		return;
	for (uint32_t i = 0; i < stripes.n; i++)
		if (stripes.workers[i].state == IDLE || stripes.workers[i].state == BUSY)
			obt_stream_shutdown(&stripes.workers[i].link.stream);
	pthread_cond_broadcast(&stripes.changed);
}

static bool parts_send(struct worker *worker)
{
	struct job *job = &stripes.job;

	while (!atomic_load_explicit(&job->stop, memory_order_relaxed)) {
		uint64_t piece = obt_stripe_piece(&worker->link);
		uint64_t offset = atomic_fetch_add(&job->next, piece);

		if (offset >= job->size)
			break;
		if (!obt_stream_ours(&worker->link.stream) ||
			!obt_stripe_send(&worker->link, job->id, offset, job->data + offset,
				(uint32_t)ob_min(piece, job->size - offset)))
			return false;
	}
	return true;
}

static bool parts_receive(struct worker *worker)
{
	struct job *job = &stripes.job;
	struct obp_frame frame;

	if (!obt_stripe_say(&worker->link, OBP_FRAME_GIVE, job->id))
		return false;
	while (obt_stripe_next(&worker->link, &frame)) {
		if (frame.sequence != job->id || frame.type == OBP_FRAME_GIVE)
			ob_cause_set(&worker->link.cause, OB_ERR_PROTOCOL,
				"a frame that was not asked for");
		else if (frame.type == OBP_FRAME_GIVEN)
			return true;
		else
			obp_stripe_check(
				&frame, worker->link.codecs, job->size, &worker->link.cause);
		if (worker->link.cause.code ||
			!obt_stripe_take(&worker->link, &frame, job->data + frame.ack))
			return false;
		atomic_fetch_add(&job->got, frame.count);
		if (!obt_stream_ours(&worker->link.stream))
			return false;
	}
	return false;
}

static bool connect_join(struct worker *worker)
{
	struct obt_stream stream = { .fd = -1 };
	enum ob_err err = obc_dial_once(
		&stream, OBP_JOIN_STRIPE, stripes.set, ob_clock_ns() + stripes.timeout_ns);

	if (err) {
		ob_debug("a stripe could not be opened: %s", ob_err_text(err));
		return false;
	}
	obt_stripe_init(
		&worker->link, &stripes.gate, &stream, stripes.codecs, stripes.codec_request);
	return true;
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	bool ok = connect_join(worker), linked = ok;

	pthread_mutex_lock(&stripes.lock);
	worker->state = ok ? IDLE : ENDED;
	/*
	 * A stripe that the server refuses only reduces their number. A stripe that breaks ends
	 * all.
	 */
	pthread_cond_broadcast(&stripes.changed);
	while (ok && !atomic_load(&stripes.gate.closed)) {
		if (worker->state != BUSY) {
			pthread_cond_wait(&stripes.changed, &stripes.lock);
			continue;
		}
		pthread_mutex_unlock(&stripes.lock);
		ok = obt_stream_ours(&worker->link.stream);
		if (ok)
			ok = stripes.job.direction == OUT ? parts_send(worker)
							  : parts_receive(worker);
		pthread_mutex_lock(&stripes.lock);
		if (ok)
			worker->state = IDLE;
		pthread_cond_broadcast(&stripes.changed);
	}
	if (linked) {
		gate_close();
		if (worker->link.cause.code)
			ob_warn("the server broke the protocol on a stripe: %s",
				worker->link.cause.text);
		obt_stripe_fini(&worker->link);
	}
	worker->state = ENDED;
	pthread_cond_broadcast(&stripes.changed);
	pthread_mutex_unlock(&stripes.lock);
	return NULL;
}

/* ---- the set ---- */

static bool worker_start(struct worker *worker)
{
	*worker = (struct worker){ .state = CONNECTING };
	return ob_thread_start(worker_main, worker, WORKER_STACK, &worker->thread);
}

/* Holding `turn`: the threads of the last set have ended; starts a new set. */
static void set_open(void)
{
	pthread_mutex_lock(&stripes.lock);
	atomic_store(&stripes.gate.closed, false);
	stripes.set++;
	while (stripes.n < stripes.want && worker_start(&stripes.workers[stripes.n]))
		stripes.n++;
	pthread_mutex_unlock(&stripes.lock);
}

/* Holding `turn`, without the lock: waits for the threads of a set that broke. */
static void set_close(void)
{
	for (uint32_t i = 0; i < stripes.n; i++)
		pthread_join(stripes.workers[i].thread, NULL);
	stripes.n = 0;
	stripes.pause_ns = ob_min(
		ob_max(2 * stripes.pause_ns, (uint64_t)AGAIN_FIRST_NS), (uint64_t)AGAIN_MAX_NS);
	stripes.not_before = ob_clock_ns() + stripes.pause_ns;
}

static uint32_t count(enum state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < stripes.n; i++)
		n += stripes.workers[i].state == state;
	return n;
}

/* Under the lock, at most LOOK_NS. */
static void changed_wait(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_NS;
	if (until.tv_nsec >= (long)OB_SECOND) {
		until.tv_nsec -= (long)OB_SECOND;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&stripes.changed, &stripes.lock, &until);
}

/*
 * Holding `turn`: whether stripes can be used now. Starts to open stripes if there are none. Waits
 * for them only if OUTBOARD_STRIPES is set.
 */
static bool set_ready(void)
{
	bool ready, gone;

	if (stripes.n == 0) {
		if (atomic_load(&stripes.ending) || ob_clock_ns() < stripes.not_before)
			return false;
		set_open();
	}
	pthread_mutex_lock(&stripes.lock);
	while (stripes.forced && count(CONNECTING) && !atomic_load(&stripes.gate.closed) &&
		obc_log_error() == CUDA_SUCCESS)
		changed_wait();
	ready = !count(CONNECTING) && count(IDLE) && !atomic_load(&stripes.gate.closed);
	gone = count(ENDED) == stripes.n;
	stripes.stats.n = ready ? count(IDLE) : 0;
	pthread_mutex_unlock(&stripes.lock);
	if (gone)
		set_close();
	return ready;
}

/* ---- a transfer ---- */

static void job_begin(enum direction direction, void *data, uint64_t size)
{
	pthread_mutex_lock(&stripes.lock);
	stripes.job.id = ++stripes.last_id;
	stripes.job.direction = direction;
	stripes.job.data = data;
	stripes.job.size = size;
	atomic_store(&stripes.job.next, 0);
	atomic_store(&stripes.job.got, 0);
	atomic_store(&stripes.job.stop, false);
	for (uint32_t i = 0; i < stripes.n; i++)
		if (stripes.workers[i].state == IDLE)
			stripes.workers[i].state = BUSY;
	pthread_cond_broadcast(&stripes.changed);
	pthread_mutex_unlock(&stripes.lock);
}

/*
 * After the server's reply: waits until no worker uses the caller's memory. False: stripes broke.
 */
static bool job_end(bool well_so_far)
{
	uint64_t since = ob_clock_ns();
	bool well;

	atomic_store(&stripes.job.stop, true);
	pthread_mutex_lock(&stripes.lock);
	if (!well_so_far)
		gate_close();
	while (count(BUSY)) {
		if (ob_clock_ns() > ob_max(since, atomic_load(&stripes.gate.moved)) + STALL_NS ||
			obc_log_error() != CUDA_SUCCESS)
			gate_close();
		changed_wait();
	}
	well = !atomic_load(&stripes.gate.closed);
	if (!well)
		stripes.stats.broken++;
	pthread_mutex_unlock(&stripes.lock);
	if (!well)
		set_close();
	return well;
}

/*
 * Makes one transfer of at most OBP_TRANSFER_MAX bytes. *ret_whole false: not all bytes have
 * arrived.
 */
static CUresult transfer(enum direction direction, uint64_t addr, uint8_t *data, uint64_t size,
	uint64_t stream, bool *ret_whole)
{
	uint32_t whole = 0;
	CUresult result;
	bool well;

	job_begin(direction, data, size);
	if (direction == OUT)
		result = obc_call_op_write_striped(addr, size, stream, stripes.job.id, &whole);
	else
		result = obc_call_op_read_striped(addr, size, stream, stripes.job.id, &whole);
	well = job_end(result != CUDA_SUCCESS || whole);
	*ret_whole = result == CUDA_SUCCESS && whole &&
		(direction == OUT || (well && atomic_load(&stripes.job.got) == size));
	if (*ret_whole)
		stripes.pause_ns = 0;
	return result;
}

static CUresult over_log(
	enum direction direction, uint64_t addr, uint8_t *data, uint64_t size, uint64_t stream)
{
	return direction == OUT ? obc_call_op_write(addr, size, stream, data)
				: obc_call_op_read(addr, size, stream, data);
}

/* Holding `turn`. */
static CUresult over_stripes(
	enum direction direction, uint64_t addr, uint8_t *data, uint64_t size, uint64_t stream)
{
	CUresult result = CUDA_SUCCESS;
	bool whole = true;

	for (uint64_t at = 0; at < size && result == CUDA_SUCCESS;) {
		uint64_t n = ob_min(size - at, (uint64_t)OBP_TRANSFER_MAX);

		whole = whole && (at == 0 || set_ready());
		if (whole)
			result = transfer(direction, addr + at, data + at, n, stream, &whole);
		/*
		 * Writes the same bytes to the same address, or reads from the start: the result of
		 * the broken transfer is discarded.
		 */
		if (!whole && result == CUDA_SUCCESS)
			result = over_log(direction, addr + at, data + at, n, stream);
		pthread_mutex_lock(&stripes.lock);
		stripes.stats.copies[direction] += whole;
		stripes.stats.bytes[direction] += whole ? n : 0;
		stripes.stats.again += !whole;
		pthread_mutex_unlock(&stripes.lock);
		at += n;
	}
	return result;
}

static CUresult copy(
	enum direction direction, uint64_t addr, void *data, uint64_t size, uint64_t stream)
{
	enum obc_way way;
	uint64_t began;
	CUresult result;

	if (ob_likely(size < stripes.min_bytes || !stripes.usable) ||
		pthread_mutex_trylock(&stripes.turn) != 0)
		return over_log(direction, addr, data, size, stream);
	OBC_WAITS();
	way = set_ready() ? OBC_STRIPES : OBC_LOG;
	if (!stripes.forced)
		way = obc_choice_next(&stripes.choice[direction], way == OBC_STRIPES);
	began = ob_clock_ns();
	/*
	 * A read returns when all bytes have arrived. So does a write that is large enough to be
	 * sent by reference.
	 */
	result = way == OBC_STRIPES ? over_stripes(direction, addr, data, size, stream)
				    : over_log(direction, addr, data, size, stream);
	if (result == CUDA_SUCCESS)
		obc_choice_learn(&stripes.choice[direction], way, size, ob_clock_ns() - began);
	pthread_mutex_unlock(&stripes.turn);
	return result;
}

CUresult obc_stripe_write(uint64_t dst, uint64_t size, uint64_t stream, const void *src)
{
	return copy(OUT, dst, (void *)(uintptr_t)src, size, stream);
}

CUresult obc_stripe_read(uint64_t src, uint64_t size, uint64_t stream, void *dst)
{
	return copy(IN, src, dst, size, stream);
}

/* ---- the session's ---- */

static unsigned cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

void obc_stripe_init(const struct obt_url *url, const struct obt_stream *data, uint32_t offered,
	unsigned codecs, unsigned codec_request, uint64_t timeout_ns)
{
	const char *number = getenv("OUTBOARD_STRIPES"), *min = getenv("OUTBOARD_STRIPE_MIN");
	bool socket = url->scheme == OBT_TCP || url->scheme == OBT_TLS || url->scheme == OBT_UNIX;
	uint64_t value = OBC_STRIPE_AUTO;

	stripes.forced = number && *number && strcmp(number, "auto") != 0;
	if (stripes.forced && !ob_text_parse_number(number, 0, OBP_STRIPES_MAX, &value)) {
		ob_warn("OUTBOARD_STRIPES: '%.40s' is neither auto nor a number from 0 to %u; "
			"using auto",
			number, OBP_STRIPES_MAX);
		stripes.forced = false;
	}
	stripes.min_bytes = OBC_STRIPE_MIN;
	if (min && *min && !ob_text_parse_size(min, &stripes.min_bytes))
		ob_warn("OUTBOARD_STRIPE_MIN: '%.40s' is not a size; using %u", min,
			OBC_STRIPE_MIN);
	stripes.want = ob_min((uint32_t)value, offered);
	stripes.codecs = codecs;
	stripes.codec_request = codec_request;
	stripes.timeout_ns = timeout_ns;
	stripes.usable = stripes.want && socket && ob_opt_on(OB_OPT_STRIPE) &&
		(stripes.forced || !obt_path_local(data) || cpus() >= LOCAL_CPUS);
	pthread_cond_init(&stripes.changed, NULL);
}

void obc_stripe_stop(void)
{
	struct timespec until;

	atomic_store(&stripes.ending, true);
	if (!stripes.usable || pthread_mutex_trylock(&stripes.turn) != 0)
		return; /* another thread still copies; the process is ending */
	pthread_mutex_lock(&stripes.lock);
	gate_close();
	pthread_mutex_unlock(&stripes.lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	for (uint32_t i = 0; i < stripes.n; i++)
		pthread_timedjoin_np(stripes.workers[i].thread, NULL, &until);
	stripes.usable = false;
	pthread_mutex_unlock(&stripes.turn);
}

void obc_stripe_forget(void)
{
	for (uint32_t i = 0; i < stripes.n; i++)
		if (stripes.workers[i].state == IDLE || stripes.workers[i].state == BUSY)
			obt_stream_forget(&stripes.workers[i].link.stream);
	stripes = (struct stripes){ .turn = PTHREAD_MUTEX_INITIALIZER,
		.lock = PTHREAD_MUTEX_INITIALIZER };
}

void obc_stripe_stats(struct obc_stripe_stats *ret)
{
	pthread_mutex_lock(&stripes.lock);
	*ret = stripes.stats;
	for (unsigned d = 0; d < 2; d++)
		for (unsigned w = 0; w < 2; w++)
			ret->rate[d][w] = stripes.choice[d].rate[w];
	pthread_mutex_unlock(&stripes.lock);
}
