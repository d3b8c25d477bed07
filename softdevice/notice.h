/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Messages to the user of a program. Each kind is written once in a process; a worker has one
 * session. They are written to descriptor 2, as a driver does for an assertion, so that with a
 * server they appear on the program's stderr. Any thread.
 */
#ifndef OBD_NOTICE_H
#define OBD_NOTICE_H

#include "softdevice/core/program.h"

/*
 * A kernel failed. With OUTBOARD_SOFT_MEMCHECK every failure is reported, in the form that memory
 * checkers use.
 */
void obd_notice_fault(const struct obd_fault *fault);
/*
 * PTX was refused. `log` holds the reader's messages. The first one gives the reason and begins
 * with "line N:".
 */
void obd_notice_ptx(const char *log, const char *ptx, size_t size);

#endif
