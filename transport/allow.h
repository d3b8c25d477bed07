/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Limits of a session as numbers with names: those of a server's settings, and those of a token,
 * which lower them for its bearer. A token's are written as "max-memory=4294967296,share=0.25". No
 * state; any thread.
 */
#ifndef OBT_ALLOW_H
#define OBT_ALLOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/cause.h"

#define OBT_ALLOW_TEXT        320u      /* bytes of all limits as text, NUL included */
#define OBT_ALLOW_IDLE_MAX_S  31536000u /* a year */
#define OBT_ALLOW_HANDLES_MAX 1048576u

enum obt_allowed {
	OBT_ALLOW_MEMORY,      /* bytes on each device */
	OBT_ALLOW_HOST_MEMORY, /* bytes of the server's own memory */
	OBT_ALLOW_OUTSTANDING, /* bytes of results that are not acknowledged yet */
	OBT_ALLOW_HANDLES,
	OBT_ALLOW_MODULES,
	OBT_ALLOW_LANES,
	OBT_ALLOW_IDLE,     /* seconds without a call */
	OBT_ALLOW_SHARE,    /* of the device's time, millionths */
	OBT_ALLOW_PRIORITY, /* 1 low, 2 normal, 3 high */
	OBT_ALLOW_SESSIONS, /* sessions at a time; tokens only */
	OBT_ALLOW_COUNT
};

struct obt_allow {
	uint64_t value[OBT_ALLOW_COUNT]; /* 0: not set */
};

/* The option's name, without dashes. */
const char *obt_allow_name(enum obt_allowed what);
/* OB_ERR_NOT_FOUND: there is no such name. OB_ERR_ARGUMENT: *ret_cause says what the limit takes. */
enum ob_err obt_allow_set(
	struct obt_allow *allow, const char *name, const char *text, struct ob_cause *ret_cause);
/* "" when nothing is set. */
void obt_allow_print(const struct obt_allow *allow, char ret_text[OBT_ALLOW_TEXT]);
/* OB_ERR_ARGUMENT: malformed text. */
enum ob_err obt_allow_parse(const char *text, struct obt_allow *ret);

#endif
