/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor: one process, one thread, one libuv loop. It never touches CUDA. It owns
 *
 *   listeners   the sockets it was told to listen on                        (listener.c)
 *   guests      connections whose preface is not complete or which wait for a worker, or are being refused (guest.c)
 *   workers     the processes that serve sessions, one each                 (pool.c)
 *
 * All functions here are called from the loop's thread only.
 */
#ifndef OBS_SUPERVISOR_H
#define OBS_SUPERVISOR_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "protocol/format.h"
#include "server/board.h"
#include "server/cache.h"
#include "server/handoff.h"
#include "server/options.h"
#include "server/status.h"

#define OBS_GUESTS_MAX 1024        /* connections not yet handed on; from here on the oldest silent ones are dropped */
#define OBS_START_TIMEOUT_MS 60000 /* a driver that takes longer to load counts as broken */
#define OBS_WAIT_TIMEOUT_MS 30000  /* how long a guest waits for a worker */
#define OBS_RETRY_MS 1000          /* between attempts when workers fail to start */
#define OBS_START_DEATHS_MAX 3     /* workers that may die in a row while starting */
#define OBS_URL_MAX 520

struct obs_super;

struct obs_listener {
	struct obs_super *super;
	uv_poll_t poll;
	int fd;
	bool open;
	bool secure;             /* tls:// */
	char url[OBS_URL_MAX];
	char unix_path[OBS_URL_MAX]; /* "" for tcp; removed at the end */
	uint64_t unix_inode;
};

enum obs_guest_state { OBS_GUEST_PREFACE, OBS_GUEST_WAITING, OBS_GUEST_REFUSED, OBS_GUEST_CLOSING };

struct obs_guest {
	struct obs_super *super;
	struct obs_guest *next, *prev;
	uv_poll_t poll;
	uv_timer_t timer;
	enum obs_guest_state state;
	int fd, closes_left;
	bool secure;            /* came on a tls:// address */
	bool asked;             /* has had an answer about the load, and may ask again */
	size_t got;             /* bytes of the preface */
	size_t thrown_away;     /* bytes read after the refusal */
	union {
		struct obp_preface preface;
		uint8_t bytes[sizeof(struct obp_preface)];
	};
};

enum obs_proc_state { OBS_PROC_STARTING, OBS_PROC_IDLE, OBS_PROC_BUSY, OBS_PROC_ENDING };

struct obs_proc {
	struct obs_super *super;
	struct obs_proc *next, *prev;
	uv_process_t process;
	uv_poll_t channel;
	uv_timer_t timer;       /* while starting */
	enum obs_proc_state state;
	int fd, closes_left;
	uint64_t route;         /* of its session */
	uint64_t since_ns;
	char driver[240];
	struct obs_board *board;
	char client[OBP_LOAD_NAME_MAX]; /* its session's */
	uint64_t seen_calls;            /* at the last tick */
	unsigned active_ticks;          /* for so many more it counts as working */
};

struct obs_super {
	uv_loop_t loop;
	struct obs_options *options;
	struct obt_tls_tickets tickets; /* for every worker; the first key is of tickets_ns */
	uint64_t tickets_ns;
	char self[4096];                /* path of this program */
	const char *driver;             /* what workers are told; auto is decided before the first */
	struct obs_listener listeners[OBS_LISTEN_MAX];
	size_t n_listeners;
	struct obs_guest *guests;
	size_t n_guests, n_waiting;
	struct obs_proc *procs;
	size_t n_procs, n_starting, n_idle, n_busy;
	unsigned start_deaths;          /* in a row */
	uv_timer_t retry, drain, status;
	uv_signal_t term, intr;
	bool retrying;                  /* the last start failed; the retry timer runs */
	bool draining, killing, done;
	uint64_t sessions_total, refused_total, deaths_total, since_ns;
	uint32_t busy;                  /* per mille of the last second */
	struct obs_cache cache;         /* of no tenant: for counting, and for making room */
	uv_work_t sweep;
	bool sweeping;
	bool sandbox_told;              /* in the log, once */
	struct obs_totals ended;        /* of sessions that are over */
	uint32_t n_devices;             /* 0: no worker has been ready yet */
	struct obs_board_device devices[OBP_DEVICE_MAX];
	char start_error[240];          /* why the last start failed */
};

/* Runs until drained. The exit status. */
int obs_super_run(struct obs_options *options);

/* listener.c */
int obs_listener_open(struct obs_super *super, const char *url); /* 0, or -1 after saying why on stderr */
void obs_listener_close_all(struct obs_super *super);

/* guest.c */
void obs_guest_admit(struct obs_super *super, int fd, bool secure);           /* takes the descriptor */
/* Guests that wait get workers while there are idle ones, oldest first. */
void obs_guest_serve_waiting(struct obs_super *super);
void obs_guest_refuse_waiting(struct obs_super *super, enum ob_err code, const char *text);
void obs_guest_close_all(struct obs_super *super);

/* pool.c */
void obs_pool_refill(struct obs_super *super);
/* Gives the connection to an idle worker: the worker is now busy. False: none is idle. The descriptor stays the caller's. */
bool obs_pool_start_session(struct obs_super *super, int fd, bool secure);
/* False: no session has this route. */
bool obs_pool_join_session(struct obs_super *super, uint64_t route, int fd, bool secure);
void obs_pool_kill(struct obs_super *super, bool busy_too);

/* supervisor.c */
void obs_super_check_done(struct obs_super *super);

#endif
