/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* The library's own file as the dynamic linker has mapped it. */
#ifndef OBC_LOADED_H
#define OBC_LOADED_H

/*
 * Once, at the end of the start: gives back the pages of the file that are only read: half a
 * megabyte of relocations, and the constants that the start has used. The mapping stays: whoever
 * reads there again gets the same bytes from the file. Any thread.
 */
void obc_loaded_release(void);

#endif
