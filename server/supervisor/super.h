/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor's data: one process, one thread, one libuv loop. It never touches CUDA or TLS. It
 * owns
 *
 *   listeners   the listening sockets, on which the admission process accepts (listener.h)
 *   admit       the admission process (admit.h)
 *   pending     authenticated connections that wait for a worker or are being refused (pending.h)
 *   procs       the worker processes, one for each session (pool.h)
 *   sense       the process that reads the GPUs' sensors (sense.h)
 *   broker      what sessions have exported to one another (broker.h)
 *   membership  the pool: what is reserved (reservations.h, lease.h), and the processes that keep a
 *               connection to each balancer (member.h)
 *
 * Loop's thread only. The order of the parts, each above those before it: sense, lease; status,
 * listener; pool; pending; admit, metrics, member; supervisor. A part calls those above it through the functions at the end
 * of struct obs_super.
 */
#ifndef OBS_SUPER_H
#define OBS_SUPER_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "protocol/load.h"
#include "server/common/stats_page.h"
#include "server/common/cache.h"
#include "server/common/handoff.h"
#include "server/common/options.h"
#include "server/common/pool_page.h"
#include "server/common/routes.h"
#include "server/sensors/reading.h"
#include "server/supervisor/broker.h"
#include "server/supervisor/reservations.h"

#define OBS_PENDING_MAX        1024 /* connections that are being refused; more are closed at once */
#define OBS_START_TIMEOUT_MS   60000 /* a driver that takes longer to load counts as broken */
#define OBS_WAIT_TIMEOUT_MS    30000 /* how long a connection waits for a worker */
#define OBS_RETRY_MS           1000  /* between attempts when workers fail to start */
#define OBS_START_DEATHS_MAX   3     /* workers that may die in a row while starting */
#define OBS_URL_MAX            520
#define OBS_BALANCERS_MAX      8 /* addresses in --pool */
#define OBS_MEMBERSHIP_TICK_MS 200
#define OBS_END_MS             3000 /* from telling a worker to end its session to killing it */

struct obs_super;

struct obs_listener {
	int fd;
	bool open;
	bool secure;    /* tls:// */
	bool reachable; /* by other machines */
	char url[OBS_URL_MAX];
	char unix_path[OBS_URL_MAX]; /* "" for tcp; the file is removed at the end */
	uint64_t unix_inode;
};

enum obs_pending_state {
	OBS_PENDING_ARRIVED,
	OBS_PENDING_WAITING,
	OBS_PENDING_REFUSED,
	OBS_PENDING_CLOSING
};

struct obs_pending {
	struct obs_super *super;
	struct obs_pending *next, *prev;
	uv_poll_t poll;
	uv_timer_t timer;
	enum obs_pending_state state;
	int fds[OBS_HANDOFF_FDS], closes_left;
	size_t thrown_away;                  /* bytes read after the refusal */
	struct obs_reservation *reservation; /* held while it waits; NULL: none */
	struct obs_handoff handoff;          /* for its worker */
};

enum obs_proc_state { OBS_PROC_STARTING, OBS_PROC_IDLE, OBS_PROC_BUSY, OBS_PROC_ENDING };

struct obs_proc {
	struct obs_super *super;
	struct obs_proc *next, *prev;
	uv_process_t process;
	uv_poll_t channel;
	uv_timer_t timer; /* while starting */
	enum obs_proc_state state;
	int fd, closes_left;
	uint64_t id, route; /* of its session: id for logs, route for joins */
	uint8_t secret[OBP_SECRET_BYTES];
	struct obs_identity identity; /* of its client */
	char end_reason[240];         /* as the worker reports it */
	uint64_t since_ns, began_ns;  /* start of its state; of its session */
	char driver[240];
	struct obs_stats_page *page;
	char client[OBP_LOAD_NAME_MAX];      /* of its session */
	uint64_t seen_calls;                 /* at the last tick */
	unsigned active_ticks;               /* ticks for which it still counts as working */
	uint32_t busy;                       /* as obp_load's, of this session */
	struct obs_place place;              /* of its session's ticket */
	struct obs_reservation *reservation; /* held by its session; NULL: it has no ticket */
	uint64_t kill_ns;                    /* it was told to end and is killed then; 0: not */
};

/* The supervisor's view of the admission process. */
struct obs_admit {
	uv_process_t process;
	uv_poll_t channel;
	uv_timer_t restart;
	int fd;                    /* the channel; -1: there is no process */
	struct obs_routes *routes; /* the sessions that can be joined; NULL: not started */
	int routes_fd;             /* descriptor of the table, for each admission process */
	unsigned closes_left;
	unsigned deaths; /* in a row */
	uint64_t started_ns;
	bool stopping;
};

/* The supervisor's view of the sensors process (sense.h). */
struct obs_sense {
	uv_process_t process;
	uv_poll_t channel;
	uv_timer_t timer;
	int fd; /* the channel; -1: there is no process */
	unsigned closes_left, deaths;
	bool on, stopping;
	const char *library;
	uint64_t started_ns, heard_ns; /* time of the last message */
	uint32_t n;
	uint64_t read_ns[OBP_DEVICE_MAX];
	struct obs_reading readings[OBP_DEVICE_MAX];
};

/* A process that keeps the connection to one balancer (member.h). */
struct obs_member {
	struct obs_super *super;
	const char *url;
	uv_process_t process;
	uv_poll_t channel;
	uv_timer_t restart;
	int fd; /* the channel; -1: there is no process */
	unsigned closes_left, deaths;
	uint64_t started_ns;
	char balancer[OBP_POOL_NAME_MAX]; /* where the server is registered; "": nowhere */
};

/* The pool to which the server belongs (lease.h, member.h). */
struct obs_membership {
	uint64_t incarnation;
	struct obs_pool_page *page; /* NULL: not opened */
	int page_fd;                /* its descriptor, for each admission process */
	struct obs_reservations reservations;
	uint64_t refused[OBS_TICKET_REFUSAL_COUNT];
	bool cordoned;
	uint64_t drain_ns; /* sessions are ended then; 0: no drain */
	bool drained;      /* they were; until the server is uncordoned */
	uint64_t as_of;    /* of the last order of the two (struct obp_pool_order) */
	uv_timer_t timer;
	uv_timer_cb tick; /* NULL: no pool */
	bool stopping;
	uint64_t beat_ns;    /* of the last heartbeat */
	bool told_draining;  /* in it */
	char *urls;          /* of all members, cut at the commas */
	bool balancers_here; /* all have loopback addresses or Unix sockets: so may this server */
	char advertised[OBP_POOL_URLS_MAX * OBP_POOL_URL_MAX];
	uint32_t n_members;
	struct obs_member members[OBS_BALANCERS_MAX];
};

/* Sums over ended sessions; running ones are added when asked. */
struct obs_totals {
	uint64_t calls, replies, bytes_in, bytes_out, device_ns, throttled_ns, refusals, cache_hits,
		cache_misses, cache_bytes;
};

struct obs_super {
	uv_loop_t loop;
	struct obs_options *options;
	char self[4096]; /* path of this program */
	/* for workers; auto is resolved before the first */
	const char *driver;
	struct obs_listener listeners[OBS_LISTEN_MAX];
	size_t n_listeners;
	struct obs_admit admit;
	struct obs_pending *pending;
	size_t n_pending, n_waiting;
	struct obs_proc *procs;
	size_t n_procs, n_starting, n_idle, n_busy;
	unsigned start_deaths; /* in a row */
	uv_timer_t retry, drain, status;
	uv_signal_t term, intr;
	bool retrying; /* the last start failed; the retry timer runs */
	bool draining, killing, done;
	uint64_t sessions_total, refused_total, deaths_total, since_ns;
	uint32_t busy;                        /* per mille of the last second */
	uint32_t device_busy[OBP_DEVICE_MAX]; /* the same of each device */
	struct obs_cache cache;               /* of no tenant: for counting, and for making room */
	uv_work_t sweep;
	bool sweeping;
	bool sandbox_told;       /* logged once, with how shares are kept */
	struct obs_totals ended; /* of sessions that are over */
	struct obs_broker broker;
	struct obs_sense sense;
	struct obs_membership membership;
	uint32_t cuda_version; /* of the driver, as workers say */
	uint32_t n_devices;    /* 0: no worker has been ready yet */
	struct obs_stats_page_device devices[OBP_DEVICE_MAX];
	char start_error[240]; /* why the last start failed */
	/*
	 * Called by parts below supervisor.c (obs_super_listen sets them): a worker is ready for a
	 * session; none could be started.
	 */
	void (*worker_ready)(struct obs_super *super);
	void (*start_failed)(struct obs_super *super, const char *why);
	/* A worker or a pending connection is gone. */
	void (*part_gone)(struct obs_super *super);
};

#endif
