/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What caller.c and caller_proof.c share of a caller. caller.c moves its bytes and knows its state;
 * caller_proof.c says whether its first message proves who it is. Admission process, its one
 * thread.
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

/* In the order of eviction: those that got least far go first. */
enum obs_caller_state {
	CALLER_REFUSED,
	CALLER_PREFACE,
	CALLER_MESSAGE,
	CALLER_ENDING /* TLS: its message is good, its layer has to end */,
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
	bool asked;  /* has had an answer about the load, and may ask again */
	int fd;
	uint64_t deadline;
	size_t got, thrown_away;
	union {
		struct obp_preface preface;
		uint8_t preface_bytes[sizeof(struct obp_preface)];
	};
	/* behind the preface; ops NULL before. It has the descriptor then */
	struct obt_stream stream;
	struct obs_caller_message *bytes;
	struct obs_handoff *handoff; /* what will be handed on, once the message is good */
};

/* caller.c: tells it why, counts it, and gives it a moment to read that. */
void obs_caller_refuse(
	struct obs_caller *caller, enum obs_refusal kind, enum ob_err code, const char *text);

/* caller_proof.c */
/* The address is one of those that limits hold for. */
bool obs_caller_limited(const struct obs_caller *caller);
/* No wait after wrong tokens is left. False: the caller was refused. */
bool obs_caller_may_guess(struct obs_caller *caller);
/*
 * The first message is whole: who is it? True: caller->handoff is ready to be handed on. False: the
 * caller was refused.
 */
bool obs_caller_prove(struct obs_caller *caller);

#endif
