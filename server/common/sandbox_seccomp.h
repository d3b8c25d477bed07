/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * seccomp: which system calls a worker with a client can make, and the admission process. Three
 * profiles. For the software device and for admission a list of what is allowed; for any other
 * driver, whose calls are its own business, a list of what is denied. Built while nobody waits, put
 * into force in all threads at once.
 */
#ifndef OBS_SANDBOX_SECCOMP_H
#define OBS_SANDBOX_SECCOMP_H

#include <stdbool.h>

enum obs_seccomp_profile { OBS_SECCOMP_SOFT, OBS_SECCOMP_DRIVER, OBS_SECCOMP_ADMISSION };

bool obs_seccomp_available(void);
/* Once. False: libseccomp or the kernel does not take it, errno says why. */
bool obs_seccomp_build(enum obs_seccomp_profile profile);
/* The filter that was built, in all threads; they have no new privileges. False with errno. */
bool obs_seccomp_enforce(void);

#endif
