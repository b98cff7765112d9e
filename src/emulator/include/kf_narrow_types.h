// The class types of a 16-bit format, its conversions and moves: included once by kf_half.h and once by kf_bf16.h,
// which say with KF_* macros which names and which rounding are meant. Knows what the two formats share; no guard, on
// purpose.
//
// Functions take their arguments by value, so that a watched load happens on the user's line, and work on bit
// patterns, because resolving the many constructors for every inner copy doubles the time to parse these headers.

#define KF_CAT_(a, b, c, d) a##b##c##d
#define KF_CAT(a, b, c, d) KF_CAT_(a, b, c, d)

// The conversions below are implicit because CUDA's are; the macros that switch CUDA's off switch these off.
struct KF_T {
  unsigned short __x; // the bit pattern; protected in CUDA, so no program names it

  KF_T() = default;
  constexpr KF_T(const KF_RAW1& raw) : __x(raw.x) {}
  constexpr operator KF_RAW1() const { return KF_RAW1{__x}; }
  operator KF_RAW1() const volatile { return KF_RAW1{__x}; }
#if !KF_NO_CONVERSIONS
  KF_T(float v) : __x(KF_FROM(v)) {}
  KF_T(double v) : __x(KF_FROM(v)) {}
  KF_T(short v) : __x(KF_FROM(static_cast<float>(v))) {}
  KF_T(unsigned short v) : __x(KF_FROM(static_cast<float>(v))) {}
  KF_T(int v) : __x(KF_FROM(static_cast<double>(v))) {}
  KF_T(unsigned int v) : __x(KF_FROM(static_cast<double>(v))) {}
  KF_T(long v) : __x(KF_FROM(kf_odd_signed(v))) {}
  KF_T(unsigned long v) : __x(KF_FROM(kf_odd_unsigned(v))) {}
  KF_T(long long v) : __x(KF_FROM(kf_odd_signed(v))) {}
  KF_T(unsigned long long v) : __x(KF_FROM(kf_odd_unsigned(v))) {}
  explicit KF_T(const KF_OTHER& v); // the other 16-bit format; defined where both are known
  operator float() const { return KF_TO(__x); }
  operator bool() const { return (__x & 0x7fffu) != 0; }
  // To integers: to zero, saturating; NaN gives 0, in 64 bits the middle of the range.
#define KF_TO_INT(I) operator I() const { return kf_to_int<I>(KF_TO(__x), kf_rz); }
  KF_TO_INT(char) KF_TO_INT(signed char) KF_TO_INT(unsigned char) KF_TO_INT(short) KF_TO_INT(unsigned short)
  KF_TO_INT(int) KF_TO_INT(unsigned int) KF_TO_INT(long) KF_TO_INT(unsigned long) KF_TO_INT(long long)
  KF_TO_INT(unsigned long long)
#undef KF_TO_INT
#endif
};

struct KF_ALIGNED(4) KF_T2 {
  KF_T x, y;
  KF_T2() = default;
  constexpr KF_T2(const KF_T& a, const KF_T& b) : x(a), y(b) {}
  constexpr KF_T2(const KF_RAW2& raw) : x(KF_RAW1{raw.x}), y(KF_RAW1{raw.y}) {}
  constexpr operator KF_RAW2() const { return KF_RAW2{x.__x, y.__x}; }
};

// Values of given bit patterns, and the value as float.
#define KF_MAKE KF_CAT(kf_make_, KF_NAME, , )
#define KF_MAKE2 KF_CAT(kf_make_, KF_NAME2, , )
KF_FN constexpr KF_T KF_MAKE(unsigned short x) { return KF_RAW1{x}; }
KF_FN constexpr KF_T2 KF_MAKE2(unsigned short x, unsigned short y) { return KF_RAW2{x, y}; }
KF_FN float kf_float(KF_T v) { return KF_TO(v.__x); }

// Bit patterns.
KF_FN short KF_CAT(__, KF_NAME, _as_short, )(KF_T h) { return static_cast<short>(h.__x); }
KF_FN unsigned short KF_CAT(__, KF_NAME, _as_ushort, )(KF_T h) { return h.__x; }
KF_FN KF_T KF_CAT(__short_as_, KF_NAME, , )(short i) { return KF_MAKE(static_cast<unsigned short>(i)); }
KF_FN KF_T KF_CAT(__ushort_as_, KF_NAME, , )(unsigned short i) { return KF_MAKE(i); }

// Float and double, and pairs.
KF_FN KF_T KF_CAT(__float2, KF_NAME, _rn, )(float f) { return KF_MAKE(KF_FROM(f)); }
KF_FN KF_T KF_CAT(__float2, KF_NAME, _rz, )(float f) { return KF_MAKE(KF_FROM(f, kf_rz)); }
KF_FN KF_T KF_CAT(__float2, KF_NAME, _ru, )(float f) { return KF_MAKE(KF_FROM(f, kf_ru)); }
KF_FN KF_T KF_CAT(__float2, KF_NAME, _rd, )(float f) { return KF_MAKE(KF_FROM(f, kf_rd)); }
KF_FN KF_T KF_CAT(__float2, KF_NAME, , )(float f) { return KF_MAKE(KF_FROM(f)); }
KF_FN KF_T KF_CAT(__double2, KF_NAME, , )(double d) { return KF_MAKE(KF_FROM(d)); }
KF_FN float KF_CAT(__, KF_NAME, 2float, )(KF_T h) { return KF_TO(h.__x); }
KF_FN KF_T2 KF_CAT(__float2, KF_NAME2, _rn, )(float f) { return KF_MAKE2(KF_FROM(f), KF_FROM(f)); }
KF_FN KF_T2 KF_CAT(__floats2, KF_NAME2, _rn, )(float a, float b) { return KF_MAKE2(KF_FROM(a), KF_FROM(b)); }
KF_FN KF_T2 KF_CAT(__float22, KF_NAME2, _rn, )(float2 v) { return KF_MAKE2(KF_FROM(v.x), KF_FROM(v.y)); }
KF_FN float2 KF_CAT(__, KF_NAME2, 2float2, )(KF_T2 v) { return float2{KF_TO(v.x.__x), KF_TO(v.y.__x)}; }
KF_FN float __low2float(KF_T2 v) { return KF_TO(v.x.__x); }
KF_FN float __high2float(KF_T2 v) { return KF_TO(v.y.__x); }

// Moves between halves.
KF_FN KF_T2 KF_CAT(make_, KF_NAME2, , )(KF_T a, KF_T b) { return KF_MAKE2(a.__x, b.__x); }
KF_FN KF_T2 KF_CAT(__halves2, KF_NAME2, , )(KF_T a, KF_T b) { return KF_MAKE2(a.__x, b.__x); }
KF_FN KF_T2 KF_CAT(__, KF_NAME, 2, KF_NAME2)(KF_T a) { return KF_MAKE2(a.__x, a.__x); }
KF_FN KF_T KF_CAT(__low2, KF_NAME, , )(KF_T2 v) { return KF_MAKE(v.x.__x); }
KF_FN KF_T KF_CAT(__high2, KF_NAME, , )(KF_T2 v) { return KF_MAKE(v.y.__x); }
KF_FN KF_T2 KF_CAT(__low2, KF_NAME2, , )(KF_T2 v) { return KF_MAKE2(v.x.__x, v.x.__x); }
KF_FN KF_T2 KF_CAT(__high2, KF_NAME2, , )(KF_T2 v) { return KF_MAKE2(v.y.__x, v.y.__x); }
KF_FN KF_T2 KF_CAT(__lows2, KF_NAME2, , )(KF_T2 a, KF_T2 b) { return KF_MAKE2(a.x.__x, b.x.__x); }
KF_FN KF_T2 KF_CAT(__highs2, KF_NAME2, , )(KF_T2 a, KF_T2 b) { return KF_MAKE2(a.y.__x, b.y.__x); }
KF_FN KF_T2 __lowhigh2highlow(KF_T2 v) { return KF_MAKE2(v.y.__x, v.x.__x); }

// Integers, in each rounding mode.
#define KF_INT_MODE(I, N, ODD, M)                                                                                      \
  KF_FN I KF_CAT(__, KF_NAME, 2##N##_, M)(KF_T h) { return kf_to_int<I>(KF_TO(h.__x), kf_##M); }                       \
  KF_FN KF_T KF_CAT(__##N##2, KF_NAME, _, M)(I i) { return KF_MAKE(KF_FROM(kf_odd_float(ODD(i)), kf_##M)); }
#define KF_INT(I, N, ODD)                                                                                              \
  KF_INT_MODE(I, N, ODD, rn) KF_INT_MODE(I, N, ODD, rz)                                                                \
  KF_INT_MODE(I, N, ODD, ru) KF_INT_MODE(I, N, ODD, rd)
KF_INT(short, short, kf_odd_signed)
KF_INT(unsigned short, ushort, kf_odd_unsigned)
KF_INT(int, int, kf_odd_signed)
KF_INT(unsigned int, uint, kf_odd_unsigned)
KF_INT(long long, ll, kf_odd_signed)
KF_INT(unsigned long long, ull, kf_odd_unsigned)
#undef KF_INT
#undef KF_INT_MODE
KF_FN signed char KF_CAT(__, KF_NAME, 2char_rz, )(KF_T h) { return kf_to_int<signed char>(KF_TO(h.__x), kf_rz); }
KF_FN unsigned char KF_CAT(__, KF_NAME, 2uchar_rz, )(KF_T h) { return kf_to_int<unsigned char>(KF_TO(h.__x), kf_rz); }
