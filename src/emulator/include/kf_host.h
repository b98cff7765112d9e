// CUDA's runtime by name, for host code that stands beside kernels in one file: it compiles, is never run, and says so if a kernel calls it (dynamic
// parallelism). Knows the names that launchers and their error checks use.
#pragma once
#include "kf_unsupported.h"
#include "kf_vector_types.h"

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct cudaArray *cudaArray_t;
enum cudaError { cudaSuccess, cudaErrorInvalidValue, cudaErrorMemoryAllocation, cudaErrorNotReady = 600, cudaErrorNotSupported = 801, cudaErrorUnknown = 999 };
typedef cudaError cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout, cudaFuncAttributeNonPortableClusterSizeAllowed = 13 };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimeSyncDepth, cudaLimitPersistingL2CacheSize = 6 };
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10, cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16, cudaDevAttrL2CacheSize = 38, cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrCooperativeLaunch = 95, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaLaunchAttributeID { cudaLaunchAttributeIgnore, cudaLaunchAttributeCooperative = 2, cudaLaunchAttributeClusterDimension = 4, cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative, programmaticStreamSerializationAllowed;
  struct { unsigned x, y, z; } clusterDim;
};
struct cudaLaunchAttribute { cudaLaunchAttributeID id; cudaLaunchAttributeValue val; };
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, regsPerBlock, l2CacheSize;
};
enum : unsigned { cudaStreamDefault, cudaStreamNonBlocking, cudaEventDefault = 0, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0, cudaMemAttachGlobal = 1 };
#define cudaStreamPerThread (static_cast<cudaStream_t>(nullptr))
#define cudaStreamLegacy (static_cast<cudaStream_t>(nullptr))

#define KF_HOST(name)                                                                                                  \
  template <class... A> KF_INLINE cudaError_t name(A &&...) {                                                          \
    kf_not_emulated(#name);                                                                                            \
    return cudaErrorNotSupported;                                                                                      \
  }
KF_HOST(cudaMalloc) KF_HOST(cudaMallocAsync) KF_HOST(cudaMallocHost) KF_HOST(cudaMallocManaged) KF_HOST(cudaMallocPitch) KF_HOST(cudaFree)
KF_HOST(cudaFreeAsync) KF_HOST(cudaFreeHost) KF_HOST(cudaHostAlloc) KF_HOST(cudaMemcpy) KF_HOST(cudaMemcpyAsync) KF_HOST(cudaMemcpy2D)
KF_HOST(cudaMemcpy2DAsync) KF_HOST(cudaMemcpyToSymbol) KF_HOST(cudaMemcpyToSymbolAsync) KF_HOST(cudaMemcpyFromSymbol) KF_HOST(cudaMemset)
KF_HOST(cudaMemsetAsync) KF_HOST(cudaMemGetInfo) KF_HOST(cudaMemPrefetchAsync) KF_HOST(cudaGetSymbolAddress)
KF_HOST(cudaStreamCreate) KF_HOST(cudaStreamCreateWithFlags) KF_HOST(cudaStreamDestroy) KF_HOST(cudaStreamSynchronize) KF_HOST(cudaStreamWaitEvent)
KF_HOST(cudaStreamQuery) KF_HOST(cudaStreamBeginCapture) KF_HOST(cudaStreamEndCapture) KF_HOST(cudaEventCreate) KF_HOST(cudaEventCreateWithFlags)
KF_HOST(cudaEventDestroy) KF_HOST(cudaEventRecord) KF_HOST(cudaEventSynchronize) KF_HOST(cudaEventElapsedTime) KF_HOST(cudaEventQuery)
KF_HOST(cudaDeviceSynchronize) KF_HOST(cudaDeviceReset) KF_HOST(cudaDeviceGetAttribute) KF_HOST(cudaDeviceSetLimit) KF_HOST(cudaDeviceGetLimit)
KF_HOST(cudaGetDevice) KF_HOST(cudaSetDevice) KF_HOST(cudaGetDeviceCount) KF_HOST(cudaGetDeviceProperties) KF_HOST(cudaFuncSetAttribute)
KF_HOST(cudaFuncSetCacheConfig) KF_HOST(cudaFuncGetAttributes) KF_HOST(cudaLaunchKernel) KF_HOST(cudaLaunchKernelEx) KF_HOST(cudaLaunchKernelExC)
KF_HOST(cudaLaunchCooperativeKernel) KF_HOST(cudaOccupancyMaxActiveBlocksPerMultiprocessor) KF_HOST(cudaOccupancyMaxPotentialBlockSize)
KF_HOST(cudaOccupancyMaxActiveClusters) KF_HOST(cudaGetLastError) KF_HOST(cudaPeekAtLastError) KF_HOST(cudaGraphLaunch) KF_HOST(cudaGraphInstantiate)
#undef KF_HOST
KF_INLINE const char *cudaGetErrorString(cudaError_t) { return "not emulated"; }
KF_INLINE const char *cudaGetErrorName(cudaError_t) { return "not emulated"; }
