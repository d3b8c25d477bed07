/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * `check` and `info` of a list of servers: each asked for its load, one line or one paragraph each, and which of them a program would get.
 */
#ifndef OBX_SERVERS_H
#define OBX_SERVERS_H

#include <stdbool.h>

/* The exit code: 0 when at least one answers. details: devices too. Blocks for a second at most. */
int obx_servers_look(const char *verb, const char *list, bool details);
/* Each address of a list can be read. False: *ret_why. */
bool obx_servers_valid(const char *list, const char **ret_why);

#endif
