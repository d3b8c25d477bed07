/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The events of op timeline_read: what a server did for a session, and when. Each is five
 * little-endian numbers of 64 bits. A client takes all values as a stranger's claims.
 */
#ifndef OBP_TIMELINE_H
#define OBP_TIMELINE_H

#include <stdint.h>

#define OBP_TIMELINE_THREAD_MAX 0xfffu

enum obp_timeline_kind {
	OBP_TIMELINE_EXECUTED, /* a thread executed a record */
	OBP_TIMELINE_ANSWERED, /* a thread answered a record that another one had begun */
	OBP_TIMELINE_DEVICE,   /* the device worked for a record, in a stream */
	OBP_TIMELINE_KINDS
};

struct obp_timeline_event {
	uint64_t number;  /* of the record */
	uint64_t at_ns;   /* server's monotonic clock */
	uint64_t took_ns; /* ANSWERED: 0 */
	/* ns from at_ns to the reply, 0: none was sent; DEVICE: obp_timeline_stream */
	uint64_t more;
	/*
	 * bits 0..3 kind; 4..15 thread, in the order of their first record; 16..31 opcode; 32..63
	 * EXECUTED: ns since its last bytes had arrived; DEVICE: launches, copies or fills in it
	 */
	uint64_t what;
};

static inline uint64_t obp_timeline_what(
	enum obp_timeline_kind kind, unsigned thread, uint16_t opcode, uint32_t queued_ns)
{
	return (uint64_t)kind | (uint64_t)(thread & OBP_TIMELINE_THREAD_MAX) << 4 |
		(uint64_t)opcode << 16 | (uint64_t)queued_ns << 32;
}

/*
 * A stream of the device: bits 0..15 its number, 0 for the legacy default stream; 16..31 its
 * context, by number, those of the devices first; 32..47 its device.
 */
static inline uint64_t obp_timeline_stream(uint32_t device, uint32_t context, uint32_t number)
{
	return (uint64_t)(device & 0xffff) << 32 | (uint64_t)(context & 0xffff) << 16 |
		(number & 0xffff);
}

static inline unsigned obp_timeline_kind(const struct obp_timeline_event *event)
{
	return (unsigned)(event->what & 0xf);
}

static inline unsigned obp_timeline_thread(const struct obp_timeline_event *event)
{
	return (unsigned)(event->what >> 4) & OBP_TIMELINE_THREAD_MAX;
}

static inline uint16_t obp_timeline_opcode(const struct obp_timeline_event *event)
{
	return (uint16_t)(event->what >> 16);
}

static inline uint32_t obp_timeline_queued(const struct obp_timeline_event *event)
{
	return (uint32_t)(event->what >> 32);
}

static inline uint32_t obp_timeline_works(const struct obp_timeline_event *event)
{
	return (uint32_t)(event->what >> 32);
}

#endif
