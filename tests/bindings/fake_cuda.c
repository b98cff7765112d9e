/* A driver that launches nothing and writes down what it was asked for, one line per call, into the file that KFORGE_FAKE_LOG names. KFORGE_FAKE_SIZES names a
 * file with the sizes of each kernel's parameters: `SYMBOL size size ...`. KFORGE_FAKE_CAPABILITY (90) and KFORGE_FAKE_DEVICE (NVIDIA H200) describe the device.
 * It has 132 multiprocessors and holds two blocks of any kernel on each. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int R;
typedef struct { unsigned grid[3], block[3], shared; void *stream; void *attributes; unsigned count; } Config;
typedef struct { int id; char pad[4]; union { unsigned dims[3]; int flag; char room[64]; } value; } Attribute;

/* Whether a context is current; -1 before any was set, and then KFORGE_FAKE_NO_CONTEXT says. */
static int inited, current = -1, count;
static char symbols[4096][200];

static FILE *out(void) {
    static FILE *file;
    if (!file) {
        const char *name = getenv("KFORGE_FAKE_LOG");
        file = fopen(name ? name : "/dev/null", "a");
    }
    return file;
}
static int of(const char *name, int usual) { const char *text = getenv(name); return text ? atoi(text) : usual; }

R cuInit(unsigned flags) { (void)flags; inited = 1; return 0; }
R cuDriverGetVersion(int *version) { *version = 13000; return 0; }
R cuDeviceGetCount(int *n) { *n = 1; return 0; }
R cuDeviceGet(int *device, int at) { *device = at; return 0; }
R cuDeviceGetName(char *name, int size, int device) {
    const char *text = getenv("KFORGE_FAKE_DEVICE");
    (void)device;
    snprintf(name, (size_t)size, "%s", text ? text : "NVIDIA H200");
    return 0;
}
R cuDeviceGetAttribute(int *value, int which, int device) {
    int capability = of("KFORGE_FAKE_CAPABILITY", 90);
    (void)device;
    *value = which == 75 ? capability / 10 : which == 76 ? capability % 10 : which == 16 ? 132 : 1;
    return 0;
}
R cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = (void *)0x10; return 0; }
R cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
R cuCtxGetCurrent(void **context) {
    int none = current < 0 ? of("KFORGE_FAKE_NO_CONTEXT", 0) : !current;
    *context = none ? NULL : (void *)0x10;
    return 0;
}
R cuCtxSetCurrent(void *context) { current = context != NULL; return 0; }
R cuCtxPushCurrent_v2(void *context) { (void)context; return 0; }
R cuCtxPopCurrent_v2(void **context) { *context = (void *)0x10; return 0; }
R cuCtxGetDevice(int *device) { *device = 0; return 0; }
R cuCtxGetId(void *context, unsigned long long *id) { (void)context; *id = 7; return 0; }
R cuCtxSynchronize(void) { return 0; }
R cuModuleLoadData(void **module, const void *image) { (void)image; *module = (void *)0x20; return 0; }
R cuModuleUnload(void *module) { (void)module; return 0; }
R cuModuleGetFunction(void **function, void *module, const char *name) {
    int at;
    (void)module;
    for (at = 0; at < count; at++)
        if (!strcmp(symbols[at], name)) break;
    if (at == count) snprintf(symbols[count++], sizeof symbols[0], "%s", name);
    *function = symbols[at];
    return 0;
}
R cuModuleGetGlobal_v2(unsigned long long *at, size_t *size, void *module, const char *name) {
    (void)module;
    fprintf(out(), "global %s\n", name);
    *at = 0xC0000000u;
    *size = 65536;
    return 0;
}
R cuFuncSetAttribute(void *function, int which, int value) { fprintf(out(), "attribute %s %d %d\n", (char *)function, which, value); fflush(out()); return 0; }
R cuFuncGetAttribute(int *value, int which, void *function) { (void)which; (void)function; *value = 0; return 0; }
R cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t shared) { (void)function; (void)threads; (void)shared; *blocks = 2; return 0; }
R cuThreadExchangeStreamCaptureMode(int *mode) { *mode = 2 - *mode; return 0; }
R cuGetErrorName(int error, const char **name) { (void)error; *name = "CUDA_ERROR_FAKE"; return 0; }
R cuGetErrorString(int error, const char **name) { (void)error; *name = "fake"; return 0; }
R cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = (void *)0x30; return 0; }
R cuStreamDestroy_v2(void *stream) { (void)stream; return 0; }
R cuStreamSynchronize(void *stream) { (void)stream; return 0; }
R cuMemAllocAsync(unsigned long long *at, size_t bytes, void *stream) { (void)stream; (void)bytes; *at = 0x700000000000ull; return 0; }
R cuMemFreeAsync(unsigned long long at, void *stream) { (void)at; (void)stream; return 0; }
R cuMemAlloc_v2(unsigned long long *at, size_t bytes) {
    static unsigned long long next = 0x700000000000ull;
    *at = next;
    next += (bytes + 255) / 256 * 256;
    return 0;
}
R cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) { (void)to; (void)from; (void)bytes; return 0; }
R cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) { (void)from; memset(to, 0, bytes); return 0; }
R cuMemFree_v2(unsigned long long at) { (void)at; return 0; }
R cuMemsetD8Async(unsigned long long at, unsigned char byte, size_t bytes, void *stream) {
    fprintf(out(), "set8 %llx %d %zu\n", at, byte, bytes);
    (void)stream;
    fflush(out());
    return 0;
}
R cuMemsetD32Async(unsigned long long at, unsigned word, size_t words, void *stream) {
    fprintf(out(), "set32 %llx %x %zu\n", at, word, words);
    (void)stream;
    fflush(out());
    return 0;
}
R cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void *stream) {
    fprintf(out(), "copy %llx %llx %zu\n", to, from, bytes);
    (void)stream;
    fflush(out());
    return 0;
}

/* The map holds what it was made of. */
R cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *at, const uint64_t *extents, const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    struct { uint32_t type, rank; uint64_t at, extents[5], strides[4]; uint32_t box[5], swizzle, promotion, fill; } all;
    unsigned axis;
    memset(map, 0, 128);
    memset(&all, 0, sizeof all);
    if ((uintptr_t)map % 64 || interleave) return 1;
    all.type = (uint32_t)type;
    all.rank = rank;
    all.at = (uint64_t)(uintptr_t)at;
    for (axis = 0; axis < rank; axis++) {
        if (steps[axis] != 1) return 1;
        all.extents[axis] = extents[axis];
        all.box[axis] = box[axis];
        if (axis + 1 < rank) all.strides[axis] = strides[axis];
    }
    all.swizzle = (uint32_t)swizzle;
    all.promotion = (uint32_t)promotion;
    all.fill = (uint32_t)fill;
    memcpy(map, &all, sizeof all);
    return 0;
}

R cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **extra) {
    const Attribute *attributes = (const Attribute *)config->attributes;
    unsigned cluster[3] = { 1, 1, 1 }, cooperative = 0, pdl = 0, at;
    static char line[65536];
    FILE *sizes;
    (void)extra;
    for (at = 0; at < config->count; at++) {
        if (attributes[at].id == 2) cooperative = (unsigned)attributes[at].value.flag;
        if (attributes[at].id == 4) memcpy(cluster, attributes[at].value.dims, sizeof cluster);
        if (attributes[at].id == 6) pdl = (unsigned)attributes[at].value.flag;
    }
    fprintf(out(), "launch %s grid %u,%u,%u block %u,%u,%u shared %u cluster %u,%u,%u cooperative %u pdl %u", (char *)function, config->grid[0], config->grid[1],
            config->grid[2], config->block[0], config->block[1], config->block[2], config->shared, cluster[0], cluster[1], cluster[2], cooperative, pdl);
    sizes = fopen(getenv("KFORGE_FAKE_SIZES") ? getenv("KFORGE_FAKE_SIZES") : "/dev/null", "r");
    while (sizes && fgets(line, sizeof line, sizes)) {
        char *word = strtok(line, " \n");
        int parameter = 0;
        if (!word || strcmp(word, (char *)function)) continue;
        while ((word = strtok(NULL, " \n"))) {
            const unsigned char *bytes = (const unsigned char *)parameters[parameter++];
            int size = atoi(word), byte;
            fprintf(out(), " ");
            for (byte = 0; byte < size; byte++) fprintf(out(), "%02x", bytes[byte]);
        }
        break;
    }
    if (sizes) fclose(sizes);
    fprintf(out(), "\n");
    fflush(out());
    return 0;
}
