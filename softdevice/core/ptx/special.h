/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The names of special registers: %tid.x, %laneid and the like. */
#ifndef OBD_CORE_SPECIAL_H
#define OBD_CORE_SPECIAL_H

#include "softdevice/core/ptx/loader.h"
#include "softdevice/core/ptx/type.h"

/*
 * True if `name` is a special register; *ret_number is its enum obd_sreg. Steps over the .x, .y or
 * .z that follows some names.
 */
bool obd_special_parse(struct obd_loader *ld, const struct obd_token *name, uint64_t *ret_number,
	enum obd_type *ret_type);

#endif
