/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Paths for the dynamic loader's variables. In LD_PRELOAD a path ends at a blank or a colon, in
 * LD_LIBRARY_PATH at a colon or a semicolon; both expand $ names. Any thread.
 */
#ifndef OBX_LOADER_H
#define OBX_LOADER_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the loader's variables can hold the path. */
bool obx_loader_takes(const char *path);
/*
 * Finds or makes a folder that only this user can write to, whose path the loader's variables can
 * hold, and that contains a link `name` to the file `target`. The folder is under $XDG_RUNTIME_DIR
 * or, where that is not usable, under /tmp. It is made by the first call for a target and kept for
 * later ones. Several processes may call at once. False: errno is set; ret_folder holds the last
 * folder that was tried, or nothing.
 */
bool obx_loader_folder(const char *target, const char *name, char *ret_folder, size_t size);

#endif
