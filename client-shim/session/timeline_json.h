/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The pieces of a file of trace events (timeline_write.h): each event is one line of JSON. One
 * thread.
 */
#ifndef OBC_TIMELINE_JSON_H
#define OBC_TIMELINE_JSON_H

#include <stdint.h>

#include "base/json.h"

struct obc_timeline_file {
	struct ob_json json;
	uint64_t began; /* ns: times in the file count from here */
};

/* A time of the file: microseconds with three decimals. */
struct obc_stamp {
	char text[32];
};

struct obc_stamp obc_timeline_stamp(uint64_t ns);

/* One slice of a track. more: further arguments, which begin with a comma. */
struct obc_slice {
	const char *name, *category;
	uint32_t pid, tid;
	uint64_t at, took, number;
	char more[128];
};

/* The texts in the slice need no escapes. */
void obc_timeline_slice(struct obc_timeline_file *file, const struct obc_slice *slice);
/* One end of an arrow. phase: s, t or f, as the format names begin, step and end. */
void obc_timeline_flow(struct obc_timeline_file *file, const char *phase, uint32_t pid,
	uint32_t tid, uint64_t at, uint64_t number);
/* Metadata of a process or a track; the value may be the program's and hold any character. */
void obc_timeline_about(struct obc_timeline_file *file, const char *what, uint32_t pid,
	uint32_t tid, const char *key, const char *value);
/* A process; order: its place among those shown. */
void obc_timeline_process(
	struct obc_timeline_file *file, uint32_t pid, unsigned order, const char *name);
void obc_timeline_thread(
	struct obc_timeline_file *file, uint32_t pid, uint32_t tid, const char *name);

#endif
