/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The listening sockets. */
#ifndef OBS_LISTENER_H
#define OBS_LISTENER_H

#include "server/supervisor/inherited.h"
#include "server/supervisor/super.h"

/*
 * Opens one more, or takes the socket of `inherited` that has this address. OB_ERR_URL, _ARGUMENT,
 * _CONNECT: *ret_cause.
 */
enum ob_err obs_listener_open(struct obs_super *super, struct obs_inherited *inherited,
	const char *url, struct ob_cause *ret_cause);
void obs_listener_close_all(struct obs_super *super);

#endif
