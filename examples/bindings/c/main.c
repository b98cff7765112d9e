/* Runs the kernels of examples/bindings/kernels through their C loader, compares results with sums in double on the host, and times the calls. Needs no CUDA
 * toolkit: what the loader does not do itself (memory, copies) comes from the driver too.
 *
 *     kforge bindings loaders-1.0.0.tar --language c --output loaders-c
 *     cc -O2 -I loaders-c examples/bindings/c/main.c -o main -ldl -lpthread -lm && ./main
 *
 * Without a driver it checks that a call says so. */
#define _POSIX_C_SOURCE 199309L
#define LOADERS_IMPLEMENTATION
#include "loaders.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef unsigned long long address;

static struct {
    int (*init)(unsigned), (*retain)(void **, int), (*set)(void *), (*synchronize)(void);
    int (*allocate)(address *, size_t), (*to)(address, const void *, size_t), (*from)(void *, address, size_t);
} cu;

static void *found(void *library, const char *name) {
    void *at = dlsym(library, name);
    if (!at) {
        fprintf(stderr, "the driver has no %s\n", name);
        exit(1);
    }
    return at;
}
#define FIND(member, name) { void *at = found(library, name); memcpy(&cu.member, &at, sizeof at); }

static void ok(int status, const char *what) {
    if (status) {
        fprintf(stderr, "%s: %s %s\n", what, loaders_message(status), loaders_where());
        exit(1);
    }
}

static address upload(const void *data, size_t bytes) {
    address at = 0;
    ok(cu.allocate(&at, bytes), "memory");
    ok(cu.to(at, data, bytes), "copy");
    return at;
}

static address room(size_t bytes) {
    address at = 0;
    ok(cu.allocate(&at, bytes), "memory");
    return at;
}

/* Values in [-1, 1) that halves hold exactly, so that they are the same in every type. */
static float *values(size_t count, unsigned seed) {
    float *all = (float *)malloc(count * sizeof *all);
    size_t i;
    for (i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        all[i] = (float)((int)(seed >> 22) - 512) / 512.0f;
    }
    return all;
}

/* A float that a half holds exactly, as the bits of that half. */
static uint16_t half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value == 0.0f) return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int report(const char *name, double worst, double limit, double micros) {
    printf("%-10s worst error %.2e, %.2f us of host time a call\n", name, worst, micros);
    return worst <= limit;
}

#define TIMED(call) { int i; double start; ok(cu.synchronize(), "wait"); start = now(); for (i = 0; i < 500; i++) ok(call, #call); micros = (now() - start) / 500; ok(cu.synchronize(), "wait"); }

static double product_error(const float *a, const float *b, const float *c, int m, int n, int k) {
    double worst = 0;
    int i, j, l;
    for (i = 0; i < m; i++)
        for (j = 0; j < n; j++) {
            double sum = 0;
            for (l = 0; l < k; l++) sum += (double)a[(size_t)i * (size_t)k + (size_t)l] * b[(size_t)l * (size_t)n + (size_t)j];
            worst = fmax(worst, fabs(sum - c[(size_t)i * (size_t)n + (size_t)j]));
        }
    return worst;
}

static int rms_norm(int rows, int cols) {
    size_t count = (size_t)rows * (size_t)cols, i;
    float *x = values(count, 1), *w = values((size_t)cols, 2), *y = (float *)malloc(count * 4);
    address dx = upload(x, count * 4), dw = upload(w, (size_t)cols * 4), dy = room(count * 4);
    double worst = 0, micros = 0;
    int r;
    TIMED(loaders_rms_norm((float *)(uintptr_t)dx, (float *)(uintptr_t)dw, (float *)(uintptr_t)dy, rows, cols, 1e-6, NULL));
    ok(cu.from(y, dy, count * 4), "copy");
    for (r = 0; r < rows; r++) {
        double squares = 0;
        for (i = 0; i < (size_t)cols; i++) squares += (double)x[(size_t)r * (size_t)cols + i] * x[(size_t)r * (size_t)cols + i];
        for (i = 0; i < (size_t)cols; i++) {
            double expected = x[(size_t)r * (size_t)cols + i] / sqrt(squares / cols + 1e-6) * w[i];
            worst = fmax(worst, fabs(expected - y[(size_t)r * (size_t)cols + i]));
        }
    }
    return report("rms_norm", worst, 1e-5, micros);
}

static int matmul(int m, int n, int k) {
    size_t na = (size_t)m * (size_t)k, nb = (size_t)k * (size_t)n, nc = (size_t)m * (size_t)n, i;
    float *a = values(na, 3), *b = values(nb, 4), *c = (float *)malloc(nc * 4);
    uint16_t *ha = (uint16_t *)malloc(na * 2), *hb = (uint16_t *)malloc(nb * 2);
    address da, db, dc = room(nc * 4);
    double micros = 0;
    for (i = 0; i < na; i++) ha[i] = half(a[i]);
    for (i = 0; i < nb; i++) hb[i] = half(b[i]);
    da = upload(ha, na * 2);
    db = upload(hb, nb * 2);
    TIMED(loaders_matmul((void *)(uintptr_t)da, (void *)(uintptr_t)db, (float *)(uintptr_t)dc, m, n, k, NULL));
    ok(cu.from(c, dc, nc * 4), "copy");
    return report("matmul", product_error(a, b, c, m, n, k), 1e-3, micros);
}

static int split_k(int m, int n, int k) {
    size_t na = (size_t)m * (size_t)k, nb = (size_t)k * (size_t)n, nc = (size_t)m * (size_t)n, bytes = 0;
    float *a = values(na, 5), *b = values(nb, 6), *c = (float *)malloc(nc * 4);
    address da = upload(a, na * 4), db = upload(b, nb * 4), dc = room(nc * 4), workspace;
    double micros = 0;
    ok(loaders_split_k_workspace(m, n, k, &bytes), "workspace");
    workspace = room(bytes);
    TIMED(loaders_split_k((float *)(uintptr_t)da, (float *)(uintptr_t)db, (float *)(uintptr_t)dc, m, n, k, (void *)(uintptr_t)workspace, bytes, NULL));
    ok(cu.from(c, dc, nc * 4), "copy");
    if (loaders_split_k((float *)(uintptr_t)da, (float *)(uintptr_t)db, (float *)(uintptr_t)dc, m, n, k, (void *)(uintptr_t)workspace, bytes - 1, NULL) != LOADERS_WRONG_WORKSPACE) return 0;
    return report("split_k", product_error(a, b, c, m, n, k), 1e-3, micros);
}

/* Whether a call was refused with this status. */
static int refused(int status, int expected, const char *what) {
    if (status != expected) {
        fprintf(stderr, "%s: the call says: %s\n", what, status ? loaders_message(status) : "launched");
    }
    return status == expected;
}

int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int status, correct;
    if (!library) {
        status = loaders_rms_norm(NULL, NULL, NULL, 0, 0, 1e-6, NULL);
        printf("no driver here; a call says: %s\n", loaders_message(status));
        return status == LOADERS_NO_DRIVER ? 0 : 1;
    }
    FIND(init, "cuInit");
    FIND(retain, "cuDevicePrimaryCtxRetain");
    FIND(set, "cuCtxSetCurrent");
    FIND(synchronize, "cuCtxSynchronize");
    FIND(allocate, "cuMemAlloc_v2");
    FIND(to, "cuMemcpyHtoD_v2");
    FIND(from, "cuMemcpyDtoH_v2");
    ok(cu.init(0), "cuInit");
    if (!refused(loaders_matmul((void *)4096, (void *)8192, (float *)12288, 8, 8, 8, NULL), LOADERS_NO_CONTEXT, "no context")) {
        return 1;
    }
    ok(cu.retain(&context, 0), "context");
    ok(cu.set(context), "context");
    correct = rms_norm(37, 4099) & matmul(200, 136, 328) & split_k(32, 40, 2000);
    /* What no champion serves, and what lies at a wrong address, is refused by name before anything runs. */
    correct &= refused(loaders_matmul((void *)65536, (void *)131072, (float *)196608, 64, 64, 63, NULL), LOADERS_WRONG_SHAPE, "wrong shape");
    correct &= refused(loaders_rms_norm((float *)260, (float *)512, (float *)1024, 1, 1, 1e-6, NULL), LOADERS_WRONG_ALIGNMENT, "wrong alignment");
    correct &= refused(loaders_rms_norm(NULL, (float *)512, (float *)1024, 1, 1, 1e-6, NULL), LOADERS_NULL_POINTER, "null pointer");
    correct &= refused(loaders_rms_norm((float *)512, (float *)1024, (float *)512, 1, 1, 1e-6, NULL), LOADERS_OVERLAP, "overlap");
    printf("%s\n", correct ? "correct" : "WRONG");
    return !correct;
}
