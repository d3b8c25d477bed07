/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Compilers that programs call while they run (NVRTC, nvJitLink, Triton's ptxas) make machine code,
 * which the software device cannot run. `outboard run` makes them hand out PTX, if that is the
 * device that the program gets (ADR 39). One thread.
 */
#ifndef OBX_COMPILERS_H
#define OBX_COMPILERS_H

/*
 * The compute capability, 90 for 9.0, if the program will run on the software device, else 0. servers:
 * the list, whose servers are asked; NULL: the device in the program's own process.
 * OUTBOARD_COMPILERS=0: 0. OUTBOARD_COMPILERS=ptx: never 0, nobody is asked. 0 also if no server
 * answers in time, or some have GPUs. Blocks for at most a second.
 */
unsigned obx_compilers_ptx(const char *servers);
/*
 * Sets the variables that Triton, CuPy and Numba read, except those that the user has set, for a
 * software device of that capability.
 */
void obx_compilers_set(unsigned capability);

#endif
