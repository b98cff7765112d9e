// libstdc++'s header of that name, which <memory>, <functional> and others bring in: it spells an attribute like CUDA's keyword.
#pragma push_macro("__noinline__")
#undef __noinline__
#include_next <bits/shared_ptr_base.h>
#pragma pop_macro("__noinline__")
