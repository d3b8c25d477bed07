/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * seccomp: the system calls of a worker with a client, and of the admission process. Three
 * profiles: for the software device and for admission a list of allowed calls; for any other
 * driver, whose calls are unknown, a list of denied ones. Built while no client waits, applied to
 * all threads at once.
 */
#ifndef OBS_SANDBOX_SECCOMP_H
#define OBS_SANDBOX_SECCOMP_H

#include <stdbool.h>

enum obs_seccomp_profile { OBS_SECCOMP_SOFT, OBS_SECCOMP_DRIVER, OBS_SECCOMP_ADMISSION };

bool obs_seccomp_available(void);
/* Call once. False: libseccomp or the kernel refuses it; errno. */
bool obs_seccomp_build(enum obs_seccomp_profile profile);
/* Applies the filter to all threads. False with errno. */
bool obs_seccomp_enforce(void);

#endif
