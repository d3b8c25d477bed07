/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obc_announce: tells liboutboard-buffers.so (client-shim/files/buffers.c), if the program was started
 * with it, which pages the program must not pass to system calls.
 */
#ifndef OBC_ANNOUNCE_H
#define OBC_ANNOUNCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Looks for the library. Once, before the first announcement, and without a lock of ours: the dynamic
 * loader has one that it holds while a library's constructor calls CUDA.
 */
void obc_announce_start(void);
/* Whole pages become or cease to be shared memory. Under the lock of client-shim/cuda/shared.h. */
void obc_announce(uint64_t base, uint64_t size, bool on);

#endif
