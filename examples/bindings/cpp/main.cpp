// Runs the kernels of examples/bindings/kernels through their C loader from C++, compares results with sums in double on the host, and times the calls. Needs no
// CUDA toolkit: memory and copies come from the driver too.
//
//     kforge bindings loaders-1.0.0.tar --language c --output loaders-c
//     c++ -std=c++17 -O2 -I loaders-c examples/bindings/cpp/main.cpp -o main -ldl -lpthread && ./main
//
// Without a driver it checks that a call says so.
#define LOADERS_IMPLEMENTATION
#include "loaders.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void ok(int status, const char *what) {
  if (status != LOADERS_OK) throw std::runtime_error(std::string(what) + ": " + loaders_message(status) + " " + loaders_where());
}

struct Driver {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  template <class F> F find(const char *name) const {
    void *at = dlsym(library, name);
    if (!at) throw std::runtime_error(std::string("the driver has no ") + name);
    F function;
    std::memcpy(&function, &at, sizeof at);
    return function;
  }
};

Driver driver;

// Memory of the device.
class Memory {
public:
  explicit Memory(size_t bytes) { ok(driver.find<int (*)(unsigned long long *, size_t)>("cuMemAlloc_v2")(&at_, bytes), "memory"); }
  template <class T> explicit Memory(const std::vector<T> &data) : Memory(data.size() * sizeof(T)) {
    ok(driver.find<int (*)(unsigned long long, const void *, size_t)>("cuMemcpyHtoD_v2")(at_, data.data(), data.size() * sizeof(T)), "copy");
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() { driver.find<int (*)(unsigned long long)>("cuMemFree_v2")(at_); }
  template <class T> T *as() const { return reinterpret_cast<T *>(static_cast<uintptr_t>(at_)); }
  std::vector<float> floats(size_t count) const {
    std::vector<float> data(count);
    ok(driver.find<int (*)(void *, unsigned long long, size_t)>("cuMemcpyDtoH_v2")(data.data(), at_, count * sizeof(float)), "copy");
    return data;
  }

private:
  unsigned long long at_ = 0;
};

// Multiples of 1/512 in [-1, 1), which halves hold exactly.
std::vector<float> values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> all(count);
  for (float &value : all) value = (static_cast<int>(random() % 1024) - 512) / 512.0f;
  return all;
}

uint16_t half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value == 0.0f) return static_cast<uint16_t>(bits >> 16 & 0x8000);
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

template <class F> double timed(F call) {
  const auto wait = driver.find<int (*)()>("cuCtxSynchronize");
  ok(wait(), "wait");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 500; i++) ok(call(), "call");
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  ok(wait(), "wait");
  return took.count() / 500;
}

bool report(const char *name, double worst, double limit, double micros) {
  std::printf("%-10s worst error %.2e, %.2f us of host time a call\n", name, worst, micros);
  return worst <= limit;
}

double product_error(const std::vector<float> &a, const std::vector<float> &b, const std::vector<float> &c, size_t m, size_t n, size_t k) {
  double worst = 0;
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0;
      for (size_t l = 0; l < k; l++) sum += static_cast<double>(a[i * k + l]) * b[l * n + j];
      worst = std::max(worst, std::fabs(sum - c[i * n + j]));
    }
  return worst;
}

bool rms_norm(size_t rows, size_t cols) {
  const auto x = values(rows * cols, 1), w = values(cols, 2);
  const Memory dx(x), dw(w), dy(rows * cols * 4);
  const double micros = timed([&] {
    return loaders_rms_norm(dx.as<float>(), dw.as<float>(), dy.as<float>(), static_cast<int64_t>(rows), static_cast<int64_t>(cols), 1e-6, nullptr);
  });
  const auto y = dy.floats(rows * cols);
  double worst = 0;
  for (size_t r = 0; r < rows; r++) {
    double squares = 0;
    for (size_t i = 0; i < cols; i++) squares += static_cast<double>(x[r * cols + i]) * x[r * cols + i];
    for (size_t i = 0; i < cols; i++)
      worst = std::max(worst, std::fabs(x[r * cols + i] / std::sqrt(squares / static_cast<double>(cols) + 1e-6) * w[i] - y[r * cols + i]));
  }
  return report("rms_norm", worst, 1e-5, micros);
}

bool matmul(size_t m, size_t n, size_t k) {
  const auto a = values(m * k, 3), b = values(k * n, 4);
  std::vector<uint16_t> ha(a.size()), hb(b.size());
  std::transform(a.begin(), a.end(), ha.begin(), half);
  std::transform(b.begin(), b.end(), hb.begin(), half);
  const Memory da(ha), db(hb), dc(m * n * 4);
  const double micros = timed([&] {
    return loaders_matmul(da.as<void>(), db.as<void>(), dc.as<float>(), static_cast<int64_t>(m), static_cast<int64_t>(n), static_cast<int64_t>(k), nullptr);
  });
  return report("matmul", product_error(a, b, dc.floats(m * n), m, n, k), 1e-3, micros);
}

bool split_k(int64_t m, int64_t n, int64_t k) {
  const auto a = values(static_cast<size_t>(m * k), 5), b = values(static_cast<size_t>(k * n), 6);
  const Memory da(a), db(b), dc(static_cast<size_t>(m * n * 4));
  size_t bytes = 0;
  ok(loaders_split_k_workspace(m, n, k, &bytes), "workspace");
  const Memory workspace(bytes);
  const double micros = timed([&] {
    return loaders_split_k(da.as<float>(), db.as<float>(), dc.as<float>(), m, n, k, workspace.as<void>(), bytes, nullptr);
  });
  const auto c = dc.floats(static_cast<size_t>(m * n));
  return report("split_k", product_error(a, b, c, static_cast<size_t>(m), static_cast<size_t>(n), static_cast<size_t>(k)), 1e-3, micros);
}

} // namespace

int main() {
  if (!driver.library) {
    const int status = loaders_rms_norm(nullptr, nullptr, nullptr, 0, 0, 1e-6, nullptr);
    std::printf("no driver here; a call says: %s\n", loaders_message(status));
    return status == LOADERS_NO_DRIVER ? 0 : 1;
  }
  try {
    void *context = nullptr;
    ok(driver.find<int (*)(unsigned)>("cuInit")(0), "cuInit");
    ok(driver.find<int (*)(void **, int)>("cuDevicePrimaryCtxRetain")(&context, 0), "context");
    ok(driver.find<int (*)(void *)>("cuCtxSetCurrent")(context), "context");
    bool correct = rms_norm(37, 4099);
    correct &= matmul(200, 136, 328);
    correct &= split_k(32, 40, 2000);
    correct &= loaders_matmul(nullptr, nullptr, nullptr, 64, 64, 63, nullptr) != LOADERS_OK;
    std::printf("%s\n", correct ? "correct" : "WRONG");
    return correct ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
