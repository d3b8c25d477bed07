/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A session: everything a worker knows of the one program it serves. There is one per process and
 * it is never freed: when the client leaves, the process exits, and the kernel and the driver
 * release everything. Parts that need one another have their structures here and their functions in
 * headers above this one (end.h ends a session, start.h begins one).
 *
 * Threads:
 *   executor  main thread, or its successor. Reads the data connection, executes records in order.
 *             Owns handles, contexts, staging for writes.                              (exec.c)
 *   loop      watches all descriptors; reads the control connection and the supervisor's channel;
 *             ends the process.                                                        (loop.c)
 *   completion  answers calls that wait for the device while the executor goes on; begins with the
 *             first such call.                                                   (completion.c)
 *   aside     runs one call that only a blocking call of the driver can answer.         (aside.c)
 *   memory    asks the driver how much memory is free, once the client wants to know without
 *             waiting                                                          (free_memory.c)
 *   driver's  run our host function, which waits for the client's answer.          (hostfunc.c)
 */
#ifndef OBS_SESSION_H
#define OBS_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/conn.h"
#include "protocol/control.h"
#include "protocol/format.h"
#include "protocol/obp_calls.h"
#include "protocol/obs_dispatch.h"
#include "protocol/resume.h"
#include "protocol/stripe.h"
#include "server/common/cache.h"
#include "server/common/identity.h"
#include "server/common/options.h"
#include "server/common/place.h"
#include "server/layers/driver.h"
#include "server/layers/partition.h"
#include "server/worker/handles.h"
#include "server/worker/images.h"
#include "server/worker/retransmit.h"
#include "server/worker/memory.h"
#include "server/worker/output.h"
#include "server/worker/staging.h"
#include "transport/part.h"
#include "transport/path.h"
#include "transport/stream.h"

#define OBS_CONTEXTS_MAX  1024u
/* receives a record that does not fit the connection's buffer */
#define OBS_SCRATCH_BYTES OBP_RECORD_MAX

/* A context of the client. Entries are made and removed by the executor and never move. */
struct obs_context {
	_Atomic uint64_t id; /* 0: free. device + 1: the device's primary */
	CUcontext driver;    /* NULL: not yet created, or creating it failed with `error` */
	CUresult error;
	uint32_t device, flags;
	bool primary;
	/* of a primary one whose session's share is kept by a green context, else all zero */
	struct obs_partition part;
	bool legacy_busy; /* the legacy stream may have unfinished work; executor */
	/* a stream was destroyed before its work was complete, or could not be noted; executor */
	bool orphans;
	/*
	 * held.c: records for the legacy stream, for a blocking stream, for any stream wait for
	 * open copies
	 */
	bool legacy_held, blocking_held, any_held;
};

/* `extra` of a stream: it is in session->work; it does not wait for the legacy stream */
#define OBS_STREAM_BUSY  1u
#define OBS_STREAM_APART 2u

/* Streams that may have unfinished work (work.h). */
struct obs_work {
	uint64_t *ids;
	uint32_t n, room;
};

/* The chunks that the client last asked for in the cache of uploads (ops/cache.c). Executor. */
struct obs_asked {
	uint8_t names[OBP_CACHE_ASK_MAX][OBS_CACHE_NAME_BYTES];
	uint64_t have[OBP_CACHE_ASK_MAX / 64], lost[OBP_CACHE_ASK_MAX / 64]; /* one bit each */
};

struct obs_session;

/* ---- replies (reply.h) ---- */

struct obs_replies {
	pthread_mutex_t lock;
	struct obt_stream stream;         /* where replies go; under lock */
	_Atomic uint64_t next;            /* number of the next reply; written under lock */
	struct obs_retransmit retransmit; /* with session->link.on; under lock */
	pthread_cond_t room;              /* in the retransmit queue */
	_Atomic uint32_t waiting;         /* threads that wait for replies to be acknowledged */
	_Atomic uint64_t executed;        /* highest record accepted by the executor */
	_Atomic uint64_t acked;           /* highest record acknowledged to the client */
	uint64_t bytes_unacked;           /* executor only */
	/* bytes that may be unacknowledged before an acknowledgement is sent without a reply */
	uint64_t ack_bytes;
	/* opcode << 32 | CUresult of the first failed async call; 0: none */
	_Atomic uint64_t deferred;
	uint64_t sent_frames, sent_bytes;
};

/* ---- the data connection, broken and joined again (resume.h) ---- */

struct obs_link {
	_Atomic bool on; /* the session can be resumed; set last in the handshake */
	uint64_t grace_ns;
	/* pidfd of the client when it runs on this machine; -1 */
	int client;
	_Atomic bool down;
	_Atomic uint64_t down_since;          /* ns */
	_Atomic bool attaching;               /* a join is in progress */
	_Atomic bool idle;                    /* the executor waits for bytes */
	_Atomic uint64_t bytes;               /* received on data */
	_Atomic uint64_t client_ack;          /* highest reply the client has */
	uint64_t attempts[OBP_JOIN_PURPOSES]; /* highest seen; loop only */
	/* under the replies' lock: */
	struct obt_stream next; /* joined, not yet taken by the executor */
	bool next_ready;
	pthread_cond_t changed;
	uint64_t resumed;
};

/* ---- further connections for copies (stripe.h) ---- */

#define OBS_STRIPE_SLOTS_MAX (2 * OBP_STRIPES_MAX + 2)

struct obs_stripe_slot {
	struct obs_stripe_slot *next;
	uint8_t *data; /* OBP_CHUNK_MAX bytes; NULL until first used */
	CUevent event; /* of the current transfer only */
	uint64_t offset;
	uint32_t size;
	bool marked; /* the event was recorded */
};

/* First in, first out. */
struct obs_stripe_queue {
	struct obs_stripe_slot *first, **last;
};

struct obs_stripe_set {
	struct obt_gate gate;
	uint64_t number;
	uint32_t n; /* members */
	struct obs_stripe *members[OBP_STRIPES_MAX];
};

struct obs_transfer {
	uint64_t id, size;
	uint64_t done;    /* bytes that the other side of the slots has taken */
	uint64_t touched; /* ns, when the executor last did something for it */
	struct obs_stripe_set *set;
	bool open, write, failed;
};

struct obs_stripes {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	struct obs_stripe_set *set; /* the last joined; NULL: none */
	uint32_t threads;           /* of all sets */
	struct obs_transfer transfer;
	uint64_t last; /* transfers up to here are over */
	struct obs_stripe_queue free, full;
	uint32_t n_slots; /* with memory */
	struct obs_stripe_slot slots[OBS_STRIPE_SLOTS_MAX];
	_Atomic uint64_t bytes_in, bytes_out; /* copied */
};

/* ---- host functions, and the control connection (hostfunc.h) ---- */

struct obs_hostfunc;

struct obs_hostfuncs {
	pthread_mutex_t lock;
	pthread_cond_t changed;    /* a function is done, the control connection came */
	struct obs_hostfunc *list; /* launched, newest first */
	uint32_t n;
	int control_fd;            /* -1: not joined */
	struct obt_stream control; /* the same connection */
	pthread_mutex_t send_lock; /* whoever sends, and whoever changes control_fd */
	/*
	 * an answer may come twice: a function was, or may have to be, asked for on more than one
	 * control connection
	 */
	bool may_repeat;
};

/* ---- questions for the free memory of devices (free_memory.h) ---- */

struct obs_free_memory {
	pthread_mutex_t use; /* of the contexts: a driver call may run in one */
	/* one in which each device can be asked, or NULL; written by the executor */
	struct obs_context *contexts[OBP_DEVICE_MAX];
	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	uint64_t asked[OBP_DEVICE_MAX]; /* to repeat in the answer; 0: nothing was asked */
	bool running;                   /* the thread exists */
};

/* ---- lanes (lane.h) ---- */

struct obs_lane {
	struct obs_context *context; /* current context of this client thread; NULL: none */
	/* shared by all threads beyond the limit; its context cannot be entered */
	bool refused;
};

/* ---- calls that wait for the device (completion.h) ---- */

struct obs_pending;

struct obs_completion {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* added: to the thread; ended: to whoever waits for the end */
	bool started, asleep;
	_Atomic uint32_t n;                      /* added and not answered */
	struct obs_pending *added, **last_added; /* under lock; not seen by the thread yet */
	struct obs_pending *watched;             /* the thread's; changed under lock */
	bool forgotten; /* a context was destroyed; the thread may still have it current */
	struct obs_pending *free;
};

/* ---- records that wait for copies on their way (held.h) ---- */

#define OBS_OPEN_MAX 64u

/* An open copy. */
struct obs_open {
	uint64_t upload; /* its number; 0: a read */
	uint64_t stream;
	CUstream driver;
	CUresult refused; /* not CUDA_SUCCESS: the bytes are dropped */
	struct obs_context *context;
	bool used;
	_Atomic bool over;
};

struct obs_held_record;

struct obs_held {
	struct obs_held_record *first, **last;
	uint32_t n, n_open, busy; /* busy: both together */
	uint32_t epoch;           /* of the marks in handles */
	uint64_t bytes, bytes_max;
	bool all; /* a record that all later ones depend on is held back */
	_Atomic bool changed;
	struct obs_open open[OBS_OPEN_MAX];
};

/* ---- the session ---- */

struct obs_session {
	const struct obs_options *options;
	struct obs_driver_lib lib;
	/* prepared while warm; the devices as the client sees them */
	struct obp_message *welcome;
	const struct obs_driver *drv;
	uint64_t id;    /* names the session in logs; gives no access */
	uint64_t route; /* with the secret: lets further connections join */
	uint8_t secret[OBP_SECRET_BYTES];
	int n_devices;

	/* executor receives; replies.stream is its sending side */
	struct obt_stream data;
	struct obs_link link;
	struct obp_conn conn;
	struct obs_replies replies;
	struct obp_packer packer;     /* of replies; under the reply lock */
	int channel;                  /* to the supervisor; -1: none (tests) */
	struct obs_identity identity; /* of the client; set before the welcome */
	struct obs_place place;       /* of its ticket; likewise */
	uint64_t since_ns;            /* of the welcome */
	/* limit for making no call; 0: none, or not known yet */
	_Atomic uint32_t idle_s;
	/* sandbox of the admission process, as text */
	char admission[OBP_SANDBOX_MAX];
	char end_reason[200];   /* empty: the client has left */
	struct obt_meter meter; /* for the packer */
	unsigned codec_request; /* enum obp_codec_request or a codec */
	/* use the measured rate also on connections within this machine */
	bool trust_reader;

	struct obs_handles streams, events, modules, functions, greens, graphs;
	struct obs_handles arrays, textures, surfaces; /* ops/array.h */
	struct obs_handles texrefs;                    /* ops/texref.c */
	struct obs_handles made[OBS_KIND_END];         /* by enum obs_kind */
	struct obs_context contexts[OBS_CONTEXTS_MAX];
	uint32_t n_contexts; /* entries ever used */
	/* stands for contexts beyond the limit; cannot be entered */
	struct obs_context refused;
	bool contexts_refused; /* some were refused */
	/* current in the main thread since the warm-up, or NULL */
	struct obs_context *warm_context;
	struct obs_memory memory;
	struct obs_staging staging;
	struct obs_cache cache;
	struct obs_asked asked;
	struct obs_stripes stripes;
	struct obs_images images;
	uint64_t *kept[OBP_LAUNCH_KEPT]; /* blocks of parameters; op launch_changed */
	struct obs_output output;
	struct obs_hostfuncs hostfuncs;
	struct obs_free_memory free_memory;

	struct obs_lane *lanes[OBP_LANE_MAX];
	struct obs_lane transfer_lane; /* OBP_TRANSFER_LANE */
	uint32_t n_lanes;              /* existing lanes, without that one */
	struct obs_work work;
	struct obs_completion completion;
	struct obs_held held;
	_Atomic uint32_t asides; /* calls on threads of their own (aside.h) */
	uint8_t *scratch;

	/* number of the call in which the executor waits for the device; 0: none */
	_Atomic uint64_t blocking;
	/* the last call for which a successor was started */
	_Atomic uint64_t succeeding;
	_Atomic bool prints; /* a loaded module can print */
	/* the handshake is settled: connections may join */
	_Atomic bool welcomed;
	_Atomic bool ending; /* said bye, or broke the protocol */
};

/*
 * What a thread needs to execute records. The executor has one, and each thread that answers in its
 * place. The generated dispatch passes it on as `x`.
 */
struct obs_exec {
	struct obs_session *session;
	const struct obs_driver *drv;
	struct obs_lane *lane; /* of the current record */
	/* the context that is current in this thread, in the driver */
	struct obs_context *context;
	/* executor, while it receives a large record; else NULL */
	struct obp_conn *conn;
	uint64_t call; /* number of the current record */
	uint16_t opcode, lane_index;
	struct obs_open *closes; /* the copy that ends with the reply; NULL: none */
	bool replied;            /* the current record was answered */
	bool progress;           /* completion thread: see struct obs_pending */
	bool executor;           /* this is the executor's */
	/* the current record must not wait for the device here: see completion.h */
	bool later;
	/*
	 * Not CUDA_SUCCESS: the current record only enters its id, marked as failed with this
	 * error.
	 */
	CUresult refused;
};

#endif
