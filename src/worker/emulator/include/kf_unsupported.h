// Features that are not emulated, by the names a source can spell, so that it compiles and says so when it gets there.
#pragma once
#include "kf_runtime.h"

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
struct __attribute__((aligned(64))) CUtensorMap { unsigned long long opaque[16]; };

#define KF_NO_FETCH(name)                                                                                              \
  template <class T, class... A> KF_INLINE T name(A...) {                                                              \
    kf_not_emulated(#name);                                                                                            \
    return T();                                                                                                        \
  }                                                                                                                    \
  template <class T, class... A> KF_INLINE void name(T *, A...) { kf_not_emulated(#name); }
KF_NO_FETCH(tex1D)
KF_NO_FETCH(tex1Dfetch)
KF_NO_FETCH(tex2D)
KF_NO_FETCH(tex2DLod)
KF_NO_FETCH(tex3D)
KF_NO_FETCH(surf1Dread)
KF_NO_FETCH(surf2Dread)
#undef KF_NO_FETCH
template <class T, class... A> KF_INLINE void surf1Dwrite(T, A...) { kf_not_emulated("surf1Dwrite"); }
template <class T, class... A> KF_INLINE void surf2Dwrite(T, A...) { kf_not_emulated("surf2Dwrite"); }
KF_INLINE void cudaGridDependencySynchronize() {}
KF_INLINE void cudaTriggerProgrammaticLaunchCompletion() {}
