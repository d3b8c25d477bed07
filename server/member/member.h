/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The member process: keeps the server's connection to one balancer. It registers the server, sends
 * the supervisor's heartbeats on, and hands the balancer's orders to the supervisor. A process of
 * its own, because it speaks TLS with another machine; one for each balancer, so that a balancer that
 * does not answer holds up no other. It decides nothing: what is reserved, and who is refused, is
 * the supervisor's. Without it sessions and tickets work as before.
 *
 * The supervisor starts it with its end of a channel (server/common/member_channel.h) as descriptor
 * OBS_MEMBER_FD, and restarts it when it dies. Ends with the supervisor. One thread.
 */
#ifndef OBS_MEMBER_H
#define OBS_MEMBER_H

#include "server/common/options.h"

#define OBS_MEMBER_BACKOFF_MIN_MS 200u /* between attempts to connect */
#define OBS_MEMBER_BACKOFF_MAX_MS 5000u

/* Runs until the supervisor is gone. The exit status: 1 if the options cannot be used. */
int obs_member_run(const struct obs_options *options);

#endif
