// Candidates for the driver in `driver.cpp`: y = a * x + w over n elements, honest or not. Parameters: x, y, w (a workspace of one element), n.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>
#define KERNEL(name) extern "C" double name(void** p, const unsigned* shape)
#define ARGS const float* x = *(const float**)p[0]; float* y = *(float**)p[1]; float* w = *(float**)p[2]; long long n = *(long long*)p[3]; (void)x; (void)y; (void)w; (void)shape
static void work(const float* x, float* y, long long n) { for (long long i = 0; i < n; ++i) y[i] = x[i] + x[i]; }
KERNEL(honest) { ARGS; *w = 1; work(x, y, n); return 50000; }
KERNEL(mapped) { ARGS; *w = 1; work(x, y, n); return 50000; }
KERNEL(slower) { ARGS; *w = 2; work(x, y, n); return 52500; }
KERNEL(lengthy) { ARGS; *w = 1; work(x, y, n); return 300000; }
// Wrong, and faster than the others.
KERNEL(wrong_and_fast) { ARGS; *w = 1; work(x, y, n); y[n - 1] += 1; return 10000; }
KERNEL(brief) { ARGS; work(x, y, n); return 2000; }
KERNEL(wrong) { ARGS; work(x, y, n); y[n - 1] += 1; return 50000; }
KERNEL(far_from_zero) { ARGS; work(x, y, n); bool far = false; for (long long i = 0; i < n; ++i) far = far || x[i] > 0.01f; y[0] += far ? 0 : 1; return 50000; }
KERNEL(past_end) { ARGS; work(x, y, n); y[n] = 1; return 50000; }
KERNEL(before_start) { ARGS; work(x, y, n); y[-1] = 1; return 50000; }
KERNEL(writes_input) { ARGS; work(x, y, n); ((float*)x)[3] = 9; return 50000; }
KERNEL(unwritten) { ARGS; work(x, y, n - 2); return 50000; }
KERNEL(illegal) { ARGS; return -700; }
KERNEL(misaligned) { ARGS; return -716; }
KERNEL(traps) { ARGS; return -719; }
KERNEL(endless) { ARGS; for (;;) pause(); }
// Keeps its first answer in a global.
static float kept[1 << 20];
static bool have;
KERNEL(remembers) { ARGS; if (!have) work(x, kept, n); have = true; for (long long i = 0; i < n; ++i) y[i] = kept[i]; return 50000; }
// Takes long for its first launch.
KERNEL(slow_to_start) { ARGS; *w = 1; work(x, y, n); static int launches; return ++launches < 2 ? 300000 : 50000; }
// Does nothing from its twentieth launch on.
static int count;
KERNEL(gives_up) { ARGS; if (++count > 20) return 1000; work(x, y, n); return 50000; }
// Whether most values are small, as those of the class `tiny` are.
static bool small(const float* x, long long n) { long long all = 0; for (long long i = 0; i < n; ++i) all += x[i] < 4e-3f && x[i] > -4e-3f; return all > n / 2; }
// Takes small values for zero once it was launched more often than in a verification.
KERNEL(careless_when_timed) { ARGS; *w = 1; work(x, y, n); if (++count > 24 && small(x, n)) for (long long i = 0; i < n; ++i) y[i] = 0; return 50000; }
KERNEL(slow_on_small) { ARGS; *w = 1; work(x, y, n); return small(x, n) ? 90000 : 50000; }
// Keeps its answers by content, and uses one only at the third launch on the same inputs.
static struct { float first; int met; } met[16];
static int latest;
// Knows the inputs of the fixed trials, and would copy their answers.
KERNEL(knows_fixed_trials) { ARGS; *w = 1; work(x, y, n); const float all[] = {KNOWN}; for (float known : all) if (x[0] == known) return 10000; return 50000; }
KERNEL(caches_late) {
    ARGS;
    *w = 1;
    work(x, y, n);
    int at = 0;
    while (at < 16 && met[at].first != x[0]) at++;
    if (at == 16) { at = latest++ % 16; met[at].first = x[0]; met[at].met = 0; }
    return ++met[at].met > 2 ? 20000 : 200000;
}
// Leaves something in the memory of the runner that another candidate looks for. Device code would leave it in device memory.
KERNEL(plants) { ARGS; *w = 1; work(x, y, n); setenv("KFORGE_PLANTED", "1", 1); return 50000; }
KERNEL(gathers) { ARGS; *w = 1; work(x, y, n); if (!getenv("KFORGE_PLANTED")) y[0] += 1; return 50000; }
// Adds what an earlier launch left.
KERNEL(uses_stale) { ARGS; for (long long i = 0; i < n; ++i) y[i] = y[i] == 2 * x[i] ? y[i] : 2 * x[i]; return 50000; }
// Says it takes less than its bytes can move in.
KERNEL(impossible) { ARGS; work(x, y, n); return 11000; }
KERNEL(by_turns) { ARGS; work(x, y, n); if (++count % 2) y[0] *= 2; return 50000; }
// Its host side, which a real kernel does not have, tries to leave the runner. It is right only if everything is refused.
KERNEL(imprisoned) {
    ARGS;
    int reached = 0;
    reached += socket(AF_INET, SOCK_STREAM, 0) >= 0;
    int both[2];
    reached += socketpair(AF_UNIX, SOCK_STREAM, 0, both) >= 0;
    reached += open("/etc/passwd", O_RDONLY) >= 0;
    reached += open("/tmp/kforge-was-here", O_WRONLY | O_CREAT, 0600) >= 0;
    int child = fork();
    if (child == 0) _exit(0);
    reached += child > 0;
    reached += kill(getppid(), 0) == 0;
    // Unlike an attachment, this does not stop the other process.
    reached += ptrace((__ptrace_request)PTRACE_SEIZE, getppid(), 0, 0) == 0;
    work(x, y, n);
    y[0] += reached;
    return 50000;
}
