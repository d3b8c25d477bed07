/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A UUID for a device that has none by nature. No state; any thread. */
#ifndef OB_MACHINE_UUID_H
#define OB_MACHINE_UUID_H

#include <stdint.h>

/*
 * A UUID for what has this name on this machine: always the same one, and another one on a machine
 * with another /etc/machine-id or another host name. Reads both. It is the beginning of
 *
 *     HMAC-SHA256(machine id, SHA-256("outboard device" NUL host NUL name NUL))
 *
 * marked as version 8, "of one's own making", of RFC 9562. So it does not tell the id, which
 * programs of other users should not learn (machine-id(5)).
 */
void ob_uuid_of_machine(const char *name, uint8_t ret_uuid[16]);

#endif
