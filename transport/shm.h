/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Streams through memory that client and server share (shm:/path). The stream begins as a unix
 * socket. The client creates the memory, a sealed memfd with one ring for each direction, and sends
 * its descriptor with the first bytes behind the preface. Once both sides have agreed, in messages
 * on the socket, all further bytes go through the rings. The socket stays open: its end is the
 * stream's end, and a byte on it wakes a sleeping reader.
 *
 *   client                                       server
 *   obt_shm_offer   hello or join + memfd  --->  obt_shm_expect (at accept), obt_shm_take
 *   obt_shm_settle  <---  welcome or joined      obt_shm_settle
 *
 * Owners as in stream.h. The other side can write to the memory at any time: transport/ring.h says
 * how that is handled.
 */
#ifndef OBT_SHM_H
#define OBT_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cause.h"
#include "transport/stream.h"

#define OBT_SHM_VERSION    1u         /* of the memory's layout */
#define OBT_SHM_RING_BYTES (2u << 20) /* of each direction */

/*
 * Client, before the preface is sent: creates the memory. OB_ERR_UNSUPPORTED: *ret_cause (a
 * kernel without memfd, no memory); the stream is unchanged. Only the stream's own descriptor stays
 * open once the next message is sent.
 */
enum ob_err obt_shm_offer(struct obt_stream *stream, struct ob_cause *ret_cause);
/* Client: the version to put into the message that the memory travels with; 0: none was offered. */
uint32_t obt_shm_offered(const struct obt_stream *stream);
/*
 * Server, on an accepted unix socket: keeps memory that arrives with its bytes. Does nothing on
 * other sockets.
 */
void obt_shm_expect(struct obt_stream *stream);
/*
 * Server, for passing the connection on to another process: takes the received memory out of the
 * stream (-1: none; the caller owns it), and puts it into the other process's stream.
 */
int obt_shm_steal(struct obt_stream *stream);
void obt_shm_put(struct obt_stream *stream, int memfd);
/*
 * Server: the client's message names this version. Checks the memory and maps it.
 * OB_ERR_LIMIT: it is missing or invalid; *ret_cause is for the client. With version 0, an unknown version, or OUTBOARD_OPT=-shm, the
 * stream stays a socket, and that is no error.
 */
enum ob_err obt_shm_take(struct obt_stream *stream, uint32_t version, struct ob_cause *ret_cause);
/* Server: the version to answer with; 0: the stream stays a socket. */
uint32_t obt_shm_taken(const struct obt_stream *stream);
/*
 * Both, with the version in the answer, after it was sent or received: bytes go through the rings
 * from now on; 0: never.
 */
void obt_shm_settle(struct obt_stream *stream, uint32_t version);
/* True if bytes go through the rings. */
bool obt_shm_on(const struct obt_stream *stream);

#endif
