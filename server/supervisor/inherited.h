/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Listening sockets that the service manager has opened and passes to the server (sd_listen_fds(3)):
 * descriptors from 3 on, counted by LISTEN_FDS, for the process LISTEN_PID. An address of --listen
 * that one of them has uses it instead of opening its own. The owner of the structure owns the
 * descriptors that are still in it. One thread, before others exist.
 */
#ifndef OBS_INHERITED_H
#define OBS_INHERITED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cause.h"
#include "transport/url.h"

#define OBS_INHERITED_MAX 16u /* as OBS_LISTEN_MAX */

struct obs_inherited {
	int fds[OBS_INHERITED_MAX];
	size_t n;
};

/*
 * Takes the descriptors of this process, makes them non-blocking and closed on exec, and removes
 * the variables, so that no child takes them too. Call it before any other descriptor is opened. None
 * passed: OB_ERR_NONE and n is 0. OB_ERR_ARGUMENT: there are too many, or one is not a listening
 * stream socket of TCP or of Unix; the descriptors are closed.
 */
enum ob_err obs_inherited_take(struct obs_inherited *ret, struct ob_cause *ret_cause);
/*
 * Finds the descriptor that listens on an address and gives it to the caller; false: none does. May
 * ask the resolver.
 */
bool obs_inherited_find(struct obs_inherited *inherited, const struct obt_url *url, int *ret_fd);
/* OB_ERR_ARGUMENT: one is left, which no --listen names; closes them. */
enum ob_err obs_inherited_end(struct obs_inherited *inherited, struct ob_cause *ret_cause);

#endif
