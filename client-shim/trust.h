/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Which code is certain to be taken by the server's driver, so that loading it needs no answer
 * (docs/adr/0007-loads-that-are-certain.md): machine code for exactly this device, and plain PTX
 * (image/ptx_plain.h) of a version that the driver knows, both out of a compiler's container and
 * with few variables. And which images the server has loaded for this process before. Any thread.
 */
#ifndef OBC_TRUST_H
#define OBC_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "protocol/control.h"

/* confirmed images that are remembered; the oldest is forgotten */
#define OBC_TRUST_IMAGES    256u
#define OBC_TRUST_VARIABLES (1u << 20) /* bytes: more may be more than the device has left */

/* Once, after the hello. */
void obc_trust_start(const struct obp_welcome *welcome);
/*
 * The image's load and the loads of its functions will succeed. Devices are the server's numbers
 * (client-shim/device.h).
 */
bool obc_trust_code(const struct obf_image_ref *image, uint32_t device);
/*
 * The server has loaded this image on the device. Then the load will succeed; a function of it may
 * still be refused.
 */
bool obc_trust_confirmed(const uint8_t sha256[32], uint32_t device);
void obc_trust_confirm(const uint8_t sha256[32], uint32_t device);
/* The newest PTX version that a driver of this CUDA version knows, 90 for 9.0; 0: not known. */
uint32_t obc_trust_ptx_version(int cuda_version);

#endif
