/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A peer behind a real socket, and what it can send there: bytes, and descriptors of any kind.
 * Choices come from fuzz_input.h. Nothing here blocks. One thread.
 */
#ifndef OB_FUZZ_PEER_H
#define OB_FUZZ_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_SENT_FDS 5u

/* 0, a small number, a power of two, or one whose bits are all set. */
uint64_t fuzz_number(void);
/* Descriptors that this process has open. */
unsigned fuzz_descriptors(void);
/*
 * A connected pair of unix sockets, the second end non-blocking. The process exits when there is
 * none.
 */
void fuzz_pair(int type, int ret_fds[2]);
/*
 * A listener on a loopback port, and a connection to it, non-blocking. The process exits when there
 * is none.
 */
int fuzz_listen(struct sockaddr_in *ret_here);
int fuzz_connect(const struct sockaddr_in *here);
/* Ends a connection by a reset: many thousands of them leave no port waiting. -1 from then on. */
void fuzz_reset(int *fd);
/*
 * A descriptor that the input chooses: a socket (*ret_other: its other end, non-blocking; else -1),
 * memory, a pipe, a file, a folder, another listener.
 */
int fuzz_descriptor(int *ret_other);
/*
 * One message of bytes and at most FUZZ_SENT_FDS descriptors, which stay the caller's. In one list
 * of descriptors or, `twice`, in two.
 */
void fuzz_send(int fd, const void *bytes, size_t size, const int *fds, unsigned n, bool twice);
/* Reads and drops what there is. */
void fuzz_drain(int fd);
/* Some bytes of data, chosen by the input, take values from it. */
void fuzz_spoil(void *data, size_t size);
/* Text of the input, terminated or not. */
void fuzz_text(char *text, size_t size);
/*
 * Is text, which has a NUL in its size, fit for a terminal, a log and JSON? Exits by abort() when
 * not.
 */
void fuzz_text_check(const char *text, size_t size);

#endif
