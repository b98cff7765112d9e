// Features that are not emulated, by the names a source can spell, so that it compiles and says so when it gets there.
#pragma once
#include "kf_runtime.h"

// What such a feature would give: anything.
struct kf_any {
  template <class T> KF_INLINE operator T() const { return T(); }
};
// Inlined, so that the place that is named is the user's.
KF_INLINE kf_any kf_none(const char *what) {
  kf_not_emulated(what);
  return {};
}

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
struct __attribute__((aligned(64))) CUtensorMap_st { unsigned long long opaque[16]; };
typedef struct CUtensorMap_st CUtensorMap;

#define KF_NO_FETCH(name)                                                                                              \
  template <class T, class... A> KF_INLINE T name(A...) {                                                              \
    kf_not_emulated(#name);                                                                                            \
    return T();                                                                                                        \
  }                                                                                                                    \
  template <class T, class... A> KF_INLINE void name(T *, A...) { kf_not_emulated(#name); }
KF_NO_FETCH(tex1D)
KF_NO_FETCH(tex1Dfetch)
KF_NO_FETCH(tex1DLod)
KF_NO_FETCH(tex1DGrad)
KF_NO_FETCH(tex1DLayered)
KF_NO_FETCH(tex1DLayeredLod)
KF_NO_FETCH(tex2D)
KF_NO_FETCH(tex2DLod)
KF_NO_FETCH(tex2DGrad)
KF_NO_FETCH(tex2DLayered)
KF_NO_FETCH(tex2DLayeredLod)
KF_NO_FETCH(tex2Dgather)
KF_NO_FETCH(tex3D)
KF_NO_FETCH(tex3DLod)
KF_NO_FETCH(tex3DGrad)
KF_NO_FETCH(texCubemap)
KF_NO_FETCH(texCubemapLod)
KF_NO_FETCH(texCubemapLayered)
KF_NO_FETCH(surf1Dread)
KF_NO_FETCH(surf1DLayeredread)
KF_NO_FETCH(surf2Dread)
KF_NO_FETCH(surf2DLayeredread)
KF_NO_FETCH(surf3Dread)
KF_NO_FETCH(surfCubemapread)
#undef KF_NO_FETCH
#define KF_NO_STORE(name)                                                                                              \
  template <class T, class... A> KF_INLINE void name(T, A...) { kf_not_emulated(#name); }
KF_NO_STORE(surf1Dwrite)
KF_NO_STORE(surf1DLayeredwrite)
KF_NO_STORE(surf2Dwrite)
KF_NO_STORE(surf2DLayeredwrite)
KF_NO_STORE(surf3Dwrite)
KF_NO_STORE(surfCubemapwrite)
#undef KF_NO_STORE

// A launch that follows another waits for all of it: there is nothing left to wait for.
KF_INLINE void cudaGridDependencySynchronize() {}
KF_INLINE void cudaTriggerProgrammaticLaunchCompletion() {}

// Clusters by the intrinsics that name them.
#define KF_NO_CLUSTER(name)                                                                                            \
  template <class... A> KF_INLINE kf_any name(A...) { return kf_none(#name); }
KF_NO_CLUSTER(__cluster_barrier_arrive)
KF_NO_CLUSTER(__cluster_barrier_arrive_relaxed)
KF_NO_CLUSTER(__cluster_barrier_wait)
KF_NO_CLUSTER(__cluster_map_shared_rank)
KF_NO_CLUSTER(__cluster_query_shared_rank)
KF_NO_CLUSTER(__clusterDim)
KF_NO_CLUSTER(__clusterDimIsSpecified)
KF_NO_CLUSTER(__clusterGridDimInClusters)
KF_NO_CLUSTER(__clusterIdx)
KF_NO_CLUSTER(__clusterRelativeBlockIdx)
KF_NO_CLUSTER(__clusterRelativeBlockRank)
KF_NO_CLUSTER(__clusterSizeInBlocks)
#undef KF_NO_CLUSTER

// A launch from a kernel, or from host code, which no kernel runs: `kernel<<<grid, block>>>(...)` is rewritten to `kf_launch("kernel", grid, block)(...)`.
struct kf_launched {
  template <class... A> KF_INLINE void operator()(A &&...) const {}
};
template <class... A> KF_INLINE kf_launched kf_launch(const char *what, A &&...) {
  kf_not_emulated(what);
  return {};
}
