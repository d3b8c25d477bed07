/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_resume: resumes the session after the data connection broke. The thread that detects the
 * break calls log_link_broken (log_inside.h). From then on no thread sends or receives; calls still
 * go into the ring, and waiters keep waiting. A temporary thread takes the send and the receive
 * right, connects again (obc_dial), reports what was received, and sends again from the first
 * record that the server does not have. If the server no longer has the session, or the grace
 * period is over, the session is lost (obc_log_fail).
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

/* The data needed to join the session; copied. grace_ns 0: a broken connection ends the session. */
struct obc_resume_terms {
	struct obt_url url;
	uint64_t route;
	uint8_t secret[16];
	uint64_t grace_ns, timeout_ns; /* timeout_ns: limit of one attempt */
};

void obc_resume_init(const struct obc_resume_terms *terms);
uint64_t obc_resume_grace(void);
/* The process exits: attempts to connect end soon. */
void obc_resume_stop(void);
/* In a forked child. */
void obc_resume_forget(void);

/*
 * Repeated attempts to make one connection, until it succeeds, the server reports that it does not
 * have the session, or the grace period is over. Used by one thread.
 */
struct obc_dial {
	enum obp_join_purpose purpose;
	uint64_t received;             /* data connection: the last reply received completely */
	uint64_t since, refused_since; /* ns */
	struct obp_backoff backoff;
};

void obc_dial_begin(struct obc_dial *dial, enum obp_join_purpose purpose, uint64_t received);
/*
 * Tries again, with pauses, until an attempt succeeds. OB_ERR_NONE: joined. Any other value: the
 * session is over; the value is the argument for obc_log_fail, and one line with the reason has
 * been logged.
 */
enum ob_err obc_dial_run(struct obc_dial *dial, struct obt_stream *ret, uint64_t *ret_received);
/*
 * Sends only the preface and the join and does not wait for the answer: for the session's first
 * control connection.
 */
enum ob_err obc_dial_join(struct obt_stream *stream, enum obp_join_purpose purpose,
	uint64_t received, uint64_t deadline);

/*
 * One attempt to connect, join and receive the answer before the deadline. For stripes, `received`
 * is the number of their set.
 */
enum ob_err obc_dial_once(struct obt_stream *ret, enum obp_join_purpose purpose, uint64_t received,
	uint64_t deadline);

/* For --stats. */
struct obc_resume_stats {
	uint64_t breaks, resumed, records_again, down_ns, longest_down_ns;
};
void obc_resume_stats(struct obc_resume_stats *ret);

#endif
