/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Checks a welcome against the hello that it answers. Decoding (protocol/control.h) checks each key
 * by itself; obp_welcome_check checks that the values are consistent, before any of them is used: a
 * server may only accept what the hello offered, and its devices must lie inside the session's
 * range. No state; any thread.
 */
#ifndef OBP_WELCOME_H
#define OBP_WELCOME_H

#include "base/cause.h"
#include "protocol/control.h"

#define OBP_RANGE_ALIGN (2ull << 20) /* of the session's range and of each device's part */
/* end of the addresses that a process can reserve on x86-64 and aarch64 */
#define OBP_RANGE_END   (1ull << 47)

/* Whether a server may grant these addresses as a slab: aligned, not too large, not wrapping. */
bool obp_slab_possible(const struct obp_range *slab);

/*
 * hello and answer: complete messages. OB_ERR_NONE: the session can start. OB_ERR_PROTOCOL:
 * *ret_cause.
 */
enum ob_err obp_welcome_check(const struct obp_message *hello, const struct obp_message *answer,
	struct ob_cause *ret_cause);

#endif
