/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright The Outboard Authors */
/*
 * Wrong uses of mapped memory of cuMemCreate, of what processes share, of peers and events, of green
 * contexts, of libraries, links and launch attributes. The codes are those that cuda.h documents.
 */
#include <fcntl.h>

#include "refused.h"

#define PAGE ((size_t)2 << 20)

static const char PTX[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .global .align 4 .u32 word;\n"
			  ".visible .entry fail()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, 16;\n"
			  "st.global.u32 [%rd1], 1;\nret;\n}\n"
			  ".visible .entry add(.param .u64 p)\n{\nret;\n}\n";

static CUdevice device;
static CUcontext context, other;
static CUmodule module;
static CUfunction add, fail;
static CUdeviceptr memory;
static CUstream stream, gone;
static CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };

static void begin(void)
{
	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuCtxCreate(&other, NULL, 0, device));
	CU(cuCtxCreate(&context, NULL, 0, device));
	CU(cuModuleLoadData(&module, PTX));
	CU(cuModuleGetFunction(&add, module, "add"));
	CU(cuModuleGetFunction(&fail, module, "fail"));
	CU(cuMemAlloc(&memory, 4096));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
	CU(cuStreamDestroy(gone));
}

/* ---- mapped memory ---- */

static void mappings(void)
{
	const CUmemAccess_flags both = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CUmemAccessDesc access = { .flags = both }, bad;
	CUmemGenericAllocationHandle handle, released, none;
	CUmemAllocationProp wrong = prop;
	CUmemLocation place = prop.location;
	unsigned long long flags;
	CUdeviceptr at, high;
	size_t size;

	begin();
	access.location = prop.location;
	CU(cuMemCreate(&handle, 2 * PAGE, &prop, 0));
	CU(cuMemCreate(&released, PAGE, &prop, 0));
	CU(cuMemRelease(released));
	CU(cuMemAddressReserve(&at, 4 * PAGE, 0, 0, 0));
	high = at + 4 * PAGE;
	REFUSE_VALUE(cuMemCreate(&none, 0, &prop, 0));
	REFUSE_VALUE(cuMemCreate(&none, (size_t)-1, &prop, 0));
	wrong.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	REFUSE_VALUE(cuMemCreate(&none, PAGE, &wrong, 0));
	wrong = prop;
	wrong.location.type = CU_MEM_LOCATION_TYPE_INVALID;
	REFUSE_VALUE(cuMemCreate(&none, PAGE, &wrong, 0));
	REFUSE_VALUE(cuMemRelease(released));
	REFUSE_VALUE(cuMemRelease(0));
	REFUSE_VALUE(cuMemRelease(~0ull));
	REFUSE_VALUE(cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)stream));
	REFUSE_VALUE(cuMemAddressReserve(NULL, PAGE, 0, 0, 0));
	REFUSE_VALUE(cuMemAddressReserve(&high, (size_t)-1, 0, 0, 0));
	REFUSE_VALUE(cuMemAddressReserve(&high, PAGE, 0, 0, 1));
	REFUSE_VALUE(cuMemMap(at, PAGE, 0, released, 0));
	REFUSE_VALUE(cuMemMap(at, 0, 0, handle, 0));
	REFUSE_VALUE(cuMemMap(at, PAGE, 0, handle, 1));
	REFUSE_VALUE(cuMemMap(at, PAGE / 2, 0, handle, 0));
	REFUSE_VALUE(cuMemMap(at, PAGE, PAGE / 2, handle, 0));
	REFUSE_VALUE(cuMemMap(at, PAGE, 2 * PAGE, handle, 0));
	REFUSE_VALUE(cuMemMap(at, PAGE, (size_t)-PAGE, handle, 0));
	REFUSE_VALUE(cuMemMap(at, 3 * PAGE, 0, handle, 0));
	REFUSE_VALUE(cuMemMap(at + 3 * PAGE, 2 * PAGE, 0, handle, 0));
	REFUSE_VALUE(cuMemMap(memory, PAGE, 0, handle, 0));
	REFUSE_VALUE(cuMemMap(0, PAGE, 0, handle, 0));
	CU(cuMemMap(at, 2 * PAGE, 0, handle, 0));
	REFUSE_VALUE(cuMemMap(at + PAGE, PAGE, 0, handle, 0)); /* mapped twice */
	REFUSE_VALUE(cuMemUnmap(at + PAGE, PAGE));             /* a part */
	REFUSE_VALUE(cuMemUnmap(at, 4 * PAGE));
	REFUSE_VALUE(cuMemUnmap(at, 0));
	REFUSE_VALUE(cuMemUnmap(at, (size_t)-PAGE));
	REFUSE_VALUE(cuMemUnmap(memory, PAGE));
	REFUSE_VALUE(cuMemAddressFree(at, 4 * PAGE)); /* something is mapped */
	REFUSE_VALUE(cuMemSetAccess(at, 4 * PAGE, &access, 1));
	REFUSE_VALUE(cuMemSetAccess(at + 4096, PAGE, &access, 1));
	REFUSE_VALUE(cuMemSetAccess(at, 0, &access, 1));
	REFUSE_VALUE(cuMemSetAccess(memory, PAGE, &access, 1));
	bad = access;
	bad.flags = (CUmemAccess_flags)2;
	REFUSE_VALUE(cuMemSetAccess(at, 2 * PAGE, &bad, 1));
	bad = access;
	bad.location.id = 99;
	REFUSE(INVALID_DEVICE, cuMemSetAccess(at, 2 * PAGE, &bad, 1));
	REFUSE_VALUE(cuMemGetAccess(&flags, NULL, at));
	REFUSE_VALUE(cuMemGetAccess(&flags, &place, at + 2 * PAGE));
	place.id = 99;
	REFUSE(INVALID_DEVICE, cuMemGetAccess(&flags, &place, at));
	REFUSE_VALUE(cuMemGetAllocationGranularity(NULL, &prop, 0));
	REFUSE_VALUE(cuMemGetAllocationGranularity(&size, NULL, 0));
	REFUSE_VALUE(cuMemGetAllocationGranularity(&size, &prop, 7));
	REFUSE_VALUE(cuMemGetAllocationPropertiesFromHandle(NULL, handle));
	REFUSE_VALUE(cuMemGetAllocationPropertiesFromHandle(&wrong, released));
	REFUSE_VALUE(cuMemFree(at));
	REFUSE_VALUE(cuMemFreeAsync(at, stream));
	/* The handle may go while it is mapped, once. */
	CU(cuMemRelease(handle));
	REFUSE_VALUE(cuMemRelease(handle));
	REFUSE_VALUE(cuMemMap(at + 2 * PAGE, 2 * PAGE, 0, handle, 0));
	CU(cuMemUnmap(at, 2 * PAGE));
	REFUSE_VALUE(cuMemUnmap(at, 2 * PAGE));
	CU(cuMemAddressFree(at, 4 * PAGE));
	REFUSE_VALUE(cuMemAddressFree(at, 4 * PAGE));
	REFUSE_VALUE(cuMemMap(at, PAGE, 0, handle, 0));
}

/* ---- shared memory and events ---- */

static void shared(void)
{
	const CUmemAllocationHandleType posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					odd = (CUmemAllocationHandleType)0x40;
	CUmemGenericAllocationHandle handle, again;
	CUipcEventHandle exported, forged;
	CUevent event, plain, opened;
	int fd = -1, file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int ends[2];

	begin();
	CU(cuMemCreate(&handle, PAGE, &prop, 0));
	OK(pipe(ends) == 0);
	REFUSE_VALUE(cuMemExportToShareableHandle(&fd, handle, odd, 0));
	REFUSE_VALUE(cuMemExportToShareableHandle(&fd, 0, posix, 0));
	REFUSE_VALUE(cuMemExportToShareableHandle(&fd, ~0ull, posix, 0));
	REFUSE_VALUE(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file, posix));
	REFUSE_VALUE(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)ends[0], posix));
	REFUSE_VALUE(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)12345, posix));
	REFUSE_VALUE(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file, odd));
	REFUSE_VALUE(cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)memory));
	REFUSE_VALUE(cuMemRetainAllocationHandle(&again, NULL));
	CU(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	CU(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	CU(cuIpcGetEventHandle(&exported, event));
	REFUSE(INVALID_HANDLE, cuIpcGetEventHandle(&forged, plain));
	REFUSE(INVALID_HANDLE, cuIpcGetEventHandle(&forged, (CUevent)stream));
	REFUSE(INVALID_HANDLE, cuIpcGetEventHandle(&forged, NULL));
	memset(&forged, 0, sizeof forged);
	REFUSE(INVALID_HANDLE, cuIpcOpenEventHandle(&opened, forged));
	forged = exported;
	forged.reserved[9] ^= 1; /* another id */
	REFUSE(INVALID_HANDLE, cuIpcOpenEventHandle(&opened, forged));
	/* its own process */
	REFUSE(INVALID_CONTEXT, cuIpcOpenEventHandle(&opened, exported));
	CU(cuEventDestroy(event));
	REFUSE(INVALID_HANDLE, cuIpcGetEventHandle(&forged, event));
	REFUSE_VALUE(cuEventCreate(&event, CU_EVENT_INTERPROCESS));
	close(file);
	close(ends[0]);
	close(ends[1]);
}

/* ---- peers, events and waits ---- */

static void events(void)
{
	CUevent foreign, mine, ended;
	float ms;

	begin();
	CU(cuEventCreate(&mine, 0));
	CU(cuEventCreate(&ended, 0));
	CU(cuEventDestroy(ended));
	CU(cuCtxSetCurrent(other));
	CU(cuEventCreate(&foreign, 0));
	CU(cuCtxSetCurrent(context));
	REFUSE(INVALID_HANDLE, cuEventRecord(foreign, stream));
	REFUSE(INVALID_HANDLE, cuEventRecordWithFlags(foreign, stream, 0));
	REFUSE_VALUE(cuEventRecordWithFlags(mine, stream, CU_EVENT_RECORD_EXTERNAL));
	REFUSE_VALUE(cuEventRecordWithFlags(mine, stream, 8));
	REFUSE(INVALID_HANDLE, cuEventRecord(ended, stream));
	REFUSE(INVALID_HANDLE, cuEventRecord((CUevent)stream, stream));
	REFUSE(INVALID_HANDLE, cuEventRecord(mine, gone));
	REFUSE_VALUE(cuStreamWaitEvent(stream, mine, CU_EVENT_WAIT_EXTERNAL));
	REFUSE_VALUE(cuStreamWaitEvent(stream, mine, 8));
	REFUSE(INVALID_HANDLE, cuStreamWaitEvent(stream, ended, 0));
	REFUSE(INVALID_HANDLE, cuStreamWaitEvent(stream, NULL, 0));
	REFUSE(INVALID_HANDLE, cuEventElapsedTime(&ms, ended, mine));
	REFUSE(INVALID_HANDLE, cuEventElapsedTime(&ms, mine, mine)); /* never recorded */
	REFUSE_VALUE(cuEventCreate(NULL, 0));
	REFUSE_VALUE(cuEventCreate(&mine, 0x80));
	REFUSE(INVALID_CONTEXT, cuCtxEnablePeerAccess(context, 0));
	REFUSE(INVALID_CONTEXT, cuCtxEnablePeerAccess(NULL, 0));
	REFUSE(INVALID_CONTEXT, cuCtxEnablePeerAccess((CUcontext)(uintptr_t)7, 0));
	REFUSE_VALUE(cuCtxEnablePeerAccess(other, 1));
	REFUSE(PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(other));
	REFUSE(INVALID_DEVICE, cuDeviceCanAccessPeer((int *)&ms, 0, 99));
	REFUSE(INVALID_CONTEXT, cuCtxRecordEvent((CUcontext)(uintptr_t)7, mine));
	REFUSE(INVALID_HANDLE, cuCtxWaitEvent(context, ended));
}

/* ---- libraries and links ---- */

static void libraries(void)
{
	const CUfunction_attribute registers = CU_FUNC_ATTRIBUTE_NUM_REGS,
				   dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	CUjit_option option = (CUjit_option)999;
	CUlinkState state, destroyed;
	CUlibrary library, unloaded;
	CUkernel kernel, dead;
	CUdeviceptr p;
	CUmodule inside;
	CUlibrary of;
	const char *name;
	void *value = NULL, *image;
	size_t size;
	unsigned n;
	int number;

	begin();
	CU(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&kernel, library, "add"));
	CU(cuLibraryLoadData(&unloaded, PTX, NULL, NULL, 0, NULL, NULL, 0));
	CU(cuLibraryGetKernel(&dead, unloaded, "add"));
	CU(cuLibraryUnload(unloaded));
	REFUSE_VALUE(cuLibraryLoadData(NULL, PTX, NULL, NULL, 0, NULL, NULL, 0));
	REFUSE_VALUE(cuLibraryLoadData(&of, NULL, NULL, NULL, 0, NULL, NULL, 0));
	REFUSE_VALUE(cuLibraryLoadData(&of, PTX, &option, &value, 1, NULL, NULL, 0));
	REFUSE_VALUE(cuLibraryLoadData(&of, PTX, NULL, NULL, 1, NULL, NULL, 0));
	REFUSE(FILE_NOT_FOUND,
		cuLibraryLoadFromFile(&of, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0));
	REFUSE(INVALID_HANDLE, cuLibraryGetKernel(&dead, (CUlibrary)module, "add"));
	REFUSE_VALUE(cuLibraryGetKernel(NULL, library, "add"));
	REFUSE_VALUE(cuLibraryGetKernel(&dead, library, NULL));
	REFUSE(INVALID_HANDLE, cuLibraryGetKernelCount(&n, unloaded));
	REFUSE_VALUE(cuLibraryGetKernelCount(NULL, library));
	REFUSE_VALUE(cuLibraryEnumerateKernels(NULL, 1, library));
	REFUSE(INVALID_HANDLE, cuLibraryEnumerateKernels(&dead, 1, unloaded));
	REFUSE(INVALID_HANDLE, cuLibraryGetModule(&inside, unloaded));
	REFUSE_VALUE(cuLibraryGetModule(NULL, library));
	REFUSE(NOT_FOUND, cuLibraryGetManaged(&p, &size, library, "word"));
	REFUSE(NOT_FOUND, cuLibraryGetGlobal(&p, &size, library, "none"));
	REFUSE_VALUE(cuLibraryGetGlobal(&p, &size, library, NULL));
	REFUSE(NOT_FOUND, cuLibraryGetUnifiedFunction(&image, library, "add"));
	REFUSE(INVALID_HANDLE, cuKernelGetLibrary(&of, (CUkernel)stream));
	REFUSE_VALUE(cuKernelGetLibrary(NULL, kernel));
	REFUSE_VALUE(cuKernelGetName(NULL, kernel));
	REFUSE_VALUE(cuKernelGetName(&name, NULL));
	REFUSE_VALUE(cuKernelGetParamInfo(kernel, 1, &size, NULL));
	REFUSE_VALUE(cuKernelGetParamInfo(kernel, 0, NULL, NULL));
	REFUSE(INVALID_DEVICE, cuKernelGetAttribute(&number, registers, kernel, 99));
	REFUSE_VALUE(cuKernelGetAttribute(NULL, registers, kernel, device));
	REFUSE_VALUE(cuKernelSetAttribute(registers, 1, kernel, device));
	REFUSE_VALUE(cuKernelSetAttribute(dynamic, 1 << 30, kernel, device));
	REFUSE(INVALID_DEVICE, cuKernelSetAttribute(dynamic, 1024, kernel, 99));
	REFUSE(INVALID_HANDLE, cuKernelSetAttribute(dynamic, 1024, NULL, device));
	CU(cuLinkCreate(0, NULL, NULL, &state));
	CU(cuLinkCreate(0, NULL, NULL, &destroyed));
	CU(cuLinkDestroy(destroyed));
	REFUSE_VALUE(cuLinkCreate(0, NULL, NULL, NULL));
	REFUSE_VALUE(cuLinkCreate(1, NULL, NULL, &destroyed));
	REFUSE_VALUE(cuLinkComplete(state, &image, &size)); /* nothing was added */
	REFUSE_VALUE(cuLinkAddData(state, CU_JIT_INPUT_PTX, NULL, 4, NULL, 0, NULL, NULL));
	REFUSE_VALUE(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)PTX, 0, NULL, 0, NULL, NULL));
	REFUSE_VALUE(cuLinkAddData(
		state, (CUjitInputType)77, (void *)PTX, sizeof PTX, NULL, 0, NULL, NULL));
	REFUSE(FILE_NOT_FOUND,
		cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file", 0, NULL, NULL));
	REFUSE(INVALID_HANDLE, cuLinkDestroy((CUlinkState)stream));
	REFUSE_VALUE(cuLinkComplete(state, NULL, &size));
	CU(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)PTX, sizeof PTX, "x", 0, NULL, NULL));
	CU(cuLinkComplete(state, &image, &size));
	REFUSE_VALUE(cuLinkAddData(
		state, CU_JIT_INPUT_PTX, (void *)PTX, sizeof PTX, "y", 0, NULL, NULL));
	CU(cuLinkDestroy(state));
	REFUSE(INVALID_HANDLE, cuLinkDestroy(state));
	REFUSE(INVALID_HANDLE, cuLinkComplete(state, &image, &size));
}

/* ---- launches and streams with attributes ---- */

static CUresult launch(CUlaunchAttributeID id, unsigned value, CUstream in)
{
	CUlaunchAttribute attr = { .id = id };
	CUlaunchConfig config = { .gridDimX = 4,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = in,
		.attrs = &attr,
		.numAttrs = 1 };
	void *args[] = { &memory };

	attr.value.clusterDim.x = attr.value.clusterDim.y = attr.value.clusterDim.z = value;
	return cuLaunchKernelEx(&config, add, args, NULL);
}

static void attributes(void)
{
	const CUlaunchAttributeID cluster = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	CUlaunchConfig empty = { .gridDimX = 1 };
	CUstreamAttrValue value = { .priority = 0 };
	CUstream none;

	begin();
	REFUSE_VALUE(cuLaunchKernelEx(NULL, add, NULL, NULL));
	REFUSE_VALUE(cuLaunchKernelEx(&empty, add, NULL, NULL));
	REFUSE_VALUE(launch((CUlaunchAttributeID)999, 1, stream));
	TRY(launch(cluster, 3, stream));
	TRY(launch(cluster, 0x10000, stream));
	REFUSE(INVALID_HANDLE, launch(CU_LAUNCH_ATTRIBUTE_IGNORE, 0, gone));
	REFUSE_VALUE(cuStreamGetAttribute(stream, (CUstreamAttrID)999, &value));
	REFUSE_VALUE(cuStreamGetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, NULL));
	REFUSE(INVALID_HANDLE, cuStreamGetAttribute(gone, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
	REFUSE_VALUE(cuStreamSetAttribute(stream, (CUstreamAttrID)999, &value));
	REFUSE_VALUE(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_PRIORITY, NULL));
	REFUSE(INVALID_HANDLE, cuStreamCopyAttributes(stream, gone));
	REFUSE_VALUE(cuStreamCreateWithPriority(NULL, 0, 0));
	REFUSE_VALUE(cuStreamCreateWithPriority(&none, 8, 0));
	REFUSE_VALUE(cuStreamCreate(NULL, 0));
	REFUSE_VALUE(cuLaunchHostFunc(stream, NULL, NULL));
	REFUSE_VALUE(cuStreamAddCallback(stream, NULL, NULL, 0));
	REFUSE(INVALID_HANDLE, cuStreamGetCtx(gone, &other));
	REFUSE_VALUE(cuStreamGetId(stream, NULL));
	CU(cuCtxSynchronize());
}

/* ---- green contexts ---- */

static void green_contexts(void)
{
	const unsigned own = CU_GREEN_CTX_DEFAULT_STREAM;
	CUdevResource whole, part;
	CUdevResourceDesc desc;
	CUgreenCtx green, dead;
	unsigned n = 1;
	CUstream made;

	begin();
	CU(cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
	CU(cuDevSmResourceSplitByCount(&part, &n, &whole, NULL, 0, 1));
	CU(cuDevResourceGenerateDesc(&desc, &part, 1));
	CU(cuGreenCtxCreate(&dead, desc, device, own));
	CU(cuGreenCtxDestroy(dead));
	REFUSE_VALUE(cuGreenCtxCreate(&green, (CUdevResourceDesc)stream, device, own));
	REFUSE_VALUE(cuGreenCtxCreate(&green, (CUdevResourceDesc)(uintptr_t)1, device, own));
	REFUSE_VALUE(cuGreenCtxCreate(&green, desc, device, 0x80));
	REFUSE(INVALID_CONTEXT, cuGreenCtxDestroy((CUgreenCtx)(uintptr_t)-1));
	REFUSE(INVALID_CONTEXT, cuGreenCtxDestroy((CUgreenCtx)context));
	REFUSE(CONTEXT_IS_DESTROYED, cuGreenCtxDestroy(dead));
	REFUSE(INVALID_CONTEXT,
		cuGreenCtxStreamCreate(&made, (CUgreenCtx)stream, CU_STREAM_NON_BLOCKING, 0));
	CU(cuGreenCtxCreate(&green, desc, device, own));
	REFUSE_VALUE(cuGreenCtxStreamCreate(&made, green, 0x40, 0));
	REFUSE_VALUE(cuGreenCtxGetDevResource(green, NULL, CU_DEV_RESOURCE_TYPE_SM));
	REFUSE(INVALID_RESOURCE_TYPE,
		cuGreenCtxGetDevResource(green, &whole, (CUdevResourceType)77));
	REFUSE(INVALID_CONTEXT,
		cuCtxGetDevResource((CUcontext)(uintptr_t)9, &whole, CU_DEV_RESOURCE_TYPE_SM));
	REFUSE(INVALID_HANDLE, cuStreamGetGreenCtx(gone, &green));
	CU(cuGreenCtxDestroy(green));
}

/* ---- after a kernel has failed ---- */

static void after_a_failure(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;
	CUevent event;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR desc = { 4, 4, CU_AD_FORMAT_FLOAT, 1 };
	CUipcEventHandle exported;

	begin();
	CU(cuMemCreate(&handle, PAGE, &prop, 0));
	CU(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	CU(cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	REFUSE(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
	REFUSE(ILLEGAL_ADDRESS, cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
	REFUSE(ILLEGAL_ADDRESS, cuArrayCreate(&array, &desc));
	REFUSE(ILLEGAL_ADDRESS, cuIpcGetEventHandle(&exported, event));
	REFUSE(ILLEGAL_ADDRESS, cuStreamWriteValue32(stream, memory, 1, 0));
	REFUSE(ILLEGAL_ADDRESS, cuMemAllocAsync(&p, 64, stream));
	REFUSE(ILLEGAL_ADDRESS, cuCtxEnablePeerAccess(other, 0));
	/* Another context of the same process. */
	CU(cuCtxSetCurrent(other));
	CU(cuMemAlloc(&p, 64));
	CU(cuMemsetD8(p, 1, 64));
	CU(cuCtxSynchronize());
}

static const struct refused_group GROUPS[] = {
	{ "mapped memory", mappings },
	{ "shared memory and events", shared },
	{ "events and peers", events },
	{ "libraries and links", libraries },
	{ "attributes of launches and streams", attributes },
	{ "green contexts", green_contexts },
	{ "after a kernel has failed", after_a_failure },
};

int main(void)
{
	return refused_run("refused_shared", GROUPS, sizeof GROUPS / sizeof *GROUPS);
}
