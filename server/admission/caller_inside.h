/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Shared by caller.c, which moves the bytes of a caller and keeps its state, and caller_proof.c,
 * which checks whether its first message authenticates it. Admission process, one thread.
 */
#ifndef OBS_CALLER_INSIDE_H
#define OBS_CALLER_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "protocol/format.h"
#include "server/admission/address.h"
#include "server/common/handoff.h"
#include "transport/stream.h"

struct obs_callers;

/* In the order of eviction: earliest first. */
enum obs_caller_state {
	CALLER_REFUSED,
	CALLER_PREFACE,
	CALLER_MESSAGE,
	CALLER_ENDING /* the message is valid; waits for the end of the TLS layer */,
	CALLER_CLOSING
};

struct obs_caller_message {
	struct obp_frame frame;
	uint8_t map[OBS_HANDOFF_BODY];
};

struct obs_caller {
	struct obs_callers *callers;
	struct obs_caller *newer, *older;                 /* of all */
	struct obs_caller *address_newer, *address_older; /* of its address */
	struct obs_address *address;
	uv_poll_t poll;
	enum obs_caller_state state;
	bool secure; /* came on a tls:// address */
	bool asked;  /* has been sent the load, and may ask again */
	int fd;
	uint64_t deadline;
	size_t got, thrown_away;
	union {
		struct obp_preface preface;
		uint8_t preface_bytes[sizeof(struct obp_preface)];
	};
	/* for what follows the preface; ops NULL before. Owns the descriptor then */
	struct obt_stream stream;
	struct obs_caller_message *bytes;
	struct obs_handoff *handoff; /* what will be handed on, once the message is valid */
};

/* caller.c: sends the reason, counts the refusal, and gives the client time to read. */
void obs_caller_refuse(
	struct obs_caller *caller, enum obs_refusal kind, enum ob_err code, const char *text);

/* ---- caller_proof.c ---- */
/* True if the limits by address apply to the caller. */
bool obs_caller_limited(const struct obs_caller *caller);
/* True if no waiting time after wrong tokens is left. False: the caller was refused. */
bool obs_caller_may_guess(struct obs_caller *caller);
/*
 * The first message is complete: checks who the client is. True: caller->handoff is ready to be
 * sent. False: the caller was refused.
 */
bool obs_caller_prove(struct obs_caller *caller);

#endif
