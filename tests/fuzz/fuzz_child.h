/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/* A supervisor's child in the process of the fuzz target, which is its supervisor. One thread. */
#ifndef OB_FUZZ_CHILD_H
#define OB_FUZZ_CHILD_H

/*
 * Makes the channel between the two, its child's end OBS_HANDOFF_FD, both non-blocking. Returns the
 * supervisor's end. To be called before this process opens anything that it keeps. Exits when that
 * number is taken.
 */
int fuzz_child_channel(void);

#endif
