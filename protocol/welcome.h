/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A welcome against the hello that it answers. Decoding (protocol/control.h) checks each key by
 * itself; this checks what they mean together, before any of it is used: a server may take only
 * what was offered, and its devices lie inside the session's range. No state; any thread.
 */
#ifndef OBP_WELCOME_H
#define OBP_WELCOME_H

#include "protocol/control.h"

#define OBP_RANGE_ALIGN (2ull << 20) /* of the session's range and of each device's part */
#define OBP_RANGE_END   (1ull << 47) /* what a process can reserve on x86-64 and aarch64 */

/*
 * hello and answer: whole messages. NULL: the session can begin. Else what is wrong, for an error
 * line.
 */
const char *obp_welcome_check(const struct obp_message *hello, const struct obp_message *answer);

#endif
