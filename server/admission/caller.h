/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A caller: a connection in the admission process, from accept to its hand-over, refusal or end.
 * What it has to show, in this order: the preface; on tls:// a finished handshake, by certificate
 * for a new session and by the session's secret for a join; one message of at most OBS_HANDOFF_BODY
 * bytes; on tls:// the end of that layer. All of it before one deadline. Nothing of a caller is
 * known to the supervisor before.
 *
 * When there are too many, one is evicted: of the address with the most connections, the one that
 * is least far in this order, the oldest of those.
 */
#ifndef OBS_CALLER_H
#define OBS_CALLER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "server/common/options.h"
#include "server/common/routes.h"
#include "transport/tls.h"

struct obs_caller;

/* All callers, and what they need of the process. */
struct obs_callers {
	uv_loop_t loop;
	const struct obs_options *options;
	struct obt_tls_server *tls; /* NULL: no TLS on this server */
	const struct obs_routes *routes;
	char sandbox[OBP_SANDBOX_MAX]; /* what confines this process, in words */
	struct obs_caller *newest, *oldest;
	uint32_t n_callers;
};

/* Takes the descriptor, a socket just accepted. */
void obs_caller_admit(struct obs_callers *callers, int fd, bool secure);
/* One caller goes. False: there is none. */
bool obs_caller_make_room(struct obs_callers *callers);
/* Ends those whose time is over. */
void obs_caller_sweep(struct obs_callers *callers, uint64_t now);

#endif
