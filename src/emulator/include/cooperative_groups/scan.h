// Scans stand beside reductions.
#pragma once
#include "reduce.h"
