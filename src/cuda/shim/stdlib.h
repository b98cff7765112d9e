// `malloc`, `free` and `abs` are the compiler's own.
#pragma once
#include <stddef.h>
