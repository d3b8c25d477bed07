/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Control messages: one msgpack map each, in a frame of type OBP_FRAME_CONTROL. Unknown keys are
 * skipped, so keys can be added within one protocol version. Encoding appends a whole frame (header
 * and padding included) to a buffer; decoding takes the exact map bytes and fills a struct with
 * fixed capacities; a value that does not fit is a protocol error. No state; any thread.
 */
#ifndef OBP_CONTROL_H
#define OBP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "protocol/format.h"

#define OBP_RANGE_MAX    8u    /* address ranges proposed in one hello */
#define OBP_DEVICE_MAX   16u   /* devices of one session */
#define OBP_ATTR_MAX     192u  /* device attributes, by CUdevice_attribute */
#define OBP_NAME_MAX     256u  /* bytes of any name, NUL included */
#define OBP_TEXT_MAX     1024u /* bytes of a readable message, NUL included */
#define OBP_SECRET_BYTES 16u
#define OBP_TOKEN_MAX    80u /* bytes of a bearer token, NUL included */
#define OBP_HELLO_TICKET \
	1104u /* bytes of a ticket in a hello: OBP_TICKET_MAX (protocol/ticket.h) */

enum obp_message_type {
	OBP_MSG_HELLO = 1, /* client, first on a data connection */
	OBP_MSG_WELCOME,   /* server: the session, the devices */
	OBP_MSG_REFUSED,   /* server: code (enum ob_err), text; then it closes */
	/*
	 * client, first on a control connection or a resumed data connection: secret, code (enum
	 * obp_join_purpose)
	 */
	OBP_MSG_JOIN,
	OBP_MSG_JOINED, /* server; on a data connection `received` */
	/* either direction; PONG repeats value and reports the progress of the data connection */
	OBP_MSG_PING,
	OBP_MSG_PONG,
	/*
	 * server: run host function `value`; code is the stream's CUresult. `sent`: the last reply
	 * that was sent before, which the function may rely on; 0: the server is older
	 */
	OBP_MSG_CALLBACK,
	OBP_MSG_CALLBACK_DONE, /* client */
	OBP_MSG_FATAL,         /* either direction: the session ends; code, text */
	/*
	 * client, answer to a WELCOME with range_ok false: value 1: it has reserved the server's
	 * range; 0: it could not
	 */
	OBP_MSG_RANGE,
	/*
	 * client: how much memory of device `code` is free? `value` is not 0 and is repeated in the
	 * answer. Only if the welcome has free_memory
	 */
	OBP_MSG_MEMORY_ASK,
	/*
	 * server: free_bytes and total_bytes of device `code`, read after `received` records had
	 * been accepted. There is no answer before the first mem_info of the device
	 */
	OBP_MSG_MEMORY,
	OBP_MSG_LAST = OBP_MSG_MEMORY,
};

struct obp_range {
	uint64_t base, size; /* bytes */
};

struct obp_hello {
	char version[32]; /* the client's program version */
	char program[OBP_NAME_MAX];
	uint64_t pid;
	/* set of codecs that the client supports; 0 (an older client): no packed frames */
	uint32_t codecs;
	char token[OBP_TOKEN_MAX]; /* bearer token; empty: none */
	/* of a reservation at a server that belongs to a pool (protocol/ticket.h); size 0: none */
	uint32_t ticket_size;
	uint8_t ticket[OBP_HELLO_TICKET];
	uint32_t codec; /* requested: enum obp_codec_request or a codec */
	/*
	 * seconds for which the client keeps its state after a broken connection and tries to
	 * resume; 0: it does not resume
	 */
	uint32_t grace_s;
	/* bytes of calls that the client keeps until they are acknowledged; 0: unknown */
	uint64_t ring;
	/* requested maximum of memory on each device, bytes; 0: the server's limit */
	uint64_t want_memory;
	uint32_t want_share;    /* of the device's time, in millionths; 0: the server's limit */
	uint32_t want_priority; /* 1 low, 2 normal, 3 high; 0: normal */
	/*
	 * 1: the program's environment may hide or reorder the first device, so the server makes no
	 * grant on it unless it is the only one; 0: the program sees it, or the client is older
	 */
	uint32_t no_grant;
	/*
	 * bytes/s from the server to the client in an earlier session, where the server's
	 * measurement begins; 0: unknown
	 */
	uint64_t link_rate;
	/*
	 * 1: without virtual memory management the client places allocations in slabs; 0: it
	 * cannot, or is older, and the server makes none
	 */
	uint32_t slabs;
	uint32_t n_ranges; /* ranges that the client has reserved, best first */
	struct obp_range ranges[OBP_RANGE_MAX];
};

struct obp_device {
	char name[OBP_NAME_MAX];
	uint8_t uuid[16];
	uint64_t total_mem, free_mem; /* bytes */
	int32_t attr[OBP_ATTR_MAX];
	bool attr_known[OBP_ATTR_MAX];
	bool ptx_only;
	/*
	 * this device's part of the session's range; without vmm the first slab, in its primary
	 * context
	 */
	struct obp_range range;
	uint64_t grant; /* bytes from range.base that are backed from the start */
};

#define OBP_SANDBOX_MAX 240u

struct obp_welcome {
	char version[32]; /* the server's program version */
	/* the driver: "null", "dryrun", or a library's path */
	char driver[OBP_NAME_MAX];
	/* description of the worker's sandbox; "": the server is older */
	char sandbox[OBP_SANDBOX_MAX];
	uint64_t route; /* for later prefaces of this session; not 0 */
	uint8_t secret[OBP_SECRET_BYTES];
	int32_t driver_version;
	/*
	 * codecs of the hello that the server supports too: permitted in packed frames in both
	 * directions
	 */
	uint32_t codecs;
	/*
	 * seconds for which the server keeps the session without a connection; 0: the session ends
	 * with the connection
	 */
	uint32_t grace_s;
	/* size of the upload cache, in bytes (op cache_ask); 0: there is none */
	uint64_t cache;
	/* maximum number of stripes; 0: none */
	uint32_t stripes;
	/*
	 * number of lines of opcodes.lock that the server knows; 0: the server is older than this
	 * key and knows OBP_LINES_FIRST
	 */
	uint32_t opcodes;
	/* the server can measure the time of records: op times_switch */
	bool times;
	bool free_memory; /* the server answers OBP_MSG_MEMORY_ASK */
	/*
	 * size of the largest slab that the server makes without virtual memory management, bytes;
	 * 0: it makes none
	 */
	uint64_t slabs;
	bool vmm; /* the server has virtual memory management: the client chooses addresses */
	/*
	 * the server took one of the client's ranges; otherwise range is the server's, which the
	 * client must try to reserve
	 */
	bool range_ok;
	struct obp_range range;
	uint32_t n_devices;
	/* calloc'ed by decode, n_devices; freed by obp_welcome_fini */
	struct obp_device *devices;
};

struct obp_message {
	enum obp_message_type type;
	uint64_t value;
	uint32_t code;
	/*
	 * hello, welcome; join and joined of a data connection: version of the shared memory's
	 * layout (transport/shm.h); 0: the connection uses the socket
	 */
	uint32_t shm;
	/*
	 * join, joined, ping, pong: number of the last item received completely (join of a stripe:
	 * its set), number of the last item sent, bytes received
	 */
	uint64_t received, sent, bytes;
	uint64_t free_bytes, total_bytes; /* memory; free_bytes <= total_bytes */
	/*
	 * join: increases with each join; the server refuses one that is lower than an earlier one
	 */
	uint64_t attempt;
	uint8_t secret[OBP_SECRET_BYTES];
	char text[OBP_TEXT_MAX];
	struct obp_hello hello;     /* OBP_MSG_HELLO */
	struct obp_welcome welcome; /* OBP_MSG_WELCOME */
};

/*
 * Appends a frame; false: the buffer is full. Reads hello and welcome only for messages of these
 * types.
 */
bool obp_message_encode(const struct obp_message *message, struct ob_buf *frame);
/*
 * Decodes a frame's map bytes. OB_ERR_PROTOCOL, OB_ERR_NO_MEMORY. On success the caller must call
 * obp_message_fini.
 */
enum ob_err obp_message_decode(const void *map, size_t size, struct obp_message *ret);
void obp_message_fini(struct obp_message *message);

#endif
