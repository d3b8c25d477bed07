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
#include <stdint.h>

/*
 * An access of this thread to addr faulted. write: 1, 0, or -1 if the system does not say. False:
 * it is not to shared memory. Called in the handler, or on a stack of its own.
 */
typedef bool obc_fault_serve(uint64_t addr, int write);

/*
 * Installs the handler, or installs it again if the program has installed another one since, which
 * then gets the faults that are not ours. Callers hold one lock. False: the system refused.
 */
bool obc_fault_install(obc_fault_serve *serve);

#endif
