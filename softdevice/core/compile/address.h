/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* Addresses of loads, stores and atomics, and their state spaces. */
#ifndef OBD_CORE_ADDRESS_H
#define OBD_CORE_ADDRESS_H

#include "softdevice/core/compile/lower.h"

enum obd_kind { OBD_KIND_GLOBAL, OBD_KIND_SHARED, OBD_KIND_LOCAL, OBD_KIND_CLUSTER };

/* The space that the statement states: enum obd_kind; global also stands for generic. */
uint32_t obd_address_space(const struct obd_stmt *s);
/*
 * The base register of [address]; *ret_offset is the rest (32 bits, signed). *kind is the space
 * that the instruction states; the space of the symbol may change it. An address of shared::cluster
 * becomes a generic one; that the `bytes` (below 4096) of the access lie in the shared memory of
 * its block is checked there.
 */
uint32_t obd_address(struct obd_builder *b, const struct obd_operand *o, uint32_t bytes,
	uint32_t *kind, uint32_t *ret_offset);
/* Emits an operation on an address of 64 bits; `rank` may be OBD_NONE. The result has 64 bits. */
uint32_t obd_address_cluster(
	struct obd_builder *b, enum obd_cluster_op op, uint32_t address, uint32_t rank);

#endif
