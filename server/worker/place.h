/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Restricts a session that has a ticket to the ticket's devices. A warm worker has prepared all
 * devices of the server; from here on the session has those of the ticket alone, numbered 0 to
 * n - 1 in the ticket's order, and the driver is not called for another (server/layers/devices.h).
 * Main thread, before the welcome.
 */
#ifndef OBS_WORKER_PLACE_H
#define OBS_WORKER_PLACE_H

#include <stdbool.h>

#include "server/worker/session.h"

/*
 * session->place is set. Does nothing without a ticket. False: no memory, or the server's devices
 * are not those that the supervisor meant.
 */
bool obs_place_settle(struct obs_session *session);

#endif
