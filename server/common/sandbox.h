/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The sandbox: what a worker process can still do once a client has taken it over, and the
 * admission process once a stranger has. Of a worker in three steps, each in its main thread:
 *
 *   obs_sandbox_begin    first thing in the process, one thread: no new privileges, no capabilities
 *                        to be had, no core files, not readable by others, an
 *                        empty network
 *   obs_sandbox_enter    the driver's library is loaded and has started nothing yet: the worker's
 *                        own user, and only the files that a driver needs
 *   obs_sandbox_session  the client is known and nothing of its calls was read: of the cache only its tenant's folder, the system calls of the profile,
 *                        limits of resources. In all threads
 *
 * What is denied, and why, stands in sandbox_seccomp.c (system calls) and sandbox_landlock.c
 * (files, network, signals). Modes: strict ends the worker when a part cannot be had, auto goes on
 * and says what is missing, off does nothing.
 */
#ifndef OBS_SANDBOX_H
#define OBS_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/control.h"

#define OBS_SANDBOX_TEXT OBP_SANDBOX_MAX
#define OBS_FILES_MAX    4096u /* descriptors of a worker */

enum obs_sandbox_mode { OBS_SANDBOX_AUTO, OBS_SANDBOX_STRICT, OBS_SANDBOX_OFF };

enum obs_sandbox_part {
	OBS_PART_PRIVILEGES, /* no capabilities, no new privileges */
	/* a user of the workers' own; only where the server is started as root */
	OBS_PART_USER,
	OBS_PART_FILES, /* Landlock */
	/*
	 * an empty network namespace; only where the server may make one: the system calls are
	 * denied anyway
	 */
	OBS_PART_NETWORK,
	OBS_PART_CALLS,  /* seccomp */
	OBS_PART_LIMITS, /* of the process's resources */
	OBS_PARTS
};

struct obs_cache;
struct obs_limits;
struct obs_options;

/* What the supervisor decides for all its workers. Plain data. */
struct obs_sandbox_plan {
	enum obs_sandbox_mode mode;
	const char *user; /* --worker-user as given; NULL: chosen */
	uid_t uid;        /* 0: the worker keeps the server's user */
	gid_t gid;
	/* of the admission process, nobody else's: 0: it keeps the server's */
	uid_t admission_uid;
	char user_text[32];      /* "uid:gid", for a worker's command line */
	char admission_text[32]; /* the same of the admission process */
};

/* "auto", "strict", "off". */
bool obs_sandbox_mode_parse(const char *text, enum obs_sandbox_mode *ret);
const char *obs_sandbox_mode_name(enum obs_sandbox_mode mode);
/*
 * Supervisor, at its start: chooses the user, and looks at what this kernel offers. `salt` tells
 * servers on one machine apart. False: strict, and a part is missing, or the user does not exist;
 * ret_why says what to do.
 */
bool obs_sandbox_prepare(
	struct obs_sandbox_plan *plan, const char *salt, char *ret_why, size_t why_size);

/*
 * The steps, in their order. False: strict, and a part is missing. `file`: the driver's library;
 * NULL: the software device, or none.
 */
bool obs_sandbox_begin(const struct obs_sandbox_plan *plan, char *ret_why, size_t why_size);
bool obs_sandbox_enter(const struct obs_sandbox_plan *plan, const struct obs_cache *cache,
	const char *file, char *ret_why, size_t why_size);
bool obs_sandbox_session(const struct obs_sandbox_plan *plan, const struct obs_cache *cache,
	const struct obs_limits *limits, const char *file, char *ret_why, size_t why_size);
/*
 * The admission process: all of it at once, when it has read its files and before it accepts
 * anybody. One thread. No file can be opened from then on, no process or thread started, and no
 * connection made. `memory`: bytes that it may take from now on. False: strict, and a part is
 * missing.
 */
bool obs_sandbox_admission(
	const struct obs_sandbox_plan *plan, uint64_t memory, char *ret_why, size_t why_size);

/* What is in force: "user 60600, privileges, files (Landlock 7), ...; missing: ...". */
void obs_sandbox_describe(char ret_text[OBS_SANDBOX_TEXT]);

#endif
