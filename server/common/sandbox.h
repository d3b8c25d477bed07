/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sandbox: limits what a worker process can do after a client has taken it over, and the
 * admission process after a stranger has. For a worker in three steps, each in its main thread:
 *
 *   obs_sandbox_begin    first in the process, one thread: no new privileges, capabilities or core
 *                        files, memory not readable by other processes, an empty network namespace
 *   obs_sandbox_enter    the driver's library is loaded and not yet started: the workers' own user,
 *                        and only the files that a driver needs
 *   obs_sandbox_session  the client is known and none of its calls was read: in the cache only its
 *                        tenant's folder, the system calls of the profile, resource limits. In all
 *                        threads
 *
 * sandbox_seccomp.c (system calls) and sandbox_landlock.c (files, network, signals) say what is
 * denied and why. Modes: strict ends the worker when a part is not available, auto goes on and
 * reports what is missing, off does nothing.
 */
#ifndef OBS_SANDBOX_H
#define OBS_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cause.h"
#include "protocol/control.h"

#define OBS_SANDBOX_TEXT OBP_SANDBOX_MAX
#define OBS_FILES_MAX    4096u /* descriptors of a worker */

enum obs_sandbox_mode { OBS_SANDBOX_AUTO, OBS_SANDBOX_STRICT, OBS_SANDBOX_OFF };

enum obs_sandbox_part {
	OBS_PART_PRIVILEGES, /* no capabilities, no new privileges */
	/* a user for the workers; only if the server is started as root */
	OBS_PART_USER,
	OBS_PART_FILES, /* Landlock */
	/*
	 * an empty network namespace, if the server may create one; seccomp denies connections
	 * anyway
	 */
	OBS_PART_NETWORK,
	OBS_PART_CALLS,  /* seccomp */
	OBS_PART_LIMITS, /* resource limits */
	OBS_PARTS
};

struct obs_cache;
struct obs_limits;
struct obs_options;

/* The supervisor's decisions for all its workers. Plain data. */
struct obs_sandbox_plan {
	enum obs_sandbox_mode mode;
	const char *user; /* value of --worker-user; NULL: chosen by the server */
	uid_t uid;        /* 0: workers keep the server's user */
	gid_t gid;
	/* user of the admission process alone; 0: it keeps the server's */
	uid_t admission_uid;
	char user_text[32];      /* "uid:gid", for a worker's command line */
	char admission_text[32]; /* the same of the admission process */
};

/* "auto", "strict", "off". */
bool obs_sandbox_mode_parse(const char *text, enum obs_sandbox_mode *ret);
const char *obs_sandbox_mode_name(enum obs_sandbox_mode mode);
/*
 * Supervisor, at its start: chooses the user and checks what this kernel offers. `salt`
 * distinguishes servers on one machine. OB_ERR_UNSUPPORTED: a part is missing in mode strict.
 * OB_ERR_ARGUMENT: the user is not possible. *ret_cause says what to do.
 */
enum ob_err obs_sandbox_prepare(
	struct obs_sandbox_plan *plan, const char *salt, struct ob_cause *ret_cause);

/*
 * The steps, in this order. OB_ERR_UNSUPPORTED: a part is missing in mode strict. `file`: the driver's library;
 * NULL: the software device, or none.
 */
enum ob_err obs_sandbox_begin(const struct obs_sandbox_plan *plan, struct ob_cause *ret_cause);
enum ob_err obs_sandbox_enter(const struct obs_sandbox_plan *plan, const struct obs_cache *cache,
	const char *file, struct ob_cause *ret_cause);
enum ob_err obs_sandbox_session(const struct obs_sandbox_plan *plan, const struct obs_cache *cache,
	const struct obs_limits *limits, const char *file, struct ob_cause *ret_cause);
/*
 * Confines the admission process in one step, when it has read its files and before it accepts
 * connections. One thread. From then on it can open no file, start no process or thread and make no
 * connection. `memory`: bytes that it may still allocate. OB_ERR_UNSUPPORTED: a part
 * is missing in mode strict.
 */
enum ob_err obs_sandbox_admission(
	const struct obs_sandbox_plan *plan, uint64_t memory, struct ob_cause *ret_cause);

/* The parts in force, as text: "user 60600, privileges, files (Landlock 7), ...; missing: ...". */
void obs_sandbox_describe(char ret_text[OBS_SANDBOX_TEXT]);

#endif
