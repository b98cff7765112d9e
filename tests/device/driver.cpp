// A driver in name only: the calls of libcuda that kforge makes, on memory of the process, with a clock that says what each kernel states. A "cubin" is a shared object
// whose kernels are functions `double name(void** params, const unsigned* shape)`: they do the work of the whole grid and return the nanoseconds it took, or the
// negative number of the error that the device then reports. It holds what a real driver is documented to do where kforge relies on it: faults that stick, streams that
// keep their order, graphs that repeat what was captured. It cannot say how fast anything is, or that a real driver does what is documented.
#include <dlfcn.h>
#include <link.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <cerrno>
#include <cstddef>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>
#define API extern "C" __attribute__((visibility("default"))) int
typedef unsigned long long u64;
struct Module { void* library; bool own; };
struct Graph { std::vector<std::function<int()>> nodes; };
struct Stream { double now; Graph* capture; };
struct Function { std::string name; double (*run)(void**, const unsigned*); size_t shared; bool large_clusters; };
struct Event { double at; };
static int fault = 0;
static u64 used = 0, luck = 12345;
static std::map<u64, size_t> sizes;

static std::string beside(const char* name) {
    Dl_info info;
    dladdr((void*)&fault, &info);
    std::string path = info.dli_fname;
    return path.substr(0, path.rfind('/') + 1) + name;
}
static double noise() {
    luck = luck * 6364136223846793005ull + 1442695040888963407ull;
    return 1.0 + 0.002 * ((double)(luck >> 40) / (1 << 24) - 0.5);
}
static int queue(Stream* s, std::function<int()> work) {
    if (s && s->capture) { s->capture->nodes.push_back(work); return 0; }
    return fault ? fault : work();
}

// As driver 580: listens on a socket of this machine whose name is no file, and removes old ones. Returns whether a call was refused.
static bool cannot_listen() {
    int own = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un name = {AF_UNIX, {}};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "kforge-driver-%d", getpid());
    bool refused = own < 0 || bind(own, (sockaddr*)&name, offsetof(sockaddr_un, sun_path) + 1 + length) < 0 || listen(own, 8) < 0;
    refused |= unlink("/tmp/kforge-was-never-here") == 0 || errno == EPERM;
    close(own);
    return refused;
}
// What this driver needs to start, if the file `needs` says so: the network, a socket of this machine, or a file to read.
static bool lacking() {
    char needed[512] = "";
    if (FILE* said = fopen(beside("needs").c_str(), "r")) {
        if (fscanf(said, "%511s", needed) != 1) needed[0] = 0;
        fclose(said);
    }
    if (!strcmp(needed, "socket")) return socket(AF_INET, SOCK_STREAM, 0) < 0;
    if (!strcmp(needed, "listener")) return cannot_listen();
    return needed[0] && open(needed, O_RDONLY) < 0;
}
API cuInit(unsigned) {
    if (lacking()) return 304;
    // Processes with a driver are confined: they write only to files that are listed with the devices.
    if (FILE* f = fopen(beside("starts").c_str(), "a")) {
        fprintf(f, "%d\n", getpid());
        fclose(f);
    }
    return 0;
}
API cuGetErrorName(int e, const char** s) {
    static std::map<int, const char*> names = {{1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {304, "CUDA_ERROR_OPERATING_SYSTEM"}, {500, "CUDA_ERROR_NOT_FOUND"},
        {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"}, {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {716, "CUDA_ERROR_MISALIGNED_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}};
    *s = names.count(e) ? names[e] : nullptr;
    return *s ? 0 : 1;
}
API cuGetErrorString(int, const char** s) { *s = "as the test wants"; return 0; }
API cuDeviceGetCount(int* n) { *n = 1; return 0; }
API cuDeviceGet(int* d, int) { *d = 0; return 0; }
API cuDeviceGetName(char* s, int n, int) { snprintf(s, n, "NVIDIA Test"); return 0; }
API cuDeviceGetUuid_v2(char* u, int) { memset(u, 7, 16); return 0; }
API cuDeviceTotalMem_v2(size_t* n, int) { *n = 1u << 30; return 0; }
API cuDeviceGetAttribute(int* v, int what, int) {
    // Capability, processors, clocks in kHz, bus, L2 and whether kernels reach the host.
    static std::map<int, int> all = {{75, 9}, {76, 0}, {16, 4}, {13, 1000000}, {36, 1000000}, {37, 512}, {38, 1 << 20}, {88, 1}};
    if (!all.count(what)) return 1;
    *v = all[what];
    return 0;
}
API cuDevicePrimaryCtxRetain(void** c, int) { *c = &fault; return 0; }
API cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API cuCtxSetCurrent(void*) { return 0; }
static std::vector<std::pair<u64, std::string>> underway;
static void land() {
    for (auto& [to, bytes] : underway) memcpy((void*)to, bytes.data(), bytes.size());
    underway.clear();
}
API cuCtxSynchronize() { land(); return fault; }
API cuCtxResetPersistingL2Cache() { return fault; }
// What other processes have of the memory: as many bytes as the file `others` says.
static size_t others() {
    size_t bytes = 0;
    if (FILE* said = fopen(beside("others").c_str(), "r")) {
        if (fscanf(said, "%zu", &bytes) != 1) bytes = 0;
        fclose(said);
    }
    return bytes;
}
API cuMemGetInfo_v2(size_t* f, size_t* t) { *t = 1u << 30; *f = *t - used - others(); return fault; }
// What is large enough to be a buffer of a candidate's.
static void moved(const char* how, size_t n) {
    if (n < 4000) return;
    // As above.
    if (FILE* log = fopen(beside("moved").c_str(), "a")) {
        fprintf(log, "%s %zu\n", how, n);
        fclose(log);
    }
}
API cuMemAlloc_v2(u64* at, size_t n) {
    moved("allocated", n);
    if (used + others() + n > (1u << 30)) return 2;
    *at = (u64)aligned_alloc(512, (n + 511) / 512 * 512);
    sizes[*at] = n;
    used += n;
    return fault;
}
API cuMemFree_v2(u64 at) { land(); used -= sizes[at]; sizes.erase(at); free((void*)at); return fault; }
// Copies from the host are on their way until the stream without a name is waited for: whoever does not wait finds what was there before.
API cuMemcpyHtoD_v2(u64 to, const void* from, size_t n) {
    underway.emplace_back(to, std::string((const char*)from, n));
    return fault;
}
API cuMemcpyDtoH_v2(void* to, u64 from, size_t n) { land(); moved("read", n); memcpy(to, (void*)from, n); return fault; }
API cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t n, Stream* s) {
    return queue(s, [=] { memcpy((void*)to, (void*)from, n); return 0; });
}
API cuMemsetD8Async(u64 to, unsigned char v, size_t n, Stream* s) {
    return queue(s, [=] { memset((void*)to, v, n); s->now += 500; return 0; });
}
API cuModuleLoadData(Module** m, const char* image) {
    if (fault) return fault;
    // A driver that is too old for some of kforge's own kernels.
    if (!strncmp(image, ".version", 8) && strstr(image, "e4m3")) return 222;
    if (!strncmp(image, ".version", 8)) { *m = new Module{nullptr, true}; return 0; }
    auto* elf = (const Elf64_Ehdr*)image;
    if (memcmp(image, "\177ELF", 4)) return 1;
    size_t n = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
    int fd = memfd_create("module", 0);
    if (write(fd, image, n) != (ssize_t)n) return 1;
    void* library = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    *m = new Module{library, false};
    return 0;
}
API cuModuleUnload(Module* m) { if (m->library) dlclose(m->library); delete m; return fault; }
API cuModuleGetFunction(Function** f, Module* m, const char* name) {
    void* run = m->own ? nullptr : dlsym(m->library, name);
    if (!m->own && !run) return 500;
    *f = new Function{name, (double (*)(void**, const unsigned*))run, 0, false};
    return 0;
}
API cuModuleGetGlobal_v2(u64* at, size_t* n, Module* m, const char* name) {
    *at = (u64)dlsym(m->library, name);
    *n = 64;
    return *at ? 0 : 500;
}
API cuFuncSetAttribute(Function* f, int what, int v) {
    if (what == 14) { f->large_clusters = v; return 0; }
    if (what != 8 || v > 232448) return 1;
    f->shared = v;
    return 0;
}
static unsigned resident(unsigned threads) { return 2048 / threads; }
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Function*, int threads, size_t) { *n = resident(threads); return 0; }
API cuStreamCreate(Stream** s, unsigned flags) { *s = new Stream{0, nullptr}; return flags == 1 ? 0 : 1; }
API cuStreamDestroy_v2(Stream*) { return 0; }
API cuStreamSynchronize(Stream* s) { if (!s) land(); return s && s->capture ? 1 : fault; }
API cuStreamBeginCapture_v2(Stream* s, int) { s->capture = new Graph; return fault; }
API cuStreamEndCapture(Stream* s, Graph** g) { *g = s->capture; s->capture = nullptr; return fault; }
API cuGraphInstantiateWithFlags(Graph** e, Graph* g, u64) { *e = new Graph(*g); return 0; }
API cuGraphDestroy(Graph* g) { delete g; return 0; }
API cuGraphExecDestroy(Graph* g) { delete g; return 0; }
API cuGraphLaunch(Graph* g, Stream* s) {
    s->now += 5000;
    for (auto& node : g->nodes) if (int e = node()) return e;
    return fault;
}
API cuEventCreate(Event** e, unsigned) { *e = new Event{0}; return 0; }
API cuEventDestroy_v2(Event*) { return 0; }
API cuEventRecord(Event* e, Stream* s) { e->at = s->now; return fault; }
API cuEventElapsedTime_v2(float* ms, Event* a, Event* b) { *ms = (float)((b->at - a->at) / 1e6); return fault; }

// Writes down what it was asked to encode, and refuses what the real one is documented to refuse first of all: a map that is not aligned.
API cuTensorMapEncodeTiled(u64* map, int type, unsigned rank, void* at, const u64* dims, const u64* strides, const unsigned* box, const unsigned* steps,
                           int interleave, int swizzle, int promotion, int fill) {
    if ((u64)map % 64 || (u64)at % 16 || rank < 1 || rank > 5 || interleave) return 1;
    FILE* log = fopen(beside("maps").c_str(), "a");
    fprintf(log, "type %d rank %u", type, rank);
    for (unsigned i = 0; i < rank; ++i) fprintf(log, " %llu:%u:%u", dims[i], box[i], steps[i]);
    for (unsigned i = 0; i + 1 < rank; ++i) fprintf(log, " +%llu", strides[i]);
    fprintf(log, " swizzle %d promotion %d fill %d\n", swizzle, promotion, fill);
    fclose(log);
    for (int i = 0; i < 16; ++i) map[i] = 1000 + i;
    return 0;
}

struct Config { unsigned grid[3], block[3], shared; Stream* stream; void* attributes; unsigned count; };
struct Attribute { int id; char pad[4]; union { char bytes[64]; int yes; unsigned cluster[3]; } value; };
// What a launch asks for, a line each, for the test to read.
static int asked(const Config* c, const Function* f) {
    unsigned cluster[3] = {1, 1, 1};
    bool cooperative = false, dependent = false;
    for (unsigned i = 0; i < c->count; ++i) {
        const Attribute& a = ((Attribute*)c->attributes)[i];
        if (a.id == 2) cooperative = a.value.yes == 1;
        else if (a.id == 4) memcpy(cluster, a.value.cluster, sizeof cluster);
        else if (a.id == 6) dependent = a.value.yes == 1;
        else return 1;
    }
    for (int i = 0; i < 3; ++i) if (!cluster[i] || c->grid[i] % cluster[i]) return 1;
    if (cluster[0] * cluster[1] * cluster[2] > (f->large_clusters ? 16 : 8)) return 912;
    // The device has four multiprocessors.
    if (cooperative && c->grid[0] * c->grid[1] * c->grid[2] > 4 * resident(c->block[0] * c->block[1] * c->block[2])) return 720;
    if (!f->run) return 0;
    FILE* log = fopen(beside("launches").c_str(), "a");
    fprintf(log, "%s grid %u,%u,%u cluster %u,%u,%u%s%s\n", f->name.c_str(), c->grid[0], c->grid[1], c->grid[2], cluster[0], cluster[1], cluster[2],
        cooperative ? " cooperative" : "", dependent ? " dependent" : "");
    fclose(log);
    return 0;
}
// As many parameters as kforge's own kernels have at most; what a candidate's point at is copied as a real driver does.
API cuLaunchKernelEx(const Config* c, Function* f, void** params, void**) {
    if (c->block[0] * c->block[1] * c->block[2] > 1024) return 1;
    if (c->shared > 48u << 10 && c->shared > f->shared) return 1;
    if (int refused = asked(c, f)) return refused;
    Stream* s = c->stream;
    if (f->name == "kforge_gate") return queue(s, [] { return 0; });
    if (f->name == "kforge_flush") return queue(s, [=] { s->now += 10000; return 0; });
    if (f->name == "kforge_show") {
        auto* whole = *(const unsigned char**)params[0];
        u64 bytes = *(u64*)params[1], offset = *(u64*)params[2], own = *(u64*)params[3], salt = *(u64*)params[5], *found = *(u64**)params[6];
        unsigned char canary = *(unsigned char*)params[4];
        for (u64 i = 0; i < bytes; ++i) found[1] += (i < offset || i >= offset + own) && whole[i] != canary;
        for (u64 i = 0; i * 4 < own; ++i) {
            u64 word = 0;
            for (u64 b = i * 4; b < own && b < i * 4 + 4; ++b) word |= (u64)whole[offset + b] << 8 * (b % 4);
            u64 z = word + (i + 1) * 0x9e3779b97f4a7c15ull + salt;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
            found[0] += z ^ (z >> 31);
        }
        return fault;
    }
    // Those that measure peaks: 100 bytes a nanosecond read, 90 written, 80 copied and 70 by the other copy, whose blocks move a quarter, 1000 multiply-adds, and as many rounds of matrices as microseconds.
    if (!f->run) {
        double streamed = 16384.0 * c->grid[0], blocks = c->grid[0];
        double ns = f->name == "read" ? streamed / 100 : f->name == "write" ? streamed / 90 : f->name == "copy" ? 2 * streamed / 80 : 1000;
        if (f->name == "copy_single") ns = 2 * (streamed / 4) / 70;
        if (f->name == "fma") ns = *(unsigned*)params[0] * blocks * 131072 / 2000;
        if (f->name == "matrix") ns = *(unsigned*)params[1] * 1000.0;
        return queue(s, [=] { s->now += ns; return 0; });
    }
    std::vector<unsigned> shape = {c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared};
    // The test's kernels take four parameters of eight bytes.
    std::vector<u64> values;
    for (int i = 0; i < 4; ++i) values.push_back(*(u64*)params[i]);
    // One of them takes a tensor map too.
    if (f->name == "mapped") {
        if ((u64)params[4] % 64) return 1;
        for (int i = 0; i < 16; ++i) if (((u64*)params[4])[i] != 1000u + i) return 1;
    }
    return queue(s, [=]() mutable {
        void* at[4] = {&values[0], &values[1], &values[2], &values[3]};
        double ns = f->run(at, shape.data());
        if (ns < 0) { fault = (int)-ns; return 0; }
        s->now += ns * noise();
        return 0;
    });
}
