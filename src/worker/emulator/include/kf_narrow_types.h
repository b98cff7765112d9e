// The class types of a 16-bit format, its conversions and moves: included once by kf_half.h and once by kf_bf16.h, which
// say with KF_* macros which names and which rounding are meant. Knows what the two formats share; no guard, on purpose.

#define KF_CAT_(a, b, c, d) a##b##c##d
#define KF_CAT(a, b, c, d) KF_CAT_(a, b, c, d)

struct KF_T;
KF_FN float kf_float(KF_T v);
KF_FN constexpr uint16_t kf_pattern(KF_T v);

// The conversions below are implicit because CUDA's are; the macros that switch CUDA's off switch these off.
struct KF_T {
protected:
  unsigned short __x;

public:
  KF_T() = default;
  constexpr KF_T(const KF_RAW& raw) : __x(raw.x) {}
  constexpr operator KF_RAW() const { return KF_RAW{__x}; }
  operator KF_RAW() const volatile { return KF_RAW{__x}; }
#if !KF_NO_CONVERSIONS
  KF_T(float v) : __x(KF_FROM(v)) {}
  KF_T(double v) : __x(KF_FROM(v)) {}
  KF_T(short v) : __x(KF_FROM(static_cast<float>(v))) {}
  KF_T(unsigned short v) : __x(KF_FROM(static_cast<float>(v))) {}
  KF_T(int v) : __x(KF_FROM(static_cast<double>(v))) {}
  KF_T(unsigned int v) : __x(KF_FROM(static_cast<double>(v))) {}
  KF_T(long v) : __x(KF_FROM(kf_odd_double(static_cast<int64_t>(v)))) {}
  KF_T(unsigned long v) : __x(KF_FROM(kf_odd_double(static_cast<uint64_t>(v)))) {}
  KF_T(long long v) : __x(KF_FROM(kf_odd_double(static_cast<int64_t>(v)))) {}
  KF_T(unsigned long long v) : __x(KF_FROM(kf_odd_double(static_cast<uint64_t>(v)))) {}
  operator float() const { return KF_TO(__x); }
  operator bool() const { return (__x & 0x7fffu) != 0; }
  // To integers: to zero, saturating; NaN gives 0, in 64 bits the middle of the range.
#define KF_TO_INT(I, nan)                                                                                              \
  operator I() const { return kf_saturate<I>(__builtin_trunc(static_cast<double>(KF_TO(__x))), nan); }
  KF_TO_INT(char, 0)
  KF_TO_INT(signed char, 0)
  KF_TO_INT(unsigned char, 0)
  KF_TO_INT(short, 0)
  KF_TO_INT(unsigned short, 0)
  KF_TO_INT(int, 0)
  KF_TO_INT(unsigned int, 0)
  KF_TO_INT(long, static_cast<long>(1ul << 63))
  KF_TO_INT(unsigned long, 1ul << 63)
  KF_TO_INT(long long, static_cast<long long>(1ull << 63))
  KF_TO_INT(unsigned long long, 1ull << 63)
#undef KF_TO_INT
#endif
};

struct KF_ALIGNED(4) KF_T2 {
  KF_T x, y;
  KF_T2() = default;
  constexpr KF_T2(const KF_T& a, const KF_T& b) : x(a), y(b) {}
  constexpr KF_T2(const KF_RAW2& raw) : x(KF_RAW{raw.x}), y(KF_RAW{raw.y}) {}
  constexpr operator KF_RAW2() const { return KF_RAW2{static_cast<KF_RAW>(x).x, static_cast<KF_RAW>(y).x}; }
};

KF_FN constexpr uint16_t kf_pattern(KF_T v) { return static_cast<KF_RAW>(v).x; }
KF_FN float kf_float(KF_T v) { return KF_TO(kf_pattern(v)); }
// The value with this bit pattern; the first argument only says which format.
KF_FN constexpr KF_T kf_make(const KF_T*, uint16_t pattern) { return KF_T(KF_RAW{pattern}); }
#define KF_MAKE(pattern) kf_make(static_cast<const KF_T*>(nullptr), static_cast<uint16_t>(pattern))

// Bit patterns.
KF_FN short KF_CAT(__, KF_NAME, _as_short, )(KF_T h) { return static_cast<short>(kf_pattern(h)); }
KF_FN unsigned short KF_CAT(__, KF_NAME, _as_ushort, )(KF_T h) { return kf_pattern(h); }
KF_FN KF_T KF_CAT(__short_as_, KF_NAME, , )(short i) { return KF_MAKE(i); }
KF_FN KF_T KF_CAT(__ushort_as_, KF_NAME, , )(unsigned short i) { return KF_MAKE(i); }

// Float and double, and pairs.
KF_FN KF_T KF_CAT(__float2, KF_NAME, _rn, )(float f) { return KF_MAKE(KF_FROM(f)); }
KF_FN KF_T KF_CAT(__float2, KF_NAME, _rz, )(float f) { return KF_MAKE(KF_FROM(f, kf_rz)); }
KF_FN KF_T KF_CAT(__float2, KF_NAME, _ru, )(float f) { return KF_MAKE(KF_FROM(f, kf_ru)); }
KF_FN KF_T KF_CAT(__float2, KF_NAME, _rd, )(float f) { return KF_MAKE(KF_FROM(f, kf_rd)); }
KF_FN KF_T KF_CAT(__double2, KF_NAME, , )(double d) { return KF_MAKE(KF_FROM(d)); }
KF_FN float KF_CAT(__, KF_NAME, 2float, )(KF_T h) { return kf_float(h); }
KF_FN KF_T2 KF_CAT(__float2, KF_NAME2, _rn, )(float f) { return KF_T2(KF_MAKE(KF_FROM(f)), KF_MAKE(KF_FROM(f))); }
KF_FN KF_T2 KF_CAT(__floats2, KF_NAME2, _rn, )(float a, float b) { return KF_T2(KF_MAKE(KF_FROM(a)), KF_MAKE(KF_FROM(b))); }
KF_FN KF_T2 KF_CAT(__float22, KF_NAME2, _rn, )(float2 v) { return KF_T2(KF_MAKE(KF_FROM(v.x)), KF_MAKE(KF_FROM(v.y))); }
KF_FN float2 KF_CAT(__, KF_NAME2, 2float2, )(KF_T2 v) { return float2{kf_float(v.x), kf_float(v.y)}; }
KF_FN float __low2float(KF_T2 v) { return kf_float(v.x); }
KF_FN float __high2float(KF_T2 v) { return kf_float(v.y); }

// Moves between halves.
KF_FN KF_T2 KF_CAT(make_, KF_NAME2, , )(KF_T a, KF_T b) { return KF_T2(a, b); }
KF_FN KF_T2 KF_CAT(__halves2, KF_NAME2, , )(KF_T a, KF_T b) { return KF_T2(a, b); }
KF_FN KF_T2 KF_CAT(__, KF_NAME, 2, KF_NAME2)(KF_T a) { return KF_T2(a, a); }
KF_FN KF_T KF_CAT(__low2, KF_NAME, , )(KF_T2 v) { return v.x; }
KF_FN KF_T KF_CAT(__high2, KF_NAME, , )(KF_T2 v) { return v.y; }
KF_FN KF_T2 KF_CAT(__low2, KF_NAME2, , )(KF_T2 v) { return KF_T2(v.x, v.x); }
KF_FN KF_T2 KF_CAT(__high2, KF_NAME2, , )(KF_T2 v) { return KF_T2(v.y, v.y); }
KF_FN KF_T2 KF_CAT(__lows2, KF_NAME2, , )(KF_T2 a, KF_T2 b) { return KF_T2(a.x, b.x); }
KF_FN KF_T2 KF_CAT(__highs2, KF_NAME2, , )(KF_T2 a, KF_T2 b) { return KF_T2(a.y, b.y); }
KF_FN KF_T2 __lowhigh2highlow(KF_T2 v) { return KF_T2(v.y, v.x); }

// Integers, in each rounding mode. Results saturate; `nan` is what NaN gives.
#define KF_INT_MODE(I, N, V, nan, M)                                                                                   \
  KF_FN I KF_CAT(__, KF_NAME, 2##N##_, M)(KF_T h) { return kf_saturate<I>(kf_integral(kf_float(h), kf_##M), nan); }    \
  KF_FN KF_T KF_CAT(__##N##2, KF_NAME, _, M)(I i) {                                                                    \
    return KF_MAKE(KF_FROM(kf_odd_float(kf_odd_double(static_cast<V>(i))), kf_##M));                                   \
  }
#define KF_INT(I, N, V, nan)                                                                                           \
  KF_INT_MODE(I, N, V, nan, rn) KF_INT_MODE(I, N, V, nan, rz) KF_INT_MODE(I, N, V, nan, ru) KF_INT_MODE(I, N, V, nan, rd)
KF_INT(short, short, int64_t, 0)
KF_INT(unsigned short, ushort, uint64_t, 0)
KF_INT(int, int, int64_t, 0)
KF_INT(unsigned int, uint, uint64_t, 0)
KF_INT(long long, ll, int64_t, static_cast<long long>(1ull << 63))
KF_INT(unsigned long long, ull, uint64_t, 1ull << 63)
#undef KF_INT
#undef KF_INT_MODE
KF_FN signed char KF_CAT(__, KF_NAME, 2char_rz, )(KF_T h) { return kf_saturate<signed char>(kf_integral(kf_float(h), kf_rz), 0); }
KF_FN unsigned char KF_CAT(__, KF_NAME, 2uchar_rz, )(KF_T h) { return kf_saturate<unsigned char>(kf_integral(kf_float(h), kf_rz), 0); }
