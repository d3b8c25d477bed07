/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Descriptors of a library that runs inside the user's program. The program may close descriptors
 * that it does not know (closefrom, or a loop over all numbers) and may then get the same numbers
 * for its own files. Any thread.
 */
#ifndef OB_FD_H
#define OB_FD_H

#include <stdbool.h>
#include <sys/types.h>

/* programs often close all descriptors below this number; select() cannot use higher ones */
#define OB_FD_HIGH 1024

/* The identity of the file behind a descriptor. */
struct ob_file {
	dev_t dev;
	ino_t ino; /* 0: unknown */
};

/*
 * Moves a descriptor to a number of OB_FD_HIGH or above, or as high as the limit allows, sets
 * close-on-exec, and returns the new number. Returns fd itself when no higher number is free.
 * Raises the soft limit during the system call if the hard limit allows it.
 */
int ob_fd_raise(int fd);
struct ob_file ob_fd_file(int fd);
/* True if fd is still open on `file`, or if `file` is unknown. Makes one system call. */
bool ob_fd_is(int fd, const struct ob_file *file);

#endif
