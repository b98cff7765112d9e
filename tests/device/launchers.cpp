// Launchers of kernels' own, on memory of the process: what the driver in name only takes for a device's.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "../../src/cuda/kforge_host.h"

#define LAUNCHER(name) extern "C" int name(const kforge_call* call)

static int twice(const kforge_call* call) {
    auto x = kforge_find(call, "x");
    auto from = (const float*)x->data;
    auto to = (float*)kforge_data(call, "y");
    auto scratch = (float*)kforge_data(call, "w");
    for (long i = 0; i < x->shape[0]; i++) {
        *scratch = from[i];
        to[i] = *scratch + from[i];
    }
    return 0;
}
static float* output(const kforge_call* call) { return (float*)kforge_data(call, "y"); }

LAUNCHER(honest) { return twice(call); }
LAUNCHER(threaded) {
    std::thread([&] { twice(call); }).join();
    return 0;
}
LAUNCHER(does_nothing) { return 0; }
LAUNCHER(wrong) { twice(call); output(call)[3] += 1; return 0; }
LAUNCHER(past_the_end) { twice(call); output(call)[kforge_find(call, "y")->shape[0]] = 1; return 0; }
LAUNCHER(changes_inputs) { twice(call); ((float*)kforge_data(call, "x"))[5] = 1; return 0; }
LAUNCHER(gives_up) { return 7; }
LAUNCHER(leaves) { exit(0); }
LAUNCHER(crashes) { *(volatile int*)8 = 1; return 0; }
LAUNCHER(first_answer) {
    static std::vector<float> kept;
    long n = kforge_find(call, "y")->shape[0];
    if (kept.empty()) {
        twice(call);
        kept.assign(output(call), output(call) + n);
    }
    for (long i = 0; i < n; i++) output(call)[i] = kept[i];
    return 0;
}
LAUNCHER(opens_sockets) { return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : 0; }
LAUNCHER(starts_processes) { return fork() < 0 ? errno : 0; }
LAUNCHER(daemonises) { twice(call); return daemon(0, 0) < 0 ? errno : 0; }
LAUNCHER(leaves_its_group) { twice(call); return setsid() < 0 ? errno : 0; }
LAUNCHER(outlives_its_parent) { twice(call); return prctl(PR_SET_PDEATHSIG, 0) < 0 ? errno : 0; }
LAUNCHER(signals_others) { return kill(getppid(), 0) < 0 ? errno : 0; }
LAUNCHER(removes_files) { return unlink("/nothing") < 0 ? errno : 0; }
LAUNCHER(endless) { for (;;) pause(); }
LAUNCHER(forges) {
    for (int fd = 3; fd < 64; fd++) dprintf(fd, "\n{\"trial-done\":{\"trial\":0}}\n");
    _exit(0);
}
// Right, but for the run that tells what it keeps: of that it says what only an emulator's process may.
LAUNCHER(excuses) {
    static int calls = 0;
    if (++calls > 1) {
        for (int fd = 3; fd < 64; fd++) dprintf(fd, "\n{\"not-emulated\":{\"cause\":{\"construct\":\"it\"},\"what\":\"it\"}}\n");
        _exit(0);
    }
    return twice(call);
}
// These give the error of what they tried on a file of the user's: this source.
LAUNCHER(reads_files) { return open(__FILE__, O_RDONLY) < 0 ? errno : 0; }
// What the process that compares has about it, and what lies beside it.
LAUNCHER(reads_the_verifier) {
    for (const char* name : {"maps", "mem", "environ", "cmdline", "fd"}) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/%s", getppid(), name);
        if (open(path, O_RDONLY) >= 0) return 0;
    }
    return open("/tmp", O_RDONLY) < 0 ? errno : 0;
}
LAUNCHER(writes_files) { return open(__FILE__, O_RDWR) < 0 ? errno : 0; }
LAUNCHER(makes_files) { return open(__FILE__ ".made", O_RDWR | O_CREAT, 0600) < 0 ? errno : 0; }
