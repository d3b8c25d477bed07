/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Instructions and qualifiers that PTX has and this device does not implement. A function that uses
 * one is refused, and with it the kernels that reach it, but not the module.
 */
#ifndef OBD_CORE_UNIMPLEMENTED_H
#define OBD_CORE_UNIMPLEMENTED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is this the name of an instruction of the PTX manual, without qualifiers, that this device does
 * not implement?
 */
bool obd_ptx_unimplemented(const char *name, uint32_t size);
/* The same for a qualifier. */
bool obd_ptx_unimplemented_word(const char *word, uint32_t size);
/*
 * Is the version, such as 84 for 8.4, newer than the manual that the two lists come from? Then an
 * unknown name may be one of its instructions.
 */
bool obd_ptx_newer(uint32_t version);

#endif
