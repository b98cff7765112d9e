//! Kernels for tasks, one thread for each element of the result, with sums in double precision.

/// A kernel named `k` for a task.
pub(crate) struct Kernel {
    /// The task's path.
    pub(crate) task: &'static str,
    pub(crate) source: &'static str,
    /// `grid`, `block` and `args`.
    pub(crate) launch: &'static str,
}

/// A kernel that does nothing.
pub(crate) const IDLE: &str = "extern \"C\" __global__ void k() {}\n";
pub(crate) const IDLE_LAUNCH: &str = "grid = [1]\nblock = [32]\nargs = []";

pub(crate) const KERNELS: &[Kernel] = &[
    Kernel {
        task: "level1/1_SquareProduct",
        source: "extern \"C\" __global__ void k(const float *a, const float *b, float *y, int n) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i >= n * n) return;\n  double sum = 0;\n  for (int j = 0; j < n; j++) sum += (double)a[i / n * n + j] * b[j * n + i % n];\n  y[i] = sum;\n}\n",
        launch: "grid = [\"ceil_div(SIDE * SIDE, 64)\"]\nblock = [64]\nargs = [\"left\", \"right\", \"y\", \"SIDE\"]",
    },
    Kernel {
        task: "level1/3_ScaleByNumber",
        source: "extern \"C\" __global__ void k(const float *x, float *y, float factor, int n) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i < n) y[i] = x[i] * factor;\n}\n",
        launch: "grid = [\"ceil_div(height * width, 64)\"]\nblock = [64]\nargs = [\"x\", \"y\", \"factor\", \"height * width\"]",
    },
    Kernel {
        task: "level1/4_Rectify",
        source: "extern \"C\" __global__ void k(const float *x, float *y, int n) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i < n) y[i] = x[i] > 0 ? x[i] : 0.0f;\n}\n",
        launch: "grid = [\"ceil_div(rows * cols, 64)\"]\nblock = [64]\nargs = [\"x\", \"y\", \"rows * cols\"]",
    },
    Kernel {
        task: "level1/6_BatchNorm",
        source: "extern \"C\" __global__ void k(const float *x, const float *w, const float *b, float *mean_now, float *var_now, long long *count, float *y, int batch, int channels, int side) {\n  int c = blockIdx.x * 32 + threadIdx.x;\n  if (c == 0) count[0] += 1;\n  if (c >= channels) return;\n  int area = side * side, n = batch * area;\n  double sum = 0, squares = 0;\n  for (int i = 0; i < n; i++) sum += x[(i / area * channels + c) * area + i % area];\n  double mean = sum / n;\n  for (int i = 0; i < n; i++) { double off = x[(i / area * channels + c) * area + i % area] - mean; squares += off * off; }\n  double scale = w[c] / sqrt(squares / n + 1e-5);\n  for (int i = 0; i < n; i++) { int at = (i / area * channels + c) * area + i % area; y[at] = (x[at] - mean) * scale + b[c]; }\n  mean_now[c] = 0.9 * mean_now[c] + 0.1 * mean;\n  var_now[c] = 0.9 * var_now[c] + 0.1 * squares / (n - 1);\n}\n",
        launch: "grid = [\"ceil_div(channels, 32)\"]\nblock = [32]\nargs = [\"x\", \"norm_weight\", \"norm_bias\", \"norm_running_mean\", \"norm_running_var\", \"norm_num_batches_tracked\", \"y\", \"batch\", \"channels\", \"side\"]",
    },
    Kernel {
        task: "level1/8_WhereLeast",
        source: "extern \"C\" __global__ void k(const float *x, long long *y, int batch, int rows, int cols) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i >= batch * cols) return;\n  const float *own = x + (size_t)(i / cols) * rows * cols + i % cols;\n  int best = 0;\n  for (int r = 1; r < rows; r++) if (own[r * cols] < own[best * cols]) best = r;\n  y[i] = best;\n}\n",
        launch: "grid = [\"ceil_div(batch * cols, 64)\"]\nblock = [64]\nargs = [\"x\", \"y\", \"batch\", \"rows\", \"cols\"]",
    },
    Kernel {
        task: "level1/12_SquaredError",
        source: "extern \"C\" __global__ void k(const float *a, const float *b, float *y, int n) {\n  double sum = 0;\n  for (int i = 0; i < n; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);\n  y[0] = sum / n;\n}\n",
        launch: "grid = [1]\nblock = [1]\nargs = [\"guess\", \"truth\", \"y\", \"batch * features\"]",
    },
    Kernel {
        task: "level1/14_Lookup",
        source: "extern \"C\" __global__ void k(const long long *tokens, const float *table, float *y, int n, int width) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i < n * width) y[i] = table[tokens[i / width] * width + i % width];\n}\n",
        launch: "grid = [\"ceil_div(batch * length * width, 64)\"]\nblock = [64]\nargs = [\"tokens\", \"table_weight\", \"y\", \"batch * length\", \"width\"]",
    },
    Kernel {
        task: "level2/1_LinearLeaky",
        source: "extern \"C\" __global__ void k(const float *x, const float *w, const float *b, float *y, float factor, float slope, int batch, int fan_in, int fan_out) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i >= batch * fan_out) return;\n  double sum = b[i % fan_out];\n  for (int j = 0; j < fan_in; j++) sum += (double)x[i / fan_out * fan_in + j] * w[i % fan_out * fan_in + j];\n  sum *= factor;\n  y[i] = sum > 0 ? sum : sum * slope;\n}\n",
        launch: "grid = [\"ceil_div(batch * fan_out, 64)\"]\nblock = [64]\nargs = [\"x\", \"gemm_weight\", \"gemm_bias\", \"y\", \"factor\", \"slope\", \"batch\", \"fan_in\", \"fan_out\"]",
    },
    Kernel {
        task: "level2/4_SoftmaxOfOne",
        source: "extern \"C\" __global__ void k(float *y, int n) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i < n) y[i] = 1.0f;\n}\n",
        launch: "grid = [\"ceil_div(batch, 64)\"]\nblock = [64]\nargs = [\"y\", \"batch\"]",
    },
    Kernel {
        task: "level2/5_LessItsMean",
        source: "extern \"C\" __global__ void k(float *y, int n) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i < n) y[i] = 0.0f;\n}\n",
        launch: "grid = [\"ceil_div(batch, 64)\"]\nblock = [64]\nargs = [\"y\", \"batch\"]",
    },
    Kernel {
        task: "level2/7_TinyShares",
        source: "extern \"C\" __global__ void k(float *y, int n) {\n  int i = blockIdx.x * 64 + threadIdx.x;\n  if (i < n) y[i] = 0.0f;\n}\n",
        launch: "grid = [\"ceil_div(batch * features, 64)\"]\nblock = [64]\nargs = [\"y\", \"batch * features\"]",
    },
];
