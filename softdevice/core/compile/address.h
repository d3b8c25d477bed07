/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Addresses of loads, stores and atomics, and their state spaces. */
#ifndef OBD_CORE_ADDRESS_H
#define OBD_CORE_ADDRESS_H

#include "softdevice/core/compile/lower.h"

enum obd_kind { OBD_KIND_GLOBAL, OBD_KIND_SHARED, OBD_KIND_LOCAL };

/* The space that the statement states: enum obd_kind; global also stands for generic. */
uint32_t obd_address_space(const struct obd_stmt *s);
/*
 * The base register of [address]; *ret_offset is the rest (32 bits, signed). *kind is the space
 * that the instruction states; the space of the symbol may change it.
 */
uint32_t obd_address(
	struct obd_builder *b, const struct obd_operand *o, uint32_t *kind, uint32_t *ret_offset);

#endif
