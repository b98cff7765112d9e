// CUDA's assert: a failed one ends the launch and is reported with its line. This file stands before the system's, whose own would end the process.
#undef assert
#define assert(condition) ((condition) ? (void)0 : kf_assert_failed(#condition))
