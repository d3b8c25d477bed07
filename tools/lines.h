/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_line: a child process with a session of its own, whose environment says how it copies, and
 * which copies when it is told to: so that several ways can be measured in turn in one run. Started
 * before this process has a session; ends with it. One owner; blocks.
 */
#ifndef OBX_LINES_H
#define OBX_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum obx_line_what { OBX_LINE_UP = 1, OBX_LINE_DOWN };

struct obx_line {
	int fd;
	pid_t pid;
};

/*
 * environment: "NAME=value" strings, NULL at the end. host: shared memory (MAP_SHARED) of `bytes`
 * bytes, as much as the largest copy. False: errno.
 */
bool obx_line_start(
	struct obx_line *line, const char *const *environment, void *host, size_t bytes);
void obx_line_stop(struct obx_line *line);
/* One copy of `bytes` and what it takes to know that it is done; ns. 0: it failed. */
uint64_t obx_line_copy(struct obx_line *line, enum obx_line_what what, size_t bytes);

#endif
