/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Calls of texture and surface references, as the fake driver has seen them. */
#ifndef FAKE_TEXREFS_H
#define FAKE_TEXREFS_H

#include <stddef.h>

#define FAKE_TEXREFS_BYTES 4096 /* of the text, with its NUL */

/* Copies the text of the calls, a line each, and forgets them. Any thread. */
void fake_texrefs_take(char *ret, size_t size);

#endif
