/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The engine under every call. A call is a job; a job is cut into pieces; each piece waits in the
 * queue of one device, whose own thread runs it. A piece that fails is repeated there with backoff,
 * then given to another device. Queued pieces move from hot devices to cold ones. The last piece's
 * thread finishes the job.
 *
 *     call --> job --> pieces --share--> queues:  [cpu:2] p0 p3     --> threads --> finish --> ticket is over
 *                                                 [gpu:0] p1 p2 p4
 *
 * One lock per context guards queues, devices' figures and jobs' states; it is never held while a
 * piece, a callback or a finish runs. A job's callback lock keeps its callbacks apart and is never
 * taken with the context's lock held. A context lives until the last of its user, handles and jobs
 * lets go.
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
#define OBV_PIECE_SECONDS 0.1 /* work that can be cut anywhere is cut into pieces of about this */

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
	double queued_seconds;  /* expected, of all in the queue */
	double running_seconds; /* expected, of the piece that runs; 0: none */
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
	unsigned jobs;                   /* not over */
	struct obv_job *first_job;       /* of these */
	pthread_cond_t idle;             /* jobs fell to 0 */
	char machine[17], profile[4096]; /* the file; "": none */
};

struct obv_job;

struct obv_piece {
	struct obv_job *job;
	unsigned index;
	uint64_t first, count;     /* the part of the job; what they count is the job's matter */
	double size, times;        /* for the estimate: `times` operations of this size */
	uint64_t items;            /* for statistics */
	unsigned device, attempts; /* where it waits; failures there */
	double seconds;            /* expected there */
	uint64_t tried;            /* devices that gave it up */
	uint64_t not_before;
	struct obv_piece *next;
};

struct obv_job_ops {
	/*
	 * On the device's thread. OUTBOARD_OK or why not (see device.h). May be called again after
	 * OUTBOARD_DEVICE, NO_MEMORY, UNSUPPORTED.
	 */
	int (*run)(struct obv_job *job, struct obv_piece *piece, struct obv_device *device,
		struct outboard_error *error);
	/* All pieces succeeded: put the result together. May be NULL. */
	int (*finish)(struct obv_job *job, struct outboard_error *error);
	/* Frees what the job's memory refers to (not the job). May be NULL. */
	void (*fini)(struct obv_job *job);
};

/*
 * First member of each operation's own struct, allocated by it with malloc. Its public name is
 * struct outboard_ticket.
 */
struct obv_job {
	struct outboard *context;
	const struct obv_job_ops *ops;
	uint32_t operation;
	uint64_t allowed; /* devices */
	unsigned refs;
	unsigned piece_count, left, failed;
	struct obv_piece *pieces;
	/*
	 * pieces under way should end; relaxed: only a hint, the outcome is decided under the lock
	 */
	_Atomic bool stop;
	bool submitted, dropped, over;
	int why;           /* dropped: CANCELLED or TIMEOUT */
	uint64_t deadline; /* OB_NEVER: none */
	int status;
	struct outboard_error error;
	unsigned attempt_count;
	struct outboard_error attempt[OUTBOARD_MAX_ATTEMPTS];
	pthread_cond_t done;
	int fd;
	struct outboard_call call; /* ticket NULL where nobody waits */
	pthread_mutex_t callbacks;
	uint64_t next_progress; /* guarded by callbacks */
	double told;
	_Atomic uint32_t *progress; /* of each piece, in millionths; relaxed */
	_Atomic bool finishing;     /* somebody finishes it; relaxed: written under the lock */
	struct obv_job *next, *previous;
};

/* ---- contexts: context.c ---- */

/* Takes over the backends, also when it fails. options as for outboard_open. */
int obv_context_new(const struct outboard_options *options, const struct obv_backend *backends,
	unsigned n, struct outboard **ret, struct outboard_error *error);
/* The context itself, or for NULL the process's own; takes a reference. */
int obv_context_get(struct outboard *context, struct outboard **ret, struct outboard_error *error);
void obv_context_unref(struct outboard *context);
/* The first device with a pool of threads; NULL: none. */
struct obv_device *obv_context_cpu(struct outboard *context);
bool obv_context_has_gpu(const struct outboard *context);
/* What devices say of themselves in place of guesses; takes the lock. */
void obv_context_expect(struct outboard *context);
/* Guesses, then what the profile says. */
void obv_context_curves(struct outboard *context);

/* ---- sharing out: share.c; the lock is held ---- */

double obv_device_seconds(
	const struct obv_device *device, uint32_t operation, double size, double times);
double obv_device_load(const struct obv_device *device, uint64_t now);
bool obv_device_usable(
	const struct obv_device *device, const struct obv_piece *piece, uint64_t now);
/* The device that would be done first with it; -1: none is usable. */
int obv_piece_place(struct outboard *context, const struct obv_piece *piece, uint64_t now);
void obv_piece_queue(struct obv_device *device, struct obv_piece *piece, bool front);
void obv_piece_unqueue(struct obv_device *device, struct obv_piece *piece);
void obv_balance(struct outboard *context, uint64_t now);

struct obv_part {
	unsigned device;
	uint64_t first, count;
};

/*
 * Parts of [0, count) for devices. batch: `count` operations of `size` each; else one operation of
 * size `count` that can be cut, into parts of at least
 * `least`. Takes the lock. The number of parts, 1..OUTBOARD_MAX_DEVICES; 0: no device can do it now.
 */
unsigned obv_share(struct outboard *context, const struct obv_job *job, uint64_t count, double size,
	bool batch, uint64_t least, struct obv_part *ret_parts);

/* ---- jobs: engine.c ---- */

/*
 * Zeroed memory of `bytes` with the job in front and everything for `call` taken down; NULL with
 * the error filled. Takes a reference to the context.
 */
void *obv_job_new(struct outboard *context, size_t bytes, const struct obv_job_ops *ops,
	uint32_t operation, const struct outboard_call *call, struct outboard_error *error);
/*
 * Room for pieces, to be filled (first, count, size, times, items, device) before the job is
 * submitted. False: no memory, or too many.
 */
bool obv_job_pieces(struct obv_job *job, unsigned count);
/*
 * One piece for each of the parts that obv_share makes of [0, count), cut smaller where `batch`
 * allows. items_each: for statistics. OUTBOARD_OK; a job with count 0 has no pieces.
 */
int obv_job_cut(struct obv_job *job, uint64_t count, double size, bool batch, uint64_t least,
	uint64_t items_each, struct outboard_error *error);
/*
 * Sends it off. With a ticket wanted: OUTBOARD_OK and the ticket; else waits and returns the
 * outcome. Either way the caller's part in the job ends.
 */
int obv_job_submit(struct obv_job *job, struct outboard_error *error);
/* Instead of submitting. NULL is allowed. */
void obv_job_unref(struct obv_job *job);
/* A piece's progress, 0..1, from any thread; false: stop. */
bool obv_job_progress(struct obv_job *job, unsigned piece, double done);
bool obv_job_stopped(const struct obv_job *job);
/* A device's thread. */
void *obv_engine_main(void *device);
/*
 * Under the lock: drops all queued pieces of the job; returns true when the caller must finish it
 * (without the lock).
 */
bool obv_job_drop(struct obv_job *job, int why);
/*
 * Under the lock: true for the one who finds that no piece is left and must call obv_job_finish
 * (without the lock).
 */
bool obv_job_claim(struct obv_job *job);
void obv_job_finish(struct obv_job *job);
/* Until a signal or `deadline` (ns of ob_clock_ns; OB_NEVER). */
void obv_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline);
/* A condition variable on the clock of ob_clock_ns. */
void obv_cond_init(pthread_cond_t *cond);

/* For arguments of every call. */
int obv_call_check(const struct outboard_call *call, struct outboard_error *error);

#endif
