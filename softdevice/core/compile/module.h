/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A module: the sequence of directives, functions and variables of a PTX text. */
#ifndef OBD_CORE_MODULE_H
#define OBD_CORE_MODULE_H

#include "softdevice/core/ptx/loader.h"

/* Reads the whole text. */
void obd_module_parse(struct obd_loader *ld);

#endif
