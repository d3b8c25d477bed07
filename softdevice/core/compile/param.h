/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Loads and stores of parameters. The parameters of a kernel are in constant memory; those of a
 * function or call are words in registers, at constant offsets.
 */
#ifndef OBD_CORE_PARAM_H
#define OBD_CORE_PARAM_H

#include "softdevice/core/compile/lower.h"

/* ld of n elements of type t from the parameter that operand 1 names. */
void obd_param_load(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *list, uint32_t n);
/* st of n elements to the parameter of a call that operand 0 names. */
void obd_param_store(struct obd_builder *b, const struct obd_stmt *s, enum obd_type t,
	const struct obd_operand *list, uint32_t n);

#endif
