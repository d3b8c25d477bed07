/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obs_held: records that wait for a copy whose bytes are still on their way.
 *
 * An upload (upload_begin, upload_part) and a later read (read_later) have their place in a stream
 * from the moment when their record comes, but the bytes move while later records come. Until the
 * last piece has been given to the driver, or the last reply has been sent, such a copy is called
 * open, and what depends on its stream must wait. A device could wait by itself only with a wait in
 * its queue, and a full queue would block the executor, which receives the bytes. So the executor
 * holds these records back, in order, and goes on with those that do not depend on an open copy:
 *
 *   a stream    depends on it: work in the stream, and in the legacy stream if the stream is a
 *               blocking one, and the other way round; waits for the stream or its context
 *   an event    that a record which is held back records: waits for the event and queries; that
 *               such a record names: recording it again, destroying it
 *   anything that is not listed in held.c depends on all open copies, and all later records
 *   depend on it
 *
 * When a copy ends, the records are gone through again from the first one.
 *
 * The client may have as many bytes of records here as its ring holds; it asks with held_bytes.
 * More end the session. Executor only, except obs_open_over.
 */
#ifndef OBS_HELD_H
#define OBS_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "server/worker/session.h"

/* for each record, beyond its own bytes: what the entry needs */
#define OBS_HELD_ENTRY 64u
/* the most bytes that records with their entries may have here, if the client's ring is larger */
#define OBS_HELD_MAX   (80u << 20)
/* beyond the client's ring: records that were on their way, and parts */
#define OBS_HELD_SPARE (16u << 20)

void obs_held_init(struct obs_session *session);
/* The client's hello has told the size of its ring; 0: unknown. */
void obs_held_settle(struct obs_session *session, uint64_t client_ring);

/* True if copies are open or records are held back. */
static inline bool obs_held_active(const struct obs_session *session)
{
	return ob_unlikely(session->held.busy);
}

/*
 * The record in x, which has been received: true if it was held back. Not before
 * obs_held_changed has been false.
 */
bool obs_held_take(
	struct obs_exec *x, const struct obp_record *rec, const void *body, uint32_t size);
/* Whether an open copy has ended since the last obs_held_run. */
static inline bool obs_held_changed(const struct obs_session *session)
{
	return atomic_load_explicit(&session->held.changed, memory_order_acquire);
}
/*
 * Executes a record that was held back. lane: stands for the record's lane; NULL: the lane itself.
 */
typedef void obs_held_execute(struct obs_exec *x, uint64_t call, const struct obp_record *rec,
	const void *body, uint32_t size, struct obs_lane *lane);
/* Executes the records that do not have to wait any more. */
void obs_held_run(struct obs_exec *x, obs_held_execute *execute);
/* Whether an open copy may end without a record of the client. */
bool obs_held_reads(const struct obs_session *session);

/* ---- for the operations that copy ---- */

/*
 * Opens a copy in this stream of the current context. upload: its number; 0: a read. refused: why
 * the bytes will be dropped. There is room: a record that would open one more is held back.
 */
struct obs_open *obs_open_begin(
	struct obs_exec *x, uint64_t upload, uint64_t stream, CUstream driver, CUresult refused);
/* The open upload with this number; NULL: there is none. */
struct obs_open *obs_open_upload(struct obs_session *session, uint64_t upload);
/*
 * The copy has ended. Any thread; the memory is the executor's afterwards. A read ends while its
 * last reply is sent (reply.c).
 */
void obs_open_over(struct obs_session *session, struct obs_open *open);

#endif
