/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * A child of the supervisor that runs in the fuzz target's process. The target takes the
 * supervisor's part. One thread.
 */
#ifndef OB_FUZZ_CHILD_H
#define OB_FUZZ_CHILD_H

/*
 * Makes the channel between the two, both ends non-blocking. The child's end gets the number
 * OBS_HANDOFF_FD. Returns the supervisor's end. Must be called before the process opens descriptors
 * that it keeps. Exits when the number is in use.
 */
int fuzz_child_channel(void);

#endif
