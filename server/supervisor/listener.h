/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The listening sockets. */
#ifndef OBS_LISTENER_H
#define OBS_LISTENER_H

#include "server/supervisor/super.h"

/* 0, or -1 after an error on stderr */
int obs_listener_open(struct obs_super *super, const char *url);
void obs_listener_close_all(struct obs_super *super);

#endif
