// What translated inline PTX calls (`ptx` in src/emulator). Stands behind the prelude of a source with such statements only (KF_PTX).
// Every name begins with `kf_`, so that the translation can stand in a macro of the source whatever its parameters are called.
#pragma once
#include "kf_ptx_values.h"
#include "kf_ptx_integer.h"
#include "kf_ptx_float.h"
#include "kf_ptx_convert.h"
#include "kf_ptx_memory.h"
#include "kf_ptx_mbarrier.h"
#include "kf_ptx_warp.h"
#include "kf_ptx_matrix.h"
