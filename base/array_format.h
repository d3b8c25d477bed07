/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Sizes of CUDA arrays, derived from their descriptors. Client, software device and server must
 * agree on them. No state; any thread.
 */
#ifndef OB_ARRAY_FORMAT_H
#define OB_ARRAY_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda_types.h"

#define OB_ARRAY_EXTENT_MAX (1u << 20) /* elements; no device has arrays that are wider */
#define OB_ARRAY_LEVELS_MAX 21u        /* of a mipmapped array of that width */
#define OB_ARRAY_PLANES_MAX 2u

/*
 * Bytes of one element; 0: the format is not known, or does not have so many channels. Planar and
 * block-compressed formats have no elements.
 */
unsigned ob_array_element(CUarray_format format, unsigned channels);
/* Whether the format has two planes, as NV12 has. */
bool ob_array_is_planar(CUarray_format format);
/*
 * The descriptor of a plane of an array with a planar format: luma is 0, chroma is 1. Source:
 * documentation of cuArrayGetPlane. False: the format is not planar or has no such plane.
 */
bool ob_array_plane(
	const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned plane, CUDA_ARRAY3D_DESCRIPTOR *ret);
/* The descriptor of a level of a mipmapped array. Layers and faces are not halved. */
CUDA_ARRAY3D_DESCRIPTOR ob_array_level(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level);
/* Number of levels until the extent is 1 in each direction. */
unsigned ob_array_levels_max(const CUDA_ARRAY3D_DESCRIPTOR *desc);
/* Rows of a slice, and slices or layers; an extent of 0 counts as 1. */
size_t ob_array_rows(const CUDA_ARRAY3D_DESCRIPTOR *desc);
size_t ob_array_slices(const CUDA_ARRAY3D_DESCRIPTOR *desc);
/*
 * Bytes of all levels or planes, without the device's padding. 0: the format is not known, or an
 * extent is 0 or above OB_ARRAY_EXTENT_MAX.
 */
uint64_t ob_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned n_levels);

#endif
