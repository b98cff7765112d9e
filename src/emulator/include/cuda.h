// Kernels need nothing of the driver's interface.
#pragma once
