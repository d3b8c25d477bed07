/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The frame that tells a client why it is refused. Any thread. */
#ifndef OBS_REFUSE_H
#define OBS_REFUSE_H

#include "base/err.h"
#include "protocol/control.h"

struct obt_stream;

/*
 * Sends one control frame {type, code, text}. Does not block: if the socket does not take it at
 * once the message is lost. Does not close.
 */
void obs_refuse_send(int fd, enum ob_err code, const char *text);
/* The same over a stream that may be TLS; sends nothing before the handshake is finished. */
void obs_refuse_stream(struct obt_stream *stream, enum ob_err code, const char *text);
/* The same with another type of message, OBP_MSG_FATAL for a session that was already running. */
void obs_message_send(
	struct obt_stream *stream, enum obp_message_type type, enum ob_err code, const char *text);

#endif
