/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Page-locked memory between the sockets and the device, so that device copies and the network
 * overlap.
 *
 * A slot holds one chunk. A write slot is free, or filled and being copied to the device until its
 * event has passed; so is a slot for a part of an upload. A read slot is free, or receives a device
 * copy, or waits for the client's acknowledgement. The memory is mapped here and registered with
 * the driver if possible; destroying a context ends only the registration. Write slots belong to
 * the executor. Read slots are taken and returned under a lock, because several lanes may read at
 * the same time.
 */
#ifndef OBS_STAGING_H
#define OBS_STAGING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/format.h"
#include "protocol/obp_calls.h"
#include "protocol/pack.h"
#include "protocol/resume.h"

struct obs_context;
struct obs_driver;

#define OBS_STAGING_WRITES    2u
#define OBS_STAGING_READS     32u /* two for each reader, the others for replies in transit */
#define OBS_STAGING_READ      OBP_PACK_CHUNK /* bytes of a read slot */
/* those that a client may leave unacknowledged for ever, and two for each of two readers */
#define OBS_STAGING_READS_MIN (OBP_ACK_BIG - 1 + 2 * 2)
#define OBS_STAGING_READERS   8u
/* how long a thread waits for a slot before it uses plain memory */
#define OBS_STAGING_TIMEOUT_S 60

struct obs_slot {
	/* OBP_CHUNK_MAX bytes for a write; NULL until its first use, except for writes */
	uint8_t *data;
	bool offered;  /* registering with the driver was tried */
	CUevent event; /* in `context` */
	struct obs_context *context;
	bool pending; /* the event was recorded and must be waited for */
	bool taken;
	/*
	 * read slots: what was sent from it is not acknowledged; set and cleared under the replies'
	 * lock
	 */
	_Atomic bool unacked;
};

/*
 * The owner of unacknowledged read slots (reply.c). wait: called when a thread begins to wait for a
 * slot and when it ends. paused: the wait then has no limit.
 */
struct obs_staging_owner {
	void (*wait)(void *owner, bool begins);
	bool (*paused)(void *owner);
};

struct obs_staging {
	pthread_mutex_t lock;
	pthread_cond_t returned;
	const struct obs_driver *drv;
	struct obs_slot writes[OBS_STAGING_WRITES], reads[OBS_STAGING_READS];
	struct obs_slot uploads[OBP_PART_PIECES_MAX]; /* OBP_PART_PIECE bytes; taken under lock */
	uint32_t next_write;
	uint32_t readers;
	const struct obs_staging_owner *owner; /* NULL: none */
	void *owner_data;
	uint32_t slots, readers_max; /* read slots in use; fewer if the session's limit is lower */
};

/*
 * False: no memory for the write slots, which are allocated at the beginning: a write without a
 * slot could only end the session.
 */
bool obs_staging_init(struct obs_staging *staging, const struct obs_driver *drv);
/*
 * Limits the read slots to this many bytes, but to no fewer than OBS_STAGING_READS_MIN, the fewest
 * that cannot stall. Before the first read.
 */
void obs_staging_limit(struct obs_staging *staging, uint64_t bytes);
/*
 * The next write slot, after its last copy has finished. The context must be current in this
 * thread.
 */
struct obs_slot *obs_staging_write_slot(struct obs_staging *staging, struct obs_context *context);
/*
 * The slot's bytes are being copied in this stream. Waits for the copy at once if no event can be
 * created.
 */
void obs_staging_write_started(struct obs_staging *staging, struct obs_slot *slot,
	struct obs_context *context, CUstream stream);
/*
 * The lowest free slot for a piece of an upload, of OBP_PART_PIECE bytes. NULL: there is none, or
 * no memory. The context must be current in this thread.
 */
struct obs_slot *obs_staging_upload_take(struct obs_staging *staging, struct obs_context *context);
/* Nothing is copied from the slot any more. Any thread. */
void obs_staging_upload_give(struct obs_staging *staging, struct obs_slot *slot);
/* Takes two slots for a read; false: none became free in time, or no memory. */
bool obs_staging_read_take(struct obs_staging *staging, struct obs_slot *ret_slots[2]);
/* The same without waiting. ret_slots is written only if this succeeds. */
bool obs_staging_read_try(struct obs_staging *staging, struct obs_slot *ret_slots[2]);
/* While the connection is down: waiting for slots has no limit. */
bool obs_staging_paused(const struct obs_staging *staging);
/*
 * The slot's bytes were sent. If they are not acknowledged yet, the reader gets another slot:
 * *slot. False: none became free in time, or no memory.
 */
bool obs_staging_read_turn(struct obs_staging *staging, struct obs_slot **slot);
/* Wakes threads that wait for slots: some were acknowledged. Under the replies' lock. */
void obs_staging_returned(struct obs_staging *staging);
void obs_staging_read_give(struct obs_staging *staging, struct obs_slot *slots[2]);
/* The slot's event, created for `context` if need be. NULL: the driver cannot create one. */
CUevent obs_staging_event(
	struct obs_staging *staging, struct obs_slot *slot, struct obs_context *context);
/* The context is about to be destroyed: waits for its copies and destroys its events. */
void obs_staging_forget(struct obs_staging *staging, struct obs_context *context);

#endif
