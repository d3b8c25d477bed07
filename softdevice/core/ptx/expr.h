/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Constant expressions over 64-bit integers, evaluated while they are read. */
#ifndef OBD_CORE_EXPR_H
#define OBD_CORE_EXPR_H

#include <stdint.h>

#include "softdevice/core/ptx/loader.h"

uint64_t obd_expr_parse(struct obd_loader *ld);
/* A number, or an expression in parentheses, with its signs. */
uint64_t obd_expr_primary(struct obd_loader *ld);

#endif
