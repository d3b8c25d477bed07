/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A server's report of its load and, on request, of its sessions. A connection whose preface has
 * intent OBP_INTENT_LOAD gets one such message from the supervisor, without starting a session;
 * then the client closes. The message is one msgpack map in a control frame, of type OBP_LOAD_TYPE;
 * unknown keys are skipped. No state; any thread.
 */
#ifndef OBP_LOAD_H
#define OBP_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "protocol/control.h"
#include "protocol/facts.h"

#define OBP_INTENT_LOAD       16u      /* of a preface; its route is a set of enum obp_load_want */
#define OBP_LOAD_TYPE         32u      /* of the map; far from the types of enum obp_message_type */
#define OBP_LOAD_SESSIONS_MAX 256u     /* listed in one message; further ones are only counted */
#define OBP_LOAD_NAME_MAX     64u      /* bytes of a name in it, NUL included */
#define OBP_SHARE_ALL         1000000u /* a compute share is in millionths */

/*
 * SESSIONS: all, for clients on the server's own host only. OWN: those of the asker's machine
 * (server/supervisor/status.h). FACTS: what is known of each device.
 */
enum obp_load_want { OBP_LOAD_WANT_SESSIONS = 1, OBP_LOAD_WANT_OWN = 2, OBP_LOAD_WANT_FACTS = 4 };

/*
 * Stages of throttling of a session that keeps exceeding its limits, mildest first. The server
 * decides what each stage does.
 */
enum obp_throttle {
	OBP_THROTTLE_WELL,
	OBP_THROTTLE_WARNED,
	OBP_THROTTLE_LIMITED,
	OBP_THROTTLE_SUSPENDED,
	OBP_THROTTLE_ENDED,
	OBP_THROTTLE_COUNT
};

/* How the server keeps a session within its share of a device's time. */
enum obp_share_by {
	OBP_SHARE_BY_NONE,     /* the session may have all of it; or an older server */
	OBP_SHARE_BY_THROTTLE, /* its launches are held back */
	OBP_SHARE_BY_GREEN,    /* a green context with a part of the multiprocessors */
	OBP_SHARE_BY_MPS,      /* NVIDIA's Multi-Process Service */
	OBP_SHARE_BY_COUNT,
	OBP_SHARE_BY_MAX = 15 /* of later versions, which may have more */
};

struct obp_load_device {
	char name[OBP_LOAD_NAME_MAX];
	uint8_t uuid[16];
	uint64_t total, used;      /* bytes; used: charged to sessions */
	uint32_t units, clock_khz; /* multiprocessors */
	uint32_t capability;       /* 90 for 9.0 */
	uint32_t sharers;          /* sessions that hold memory on it */
	bool ptx_only;
	uint32_t share_by;      /* what it offers: bit 1 << enum obp_share_by */
	struct obp_facts facts; /* none unless asked for */
};

struct obp_load_session {
	/* id: identifies the session in logs and gives no access to it; pid: the client's */
	uint64_t id, pid;
	uint64_t age_ns, idle_ns;
	uint64_t memory, memory_limit; /* bytes on all devices; limit per device, 0: none */
	uint64_t calls, replies, bytes_in, bytes_out;
	uint64_t device_ns;       /* measured time of its launches; 0 when not measured */
	uint64_t throttled_ns;    /* total delay of its launches */
	uint64_t refusals;        /* calls refused by a limit */
	uint32_t share, priority; /* millionths; 0 low, 1 normal, 2 high */
	uint32_t throttle;        /* enum obp_throttle */
	uint32_t share_by;        /* enum obp_share_by */
	char program[OBP_LOAD_NAME_MAX], client[OBP_LOAD_NAME_MAX];
	uint64_t used[OBP_DEVICE_MAX]; /* bytes on each device */
};

struct obp_load {
	char version[32], driver[OBP_NAME_MAX];
	bool draining;
	uint32_t sessions, max_sessions, warm, starting;
	/* per mille of the last second in which sessions were executing; all devices together */
	uint32_t busy;
	uint64_t uptime_ns, sessions_total, refused_total, deaths_total;
	uint32_t cuda_version;   /* of the driver, 13000 for 13.0; 0: not known */
	char nvidia_version[80]; /* of NVIDIA's kernel driver, "550.54.15"; empty: none */
	uint64_t memory_limit;   /* bytes on each device that a session may use; 0: no limit */
	uint32_t n_devices;
	struct obp_load_device devices[OBP_DEVICE_MAX];
	uint32_t n_sessions;             /* number of entries in listed */
	struct obp_load_session *listed; /* calloc'ed by decode; obp_load_fini frees */
};

/* Appends a frame; false: the buffer is full. listed may be NULL with n_sessions 0. */
bool obp_load_encode(const struct obp_load *load, struct ob_buf *frame);
/*
 * Decodes a frame's map bytes. OB_ERR_PROTOCOL, OB_ERR_NO_MEMORY. On success the caller must call
 * obp_load_fini.
 */
enum ob_err obp_load_decode(const void *map, size_t size, struct obp_load *ret);
void obp_load_fini(struct obp_load *load);
/* "warned"; "?" for a value that is not in the list. */
const char *obp_throttle_name(uint32_t throttle);
/* "none", "throttle", "green", "mps"; "?" for a value that is not in the list. */
const char *obp_share_by_name(uint32_t share_by);

#endif
