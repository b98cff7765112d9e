// libstdc++'s header of that name, which others bring in: it spells an attribute of its own like CUDA's keyword.
#pragma GCC system_header
#pragma push_macro("__noinline__")
#undef __noinline__
#include_next <bits/shared_ptr_base.h>
#pragma pop_macro("__noinline__")
