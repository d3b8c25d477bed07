/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * obf_visible: which devices a program sees, and with which ordinals. CUDA_DEVICE_ORDER is applied
 * first, then CUDA_VISIBLE_DEVICES, by the rules of NVIDIA's driver (CUDA programming guide, "CUDA
 * Environment Variables").
 *
 *   devices of the server or the software device     0 1 2 3
 *   in the order that CUDA_DEVICE_ORDER names        3 2 1 0      sorted if PCI_BUS_ID
 *   selected by CUDA_VISIBLE_DEVICES=1,3             2 0          the program's devices 0 and 1
 *
 * An entry of the list is a number, or a prefix of a UUID in the form that nvidia-smi prints, with
 * GPU- or MIG- before it, that matches one device. The first entry that matches no device, or more
 * than one, ends the list. If a device is named twice, no device is visible. The guide does not
 * document this, but PyTorch counts devices this way and states that it follows the driver. Pure
 * functions; any thread.
 */
#ifndef OBF_VISIBLE_H
#define OBF_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "front/front.h"

enum obf_visible_end {
	OBF_VISIBLE_WHOLE,     /* the list was read to its end, or there is none */
	OBF_VISIBLE_HIDDEN,    /* the list ends on purpose: a negative number or an empty entry */
	OBF_VISIBLE_UNKNOWN,   /* an entry matches no device */
	OBF_VISIBLE_AMBIGUOUS, /* an entry matches several devices */
	OBF_VISIBLE_TWICE,     /* a device is named twice: n is 0 */
};

struct obf_visible {
	int n;
	/* by ordinal of the program: the index in the list of all devices */
	int ordinal[OBF_DEVICE_MAX];
	enum obf_visible_end end;
	/* the entry that ended the list, a pointer into the list; NULL: none did */
	const char *entry;
	size_t entry_size;
};

/*
 * True: the list hides every device, whichever devices exist, so the backend need not be started.
 * list: NULL if not set.
 */
bool obf_visible_none(const char *list);
/*
 * False: the first of all devices may be hidden from the program. Decided without knowledge of the
 * devices.
 */
bool obf_visible_first(const char *order, const char *list);
/*
 * order, list: the values of CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES, NULL where not set. 0 <= n
 * <= OBF_DEVICE_MAX.
 */
void obf_visible_choose(const struct obf_device *devices, int n, const char *order,
	const char *list, struct obf_visible *ret);

#endif
