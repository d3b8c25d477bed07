/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obx_line: a child process with its own session that makes copies on request. Its environment
 * selects how it copies, so that one run can measure several ways in turn. It must be started
 * before this process has a session, and ends with this process. One owner; blocks.
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
 * bytes, the size of the largest copy. False: errno.
 */
bool obx_line_start(
	struct obx_line *line, const char *const *environment, void *host, size_t bytes);
void obx_line_stop(struct obx_line *line);
/* Makes one copy of `bytes` and waits until it is done. Returns ns; 0: it failed. */
uint64_t obx_line_copy(struct obx_line *line, enum obx_line_what what, size_t bytes);

#endif
