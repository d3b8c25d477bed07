/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_resume: going on after a broken data connection. Whoever sees it break calls log_link_broken
 * (log_inside.h): from then on nobody sends or reads, calls go into the ring and waiters wait. A
 * thread that lives only as long as it takes then holds both rights of the log, connects again
 * (transport by obc_dial), says what was received, and sends again from the first record that the
 * server does not have. When the server no longer has the session, or the grace period is over, the
 * session is lost (obc_log_fail).
 *
 * One session per process. All functions may be called by any thread unless stated otherwise.
 */
#ifndef OBC_RESUME_H
#define OBC_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "protocol/resume.h"
#include "transport/stream.h"

/* What it takes to join the session; copied. grace_ns 0: a broken connection ends the session. */
struct obc_resume_terms {
	struct obt_url url;
	uint64_t route;
	uint8_t secret[16];
	uint64_t grace_ns, timeout_ns; /* timeout: of one attempt */
};

void obc_resume_init(const struct obc_resume_terms *terms);
uint64_t obc_resume_grace(void);
/* From now on attempts end soon: the process exits. */
void obc_resume_stop(void);
/* In a forked child. */
void obc_resume_forget(void);

/*
 * Attempts at one connection, until it is there, the server says that there is no session, or the
 * grace period is over. Owner: one thread.
 */
struct obc_dial {
	enum obp_join_purpose purpose;
	uint64_t received;             /* data: the last reply that came whole */
	uint64_t since, refused_since; /* ns */
	struct obp_backoff backoff;
};

void obc_dial_begin(struct obc_dial *dial, enum obp_join_purpose purpose, uint64_t received);
/*
 * Waits and tries until it works. OB_ERR_NONE: joined. Else the session is over: the error to fail
 * with; one line has been logged that says why.
 */
enum ob_err obc_dial_run(struct obc_dial *dial, struct obt_stream *ret, uint64_t *ret_received);
/*
 * The preface and the join alone, without waiting for an answer: the session's first control
 * connection.
 */
enum ob_err obc_dial_join(struct obt_stream *stream, enum obp_join_purpose purpose,
	uint64_t received, uint64_t deadline);

/*
 * One attempt to connect, join and be told so, before the deadline. stripes: `received` is their
 * set's number.
 */
enum ob_err obc_dial_once(struct obt_stream *ret, enum obp_join_purpose purpose, uint64_t received,
	uint64_t deadline);

/* For --stats. */
struct obc_resume_stats {
	uint64_t breaks, resumed, records_again, down_ns, longest_down_ns;
};
void obc_resume_stats(struct obc_resume_stats *ret);

#endif
