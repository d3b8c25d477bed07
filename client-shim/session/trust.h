/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Decides which code the server's driver will certainly accept, so that loading it needs no reply
 * (docs/adr/0007-loads-that-are-certain.md): machine code for exactly this device, and plain PTX
 * (image/ptx_plain.h) of a version that the driver knows. Both must come from a compiler's
 * container and have few variables. Also remembers which images the server has loaded for this
 * process before. Any thread.
 */
#ifndef OBC_TRUST_H
#define OBC_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"
#include "protocol/control.h"

/* limit of confirmed images; the oldest is dropped */
#define OBC_TRUST_IMAGES    256u
/* bytes: limit of a trusted image's variables; the device may not have more memory left */
#define OBC_TRUST_VARIABLES (1u << 20)

/* Called once, after the hello. */
void obc_trust_start(const struct obp_welcome *welcome);
/*
 * True: loading the image and its functions will succeed. `device` is the server's number
 * (client-shim/cuda/device.h).
 */
bool obc_trust_code(const struct obf_image_ref *image, uint32_t device);
/*
 * Whether the server has loaded this image on the device before. If so, loading the image will
 * succeed; a function of it may still be refused.
 */
bool obc_trust_confirmed(const uint8_t sha256[32], uint32_t device);
void obc_trust_confirm(const uint8_t sha256[32], uint32_t device);
/* The newest PTX version that a driver of this CUDA version accepts, 90 for 9.0; 0: not known. */
uint32_t obc_trust_ptx_version(int cuda_version);

#endif
