/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Declarations of variables, with their memory and initial values. */
#ifndef OBD_CORE_VARIABLE_H
#define OBD_CORE_VARIABLE_H

#include "softdevice/core/ptx/loader.h"

/*
 * Reads a declaration, from the token after the state space to the one after the ';'. space: the
 * first letter of .global, .const, .shared or .local.
 */
void obd_variable_parse(struct obd_loader *ld, char space, bool is_extern, bool is_weak);

#endif
