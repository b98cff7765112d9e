// Batch normalisation in training: one thread a channel. The running variance is that of the sample, without bias.
extern "C" __global__ void batch_norm(const float *__restrict__ x, const float *__restrict__ weight, const float *__restrict__ bias,
                                      float *__restrict__ running_mean, float *__restrict__ running_var, float *__restrict__ y, int rows, int channels,
                                      float eps, float momentum) {
  const int channel = blockIdx.x * 32 + threadIdx.x;
  if (channel >= channels) return;
  float sum = 0.0f;
  for (int row = 0; row < rows; row++) sum += x[(size_t)row * channels + channel];
  const float mean = sum / rows;
  float squares = 0.0f;
  for (int row = 0; row < rows; row++) {
    const float off = x[(size_t)row * channels + channel] - mean;
    squares += off * off;
  }
  const float scale = weight[channel] / sqrtf(squares / rows + eps);
  for (int row = 0; row < rows; row++) {
    const size_t at = (size_t)row * channels + channel;
    y[at] = (x[at] - mean) * scale + bias[channel];
  }
  running_mean[channel] = (1.0f - momentum) * running_mean[channel] + momentum * mean;
  running_var[channel] = (1.0f - momentum) * running_var[channel] + momentum * squares / (rows - 1);
}
