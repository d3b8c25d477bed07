/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A caller: a connection in the admission process, from accept until it is handed on, refused or
 * closed. It must send, in this order and before one deadline: the preface; on tls:// a complete
 * handshake, with a certificate for a new session and with the session's secret for a join; one
 * message of at most OBS_HANDOFF_BODY bytes; on tls:// the end of that TLS layer. The supervisor
 * learns of a caller only after that.
 *
 * Connection limit reached: evict a caller of the address with the most connections, in the
 * earliest of these states, the oldest of those.
 */
#ifndef OBS_CALLER_H
#define OBS_CALLER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "server/common/options.h"
#include "server/common/pool_page.h"
#include "server/common/routes.h"
#include "transport/tls.h"

struct obs_caller;

#define OBS_SWEEP_MS 100u /* how often time-outs are looked at */

/* All callers, and what they need of the process. */
struct obs_callers {
	uv_loop_t loop;
	const struct obs_options *options;
	struct obt_tls_server *tls; /* NULL: no TLS on this server */
	const struct obs_routes *routes;
	const struct obs_pool_page *pool;
	char sandbox[OBP_SANDBOX_MAX]; /* sandbox of this process, as text */
	struct obs_caller *newest, *oldest;
	uint32_t n_callers;
	uint64_t swept; /* ns; when obs_caller_sweep last ran, or the process began */
};

/* Takes over the descriptor of an accepted socket. */
void obs_caller_admit(struct obs_callers *callers, int fd, bool secure);
/* Evicts one caller. False: there is none. */
bool obs_caller_make_room(struct obs_callers *callers);
/*
 * Ends callers whose deadline has passed. Called every OBS_SWEEP_MS: time that this process did not run
 * is not counted, because what they sent meanwhile was not read.
 */
void obs_caller_sweep(struct obs_callers *callers, uint64_t now);

#endif
