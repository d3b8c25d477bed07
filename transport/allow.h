/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What a session may take, as numbers with names: of a server's settings, and of a token, which
 * lowers them for its bearer. Text of a token's is "max-memory=4294967296,share=0.25". No state;
 * any thread.
 */
#ifndef OBT_ALLOW_H
#define OBT_ALLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBT_ALLOW_TEXT        320u      /* bytes of the text of all of them, NUL included */
#define OBT_ALLOW_IDLE_MAX_S  31536000u /* a year */
#define OBT_ALLOW_HANDLES_MAX 1048576u

enum obt_allowed {
	OBT_ALLOW_MEMORY,      /* bytes on each device */
	OBT_ALLOW_HOST_MEMORY, /* bytes of the server's own memory */
	OBT_ALLOW_OUTSTANDING, /* bytes of results on their way */
	OBT_ALLOW_HANDLES,
	OBT_ALLOW_MODULES,
	OBT_ALLOW_LANES,
	OBT_ALLOW_IDLE,     /* seconds without a call */
	OBT_ALLOW_SHARE,    /* of a device's time, millionths */
	OBT_ALLOW_PRIORITY, /* 1 low, 2 normal, 3 high */
	OBT_ALLOW_SESSIONS, /* at the same time; of a token only */
	OBT_ALLOW_COUNT
};

struct obt_allow {
	uint64_t value[OBT_ALLOW_COUNT]; /* 0: nothing is said */
};

/* As the option is called, without dashes. */
const char *obt_allow_name(enum obt_allowed what);
/* 1: taken; 0: there is no such name; -1: *ret_why says what it wants. */
int obt_allow_set(
	struct obt_allow *allow, const char *name, const char *text, const char **ret_why);
/* "" when nothing is said. */
void obt_allow_print(const struct obt_allow *allow, char ret_text[OBT_ALLOW_TEXT]);
/* False: not such a text. */
bool obt_allow_parse(const char *text, struct obt_allow *ret);

#endif
