/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Directives without effect on the code: .loc, .file, .pragma, .section. */
#ifndef OBD_CORE_SKIP_H
#define OBD_CORE_SKIP_H

#include "softdevice/core/ptx/loader.h"

/* Steps over such a directive, up to its ';' if it has one. False: the current token is none. */
bool obd_skip_directive(struct obd_loader *ld);

#endif
