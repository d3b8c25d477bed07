/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_fault: the handler of SIGSEGV, which serves accesses of the program to shared memory
 * (client-shim/cuda/shared.h). Installed when the first such memory is made. Every other fault goes
 * to the handler that was installed before, or to the system. Any thread.
 */
#ifndef OBC_FAULT_H
#define OBC_FAULT_H

#include <stdbool.h>

/*
 * Installs the handler, or installs it again if the program has installed another one since, which
 * then gets the faults that are not ours. Callers hold one lock. False: the system refused.
 */
bool obc_fault_install(void);

#endif
