/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Writes the timeline (timeline.h, timeline_server.h) as a file of trace events in JSON, which
 * ui.perfetto.dev and chrome://tracing open. Three processes: the program, the server, the devices.
 * A flow arrow with the record's number leads from each call to its execution and to its reply.
 */
#ifndef OBC_TIMELINE_WRITE_H
#define OBC_TIMELINE_WRITE_H

/*
 * At the end of the session, once; does nothing if no timeline is recorded. Logs a warning if the
 * file cannot be written.
 */
void obc_timeline_write(void);

#endif
