/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The program outboard-balancer: one process, one thread, one libuv loop. core.h describes its
 * state, docs/POOL.md what it does.
 */
#ifndef OBL_BALANCER_H
#define OBL_BALANCER_H

#include "loadbalancer/balancer/settings.h"

/* Runs until SIGTERM or SIGINT. The exit status. */
int obl_balancer_run(const struct obl_settings *settings);

#endif
