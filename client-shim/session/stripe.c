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
#include "client-shim/session/log.h"
#include "client-shim/session/resume.h"
#include "client-shim/session/server.h"
#include "client-shim/session/stripe_choice.h"
#include "protocol/obc_calls.h"
#include "transport/part.h"
#include "transport/path.h"

#define WORKER_STACK   (256u << 10) /* bytes of stack; codecs and TLS need the most */
/* after the server's reply: bytes under way arrive within this time or never */
#define STALL_NS       (5 * OB_SECOND)
#define CHECK_NS       (200 * OB_MS)
/* delay after stripes broke, before new ones are tried; doubled each time */
#define RETRY_FIRST_NS (50 * OB_MS)
#define RETRY_MAX_NS   (60 * OB_SECOND)
/* both ends on one machine: with fewer processors, one connection keeps all of them busy */
#define LOCAL_CPUS     4

enum state { CONNECTING, IDLE, BUSY, ENDED };

struct worker {
	pthread_t thread;
	struct obt_stripe link;
	enum state state; /* under lock */
};

/* The current copy. Its caller writes this under the lock while no worker is busy. */
struct job {
	uint64_t id;
	enum obc_direction direction;
	uint8_t *data;
	uint64_t size;
	_Atomic uint64_t next; /* out: offset of the next part to be sent */
	_Atomic uint64_t got;  /* in: bytes received */
	_Atomic bool stop;     /* out: no further part */
};

OBC_PER_SERVER uint64_t obc_stripe_min_first = UINT64_MAX;

struct stripes_state {
	/* held during a copy, and to open or close the set */
	pthread_mutex_t copy_lock;
	pthread_mutex_t lock; /* states, job, counters */
	pthread_cond_t changed;
	bool forced; /* OUTBOARD_STRIPES gives a number; set once */
	uint32_t want;
	uint64_t timeout_ns;
	unsigned codecs, codec_request;
	struct obt_gate gate;
	struct worker workers[OBP_STRIPES_MAX];
	uint32_t n;   /* workers with a thread */
	uint64_t set; /* its number */
	struct job job;
	uint64_t last_id, not_before, pause_ns; /* under copy_lock */
	bool learned;                           /* copies of this session were timed; the same */
	struct obc_choice choice[2];            /* under copy_lock */
	struct obc_stripe_stats stats;          /* under lock */
	_Atomic bool ending;
	uint64_t released; /* control thread: gate.moved when memory was given back last */
};

static OBC_PER_SERVER struct stripes_state stripes_first = { .copy_lock = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER };
#define own_stripes OBC_HERE(stripes_first)

/* ---- workers ---- */

/* Under the lock: ends all stripes. A thread that is blocked on a socket returns. */
static void gate_close(void)
{
	if (atomic_exchange(&own_stripes.gate.closed, true))
		return;
	for (uint32_t i = 0; i < own_stripes.n; i++)
		if (own_stripes.workers[i].state == IDLE || own_stripes.workers[i].state == BUSY)
			obt_stream_shutdown(&own_stripes.workers[i].link.stream);
	pthread_cond_broadcast(&own_stripes.changed);
}

static bool parts_send(struct worker *worker)
{
	struct job *job = &own_stripes.job;

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
	struct job *job = &own_stripes.job;
	struct obp_frame frame;

	if (!obt_stripe_say(&worker->link, OBP_FRAME_GIVE, job->id))
		return false;
	while (obt_stripe_next(&worker->link, &frame)) {
		if (frame.sequence != job->id || frame.type == OBP_FRAME_GIVE)
			ob_cause_set(&worker->link.cause, OB_ERR_PROTOCOL, "unexpected frame");
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
		&stream, OBP_JOIN_STRIPE, own_stripes.set, ob_clock_ns() + own_stripes.timeout_ns);

	if (err) {
		ob_debug("a stripe could not be opened: %s", ob_err_text(err));
		return false;
	}
	obt_stripe_init(&worker->link, &own_stripes.gate, &stream, own_stripes.codecs,
		own_stripes.codec_request);
	return true;
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	bool ok = connect_join(worker), linked = ok;

	pthread_mutex_lock(&own_stripes.lock);
	worker->state = ok ? IDLE : ENDED;
	/*
	 * A stripe that the server refuses only reduces their number. A stripe that breaks ends
	 * all.
	 */
	pthread_cond_broadcast(&own_stripes.changed);
	while (ok && !atomic_load(&own_stripes.gate.closed)) {
		if (worker->state != BUSY) {
			pthread_cond_wait(&own_stripes.changed, &own_stripes.lock);
			continue;
		}
		pthread_mutex_unlock(&own_stripes.lock);
		ok = obt_stream_ours(&worker->link.stream);
		if (ok)
			ok = own_stripes.job.direction == OBC_UPLOAD ? parts_send(worker)
								     : parts_receive(worker);
		pthread_mutex_lock(&own_stripes.lock);
		if (ok)
			worker->state = IDLE;
		pthread_cond_broadcast(&own_stripes.changed);
	}
	if (linked) {
		gate_close();
		if (worker->link.cause.code)
			ob_warn("the server broke the protocol on a stripe: %s",
				worker->link.cause.text);
		obt_stripe_fini(&worker->link);
	}
	worker->state = ENDED;
	pthread_cond_broadcast(&own_stripes.changed);
	pthread_mutex_unlock(&own_stripes.lock);
	return NULL;
}

/* ---- the set ---- */

static bool worker_start(struct worker *worker)
{
	*worker = (struct worker){ .state = CONNECTING };
	return obc_thread_start(worker_main, worker, WORKER_STACK, &worker->thread);
}

/* Holding copy_lock: the threads of the last set have ended; starts a new set. */
static void set_open(void)
{
	pthread_mutex_lock(&own_stripes.lock);
	atomic_store(&own_stripes.gate.closed, false);
	own_stripes.set++;
	while (own_stripes.n < own_stripes.want &&
		worker_start(&own_stripes.workers[own_stripes.n]))
		own_stripes.n++;
	pthread_mutex_unlock(&own_stripes.lock);
}

/* Holding copy_lock, without the lock: waits for the threads of a set that broke. */
static void set_close(void)
{
	for (uint32_t i = 0; i < own_stripes.n; i++)
		pthread_join(own_stripes.workers[i].thread, NULL);
	own_stripes.n = 0;
	own_stripes.pause_ns = ob_min(
		ob_max(2 * own_stripes.pause_ns, (uint64_t)RETRY_FIRST_NS), (uint64_t)RETRY_MAX_NS);
	own_stripes.not_before = ob_clock_ns() + own_stripes.pause_ns;
}

static uint32_t count(enum state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < own_stripes.n; i++)
		n += own_stripes.workers[i].state == state;
	return n;
}

/* Under the lock, at most CHECK_NS. */
static void changed_wait(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += CHECK_NS;
	if (until.tv_nsec >= (long)OB_SECOND) {
		until.tv_nsec -= (long)OB_SECOND;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&own_stripes.changed, &own_stripes.lock, &until);
}

/*
 * Holding copy_lock: whether stripes can be used now. Starts to open stripes if there are none.
 * Waits for them only if OUTBOARD_STRIPES gives a number.
 */
static bool set_ready(void)
{
	bool ready, all_ended;

	if (own_stripes.n == 0) {
		if (atomic_load(&own_stripes.ending) || ob_clock_ns() < own_stripes.not_before)
			return false;
		set_open();
	}
	pthread_mutex_lock(&own_stripes.lock);
	while (own_stripes.forced && count(CONNECTING) && !atomic_load(&own_stripes.gate.closed) &&
		obc_log_error() == CUDA_SUCCESS)
		changed_wait();
	ready = !count(CONNECTING) && count(IDLE) && !atomic_load(&own_stripes.gate.closed);
	all_ended = count(ENDED) == own_stripes.n;
	own_stripes.stats.n = ready ? count(IDLE) : 0;
	pthread_mutex_unlock(&own_stripes.lock);
	if (all_ended)
		set_close();
	return ready;
}

/* ---- one job of the stripes ---- */

static void job_begin(enum obc_direction direction, void *data, uint64_t size)
{
	pthread_mutex_lock(&own_stripes.lock);
	own_stripes.job.id = ++own_stripes.last_id;
	own_stripes.job.direction = direction;
	own_stripes.job.data = data;
	own_stripes.job.size = size;
	atomic_store(&own_stripes.job.next, 0);
	atomic_store(&own_stripes.job.got, 0);
	atomic_store(&own_stripes.job.stop, false);
	for (uint32_t i = 0; i < own_stripes.n; i++)
		if (own_stripes.workers[i].state == IDLE)
			own_stripes.workers[i].state = BUSY;
	pthread_cond_broadcast(&own_stripes.changed);
	pthread_mutex_unlock(&own_stripes.lock);
}

/*
 * After the server's reply: waits until no worker uses the caller's memory. False: stripes broke.
 */
static bool job_end(bool intact_so_far)
{
	uint64_t since = ob_clock_ns();
	bool intact;

	atomic_store(&own_stripes.job.stop, true);
	pthread_mutex_lock(&own_stripes.lock);
	if (!intact_so_far)
		gate_close();
	while (count(BUSY)) {
		if (ob_clock_ns() >
				ob_max(since, atomic_load(&own_stripes.gate.moved)) + STALL_NS ||
			obc_log_error() != CUDA_SUCCESS)
			gate_close();
		changed_wait();
	}
	intact = !atomic_load(&own_stripes.gate.closed);
	if (!intact)
		own_stripes.stats.broken++;
	pthread_mutex_unlock(&own_stripes.lock);
	if (!intact)
		set_close();
	return intact;
}

CUresult obc_stripe_carry(enum obc_direction direction, uint64_t addr, void *data, uint64_t size,
	uint64_t stream, bool *ret_complete)
{
	uint32_t complete = 0;
	CUresult result;
	bool intact;

	job_begin(direction, data, size);
	if (direction == OBC_UPLOAD)
		result = obc_call_op_write_striped(
			addr, size, stream, own_stripes.job.id, &complete);
	else
		result =
			obc_call_op_read_striped(addr, size, stream, own_stripes.job.id, &complete);
	intact = job_end(result != CUDA_SUCCESS || complete);
	*ret_complete = result == CUDA_SUCCESS && complete &&
		(direction == OBC_UPLOAD || (intact && atomic_load(&own_stripes.job.got) == size));
	if (*ret_complete)
		own_stripes.pause_ns = 0;
	return result;
}

/* ---- a copy ---- */

bool obc_stripe_enter(enum obc_direction direction, struct obc_stripe_view *ret)
{
	if (pthread_mutex_trylock(&own_stripes.copy_lock) != 0)
		return false;
	*ret = (struct obc_stripe_view){ .ready = set_ready(),
		.forced = own_stripes.forced,
		.choice = &own_stripes.choice[direction] };
	return true;
}

bool obc_stripe_ready(void)
{
	return set_ready();
}

void obc_stripe_leave(void)
{
	pthread_mutex_unlock(&own_stripes.copy_lock);
}

void obc_stripe_learn(enum obc_direction direction, enum obc_way way, uint64_t size, uint64_t ns)
{
	obc_choice_learn(&own_stripes.choice[direction], way, size, ns);
	own_stripes.learned = true;
}

void obc_stripe_count(enum obc_direction direction, uint64_t size, bool complete)
{
	pthread_mutex_lock(&own_stripes.lock);
	own_stripes.stats.copies[direction] += complete;
	own_stripes.stats.bytes[direction] += complete ? size : 0;
	own_stripes.stats.repeated += !complete;
	pthread_mutex_unlock(&own_stripes.lock);
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
	uint64_t value = OBC_STRIPE_AUTO, min_bytes = OBC_STRIPE_MIN;
	bool usable;

	own_stripes.forced = number && *number && strcmp(number, "auto") != 0;
	if (own_stripes.forced && !ob_text_parse_number(number, 0, OBP_STRIPES_MAX, &value)) {
		ob_warn("OUTBOARD_STRIPES: '%.40s' is not auto or a number from 0 to %u; "
			"using auto",
			number, OBP_STRIPES_MAX);
		own_stripes.forced = false;
	}
	if (min && *min && !ob_text_parse_size(min, &min_bytes))
		ob_warn("OUTBOARD_STRIPE_MIN: '%.40s' is not a size such as 16MiB; using %u bytes",
			min, OBC_STRIPE_MIN);
	own_stripes.want = ob_min((uint32_t)value, offered);
	own_stripes.codecs = codecs;
	own_stripes.codec_request = codec_request;
	own_stripes.timeout_ns = timeout_ns;
	usable = own_stripes.want && socket && ob_opt_on(OB_OPT_STRIPE) &&
		(own_stripes.forced || !obt_path_local(data) || cpus() >= LOCAL_CPUS);
	obc_stripe_min = usable ? min_bytes : UINT64_MAX;
	pthread_cond_init(&own_stripes.changed, NULL);
}

void obc_stripe_recall(const struct obt_link_memory *memory)
{
	obc_choice_recall(&own_stripes.choice[OBC_UPLOAD], (double)memory->log_upload,
		(double)memory->stripes_upload);
	obc_choice_recall(&own_stripes.choice[OBC_DOWNLOAD], (double)memory->log_download,
		(double)memory->stripes_download);
}

void obc_stripe_learned(struct obt_link_memory *ret)
{
	const struct obc_choice *up = &own_stripes.choice[OBC_UPLOAD],
				*down = &own_stripes.choice[OBC_DOWNLOAD];

	if (pthread_mutex_trylock(&own_stripes.copy_lock) != 0)
		return; /* another thread still copies */
	if (own_stripes.learned) {
		ret->log_upload = (uint64_t)up->rate[OBC_LOG];
		ret->stripes_upload = (uint64_t)up->rate[OBC_STRIPES];
		ret->log_download = (uint64_t)down->rate[OBC_LOG];
		ret->stripes_download = (uint64_t)down->rate[OBC_STRIPES];
	}
	pthread_mutex_unlock(&own_stripes.copy_lock);
}

void obc_stripe_release_idle(uint64_t now)
{
	uint64_t moved = atomic_load(&own_stripes.gate.moved);

	if (moved == own_stripes.released || now < moved + OBC_IDLE_NS ||
		!ob_opt_on(OB_OPT_RELEASE) || pthread_mutex_trylock(&own_stripes.copy_lock) != 0)
		return;
	own_stripes.released = moved;
	/* Without a copy no worker uses its link, except to open or close it. */
	pthread_mutex_lock(&own_stripes.lock);
	for (uint32_t i = 0; i < own_stripes.n; i++)
		if (own_stripes.workers[i].state == IDLE)
			obt_stripe_release(&own_stripes.workers[i].link);
	pthread_mutex_unlock(&own_stripes.lock);
	pthread_mutex_unlock(&own_stripes.copy_lock);
}

void obc_stripe_stop(void)
{
	struct timespec until;

	atomic_store(&own_stripes.ending, true);
	if (obc_stripe_min == UINT64_MAX || pthread_mutex_trylock(&own_stripes.copy_lock) != 0)
		return; /* another thread still copies; the process is ending */
	pthread_mutex_lock(&own_stripes.lock);
	gate_close();
	pthread_mutex_unlock(&own_stripes.lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 1;
	for (uint32_t i = 0; i < own_stripes.n; i++)
		pthread_timedjoin_np(own_stripes.workers[i].thread, NULL, &until);
	obc_stripe_min = UINT64_MAX;
	pthread_mutex_unlock(&own_stripes.copy_lock);
}

void obc_stripe_forget(void)
{
	for (uint32_t i = 0; i < own_stripes.n; i++)
		if (own_stripes.workers[i].state == IDLE || own_stripes.workers[i].state == BUSY)
			obt_stream_forget(&own_stripes.workers[i].link.stream);
	obc_stripe_min = UINT64_MAX;
	own_stripes = (struct stripes_state){ .copy_lock = PTHREAD_MUTEX_INITIALIZER,
		.lock = PTHREAD_MUTEX_INITIALIZER };
}

void obc_stripe_stats(struct obc_stripe_stats *ret)
{
	pthread_mutex_lock(&own_stripes.lock);
	*ret = own_stripes.stats;
	for (unsigned d = 0; d < 2; d++)
		for (unsigned w = 0; w < 2; w++)
			ret->rate[d][w] = own_stripes.choice[d].rate[w];
	pthread_mutex_unlock(&own_stripes.lock);
}
