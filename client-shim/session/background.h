/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_background: copies that go on after their call has returned. The program has promised not to
 * touch the memory until the stream has passed the copy: it is pinned, and the call is an "Async"
 * one.
 *
 * An upload leaves a record where it stands in the stream. A thread sends the bytes of all uploads,
 * in the order of their calls, in parts between the other calls. It keeps few bytes under way: as
 * many as the server answers within the shortest round trip and 250 us, so that a call made
 * meanwhile is delayed little. The bytes of a read come with the replies of its record; a thread
 * receives them if no caller does. The server holds back what depends on such copies
 * (server/worker/held.h).
 *
 * While a copy is pending the ring is held (obc_ring_hold), because the server keeps the records
 * that it holds back in its memory. Any thread.
 */
#ifndef OBC_BACKGROUND_H
#define OBC_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

/* bytes; smaller uploads are copied into the ring */
#define OBC_BACKGROUND_MIN   (256u << 10)
/* reads that may be pending; beyond that a read waits for its bytes */
#define OBC_BACKGROUND_READS 256u

/*
 * Begin a copy. *ret_number: its record, behind all earlier work of the stream. False: nothing was
 * done, because such a copy is not possible now; the caller copies in another way. An error of the
 * copy is returned by a later call, like that of other asynchronous calls.
 */
bool obc_background_write(
	uint64_t dst, const void *src, uint64_t size, uint64_t stream, uint64_t *ret_number);
bool obc_background_read(
	void *dst, uint64_t src, uint64_t size, uint64_t stream, uint64_t *ret_number);

/* Whether a copy is pending: a call then cannot rely on the server to take its data at once. */
bool obc_background_pending(void);
/*
 * Waits until no copy is pending, or the session is lost: no thread of the library touches the
 * program's memory any more.
 */
void obc_background_wait(void);
/*
 * Waits until reply `number`, which the server says it has sent, has been received, if reads are
 * pending. OBC_SILENT: nothing has come for a long time. OBC_ABANDONED: see below.
 */
enum obc_received { OBC_RECEIVED, OBC_SILENT, OBC_ABANDONED };
enum obc_received obc_background_received(uint64_t number);
/*
 * The process exits, and with it everything on the device ends: sends no more of the pending
 * uploads. Returns when no part is being sent any more, or at the deadline (ns, ob_clock_ns).
 */
void obc_background_abandon(uint64_t deadline);
/*
 * Afterwards, with the goodbye answered or given up: abandons pending reads and ends the threads. No
 * thread of the library writes to the program's memory any more.
 */
void obc_background_stop(void);
/* After fork, in the child. */
void obc_background_forget(void);

#endif
