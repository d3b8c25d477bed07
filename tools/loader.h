/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Paths for the loader's variables: LD_PRELOAD ends a path at a blank or a colon, LD_LIBRARY_PATH
 * at a colon or a semicolon, and both expand what follows a $. Any thread.
 */
#ifndef OBX_LOADER_H
#define OBX_LOADER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the loader's variables can hold the path. */
bool obx_loader_takes(const char *path);
/*
 * A folder of this user's alone, by a path that the loader takes, that holds a link called `name`
 * to the file `target`: under $XDG_RUNTIME_DIR or, where that is of no use, /tmp. Made at the first
 * call for a target and kept for later ones; several processes may ask at once. False: there is no
 * such folder; ret_folder holds the last one that was tried, or nothing, and errno says why.
 */
bool obx_loader_folder(const char *target, const char *name, char *ret_folder, size_t size);

#endif
