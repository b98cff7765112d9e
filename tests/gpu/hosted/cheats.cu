// What a launcher must not do, one thing at a time; all but that is right.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "kforge_host.h"
#include "row_sum.cuh"

__global__ void spoil(float* x) { x[7] += 1; }
__global__ void write_at(float* y, long at) { y[at] = 0; }

extern "C" int run(const kforge_call* call) {
    auto x = (float*)kforge_data(call, "x");
    auto y = (float*)kforge_data(call, "y");
    int rows = kforge_dim_of(call, "rows"), cols = kforge_dim_of(call, "cols");
    float scale = kforge_param_of(call, "scale")->real;
    auto stream = (cudaStream_t)call->stream;
#ifdef DOES_NOTHING
    return 0;
#endif
#ifdef GIVES_UP
    return 7;
#endif
#ifdef LEAVES
    exit(0);
#endif
#ifdef CRASHES
    *(volatile int*)8 = 1;
#endif
#ifdef READS_FILES
    // What it could read, had it read it, would be somebody's.
    if (open("/etc/hostname", O_RDONLY) < 0 && open("/etc/passwd", O_RDONLY) < 0) return 13;
#endif
#ifdef WRITES_FILES
    if (open("/tmp/kforge-was-here", O_RDWR | O_CREAT, 0600) < 0) return 13;
#endif
#ifdef OPENS_SOCKETS
    if (socket(AF_INET, SOCK_STREAM, 0) < 0) return 13;
#endif
#ifdef STARTS_PROCESSES
    if (fork() == 0) _exit(0);
#endif
#ifdef FORGES_REPORTS
    // Wherever the reports go, one of them may go there.
    for (int fd = 3; fd < 64; fd++) dprintf(fd, "\n{\"trial-done\":{\"trial\":0}}\n");
    exit(0);
#endif
#ifdef FIRST_ANSWER
    static std::vector<float> answer;
    if (!answer.empty()) return cudaMemcpyAsync(y, answer.data(), rows * sizeof(float), cudaMemcpyHostToDevice, stream);
#endif
#ifdef CHANGES_INPUTS
    spoil<<<1, 1, 0, stream>>>(x);
#endif
    row_sum<128><<<rows, 128, 0, stream>>>(x, y, cols, scale);
#ifdef PAST_THE_END
    write_at<<<1, 1, 0, stream>>>(y, rows);
#endif
#ifdef ILLEGAL
    write_at<<<1, 1, 0, stream>>>(y, 1L << 40);
#endif
#ifdef FIRST_ANSWER
    answer.resize(rows);
    cudaMemcpyAsync(answer.data(), y, rows * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
#endif
    return cudaGetLastError();
}
