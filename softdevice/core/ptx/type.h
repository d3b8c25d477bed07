/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The fundamental types of PTX: names, sizes, and the class of register that holds a value. */
#ifndef OBD_CORE_TYPE_H
#define OBD_CORE_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "softdevice/core/ops.h"

enum obd_reg_class { OBD_CLASS_PRED, OBD_CLASS_32, OBD_CLASS_64, OBD_CLASS_128, OBD_CLASS_COUNT };

/* OBD_T_NONE: the text names no type. */
enum obd_type obd_type_named(const char *text, uint32_t size);
uint32_t obd_type_bytes(enum obd_type t);
enum obd_reg_class obd_type_class(enum obd_type t);
bool obd_type_signed(enum obd_type t);
bool obd_type_float(enum obd_type t); /* a scalar floating-point type */
bool obd_type_is16(enum obd_type t);  /* a 16-bit integer or bit type */

#endif
