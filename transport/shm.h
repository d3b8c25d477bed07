/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Streams through memory that client and server share (shm:/path). The stream begins as a unix
 * socket. The client makes the memory, a sealed memfd with one ring a direction, and its descriptor
 * travels with the first bytes behind the preface. Once both sides have agreed, in messages on the
 * socket, every further byte goes through the rings. The socket stays: its end is the stream's end,
 * and a byte on it wakes a reader that sleeps there.
 *
 *   client                                       server
 *   obt_shm_offer   hello or join + memfd  --->  obt_shm_expect (at accept), obt_shm_take
 *   obt_shm_settle  <---  welcome or joined      obt_shm_settle
 *
 * Owners as in stream.h. The memory is the other side's to write at any time: transport/ring.h says
 * what is believed of it.
 */
#ifndef OBT_SHM_H
#define OBT_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "transport/stream.h"

#define OBT_SHM_VERSION    1u         /* of the memory's layout */
#define OBT_SHM_RING_BYTES (2u << 20) /* of each direction */

/*
 * Client, before the preface is sent: makes the memory. False: there is none, and why in words (a
 * kernel without memfd, no memory); the stream is as it was. No descriptor but the stream's stays
 * open once the next message is sent.
 */
bool obt_shm_offer(struct obt_stream *stream, const char **ret_why);
/* Client: the version to name in the message that the memory travels with; 0: none was offered. */
uint32_t obt_shm_offered(const struct obt_stream *stream);
/*
 * Server, on a unix socket just accepted: keeps the memory that may come with its bytes. On any
 * other socket nothing happens.
 */
void obt_shm_expect(struct obt_stream *stream);
/*
 * Server, a process that only passes the connection on: the memory that has come, now the caller's;
 * -1: none. And in the process that gets both.
 */
int obt_shm_steal(struct obt_stream *stream);
void obt_shm_put(struct obt_stream *stream, int memfd);
/*
 * Server: the client's message named this version. Checks the memory and maps it. False: it is not
 * what it must be; why in words for the client. With version 0, one that is not ours, or
 * OUTBOARD_OPT=-shm, the stream stays a socket and that is all right.
 */
bool obt_shm_take(struct obt_stream *stream, uint32_t version, const char **ret_why);
/* Server: the version to answer with; 0: the stream stays a socket. */
uint32_t obt_shm_taken(const struct obt_stream *stream);
/*
 * Both, with the version in the answer, once it was sent or received: bytes go through the rings
 * from now on; 0: never.
 */
void obt_shm_settle(struct obt_stream *stream, uint32_t version);
/* Bytes go through the rings. */
bool obt_shm_on(const struct obt_stream *stream);

#endif
