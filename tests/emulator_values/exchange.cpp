// Floats from standard input, their binary16 and bfloat16 patterns to standard output; then every pattern's float. What
// came out is compared with another library's by the test that runs this.
#include "kf_bf16.h"
#include "kf_half.h"
#include <stdio.h>

int main() {
  float f;
  while (fread(&f, sizeof f, 1, stdin) == 1) {
    unsigned short pair[2] = {__half_as_ushort(__float2half_rn(f)), __bfloat16_as_ushort(__float2bfloat16_rn(f))};
    fwrite(pair, sizeof pair, 1, stdout);
  }
  for (unsigned p = 0; p < 0x10000; ++p) {
    float pair[2] = {__half2float(__ushort_as_half(static_cast<unsigned short>(p))),
                     __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(p)))};
    fwrite(pair, sizeof pair, 1, stdout);
  }
  return 0;
}
