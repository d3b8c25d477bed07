/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The audit log: one JSON object a line, appended with one write each, so that the workers of a server share one file. `time` is UTC.
 *
 *     {"time":"2026-01-31T12:00:00Z","event":"open","session":"0123456789abcdef","who":"token 01ab23cd alice","from":"10.0.0.7:4711",
 *      "transport":"tls","program":"train","pid":4711,"device":"..."}
 *     {"time":...,"event":"close","session":...,"who":...,"seconds":12.3,"calls":1000,"bytes_in":...,"bytes_out":...,"how":"bye"}
 *     {"time":...,"event":"refused","session":...,"who":...,"from":...,"how":"the token has expired; ..."}
 *     {"time":...,"event":"killed","session":...,"how":"killed by signal 11 (...)"}                      by the supervisor
 *
 * No secret is ever in it. Any thread; a file that cannot be written is complained of once.
 */
#ifndef OBS_AUDIT_H
#define OBS_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

struct obs_session;

/* NULL: no audit. False: the file cannot be opened; the reason is on stderr. */
bool obs_audit_open(const char *path);
void obs_audit_session_open(const struct obs_session *session, const char *program, uint64_t pid);
void obs_audit_session_close(const struct obs_session *session, const char *how);
void obs_audit_refused(const struct obs_session *session, const char *why);
void obs_audit_killed(uint64_t route, const char *how);

#endif
