/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Makes the code of a function shorter, before its registers get slots. Two passes, each of which
 * OUTBOARD_OPT can switch off (docs/adr/0045-shorter-code.md):
 *
 * invariant: operations whose operands are parameters, sizes of the grid, addresses of shared
 *     memory, constants and one another's results go to a prologue. It runs once for each frame and
 *     not for each warp.
 * fuse: an access to base + index * size, with a base from the prologue, takes the index itself;
 * the
 *     index of a thread in the grid is one operation; moves of new values and operations whose
 *     results are not used are dropped.
 */
#ifndef OBD_CORE_SHORTEN_H
#define OBD_CORE_SHORTEN_H

#include "softdevice/core/compile/builder.h"

/* The labels must be resolved. Changes the builder's code, prologue and labels. */
void obd_shorten(struct obd_builder *b);

#endif
