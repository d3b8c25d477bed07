/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Wrong uses of arrays, mipmapped arrays, texture and surface objects, and of copies with arrays. The
 * codes are those that cuda.h documents.
 */
#include "refused.h"
#include "resources.h"

#define SIDE 16
#define ROW  (SIDE * 4)

static CUdevice device;
static CUcontext context, other;
static CUdeviceptr memory;
static CUstream stream, gone;
static CUarray flat, row, dead, foreign, level;
static CUmipmappedArray mip, ended;
static char host[SIDE * ROW];

static CUDA_ARRAY3D_DESCRIPTOR shape(size_t width, size_t height, size_t depth, unsigned flags)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){ width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, 1,
		flags };
}

static CUarray array_new(size_t width, size_t height, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = shape(width, height, 0, flags);
	CUarray array;

	CU(cuArray3DCreate(&array, &desc));
	return array;
}

static void begin(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = shape(SIDE, SIDE, 0, 0);

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&other, NULL, 0, device));
	foreign = array_new(SIDE, SIDE, CUDA_ARRAY3D_SURFACE_LDST);
	CU(cuCtxCreate(&context, NULL, 0, device));
	CU(cuMemAlloc(&memory, SIDE * ROW));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
	CU(cuStreamDestroy(gone));
	flat = array_new(SIDE, SIDE, 0);
	row = array_new(SIDE, 0, 0);
	dead = array_new(SIDE, SIDE, CUDA_ARRAY3D_SURFACE_LDST);
	CU(cuArrayDestroy(dead));
	CU(cuMipmappedArrayCreate(&mip, &desc, 3));
	CU(cuMipmappedArrayCreate(&ended, &desc, 2));
	CU(cuMipmappedArrayGetLevel(&level, ended, 1));
	CU(cuMipmappedArrayDestroy(ended));
}

/* ---- arrays ---- */

static void handles(void)
{
	const uintptr_t forged[] = { 1, (uintptr_t)-1, (uintptr_t)33 << 56 };
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUarray plane;

	begin();
	REFUSE(INVALID_HANDLE, cuArrayDestroy(dead));
	REFUSE(INVALID_HANDLE, cuArray3DGetDescriptor(&desc, dead));
	REFUSE(INVALID_HANDLE, cuArrayGetPlane(&plane, dead, 0));
	REFUSE(INVALID_HANDLE, cuArrayGetMemoryRequirements(&needs, dead, 0));
	REFUSE(INVALID_HANDLE, cuMipmappedArrayDestroy(ended));
	REFUSE(INVALID_HANDLE, cuMipmappedArrayGetLevel(&plane, ended, 0));
	/* a level whose array has ended */
	REFUSE(INVALID_HANDLE, cuArray3DGetDescriptor(&desc, level));
	REFUSE(INVALID_HANDLE, cuArrayDestroy(level));
	/* of another kind */
	REFUSE(INVALID_HANDLE, cuArrayDestroy((CUarray)stream));
	REFUSE(INVALID_HANDLE, cuArrayDestroy((CUarray)mip));
	REFUSE(INVALID_HANDLE, cuMipmappedArrayDestroy((CUmipmappedArray)flat));
	REFUSE(INVALID_HANDLE, cuArrayDestroy((CUarray)(uintptr_t)memory));
	for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
		REFUSE(INVALID_HANDLE, cuArrayDestroy((CUarray)forged[i]));
		REFUSE(INVALID_HANDLE, cuMipmappedArrayDestroy((CUmipmappedArray)forged[i]));
	}
	REFUSE_VALUE(cuArrayGetPlane(&plane, flat, 0));
	REFUSE_VALUE(cuMipmappedArrayGetLevel(&plane, mip, 3));
	REFUSE_VALUE(cuMipmappedArrayGetLevel(&plane, mip, (unsigned)-1));
	REFUSE_VALUE(cuMipmappedArrayGetLevel(NULL, mip, 0));
	REFUSE_VALUE(cuArrayGetMemoryRequirements(NULL, flat, 0));
	/* of a context that has ended */
	CU(cuCtxDestroy(other));
	REFUSE(INVALID_HANDLE, cuArrayDestroy(foreign));
}

static CUresult attempt(CUDA_ARRAY3D_DESCRIPTOR desc)
{
	CUarray array;

	return cuArray3DCreate(&array, &desc);
}

static CUresult attempt_mip(CUDA_ARRAY3D_DESCRIPTOR desc)
{
	CUmipmappedArray array;

	return cuMipmappedArrayCreate(&array, &desc, 2);
}

static CUDA_ARRAY3D_DESCRIPTOR format(CUarray_format format, unsigned channels, size_t width)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){ width, SIDE, 0, format, channels, 0 };
}

static void descriptors(void)
{
	const size_t huge = (size_t)1 << 40;
	const unsigned layered = CUDA_ARRAY3D_LAYERED, cube = CUDA_ARRAY3D_CUBEMAP,
		       gather = CUDA_ARRAY3D_TEXTURE_GATHER;

	begin();
	REFUSE_VALUE(attempt(shape((size_t)-1, 0, 0, 0)));
	REFUSE_VALUE(attempt(shape(huge, huge, huge, 0)));
	REFUSE_VALUE(attempt(shape((size_t)1 << 32, (size_t)1 << 32, 0, 0)));
	REFUSE_VALUE(attempt(shape(SIDE, 0, SIDE, 0)));
	REFUSE_VALUE(attempt(shape(SIDE, 0, 0, layered)));
	REFUSE_VALUE(attempt(shape(SIDE, SIDE, huge, layered)));
	REFUSE_VALUE(attempt(shape(SIDE, SIDE, 7, cube)));
	REFUSE_VALUE(attempt(shape(SIDE, SIDE, 13, cube | layered)));
	REFUSE_VALUE(attempt(shape(SIDE, SIDE + 1, 6, cube)));
	REFUSE_VALUE(attempt(shape(SIDE, 0, 0, gather)));
	REFUSE_VALUE(attempt(shape(SIDE, SIDE, SIDE, gather)));
	REFUSE_VALUE(attempt(shape(SIDE, SIDE, 0, 1u << 30)));
	REFUSE_VALUE(attempt(format(CU_AD_FORMAT_FLOAT, 3, SIDE)));
	REFUSE_VALUE(attempt(format(CU_AD_FORMAT_FLOAT, 8, SIDE)));
	REFUSE_VALUE(attempt(format(CU_AD_FORMAT_UNORM_INT8X2, 4, SIDE)));
	REFUSE_VALUE(attempt(format(CU_AD_FORMAT_NV12, 1, SIDE)));
	REFUSE_VALUE(attempt(format(CU_AD_FORMAT_NV12, 3, SIDE + 1)));
	REFUSE_VALUE(attempt(format((CUarray_format)0xffff, 1, SIDE)));
	REFUSE_VALUE(attempt_mip(shape(0, 0, 0, 0)));
	REFUSE_VALUE(attempt_mip(shape(huge, huge, 0, 0)));
	REFUSE_VALUE(attempt_mip(format(CU_AD_FORMAT_NV12, 3, SIDE)));
}

/* ---- copies ---- */

static CUDA_MEMCPY3D box(CUarray array)
{
	return (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = ROW,
		.srcHeight = SIDE,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = array,
		.WidthInBytes = ROW,
		.Height = SIDE,
		.Depth = 1 };
}

static void copies(void)
{
	CUDA_MEMCPY3D bad;

	begin();
	bad = box(dead);
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(foreign);
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box((CUarray)mip);
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(NULL);
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.WidthInBytes = ROW - 1;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.dstXInBytes = 2;
	bad.WidthInBytes = 4;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.dstXInBytes = (size_t)-4;
	bad.WidthInBytes = 8;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.dstY = 1;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.dstY = (size_t)-1;
	bad.Height = 2;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.dstZ = 1;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.Depth = 2;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.dstLOD = 1;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	bad.srcPitch = ROW - 4;
	REFUSE_VALUE(cuMemcpy3DAsync(&bad, stream));
	bad = box(flat);
	bad.srcHost = NULL;
	REFUSE_VALUE(cuMemcpy3DAsync(&bad, stream));
	bad = box(flat);
	bad.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	bad.srcDevice = memory + 4;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad.srcDevice = memory;
	bad.srcPitch = (size_t)1 << 62;
	REFUSE_VALUE(cuMemcpy3D(&bad));
	bad = box(flat);
	REFUSE(INVALID_HANDLE, cuMemcpy3DAsync(&bad, gone));
	REFUSE_VALUE(cuMemcpyHtoA(row, ROW, host, 4));
	REFUSE_VALUE(cuMemcpyHtoA(row, 0, host, ROW + 4));
	REFUSE_VALUE(cuMemcpyHtoA(row, (size_t)-4, host, 8));
	REFUSE_VALUE(cuMemcpyHtoA(row, 1, host, 4));
	REFUSE_VALUE(cuMemcpyAtoH(NULL, row, 0, 4));
	REFUSE_VALUE(cuMemcpyAtoD(memory + SIDE * ROW - 2, row, 0, 4));
	REFUSE_VALUE(cuMemcpyAtoA(row, 0, dead, 0, 4));
	REFUSE_VALUE(cuMemcpyDtoA(foreign, 0, memory, 4));
	REFUSE(INVALID_HANDLE, cuMemcpyHtoAAsync(row, 0, host, 4, gone));
}

/* ---- textures and surfaces ---- */

static CUresult texture(CUDA_RESOURCE_DESC resource)
{
	CUDA_TEXTURE_DESC sampling = { .filterMode = CU_TR_FILTER_MODE_POINT };
	CUtexObject object;

	return cuTexObjectCreate(&object, &resource, &sampling, NULL);
}

static CUresult surface(CUDA_RESOURCE_DESC resource)
{
	CUsurfObject object;

	return cuSurfObjectCreate(&object, &resource);
}

static void resources(void)
{
	CUDA_RESOURCE_DESC bad;

	begin();
	REFUSE_VALUE(texture(of_array(NULL)));
	REFUSE_VALUE(texture(of_array(dead)));
	REFUSE_VALUE(texture(of_array(foreign)));
	REFUSE_VALUE(texture(of_array((CUarray)mip)));
	bad = of_array(flat);
	bad.flags = 1;
	REFUSE_VALUE(texture(bad));
	bad.flags = 0;
	bad.resType = (CUresourcetype)9;
	REFUSE_VALUE(texture(bad));
	bad.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	REFUSE_VALUE(texture(bad));
	REFUSE_VALUE(texture(of_linear(0, 64)));
	REFUSE_VALUE(texture(of_linear(memory + 4, 64)));
	REFUSE_VALUE(texture(of_linear(memory, 0)));
	REFUSE_VALUE(texture(of_linear(memory, (size_t)-1)));
	REFUSE_VALUE(texture(of_linear((CUdeviceptr)-512, 1024)));
	bad = of_linear(memory, 64);
	bad.res.linear.numChannels = 3;
	REFUSE_VALUE(texture(bad));
	REFUSE_VALUE(texture(of_rows(memory, 1, 0, 2, 64)));
	REFUSE_VALUE(texture(of_rows(memory, 1, 64, 2, 63)));
	REFUSE_VALUE(texture(of_rows(memory, 1, 65, 2, 64)));
	REFUSE_VALUE(texture(of_rows(memory, 1, 64, 2, (size_t)1 << 62)));
	REFUSE_VALUE(
		texture(of_rows(memory, 1, (size_t)1 << 40, (size_t)1 << 40, (size_t)1 << 40)));
	REFUSE_VALUE(texture(of_rows(memory, 1, 64, SIDE * ROW, 64)));
	REFUSE_VALUE(surface(of_array(dead)));
	REFUSE_VALUE(surface(of_array(foreign)));
	REFUSE_VALUE(surface(of_linear(memory, 64)));
}

static void objects(void)
{
	CUDA_RESOURCE_DESC resource, got;
	CUDA_TEXTURE_DESC sampling = { .filterMode = CU_TR_FILTER_MODE_POINT }, bad;
	CUDA_RESOURCE_VIEW_DESC view = {
		.format = (CUresourceViewFormat)99, .width = SIDE, .height = SIDE
	};
	CUtexObject object, none;
	CUarray drawn;
	CUsurfObject painted;

	begin();
	resource = of_array(flat);
	CU(cuTexObjectCreate(&object, &resource, &sampling, NULL));
	REFUSE_VALUE(cuTexObjectCreate(NULL, &resource, &sampling, NULL));
	REFUSE_VALUE(cuTexObjectCreate(&none, NULL, &sampling, NULL));
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, NULL, NULL));
	bad = sampling;
	bad.addressMode[2] = (CUaddress_mode)4;
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &bad, NULL));
	bad = sampling;
	bad.filterMode = (CUfilter_mode)2;
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &bad, NULL));
	bad = sampling;
	bad.flags = 0x80;
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &bad, NULL));
	bad = sampling;
	bad.flags = CU_TRSF_SEAMLESS_CUBEMAP;
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &bad, NULL));
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &sampling, &view));
	view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
	view.width = SIDE + 1;
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &sampling, &view));
	view.width = SIDE;
	view.lastMipmapLevel = 1;
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &sampling, &view));
	resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	resource.res.mipmap.hMipmappedArray = mip;
	REFUSE_VALUE(cuTexObjectCreate(&none, &resource, &sampling, NULL)); /* not normalised */
	REFUSE_VALUE(cuTexObjectGetResourceDesc(NULL, object));
	REFUSE_VALUE(cuTexObjectGetResourceDesc(&got, object + 1));
	REFUSE_VALUE(cuTexObjectGetTextureDesc(&bad, 0));
	REFUSE_VALUE(cuTexObjectGetResourceViewDesc(&view, object));
	/* a texture is no surface, and the other way round */
	drawn = array_new(SIDE, SIDE, CUDA_ARRAY3D_SURFACE_LDST);
	resource = of_array(drawn);
	CU(cuSurfObjectCreate(&painted, &resource));
	REFUSE_VALUE(cuSurfObjectDestroy(object));
	REFUSE_VALUE(cuTexObjectDestroy(painted));
	REFUSE_VALUE(cuSurfObjectGetResourceDesc(&got, object));
	/* of the context that is not current */
	CU(cuCtxSetCurrent(other));
	REFUSE_VALUE(cuTexObjectGetResourceDesc(&got, object));
	REFUSE_VALUE(cuTexObjectDestroy(object));
	REFUSE_VALUE(cuSurfObjectDestroy(painted));
	CU(cuCtxSetCurrent(context));
	/* The array of an object may end first. */
	CU(cuArrayDestroy(drawn));
	CU(cuSurfObjectDestroy(painted));
	REFUSE_VALUE(cuSurfObjectDestroy(painted));
	CU(cuTexObjectDestroy(object));
	REFUSE_VALUE(cuTexObjectDestroy(object));
	REFUSE_VALUE(cuTexObjectGetResourceDesc(&got, object));
	CU(cuCtxSynchronize());
}

static const struct refused_group GROUPS[] = {
	{ "handles", handles },
	{ "descriptors", descriptors },
	{ "copies", copies },
	{ "resources", resources },
	{ "texture and surface objects", objects },
};

int main(void)
{
	return refused_run("refused_arrays", GROUPS, sizeof GROUPS / sizeof *GROUPS);
}
