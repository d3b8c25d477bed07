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

struct obs_admission;

/* Takes the descriptor, a socket just accepted. */
void obs_caller_admit(struct obs_admission *admission, int fd, bool secure);
/* One caller goes. False: there is none. */
bool obs_caller_make_room(struct obs_admission *admission);
/* Ends those whose time is over. */
void obs_caller_sweep(struct obs_admission *admission, uint64_t now);

#endif
