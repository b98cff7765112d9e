/* What a kernel's own launcher is handed: `host = "launch.cu::run"` in kernel.toml names a function
 *
 *     extern "C" int run(const kforge_call *call);
 *
 * that queues all its work on `call->stream` and returns 0, or any other number where it could not. It need not wait: what it
 * queued, there and on other streams of the context, is waited for. Tensors and workspaces lie in device memory of the context
 * that is current, which CUDA's runtime shares; inputs must be left as they are. */
#ifndef KFORGE_HOST_H
#define KFORGE_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Raised when anything below changes. */
#define KFORGE_HOST_VERSION 1

/* Element types, by their names in kernel.toml. */
enum kforge_dtype {
    KFORGE_F64 = 0,
    KFORGE_F32 = 1,
    KFORGE_F16 = 2,
    KFORGE_BF16 = 3,
    KFORGE_F8E4M3 = 4,
    KFORGE_F8E5M2 = 5,
    KFORGE_F8E8M0 = 6,
    KFORGE_F4E2M1X2 = 7,
    KFORGE_I64 = 8,
    KFORGE_U64 = 9,
    KFORGE_I32 = 10,
    KFORGE_U32 = 11,
    KFORGE_I16 = 12,
    KFORGE_U16 = 13,
    KFORGE_I8 = 14,
    KFORGE_U8 = 15,
    KFORGE_I4X2 = 16,
    KFORGE_BOOL = 17
};

/* A tensor of the operator, or a workspace of the kernel (of rank 1). */
typedef struct kforge_tensor {
    const char *name;
    void *data;             /* device memory */
    const int64_t *shape;   /* `rank` extents */
    const int64_t *strides; /* `rank` strides, in elements */
    int64_t bytes;          /* from the first element to the last */
    int32_t rank;
    int32_t dtype; /* enum kforge_dtype */
} kforge_tensor;

/* A dim of the operator, derived ones included. */
typedef struct kforge_dim {
    const char *name;
    int64_t value;
} kforge_dim;

/* A param of the operator: its value as an integer (truth values are 0 and 1), and as a float. */
typedef struct kforge_param {
    const char *name;
    int64_t integer;
    double real;
    int32_t dtype;
    int32_t reserved;
} kforge_param;

typedef struct kforge_call {
    int32_t version; /* KFORGE_HOST_VERSION */
    int32_t tensors; /* how many: inputs, inouts and outputs, each in declared order */
    const kforge_tensor *tensor;
    const kforge_tensor *workspace;
    const kforge_dim *dim; /* in order of names */
    const kforge_param *param;
    int32_t workspaces;
    int32_t dims;
    int32_t params;
    int32_t reserved;
    void *stream; /* a cudaStream_t */
} kforge_call;

/* A tensor or workspace by name; NULL where there is none. */
static inline const kforge_tensor *kforge_find(const kforge_call *call, const char *name) {
    for (int32_t i = 0; i < call->tensors; i++)
        if (strcmp(call->tensor[i].name, name) == 0) return &call->tensor[i];
    for (int32_t i = 0; i < call->workspaces; i++)
        if (strcmp(call->workspace[i].name, name) == 0) return &call->workspace[i];
    return NULL;
}

/* The device memory of a tensor or workspace; NULL where there is none of the name. */
static inline void *kforge_data(const kforge_call *call, const char *name) {
    const kforge_tensor *found = kforge_find(call, name);
    return found ? found->data : NULL;
}

/* The value of a dim; -1 where there is none of the name. */
static inline int64_t kforge_dim_of(const kforge_call *call, const char *name) {
    for (int32_t i = 0; i < call->dims; i++)
        if (strcmp(call->dim[i].name, name) == 0) return call->dim[i].value;
    return -1;
}

/* A param; NULL where there is none of the name. */
static inline const kforge_param *kforge_param_of(const kforge_call *call, const char *name) {
    for (int32_t i = 0; i < call->params; i++)
        if (strcmp(call->param[i].name, name) == 0) return &call->param[i];
    return NULL;
}

#endif
