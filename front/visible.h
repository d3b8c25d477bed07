/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_visible: which of the devices a program sees, and as which ordinals: CUDA_DEVICE_ORDER first,
 * then CUDA_VISIBLE_DEVICES, by the rules of NVIDIA's driver (CUDA programming guide, "CUDA
 * Environment Variables").
 *
 *   devices of the server or the software device     0 1 2 3
 *   in the order that CUDA_DEVICE_ORDER names        3 2 1 0      PCI_BUS_ID sorts; otherwise as they come
 *   picked by CUDA_VISIBLE_DEVICES=1,3               2 0          the program's devices 0 and 1
 *
 * An entry of the list is a number, or the beginning of a UUID as nvidia-smi prints it, with GPU-
 * or MIG- before it, that fits one device. The first entry that names no device, or more than one,
 * ends the list. A device that is named twice makes every device invisible: the guide does not say
 * so, PyTorch counts devices this way and says that it follows the driver. Pure functions; any
 * thread.
 */
#ifndef OBF_VISIBLE_H
#define OBF_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "front/front.h"

enum obf_visible_end {
	OBF_VISIBLE_WHOLE,     /* the list was read to its end, or there is none */
	OBF_VISIBLE_HIDDEN,    /* it ends on purpose: a negative number or nothing */
	OBF_VISIBLE_UNKNOWN,   /* an entry names no device */
	OBF_VISIBLE_AMBIGUOUS, /* an entry fits several devices */
	OBF_VISIBLE_TWICE,     /* a device is named twice: n is 0 */
};

struct obf_visible {
	int n;
	/* by the program's ordinal: the index in the list of all devices */
	int ordinal[OBF_DEVICE_MAX];
	enum obf_visible_end end;
	const char *entry; /* the entry that ended the list, inside it; NULL: none did */
	size_t entry_size;
};

/*
 * True: the list hides every device whatever there is, so nobody needs to be asked for devices.
 * NULL: not set.
 */
bool obf_visible_none(const char *list);
/*
 * False: the first of all devices may be hidden from the program, as far as can be told without
 * knowing them.
 */
bool obf_visible_first(const char *order, const char *list);
/*
 * order, list: the values of CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES, NULL where not set. 0 <= n
 * <= OBF_DEVICE_MAX.
 */
void obf_visible_choose(const struct obf_device *devices, int n, const char *order,
	const char *list, struct obf_visible *ret);

#endif
