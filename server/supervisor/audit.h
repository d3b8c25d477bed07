/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The audit log: one JSON object a line. Written by the supervisor alone. `time` is UTC.
 *
 *     {"time":"2026-01-31T12:00:00Z","event":"open","session":"0123456789abcdef","who":"token 01ab23cd alice","from":"10.0.0.7:4711",
 *      "transport":"tls","program":"train","pid":4711,"device":"..."}
 *     {"time":...,"event":"close","session":...,"who":...,"seconds":12.3,"calls":1000,"bytes_in":...,"bytes_out":...,"how":"bye"}
 *     {"time":...,"event":"refused","who":...,"from":"10.0.0.7","count":3,"how":"the token has expired; ..."}
 *     {"time":...,"event":"killed","session":...,"how":"killed by signal 11 (...)"}
 *
 * It is bounded: a file that has reached its size becomes FILE.1, FILE.1 becomes FILE.2 and so on,
 * and the oldest is removed. Refused connections are counted, not listed: admission sums up those
 * of one address and kind; of these, OBS_AUDIT_REFUSED_PER_S lines a second are written, and one for
 * all others. No secret is ever in it. One thread. If the file cannot be written, that is logged
 * once until it can be written again, which is tried with each line.
 */
#ifndef OBS_AUDIT_H
#define OBS_AUDIT_H

#include <stdint.h>

#include "base/cause.h"
#include "server/common/identity.h"

#define OBS_AUDIT_REFUSED_PER_S 32u

struct obs_audit_counts {
	double seconds;
	uint64_t calls, bytes_in, bytes_out;
};

/*
 * path NULL: no audit. size: bytes of one file; files: how many there may be. OB_ERR_IO: the
 * file cannot be opened, *ret_cause.
 */
enum ob_err obs_audit_open(
	const char *path, uint64_t size, uint32_t files, struct ob_cause *ret_cause);
/* Writes what was only counted so far, and closes the log. */
void obs_audit_close(void);
void obs_audit_opened(uint64_t id, const struct obs_identity *identity, const char *transport,
	const char *program, uint64_t pid, const char *device);
void obs_audit_closed(
	uint64_t id, const char *who, const struct obs_audit_counts *counts, const char *reason);
/* Writes a line to the log too. */
void obs_audit_refused(const char *from, const char *who, const char *reason, uint32_t count);
void obs_audit_killed(uint64_t id, const char *reason);

#endif
