/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_timeline: what a program's threads, the sender and the connection did, and when, for
 * `outboard run --timeline FILE` (OUTBOARD_TIMELINE). Events are kept in memory and written at the
 * end (timeline_write.h), together with the server's (timeline_server.h).
 *
 *   tracks   one for each lane, and OBC_TRACK_... below. One writer at a time each: the lane's
 *            thread, the holder of the send or the receive right, the sender, the control thread
 *   pool     all events of all tracks, of fixed size, cut into blocks. A track takes the next block
 *            when its last one is full. When no block is left, new events are counted and dropped
 *
 * Recording takes no lock, allocates nothing and reads the clock once. When disabled nothing here is
 * called: the callers test a flag of the log that they tested anyway.
 */
#ifndef OBC_TIMELINE_H
#define OBC_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/format.h"

#define OBC_TIMELINE_EVENTS     (256u << 10) /* limit when OUTBOARD_TIMELINE_EVENTS is unset */
#define OBC_TIMELINE_EVENTS_MIN (1u << 10)
#define OBC_TIMELINE_EVENTS_MAX (16u << 20)
#define OBC_TIMELINE_BLOCK      128u /* events */

enum {
	OBC_TRACK_SENDER = OBP_LANE_MAX, /* tracks below it are lanes; its frames are in OUT too */
	OBC_TRACK_OUT,                   /* frames sent; under the send right */
	OBC_TRACK_IN,                    /* replies received; under the receive right */
	OBC_TRACK_CONTROL,
	OBC_TRACKS
};

enum obc_timeline_kind {
	OBC_EVENT_CALL,  /* a call entered the log and returned; its length was not measured */
	OBC_EVENT_WAIT,  /* a call waited for its reply */
	OBC_EVENT_ROOM,  /* a call waited for room in the ring */
	OBC_EVENT_FRAME, /* a frame was written to the data connection */
	OBC_EVENT_REPLY, /* a reply was received */
	OBC_EVENT_SLEEP, /* the sender slept */
	OBC_EVENT_PING,
};

struct obc_timeline_event {
	uint64_t at, took; /* ns, monotonic clock; took 0: not measured */
	uint64_t number;   /* of the record; FRAME: of its first record */
	uint32_t size;     /* bytes on the wire */
	uint32_t more;     /* FRAME: records */
	uint16_t opcode;
	uint8_t kind, codec;
	bool by_sender; /* FRAME: sent by the sender thread */
};

extern bool obc_timeline_on;

/*
 * Reads OUTBOARD_TIMELINE and OUTBOARD_TIMELINE_EVENTS. Logs a warning and stays off if the file
 * cannot be created. Before the log is opened.
 */
void obc_timeline_start(void);
/* No event is recorded after this. Other threads may still be within a recording function. */
void obc_timeline_stop(void);
/* After fork, in the child: the file belongs to the parent. */
void obc_timeline_forget(void);
/* Absolute; valid once started. */
const char *obc_timeline_path(void);
uint64_t obc_timeline_began(void); /* ns */
uint64_t obc_timeline_limit(void); /* events */

/* ---- recording; only while obc_timeline_on ---- */

/*
 * A record is about to enter the log. `waits`: its caller will wait for the reply, and
 * obc_timeline_waited ends the event.
 */
void obc_timeline_call(unsigned lane, uint16_t opcode, uint64_t number, uint32_t size, bool waits);
void obc_timeline_waited(unsigned lane, uint64_t ended);
/* Any other event, which ends now. */
void obc_timeline_add(unsigned track, const struct obc_timeline_event *event);

/* ---- reading; any thread, also while others record ---- */

/* fn is called for each event of a track, oldest first. */
void obc_timeline_each(unsigned track,
	void (*fn)(void *user, unsigned track, const struct obc_timeline_event *event), void *user);
uint64_t obc_timeline_dropped(unsigned track);
/* A call of this lane that waits at present. False: none does. */
bool obc_timeline_waiting(unsigned lane, struct obc_timeline_event *ret);

#endif
