// Forgets the KF_* macros that kf_half.h and kf_bf16.h speak to their shared parts with; no guard, on purpose.
#undef KF_CAT_
#undef KF_CAT
#undef KF_MAKE
#undef KF_T
#undef KF_T2
#undef KF_RAW
#undef KF_RAW2
#undef KF_NAME
#undef KF_NAME2
#undef KF_FROM
#undef KF_TO
#undef KF_ONE
#undef KF_NO_CONVERSIONS
#undef KF_NO_OPERATORS
#undef KF_NO_OPERATORS2
#undef KF_WIDE
