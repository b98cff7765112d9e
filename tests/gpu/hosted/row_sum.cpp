// The scaled sum of each row, and of its absolute values.
#include <cmath>

extern "C" void row_sum(const kforge::Call& call) {
    const double* x = call.floats("x");
    double *y = call.out_floats("y"), *of = call.scale("y");
    for (int64_t row = 0; row < call.dim("rows"); row++) {
        y[row] = of[row] = 0;
        for (int64_t i = 0; i < call.dim("cols"); i++) {
            y[row] += call.param("scale") * x[row * call.dim("cols") + i];
            of[row] += std::fabs(call.param("scale") * x[row * call.dim("cols") + i]);
        }
    }
}
