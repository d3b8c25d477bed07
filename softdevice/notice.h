/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * What the software device tells the user of a program, one line of each kind in a process (a
 * worker has one session): written to descriptor 2, as a driver does for an assertion, so that over
 * a server it comes out at the program's stderr. Any thread.
 */
#ifndef OBD_NOTICE_H
#define OBD_NOTICE_H

#include "softdevice/program.h"

/* A kernel failed. With OUTBOARD_SOFT_MEMCHECK each is told, in the form of a memory checker. */
void obd_notice_fault(const struct obd_fault *fault);
/*
 * PTX was refused; log: the reader's messages, the first of which says why and begins with "line
 * N:".
 */
void obd_notice_ptx(const char *log, const char *ptx, size_t size);

#endif
