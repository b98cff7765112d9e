// `size_t` is the compiler's own.
#ifndef KFORGE_STDDEF_H
#define KFORGE_STDDEF_H
using ptrdiff_t = decltype((char*)0 - (char*)0);
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) ((size_t)(&((type*)0)->member))
#endif
#endif
