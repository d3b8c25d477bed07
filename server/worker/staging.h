/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Page-locked memory between the sockets and the device, so that a copy and the wire work at the
 * same time.
 *
 * A slot holds one chunk. It is free, or filled and being copied from (writes: until its event has
 * passed), or being copied to (reads). The memory is our own mapping, registered with the driver
 * when that works; a context that goes away takes only the registration. Write slots belong to the
 * executor. Read slots are taken and given back under a lock: several lanes may read at the same
 * time.
 */
#ifndef OBS_STAGING_H
#define OBS_STAGING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"
#include "protocol/format.h"

struct obs_context;
struct obs_driver;

#define OBS_STAGING_WRITES    2u
#define OBS_STAGING_READS     32u /* two for each reader, the others for what is on its way */
/* a client acknowledges after four: those, and two for each of two readers */
#define OBS_STAGING_READS_MIN 8u
#define OBS_STAGING_READERS   8u
/* a thread waits so long for another's slot before it takes plain memory */
#define OBS_STAGING_TIMEOUT_S 60

struct obs_slot {
	uint8_t *data; /* OBP_CHUNK_MAX bytes; of reads NULL until first used */
	bool offered;  /* the driver was asked to register it */
	CUevent event; /* in `context` */
	struct obs_context *context;
	bool pending; /* the event was recorded and not yet waited for */
	bool taken;
	/*
	 * reads: what was sent from it may have to be sent again; set and cleared under the
	 * replies' lock
	 */
	_Atomic bool unacked;
};

/*
 * Who keeps the bytes of read slots until the client has them (reply.c). wait: a thread begins to
 * wait for a slot, or ends. paused: the wait may last for as long as it takes.
 */
struct obs_staging_keeper {
	void (*wait)(void *keeper, bool begins);
	bool (*paused)(void *keeper);
};

struct obs_staging {
	pthread_mutex_t lock;
	pthread_cond_t returned;
	const struct obs_driver *drv;
	struct obs_slot writes[OBS_STAGING_WRITES], reads[OBS_STAGING_READS];
	uint32_t next_write;
	uint32_t readers;
	const struct obs_staging_keeper *keeper; /* NULL: nobody */
	void *keeper_data;
	uint32_t slots, readers_max; /* of the reads; fewer for a session that is held to fewer */
};

/*
 * False: no memory for the slots of writes, which are there from the beginning: a write that has no
 * place to go could only end the session.
 */
bool obs_staging_init(struct obs_staging *staging, const struct obs_driver *drv);
/*
 * Before the first read: so many bytes of read slots at most; OBS_STAGING_READS_MIN are the fewest
 * that never stall.
 */
void obs_staging_limit(struct obs_staging *staging, uint64_t bytes);
/*
 * The next slot for a write, once the copy before is through. The context must be the thread's
 * current one.
 */
struct obs_slot *obs_staging_write_slot(struct obs_staging *staging, struct obs_context *context);
/* The slot's bytes are being copied in this stream. Waits at once when no event can be had. */
void obs_staging_write_started(struct obs_staging *staging, struct obs_slot *slot,
	struct obs_context *context, CUstream stream);
/* Two slots for a read; false: none free in time or no memory. */
bool obs_staging_read_take(struct obs_staging *staging, struct obs_slot *ret_slots[2]);
/*
 * The slot's bytes were sent. When they have to be kept the reader gets another slot: *slot. False:
 * none free in time or no memory.
 */
bool obs_staging_read_turn(struct obs_staging *staging, struct obs_slot **slot);
/* Slots are no longer kept: wakes who waits for one. Under the replies' lock. */
void obs_staging_returned(struct obs_staging *staging);
void obs_staging_read_give(struct obs_staging *staging, struct obs_slot *slots[2]);
/* The slot's event, made for `context` if need be. NULL: the driver has none to give. */
CUevent obs_staging_event(
	struct obs_staging *staging, struct obs_slot *slot, struct obs_context *context);
/*
 * The context is about to be destroyed: its events go, and no slot refers to it any more. The
 * copies in it are waited for.
 */
void obs_staging_forget(struct obs_staging *staging, struct obs_context *context);

#endif
