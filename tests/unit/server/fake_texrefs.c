/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * The fake driver's arrays, and texture and surface references: it writes each call of a reference
 * with its values into a text, which fake_texrefs_take returns. Objects are called by the name in
 * the module, "made" for those of cuTexRefCreate, "array" and "mip". There is no reference "missing".
 */
#include "tests/unit/server/fake_texrefs.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_types.h"
#include "tests/one_device.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[FAKE_TEXREFS_BYTES];
static size_t text_size;

void fake_texrefs_take(char *ret, size_t size)
{
	pthread_mutex_lock(&lock);
	snprintf(ret, size, "%s", text);
	text[text_size = 0] = '\0';
	pthread_mutex_unlock(&lock);
}

__attribute__((format(printf, 1, 2))) static CUresult note(const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&lock);
	va_start(args, format);
	text_size += (size_t)vsnprintf(text + text_size, sizeof text - text_size, format, args);
	va_end(args);
	if (text_size >= sizeof text)
		abort();
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* A handle is a name; never freed. */
static CUresult named(const char *name, void *ret)
{
	char *copy = strdup(name);

	memcpy(ret, &copy, sizeof copy);
	return !copy                           ? CUDA_ERROR_OUT_OF_MEMORY
		: strcmp(name, "missing") == 0 ? CUDA_ERROR_NOT_FOUND
					       : CUDA_SUCCESS;
}

#define NAME(handle) ((const char *)(const void *)(handle))

/* ---- arrays ---- */

EXPORT CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc);
EXPORT CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	(void)desc;
	return named("array", ret);
}

EXPORT CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels);
EXPORT CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	(void)desc;
	(void)levels;
	return named("mip", ret);
}

/* ---- references ---- */

EXPORT CUresult cuModuleGetTexRef(CUtexref *ret, CUmodule module, const char *name);
EXPORT CUresult cuModuleGetTexRef(CUtexref *ret, CUmodule module, const char *name)
{
	(void)module;
	note("texture %s\n", name);
	return named(name, ret);
}

EXPORT CUresult cuModuleGetSurfRef(CUsurfref *ret, CUmodule module, const char *name);
EXPORT CUresult cuModuleGetSurfRef(CUsurfref *ret, CUmodule module, const char *name)
{
	(void)module;
	note("surface %s\n", name);
	return named(name, ret);
}

EXPORT CUresult cuTexRefCreate(CUtexref *ret);
EXPORT CUresult cuTexRefCreate(CUtexref *ret)
{
	note("create\n");
	return named("made", ret);
}

EXPORT CUresult cuTexRefDestroy(CUtexref ref);
EXPORT CUresult cuTexRefDestroy(CUtexref ref)
{
	return note("destroy %s\n", NAME(ref));
}

EXPORT CUresult cuTexRefSetFormat(CUtexref ref, CUarray_format format, int channels);
EXPORT CUresult cuTexRefSetFormat(CUtexref ref, CUarray_format format, int channels)
{
	return note("format %s %u %d\n", NAME(ref), (unsigned)format, channels);
}

EXPORT CUresult cuTexRefSetAddressMode(CUtexref ref, int dimension, CUaddress_mode mode);
EXPORT CUresult cuTexRefSetAddressMode(CUtexref ref, int dimension, CUaddress_mode mode)
{
	return note("mode %s %d %u\n", NAME(ref), dimension, (unsigned)mode);
}

EXPORT CUresult cuTexRefSetFilterMode(CUtexref ref, CUfilter_mode mode);
EXPORT CUresult cuTexRefSetFilterMode(CUtexref ref, CUfilter_mode mode)
{
	return note("filter %s %u\n", NAME(ref), (unsigned)mode);
}

EXPORT CUresult cuTexRefSetMipmapFilterMode(CUtexref ref, CUfilter_mode mode);
EXPORT CUresult cuTexRefSetMipmapFilterMode(CUtexref ref, CUfilter_mode mode)
{
	return note("mip filter %s %u\n", NAME(ref), (unsigned)mode);
}

EXPORT CUresult cuTexRefSetMipmapLevelBias(CUtexref ref, float bias);
EXPORT CUresult cuTexRefSetMipmapLevelBias(CUtexref ref, float bias)
{
	return note("bias %s %g\n", NAME(ref), (double)bias);
}

EXPORT CUresult cuTexRefSetMipmapLevelClamp(CUtexref ref, float low, float high);
EXPORT CUresult cuTexRefSetMipmapLevelClamp(CUtexref ref, float low, float high)
{
	return note("clamp %s %g %g\n", NAME(ref), (double)low, (double)high);
}

EXPORT CUresult cuTexRefSetMaxAnisotropy(CUtexref ref, unsigned int anisotropy);
EXPORT CUresult cuTexRefSetMaxAnisotropy(CUtexref ref, unsigned int anisotropy)
{
	return note("anisotropy %s %u\n", NAME(ref), anisotropy);
}

EXPORT CUresult cuTexRefSetBorderColor(CUtexref ref, float *color);
EXPORT CUresult cuTexRefSetBorderColor(CUtexref ref, float *color)
{
	uint32_t bits[4];

	memcpy(bits, color, sizeof bits);
	return note("border %s %x %x %x %x\n", NAME(ref), bits[0], bits[1], bits[2], bits[3]);
}

EXPORT CUresult cuTexRefSetFlags(CUtexref ref, unsigned int flags);
EXPORT CUresult cuTexRefSetFlags(CUtexref ref, unsigned int flags)
{
	return note("flags %s %x\n", NAME(ref), flags);
}

/* ---- what they are bound to ---- */

EXPORT CUresult cuTexRefSetArray(CUtexref ref, CUarray array, unsigned int flags);
EXPORT CUresult cuTexRefSetArray(CUtexref ref, CUarray array, unsigned int flags)
{
	return note("bind %s %s %u\n", NAME(ref), NAME(array), flags);
}

EXPORT CUresult cuTexRefSetMipmappedArray(CUtexref ref, CUmipmappedArray array, unsigned int flags);
EXPORT CUresult cuTexRefSetMipmappedArray(CUtexref ref, CUmipmappedArray array, unsigned int flags)
{
	return note("bind %s %s %u\n", NAME(ref), NAME(array), flags);
}

EXPORT CUresult cuSurfRefSetArray(CUsurfref ref, CUarray array, unsigned int flags);
EXPORT CUresult cuSurfRefSetArray(CUsurfref ref, CUarray array, unsigned int flags)
{
	return note("bind surface %s %s %u\n", NAME(ref), NAME(array), flags);
}

EXPORT CUresult cuTexRefSetAddress_v2(
	size_t *ret_offset, CUtexref ref, CUdeviceptr addr, size_t bytes);
EXPORT CUresult cuTexRefSetAddress_v2(
	size_t *ret_offset, CUtexref ref, CUdeviceptr addr, size_t bytes)
{
	*ret_offset = 0;
	return note("linear %s %llx %zu\n", NAME(ref), (unsigned long long)addr, bytes);
}

EXPORT CUresult cuTexRefSetAddress2D_v3(
	CUtexref ref, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr addr, size_t pitch);
EXPORT CUresult cuTexRefSetAddress2D_v3(
	CUtexref ref, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr addr, size_t pitch)
{
	return note("pitched %s %zu %zu %u %u %llx %zu\n", NAME(ref), desc->Width, desc->Height,
		(unsigned)desc->Format, desc->NumChannels, (unsigned long long)addr, pitch);
}

EXPORT CUresult cuParamSetTexRef(CUfunction function, int unit, CUtexref ref);
EXPORT CUresult cuParamSetTexRef(CUfunction function, int unit, CUtexref ref)
{
	return note("param %s %d %s\n", function ? "kernel" : "nothing", unit, NAME(ref));
}
