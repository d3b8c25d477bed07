/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A session: everything a worker knows of the one program it serves. There is one per process and
 * it is never freed: when the client leaves, the process exits and the kernel and the driver take
 * everything back, whatever the device is doing.
 *
 * Threads:
 *   executor  main thread, or its successor. Reads the data connection, executes records in order. Owns handles, contexts, staging for writes.
 *   loop      watches all descriptors; reads the control connection and the supervisor's channel; ends the process.   (loop.c)
 *   lanes     one per client thread that makes a blocking call while others are alive; runs that call and replies.    (lane.c)
 *   driver's  run our host function, which waits for the client's answer.                                             (hostfunc.c)
 */
#ifndef OBS_SESSION_H
#define OBS_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "base/err.h"
#include "protocol/conn.h"
#include "protocol/control.h"
#include "protocol/format.h"
#include "protocol/obp_calls.h"
#include "server/admission/auth.h"
#include "server/common/cache.h"
#include "server/layers/driver.h"
#include "server/worker/handles.h"
#include "server/worker/hostfunc.h"
#include "server/worker/images.h"
#include "server/worker/memory.h"
#include "server/common/options.h"
#include "server/worker/output.h"
#include "server/worker/reply.h"
#include "server/worker/resume.h"
#include "server/worker/staging.h"
#include "server/worker/stripe.h"
#include "transport/path.h"
#include "transport/stream.h"

#define OBS_CONTEXTS_MAX  1024u
/* a record that does not fit the connection's buffer is put together here */
#define OBS_SCRATCH_BYTES OBP_RECORD_MAX

/* A context of the client. Entries are made and removed by the executor and never move. */
struct obs_context {
	_Atomic uint64_t id; /* 0: free. device + 1: the device's primary */
	CUcontext driver;    /* NULL: not yet made, or making it failed with `error` */
	CUresult error;
	uint32_t device, flags;
	bool primary;
};

/* The client's last question about the cache of uploads (ops/cache.c). Executor. */
struct obs_asked {
	uint8_t names[OBP_CACHE_ASK_MAX][OBS_CACHE_NAME_BYTES];
	uint64_t have[OBP_CACHE_ASK_MAX / 64], lost[OBP_CACHE_ASK_MAX / 64]; /* one bit each */
};

struct obs_handoff;
struct obs_lane;

struct obs_session {
	const struct obs_options *options;
	struct obs_driver_lib lib;
	/* prepared while warm; the devices as the client sees them */
	struct obp_message *welcome;
	const struct obs_driver *drv;
	uint64_t id;    /* names the session in logs, and opens nothing */
	uint64_t route; /* by which its client joins it, with the secret */
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
	uint64_t since_ns;            /* of the welcome */
	/* how long it may make no call; 0: for ever, and until its limits are known */
	_Atomic uint32_t idle_s;
	/* what confines the process that let the client in, in words */
	char admission[OBP_SANDBOX_MAX];
	char how[200];          /* it ends; empty: the client has left */
	struct obt_meter meter; /* of the packer's */
	unsigned codec_wish;    /* enum obp_codec_wish or a codec */
	/* the client wants the measured rate believed wherever it is */
	bool trust_reader;

	struct obs_handles streams, events, modules, functions;
	struct obs_context contexts[OBS_CONTEXTS_MAX];
	uint32_t n_contexts; /* entries ever used */
	/* stands for those that there was no room for; it cannot be entered */
	struct obs_context refused;
	bool contexts_refused; /* there have been such */
	/* current in the main thread since the worker was warmed, or NULL */
	struct obs_context *warm_context;
	struct obs_memory memory;
	struct obs_staging staging;
	struct obs_cache cache;
	struct obs_asked asked;
	struct obs_stripes stripes;
	struct obs_images images;
	struct obs_output output;
	struct obs_hostfuncs hostfuncs;

	struct obs_lane *lanes[OBP_LANE_MAX];
	uint32_t n_lanes; /* alive */
	uint8_t *scratch;

	/* the call in which the executor waits for the device; 0: in none */
	_Atomic uint64_t blocking;
	/* the last call for which a thread was started that takes over */
	_Atomic uint64_t succeeding;
	_Atomic bool prints; /* a loaded module can print */
	/* what was agreed on in the welcome stands: connections may join */
	_Atomic bool welcomed;
	_Atomic bool ending; /* said bye, or broke the protocol */
};

/*
 * What a thread needs to execute records; one of the executor, one of each lane thread. Generated
 * dispatch passes it around as `x`.
 */
struct obs_exec {
	struct obs_session *session;
	const struct obs_driver *drv;
	struct obs_lane *lane; /* of the current record */
	/* what the driver has as this thread's current context */
	struct obs_context *context;
	/* executor, while a large record is coming in; else NULL */
	struct obp_conn *conn;
	uint64_t call; /* number of the current record */
	uint16_t opcode, lane_index;
	bool replied; /* the current record was answered */
	/*
	 * why the current record may do nothing but enter the id that it names; CUDA_SUCCESS: it
	 * may
	 */
	CUresult refused;
};

/* Who the session is of, as admission found out, and its names. */
void obs_session_name(struct obs_session *session, const struct obs_handoff *first);
/*
 * The handshake on a new data connection, whose client has proved itself and said this hello (a
 * message's map): welcome, range. On failure the client was told, and the process shall exit.
 */
bool obs_session_greet(struct obs_session *session, const void *hello, size_t size);
/*
 * Makes ready what does not depend on the client; called by a warm worker before it says that it is
 * ready. False: *ret_why.
 */
bool obs_session_init(struct obs_session *session, const struct obs_options *options, char *ret_why,
	size_t why_size);
/* Tells the client why on the data connection, logs it, ends the process. Any thread. */
_Noreturn void obs_session_fatal(struct obs_session *session, enum ob_err code, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* Ends the process without a word to the client: it has left. Any thread. */
_Noreturn void obs_session_exit(struct obs_session *session, int status);

#endif
