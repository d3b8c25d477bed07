/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The addresses that a pool gives to clients of this server: --advertise, else those that it listens
 * on, tls:// first. A loopback address names another machine there: it is given only if there is no
 * other one and the balancers have such addresses too. Loop's thread only.
 */
#ifndef OBS_ADVERTISE_H
#define OBS_ADVERTISE_H

#include "server/supervisor/super.h"

/* Fills membership.advertised. OB_ERR_ARGUMENT: there is none that clients can use. */
enum ob_err obs_advertise_find(struct obs_super *super, struct ob_cause *ret_cause);

#endif
