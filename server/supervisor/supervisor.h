/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The supervisor: one process, one thread, one libuv loop. It never touches CUDA and speaks no TLS.
 * It owns
 *
 *   listeners   the sockets it was told to listen on; another process accepts there (listener.c,
 *               admit.c)
 *   guests      connections that have proved themselves and wait for a worker, or are being refused
 *               (guest.c)
 *   workers     the processes that serve sessions, one each                 (pool.c)
 *
 * All functions here are called from the loop's thread only.
 */
#ifndef OBS_SUPERVISOR_H
#define OBS_SUPERVISOR_H

#include <stdbool.h>
#include <uv.h>

#include "base/err.h"
#include "protocol/load.h"
#include "server/supervisor/admit.h"
#include "server/common/board.h"
#include "server/common/cache.h"
#include "server/common/handoff.h"
#include "server/common/options.h"
#include "server/supervisor/status.h"

#define OBS_GUESTS_MAX       1024  /* connections that are being refused; more are closed at once */
#define OBS_START_TIMEOUT_MS 60000 /* a driver that takes longer to load counts as broken */
#define OBS_WAIT_TIMEOUT_MS  30000 /* how long a guest waits for a worker */
#define OBS_RETRY_MS         1000  /* between attempts when workers fail to start */
#define OBS_START_DEATHS_MAX 3     /* workers that may die in a row while starting */
#define OBS_URL_MAX          520

struct obs_super;

struct obs_listener {
	int fd;
	bool open;
	bool secure; /* tls:// */
	char url[OBS_URL_MAX];
	char unix_path[OBS_URL_MAX]; /* "" for tcp; removed at the end */
	uint64_t unix_inode;
};

enum obs_guest_state { OBS_GUEST_ARRIVED, OBS_GUEST_WAITING, OBS_GUEST_REFUSED, OBS_GUEST_CLOSING };

struct obs_guest {
	struct obs_super *super;
	struct obs_guest *next, *prev;
	uv_poll_t poll;
	uv_timer_t timer;
	enum obs_guest_state state;
	int fds[OBS_HANDOFF_FDS], closes_left;
	size_t thrown_away;         /* bytes read after the refusal */
	struct obs_handoff handoff; /* what its worker will get */
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
	uint64_t id, route; /* of its session: what logs name it by, what joins name it by */
	uint8_t secret[OBP_SECRET_BYTES];
	struct obs_identity identity; /* of its client */
	char how[240];                /* it ended, as the worker says */
	uint64_t since_ns, began_ns;  /* of its state; of its session */
	char driver[240];
	struct obs_board *board;
	char client[OBP_LOAD_NAME_MAX]; /* its session's */
	uint64_t seen_calls;            /* at the last tick */
	unsigned active_ticks;          /* for so many more it counts as working */
};

struct obs_super {
	uv_loop_t loop;
	struct obs_options *options;
	char self[4096]; /* path of this program */
	/* what workers are told; auto is decided before the first */
	const char *driver;
	struct obs_listener listeners[OBS_LISTEN_MAX];
	size_t n_listeners;
	struct obs_admit admit;
	struct obs_guest *guests;
	size_t n_guests, n_waiting;
	struct obs_proc *procs;
	size_t n_procs, n_starting, n_idle, n_busy;
	unsigned start_deaths; /* in a row */
	uv_timer_t retry, drain, status;
	uv_signal_t term, intr;
	bool retrying; /* the last start failed; the retry timer runs */
	bool draining, killing, done;
	uint64_t sessions_total, refused_total, deaths_total, since_ns;
	uint32_t busy;          /* per mille of the last second */
	struct obs_cache cache; /* of no tenant: for counting, and for making room */
	uv_work_t sweep;
	bool sweeping;
	bool sandbox_told;       /* in the log, once */
	struct obs_totals ended; /* of sessions that are over */
	uint32_t n_devices;      /* 0: no worker has been ready yet */
	struct obs_board_device devices[OBP_DEVICE_MAX];
	char start_error[240]; /* why the last start failed */
};

/* Runs until drained. The exit status. */
int obs_super_run(struct obs_options *options);

/* listener.c */
/* 0, or -1 after saying why on stderr */
int obs_listener_open(struct obs_super *super, const char *url);
void obs_listener_close_all(struct obs_super *super);

/* guest.c */
/* A connection that has proved itself, from admission; both take the descriptors. */
void obs_guest_admit(
	struct obs_super *super, struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS]);
void obs_guest_join(
	struct obs_super *super, const struct obs_handoff *handoff, int fds[OBS_HANDOFF_FDS]);
/* Guests that wait get workers while there are idle ones, oldest first. */
void obs_guest_serve_waiting(struct obs_super *super);
void obs_guest_refuse_waiting(struct obs_super *super, enum ob_err code, const char *text);
void obs_guest_close_all(struct obs_super *super);

/* pool.c */
void obs_pool_refill(struct obs_super *super);
/*
 * Gives the connection to an idle worker: the worker is now busy. False: none is idle. The
 * descriptors stay the caller's.
 */
bool obs_pool_start_session(
	struct obs_super *super, struct obs_handoff *handoff, const int fds[OBS_HANDOFF_FDS]);
/*
 * OB_ERR_NOT_FOUND: no session has this route. OB_ERR_LIMIT: its worker does not take the
 * connection now.
 */
enum ob_err obs_pool_join_session(
	struct obs_super *super, const struct obs_handoff *handoff, const int fds[OBS_HANDOFF_FDS]);
/*
 * One message of a worker, which its client may have taken over: obs_handoff_recv has checked its
 * form, and nothing else of it is believed.
 */
void obs_pool_take(struct obs_proc *proc, const struct obs_handoff *message);
void obs_pool_kill(struct obs_super *super, bool busy_too);

/* supervisor.c */
void obs_super_check_done(struct obs_super *super);

#endif
