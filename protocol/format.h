/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The layout of the bytes on the wire. Little-endian; every struct is naturally aligned and has no
 * holes. Drawings: docs/PROTOCOL.md.
 *
 *   connection = preface, then frames in both directions
 *   frame      = struct obp_frame + payload
 *   payload    = records (calls), replies, or one msgpack map (control), as the frame's type says
 */
#ifndef OBP_FORMAT_H
#define OBP_FORMAT_H

#include <stdint.h>

#define OBP_MAGIC         0x4452424fu /* "OBRD" */
/* of the preface and all messages up to the welcome; another version is refused */
#define OBP_VERSION       2u
/* of the frames; additions within a version are announced as options in the hello */
#define OBP_FRAME_VERSION 1u
#define OBP_PORT          14800

#define OBP_FRAME_PAYLOAD_MAX (4u << 20)   /* bytes */
#define OBP_CONTROL_MAX       (128u << 10) /* bytes of one control map */
#define OBP_RECORD_MAX        OBP_FRAME_PAYLOAD_MAX
#define OBP_CHUNK_MAX         (1u << 20) /* bytes of copy data in one record or reply */
#define OBP_LANE_MAX          1024u      /* lanes in one session; all but the next are threads */
#define OBP_TRANSFER_LANE     (OBP_LANE_MAX - 1) /* for the parts of uploads */
#define OBP_SLAB_MAX          (256u << 20) /* bytes of memory granted in one piece without vmm */
#define OBP_SLAB_PAGE         (64u << 10)  /* bytes; slabs begin and end at multiples of it */
#define OBP_SLAB_ALIGN        512u         /* bytes; of allocations in slabs */
#define OBP_MEMORY_PAGE       (2u << 20)   /* bytes; a range is backed in multiples of it */
#define OBP_MEMORY_UNIT_MAX   (64u << 20)  /* bytes */

/*
 * Bytes in which the memory of a range grows and shrinks, for a device of `total` bytes as the
 * session sees it: a power of two and at most an eighth, because what one process has taken and
 * does not use is missing for the others of its reservation. The server maps memory in pieces of
 * this size and the client gives it back in such pieces, so both must compute the same.
 */
static inline uint64_t obp_memory_unit(uint64_t total)
{
	uint64_t unit = OBP_MEMORY_UNIT_MAX;

	while (unit > OBP_MEMORY_PAGE && unit > total / 8)
		unit /= 2;
	return unit;
}

enum obp_intent { OBP_INTENT_NEW = 1, OBP_INTENT_JOIN = 2 };

/*
 * The first 16 bytes that a client sends, never encrypted. They contain what the server needs to
 * choose the process that gets the socket.
 */
struct obp_preface {
	uint32_t magic;
	uint16_t version;
	uint8_t intent;
	uint8_t reserved; /* 0 */
	/* 0 for a new session, else the route from the welcome */
	uint64_t route;
};

enum obp_frame_type {
	OBP_FRAME_CALLS = 1,   /* client -> server: `count` records */
	OBP_FRAME_REPLIES = 2, /* server -> client: `count` replies */
	OBP_FRAME_ACK = 3,     /* either direction: only the field `ack` is used */
	/* one msgpack map: hello, welcome, join, callbacks, pings */
	OBP_FRAME_CONTROL = 4,
	/* on a stripe, either direction: `count` bytes of transfer `sequence` at offset `ack` */
	OBP_FRAME_PART = 5,
	/* on a stripe, client: the server should send parts of transfer `sequence` here */
	OBP_FRAME_GIVE = 6,
	OBP_FRAME_GIVEN = 7, /* on a stripe, server: no more parts of it follow */
};

struct obp_frame {
	uint32_t magic;
	uint8_t version;
	uint8_t type; /* enum obp_frame_type */
	/* codec of the payload (enum obz_codec), 0 = none; other bits 0 */
	uint16_t flags;
	uint32_t size;  /* payload bytes that follow */
	uint32_t count; /* records or replies in the payload */
	/* calls: number of the first record, from 1; replies: number of the first reply, from 1 */
	uint64_t sequence;
	/* highest record (server) or reply (client) received and executed/consumed in order */
	uint64_t ack;
	uint64_t time_ns; /* sender's monotonic clock when the frame was made */
	/*
	 * without a codec: payload bytes before padding; with one: payload size of the same frame
	 * when not packed
	 */
	uint32_t raw_size;
	uint32_t reserved; /* 0 */
};

/*
 * The head of a packed payload. It is followed by `plain` uncompressed bytes, then `packed` bytes
 * that decompress to `raw` bytes, then zeros up to a multiple of 8.
 */
struct obp_packed {
	uint32_t plain, raw, packed;
	uint32_t reserved; /* 0 */
};

/* A call. The n-th record of a frame has number sequence + n. */
struct obp_record {
	uint32_t size; /* this header and the body, a multiple of 8 */
	uint16_t opcode;
	uint16_t lane; /* client thread, < OBP_LANE_MAX */
};

enum obp_reply_flags {
	OBP_REPLY_MORE = 1, /* copy data: further replies to the same call follow */
	/* device output (printf); the body is text for the program's stdout; call is 0 */
	OBP_REPLY_TEXT = 2,
	OBP_REPLY_TEXT_STDERR = 4, /* with TEXT: for stderr */
};

struct obp_reply {
	uint32_t size; /* this header and the body, a multiple of 8 */
	uint16_t flags;
	uint16_t lane;
	uint32_t result; /* CUresult of this call */
	/*
	 * deferred error: CUresult of the first failed async call not yet reported; 0: none.
	 * Reported once
	 */
	uint32_t deferred;
	uint64_t call;            /* the record's number */
	uint32_t body;            /* exact body bytes, <= size - sizeof(struct obp_reply) */
	uint32_t deferred_opcode; /* of the failed call */
};

_Static_assert(sizeof(struct obp_preface) == 16, "wire");
_Static_assert(sizeof(struct obp_frame) == 48, "wire");
_Static_assert(sizeof(struct obp_packed) == 16, "wire");
_Static_assert(sizeof(struct obp_record) == 8, "wire");
_Static_assert(sizeof(struct obp_reply) == 32, "wire");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian hosts only");

#endif
