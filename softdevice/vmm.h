/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obd_vmm: address ranges that a program reserves in the lower half of the window, memory that it
 * creates, and the mappings between them. A server uses it to place memory at addresses that its
 * client has chosen.
 *
 * Memory comes from one sparse file per device, so that a piece can be mapped at several addresses.
 * Everything belongs to the process, not to a context. One lock.
 */
#ifndef OBD_VMM_H
#define OBD_VMM_H

#define OBD_PHYSICAL_MAX (1u << 20) /* live handles of cuMemCreate */

#endif
