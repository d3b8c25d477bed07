/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Descriptors of a library inside somebody else's program, which may close all that it does not
 * know (closefrom, a loop over all numbers) and be given the same numbers again for files of its
 * own. Any thread.
 */
#ifndef OB_FD_H
#define OB_FD_H

#include <stdbool.h>
#include <sys/types.h>

/* programs close up to here by habit, and select() ends here */
#define OB_FD_HIGH 1024

/* Which file a descriptor stands for. */
struct ob_file {
	dev_t dev;
	ino_t ino; /* 0: unknown */
};

/*
 * Moves a descriptor to OB_FD_HIGH or above, or as high as the limit allows, close-on-exec, and
 * returns its new number; the one given when there is no room above. Where the hard limit allows it
 * the soft limit is raised for the moment of the system call.
 */
int ob_fd_raise(int fd);
struct ob_file ob_fd_file(int fd);
/* One system call. True for an unknown file. */
bool ob_fd_is(int fd, const struct ob_file *file);

#endif
