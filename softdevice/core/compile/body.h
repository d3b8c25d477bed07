/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The body of a function: declarations, labels and statements in { }. */
#ifndef OBD_CORE_BODY_H
#define OBD_CORE_BODY_H

#include "softdevice/core/compile/builder.h"

/*
 * Reads and compiles the body, from the token after its '{' to the one after its '}', with the
 * loader's current builder. A body that obd_ptx_refuse ends has no code.
 */
void obd_body_parse(struct obd_loader *ld, struct obd_function_decl *d, bool is_entry);

#endif
