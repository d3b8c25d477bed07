/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The limits of one session: set by the server's command line or configuration, lowered by the
 * client's token and by what the client asks for. Plain numbers; the worker gets them from the
 * supervisor as one argument. Any thread.
 */
#ifndef OBS_LIMITS_H
#define OBS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/control.h"
#include "protocol/load.h"
#include "transport/allow.h"

#define OBS_LIMITS_TEXT_MAX     256
#define OBS_HANDLES_MAX         (1u << 20) /* live handles of one kind */
#define OBS_OUTSTANDING_MAX     (32ull << 20)
#define OBS_STRIPES_DEFAULT     8u
#define OBS_SHARE_BY_CHOICES    3u /* of how a share is kept */
#define OBS_ASIDE_MAX           8u /* calls on threads of their own at a time */
/* of a thread that answers in the executor's place; RLIMIT_DATA counts it in full */
#define OBS_THREAD_STACK        ((size_t)2 << 20)
#define OBS_HOST_MEMORY_MIN     (128ull << 20)
#define OBS_HOST_MEMORY_DEFAULT (4ull << 30)

/* Purposes that a session's host memory is counted by (layers/hold.h). */
enum obs_purpose {
	/* staging, retransmit queue, buffers: reserved once, when the session begins */
	OBS_HOLD_TRANSPORT,
	OBS_HOLD_IMAGES,  /* uploaded code images */
	OBS_HOLD_MODULES, /* the driver's copies of the images it has loaded */
	/* in the software device: compiled code, queued launches, printed text */
	OBS_HOLD_DEVICE,
	OBS_HOLD_HANDLES, /* streams, events, functions, contexts, records of allocations */
	OBS_HOLD_PINNED,  /* page-locked memory that the program asked the driver for */
	OBS_HOLD_PURPOSES
};

struct obs_limits {
	uint64_t memory; /* bytes on each device; 0: no limit */
	/* bytes of the server's own memory, server/layers/hold.h; 0: no limit */
	uint64_t host_memory;
	/* bytes of results that the server holds until the client acknowledges them */
	uint64_t outstanding;
	uint32_t handles; /* streams, events, functions, memory handles at a time */
	uint32_t modules, lanes;
	uint32_t stripes; /* further connections for copies; 0: none */
	uint32_t idle_s;  /* seconds without a call; 0: no limit */
	/* of the device's time, in millionths; OBP_SHARE_ALL: not limited */
	uint32_t share;
	/* how the share is kept: enum obp_share_by, the first choice in the lowest 4 bits */
	uint32_t share_by;
	uint32_t priority;  /* the highest a client may ask for: 0 low, 1 normal, 2 high */
	uint32_t strictest; /* enum obp_throttle: the most severe reaction to misbehaviour */
	bool measure;       /* measure device time also without a share */
};

/* Only host memory is limited; the rest is bounded by the data structures. */
#define OBS_LIMITS_DEFAULT                                                                     \
	{                                                                                      \
		.host_memory = OBS_HOST_MEMORY_DEFAULT, .outstanding = OBS_OUTSTANDING_MAX,    \
		.handles = OBS_HANDLES_MAX, .modules = OBS_HANDLES_MAX, .lanes = OBP_LANE_MAX, \
		.stripes = OBS_STRIPES_DEFAULT, .share = OBP_SHARE_ALL, .priority = 1,         \
		.share_by = OBP_SHARE_BY_THROTTLE, .strictest = OBP_THROTTLE_LIMITED           \
	}
extern const struct obs_limits obs_limits_default;
/* Worker: the limits in force. They may be lowered until the first record is executed. */
extern struct obs_limits obs_limits_now;

/*
 * Sets one option by its name ("max-memory"). OB_ERR_NOT_FOUND: not one of these options.
 * OB_ERR_ARGUMENT: *ret_cause says what the option takes.
 */
enum ob_err obs_limits_option(
	struct obs_limits *limits, const char *name, const char *text, struct ob_cause *ret_cause);
/* The limits as the one argument of a worker. */
void obs_limits_print(const struct obs_limits *limits, char ret_text[OBS_LIMITS_TEXT_MAX]);
/* OB_ERR_ARGUMENT: malformed text. */
enum ob_err obs_limits_parse(const char *text, struct obs_limits *ret);
/* Choice i of how the share is kept, 0 the first; OBP_SHARE_BY_NONE: there is no further one. */
enum obp_share_by obs_limits_share_by(const struct obs_limits *limits, unsigned i);
/* Lowers the limits to those of the client's token; never raises them. */
void obs_limits_allow(struct obs_limits *limits, const struct obt_allow *allow);
/* Lowers the limits to what the client asks for; never raises them. */
void obs_limits_lower(struct obs_limits *limits, const struct obp_hello *hello);

#endif
