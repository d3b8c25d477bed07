/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The end of a function: slots for its registers, and the code that the engine runs. */
#ifndef OBD_CORE_FINISH_H
#define OBD_CORE_FINISH_H

#include "softdevice/core/compile/builder.h"

/* Assigns slots and writes the function's code into the program. */
void obd_build_finish(struct obd_builder *b);

#endif
