/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The engine executes all calls. A call is a job. A job is cut into pieces, and each piece waits in
 * the queue of one device, whose thread executes it. A piece that fails is repeated on that device
 * with backoff, then given to another device. Queued pieces move from busy devices to idle ones.
 * The thread that completes the last piece finishes the job.
 *
 *     call -> job -> pieces -share-> queues: [cpu:2] p0 p3    -> threads -> finish -> ticket
 *                                            [gpu:0] p1 p2 p4
 *
 * One lock per context guards the queues, the devices' figures and the jobs' states. It is never
 * held while a piece, a callback or a `finish` function runs. A job's callback lock ensures that
 * its callbacks run one at a time; it is never taken while the context's lock is held. A context is
 * freed when its user, all handles and all jobs have released it.
 */
#ifndef OBV_ENGINE_H
#define OBV_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "compute/engine/breaker.h"
#include "compute/engine/device.h"
#include "compute/engine/fail.h"
#include "compute/engine/profile.h"

#define OBV_PIECES_MAX    65536
/* divisible work is cut into pieces of about this duration, in seconds */
#define OBV_PIECE_SECONDS 0.1

struct obv_device {
	struct outboard *context;
	unsigned index;
	struct obv_backend backend;
	struct obv_curves curves;
	struct obv_breaker breaker;
	pthread_t thread;
	bool started;
	pthread_cond_t work;
	struct obv_piece *head, *tail;
	double queued_seconds;  /* expected for all pieces in the queue */
	double running_seconds; /* expected for the piece that is running; 0: none */
	uint64_t running_since;
	struct outboard_device stats;
	double busy;
};

struct outboard {
	pthread_mutex_t lock;
	unsigned refs;
	bool closing;
	unsigned count;
	struct obv_device device[OUTBOARD_MAX_DEVICES];
	uint32_t strategy, share_at_most;
	unsigned retries;
	uint64_t backoff, backoff_most;
	double horizon;
	unsigned jobs;                   /* unfinished jobs */
	struct obv_job *first_job;       /* list of the unfinished jobs */
	pthread_cond_t idle;             /* signalled when jobs becomes 0 */
	char machine[17], profile[4096]; /* profile: path of the file; "": none */
};

struct obv_job;

struct obv_piece {
	struct obv_job *job;
	unsigned index;
	/* range of items of the job; their meaning depends on the operation */
	uint64_t first, count;
	double size, times; /* for the estimated duration: `times` operations of this size */
	uint64_t items;     /* for statistics */
	/* the device in whose queue it waits; failed attempts on that device */
	unsigned device, attempts;
	double seconds; /* expected on that device */
	uint64_t tried; /* bit mask of the devices on which it failed for good */
	uint64_t not_before;
	struct obv_piece *next;
};

struct obv_job_ops {
	/*
	 * Called on the device's thread. OUTBOARD_OK or an error (see device.h). May be called
	 * again after OUTBOARD_DEVICE, OUTBOARD_NO_MEMORY or OUTBOARD_UNSUPPORTED.
	 */
	int (*run)(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
		struct outboard_error *error);
	/* Called when all pieces have succeeded: combines the results. May be NULL. */
	int (*finish)(struct obv_job *job, struct outboard_error *error);
	/* Frees memory that the job refers to, but not the job. May be NULL. */
	void (*fini)(struct obv_job *job);
};

/*
 * The first member of each operation's struct, which the operation allocates with malloc. Its
 * public name is struct outboard_ticket.
 */
struct obv_job {
	struct outboard *context;
	const struct obv_job_ops *ops;
	uint32_t operation;
	uint64_t allowed; /* bit mask of the devices that may be used */
	unsigned refs;
	unsigned piece_count, left, failed;
	struct obv_piece *pieces;
	/*
	 * running pieces should end; relaxed: it is only a hint, the outcome is decided under the
	 * lock
	 */
	_Atomic bool stop;
	bool submitted, dropped, over;
	/* reason why pieces were dropped: OUTBOARD_CANCELLED or OUTBOARD_TIMEOUT */
	int why;
	uint64_t deadline; /* OB_NEVER: none */
	int status;
	struct outboard_error error;
	unsigned attempt_count;
	struct outboard_error attempt[OUTBOARD_MAX_ATTEMPTS];
	pthread_cond_t done;
	int fd;
	struct outboard_call call; /* ticket is NULL if the caller waits for the result itself */
	pthread_mutex_t callbacks;
	uint64_t next_progress; /* guarded by callbacks */
	double told;
	/* of each piece, in millionths; relaxed: only reported to the user */
	_Atomic uint32_t *progress;
	_Atomic bool finishing; /* a thread finishes the job; relaxed: written under the lock */
	struct obv_job *next, *previous;
};

/* ---- contexts: context.c ---- */

/* Takes ownership of the backends, also on failure. options as for outboard_open. */
int obv_context_new(const struct outboard_options *options, const struct obv_backend *backends,
	unsigned n, struct outboard **ret, struct outboard_error *error);
/* Returns the context itself, or for NULL the default context of the process; takes a reference. */
int obv_context_get(struct outboard *context, struct outboard **ret, struct outboard_error *error);
void obv_context_unref(struct outboard *context);
/* The first device that has a pool of threads; NULL: none. */
struct obv_device *obv_context_cpu(struct outboard *context);
bool obv_context_has_gpu(const struct outboard *context);
/* Replaces estimates by the times that devices have measured; takes the lock. */
void obv_context_expect(struct outboard *context);
/* Sets the curves to estimates, then overrides them with the profile. */
void obv_context_curves(struct outboard *context);

/* ---- dividing work: share.c; callers hold the lock ---- */

double obv_device_seconds(
	const struct obv_device *device, uint32_t operation, double size, double times);
double obv_device_load(const struct obv_device *device, uint64_t now);
bool obv_device_usable(
	const struct obv_device *device, const struct obv_piece *piece, uint64_t now);
/* The index of the device that is expected to finish the piece first; -1: no device is usable. */
int obv_piece_place(struct outboard *context, const struct obv_piece *piece, uint64_t now);
void obv_piece_queue(struct obv_device *device, struct obv_piece *piece, bool front);
void obv_piece_unqueue(struct obv_device *device, struct obv_piece *piece);
void obv_balance(struct outboard *context, uint64_t now);

struct obv_part {
	unsigned device;
	uint64_t first, count;
};

/*
 * Divides [0, count) among devices. batch: `count` operations of `size` each. Otherwise one
 * operation of size `count`, which may be cut into parts of at least `least`. Takes the lock.
 * Returns the number of parts, 1..OUTBOARD_MAX_DEVICES; 0: no device is available now.
 */
unsigned obv_share(struct outboard *context, const struct obv_job *job, uint64_t count, double size,
	bool batch, uint64_t least, struct obv_part *ret_parts);

/* ---- jobs: engine.c ---- */

/*
 * Allocates `bytes` of zeroed memory for a struct that begins with the job, and copies the options
 * of `call`. NULL, with the error filled, on failure. Takes a reference to the context.
 */
void *obv_job_new(struct outboard *context, size_t bytes, const struct obv_job_ops *ops,
	uint32_t operation, const struct outboard_call *call, struct outboard_error *error);
/*
 * Allocates pieces; the caller sets first, count, size, times, items and device before it submits
 * the job. False: out of memory, or too many pieces.
 */
bool obv_job_pieces(struct obv_job *job, unsigned count);
/*
 * Makes one piece for each part that obv_share returns for [0, count), or smaller pieces if `batch`
 * is set. items_each: for statistics. OUTBOARD_OK; a job with count 0 has no pieces.
 */
int obv_job_cut(struct obv_job *job, uint64_t count, double size, bool batch, uint64_t least,
	uint64_t items_each, struct outboard_error *error);
/*
 * Starts the job. If the call asked for a ticket, returns OUTBOARD_OK and the ticket; otherwise
 * waits and returns the outcome. In both cases the caller must not use the job afterwards.
 */
int obv_job_submit(struct obv_job *job, struct outboard_error *error);
/* Releases a job that is not submitted. NULL is allowed. */
void obv_job_unref(struct obv_job *job);
/* Sets the progress of a piece, 0..1; any thread. False: the piece must stop. */
bool obv_job_progress(struct obv_job *job, unsigned piece, double done);
bool obv_job_stopped(const struct obv_job *job);
/* Main function of a device's thread. */
void *obv_engine_main(void *device);
/*
 * Call with the lock held. Drops all queued pieces of the job. True: the caller must finish the
 * job, after it has released the lock.
 */
bool obv_job_drop(struct obv_job *job, int why);
/*
 * Call with the lock held. True if no piece is left: the caller must then call obv_job_finish,
 * after it has released the lock. Returns true only once per job.
 */
bool obv_job_claim(struct obv_job *job);
void obv_job_finish(struct obv_job *job);
/* Waits for a signal or until `deadline` (ns of ob_clock_ns, or OB_NEVER). */
void obv_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline);
/* Initialises a condition variable that uses the clock of ob_clock_ns. */
void obv_cond_init(pthread_cond_t *cond);

/* Checks the options that all calls have. */
int obv_call_check(const struct outboard_call *call, struct outboard_error *error);

#endif
