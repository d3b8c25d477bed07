/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The session's ticket (loadbalancer/ticket_text.h). No state; any thread. */
#ifndef OBC_PASS_H
#define OBC_PASS_H

#include "base/cause.h"
#include "protocol/control.h"
#include "transport/stream.h"
#include "transport/url.h"

/*
 * Puts the ticket for this server, if there is one, into a hello on this stream. OB_ERR_DENIED: the
 * stream would carry it in clear to another machine. OB_ERR_ARGUMENT: the text of the tickets is
 * wrong.
 */
enum ob_err obc_pass_show(const struct obt_stream *stream, const struct obt_url *url,
	struct obp_hello *hello, struct ob_cause *ret_cause);

#endif
