/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A peer behind a real socket that can send bytes and descriptors of any kind. Choices come from
 * fuzz_input.h. No function blocks. One thread.
 */
#ifndef OB_FUZZ_PEER_H
#define OB_FUZZ_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_SENT_FDS 5u

/* Chooses 0, a small number, a power of two, or a number whose bits are all set. */
uint64_t fuzz_number(void);
/* Number of open descriptors of this process. */
unsigned fuzz_descriptors(void);
/* Makes a connected pair of Unix sockets; the second end is non-blocking. Exits on failure. */
void fuzz_pair(int type, int ret_fds[2]);
/* Makes a listener on a loopback port and a non-blocking connection to it. Exits on failure. */
int fuzz_listen(struct sockaddr_in *ret_here);
int fuzz_connect(const struct sockaddr_in *here);
/*
 * Closes a connection by a reset, so that thousands of them leave no port in TIME_WAIT. Sets the
 * descriptor to -1.
 */
void fuzz_reset(int *fd);
/*
 * Makes a descriptor of a kind that the input chooses: a socket (*ret_other: its other end,
 * non-blocking; else -1), memory, a pipe, a file, a folder, another listener.
 */
int fuzz_descriptor(int *ret_other);
/*
 * Sends one message of bytes and at most FUZZ_SENT_FDS descriptors, which the caller still owns.
 * The descriptors are in one control message or, with `twice`, in two.
 */
void fuzz_send(int fd, const void *bytes, size_t size, const int *fds, unsigned n, bool twice);
/* Reads and drops all bytes that are available. */
void fuzz_drain(int fd);
/* Overwrites some bytes of data. The input chooses the bytes and their values. */
void fuzz_spoil(void *data, size_t size);
/* Fills text from the input, terminated or not. */
void fuzz_text(char *text, size_t size);
/*
 * Checks that text, which has a NUL within its size, is safe for a terminal, a log and JSON; calls
 * abort() if not.
 */
void fuzz_text_check(const char *text, size_t size);

#endif
