/* Runs the loader of two kernels in Triton on this GPU, with memory of its own: softmax, whose machine code follows the number of columns, and a transpose
   through tensor descriptors, which need global scratch. Prints what is wrong; exits with 0 if everything is right. */
#define TRITON_KERNELS_IMPLEMENTATION
#include "triton_kernels.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int (*get_device)(int *, int), (*init)(unsigned), (*retain)(void **, int), (*set_current)(void *), (*synchronize)(void);
static int (*allocate)(uint64_t *, size_t), (*to_device)(uint64_t, const void *, size_t), (*to_host)(void *, uint64_t, size_t);

static int driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int device;
    if (!library) return 1;
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&get_device = dlsym(library, "cuDeviceGet");
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = dlsym(library, "cuCtxSetCurrent");
    *(void **)&synchronize = dlsym(library, "cuCtxSynchronize");
    *(void **)&allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **)&to_device = dlsym(library, "cuMemcpyHtoD_v2");
    *(void **)&to_host = dlsym(library, "cuMemcpyDtoH_v2");
    return init(0) || get_device(&device, 0) || retain(&context, device) || set_current(context);
}

static float *drawn(int64_t count) {
    float *all = malloc((size_t)count * sizeof *all);
    unsigned state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        all[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    return all;
}

/* The largest error of a shape, or -1 if nothing ran. */
static double run(int softmax, int64_t rows, int64_t cols, int *status) {
    int64_t count = rows * cols, i, j;
    float *x = drawn(count), *y = malloc((size_t)count * sizeof *y);
    uint64_t at_x, at_y, scratch = 0;
    size_t bytes = 0;
    double worst = 0;
    if (allocate(&at_x, (size_t)count * 4) || allocate(&at_y, (size_t)count * 4) || to_device(at_x, x, (size_t)count * 4)) return -1;
    if (softmax) {
        *status = triton_kernels_softmax_f32((float *)(uintptr_t)at_x, (float *)(uintptr_t)at_y, rows, cols, NULL);
    } else {
        *status = triton_kernels_transpose_workspace(rows, cols, &bytes);
        if (*status) return -1;
        if (bytes == 0 || allocate(&scratch, bytes)) return -1;
        *status = triton_kernels_transpose((float *)(uintptr_t)at_x, (float *)(uintptr_t)at_y, rows, cols, (void *)(uintptr_t)scratch, bytes, NULL);
    }
    if (*status || synchronize() || to_host(y, at_y, (size_t)count * 4)) return -1;
    for (i = 0; i < rows; i++) {
        double sum = 0;
        for (j = 0; j < cols && softmax; j++) sum += exp((double)x[i * cols + j]);
        for (j = 0; j < cols; j++) {
            double want = softmax ? exp((double)x[i * cols + j]) / sum : (double)x[i * cols + j];
            double got = softmax ? (double)y[i * cols + j] : (double)y[j * rows + i];
            if (!(fabs(got - want) <= worst)) worst = fabs(got - want);
        }
    }
    free(x);
    free(y);
    return worst;
}

int main(void) {
    static const struct { int softmax; int64_t rows, cols; int refused; } cases[] = {
        { 1, 5, 257, 0 },     { 1, 1, 1000, 0 }, { 1, 64, 96, 0 },  { 1, 4096, 4096, 0 },
        { 1, 32, 512, 0 },    { 1, 7, 300, 0 }, /* not verified: machine code that assumes less serves them */
        { 1, 2, 1000, 1 },    { 1, 5, 8192, 1 }, /* no machine code */
        { 0, 68, 100, 0 },    { 0, 132, 8, 0 },  { 0, 2048, 4096, 0 },
    };
    int wrong = 0;
    if (driver()) {
        puts("no driver");
        return 2;
    }
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        int status = 0;
        double worst = run(cases[at].softmax, cases[at].rows, cases[at].cols, &status);
        int right = cases[at].refused ? status == TRITON_KERNELS_WRONG_CLASS : status == 0 && worst >= 0 && worst <= (cases[at].softmax ? 2e-6 : 0);
        if (right) continue;
        wrong = 1;
        printf("%s %lld x %lld: %s, error %g\n", cases[at].softmax ? "softmax" : "transpose", (long long)cases[at].rows, (long long)cases[at].cols,
               triton_kernels_message(status), worst);
    }
    if (!wrong) printf("%d cases\n", (int)(sizeof cases / sizeof *cases));
    return wrong;
}
