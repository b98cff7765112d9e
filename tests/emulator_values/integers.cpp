// Integer intrinsics against loops over bits, bytes and lanes; min and max over CUDA's mixes; layouts of the vector
// types.
#include "check.h"
#include "kf_intrinsics.h"
#include "kf_simd.h"

typedef unsigned int u32;
typedef unsigned long long u64;

static u32 edge(uint64_t r) { // words whose bytes and halves are often at an edge
  static const u32 bytes[] = {0, 1, 0x7f, 0x80, 0x81, 0xff, 0xfe, 0x40};
  if (r & 1) return static_cast<u32>(r >> 32);
  return bytes[r >> 1 & 7] | bytes[r >> 4 & 7] << 8 | bytes[r >> 7 & 7] << 16 | bytes[r >> 10 & 7] << 24;
}
static int lane(u32 v, int i, int width, bool is_signed) {
  int x = static_cast<int>(v >> (i * width) & ((1u << width) - 1));
  return is_signed && x >> (width - 1) ? x - (1 << width) : x;
}
static int clamp(int v, int width, bool is_signed) {
  int least = is_signed ? -(1 << (width - 1)) : 0, most = (1 << (is_signed ? width - 1 : width)) - 1;
  return v < least ? least : v > most ? most : v;
}
// A packed result must hold the expression, cut to the lane, in every lane.
#define LANES(name, width, is_signed, expression)                                                                      \
  {                                                                                                                    \
    u32 got = name;                                                                                                    \
    for (int i = 0; i < 32 / width; ++i) {                                                                             \
      int x = lane(a, i, width, is_signed), y = lane(b, i, width, is_signed);                                          \
      (void)y;                                                                                                         \
      u32 mask = (1u << width) - 1;                                                                                    \
      CHECK((got >> (i * width) & mask) == (static_cast<u32>(expression) & mask),                                      \
            #name " %08x %08x: %08x", a, b, got);                                                                      \
    }                                                                                                                  \
  }
#define PACKED(n, W)                                                                                                   \
  LANES(__vabs##n(a), W, true, abs(x))                                                                                 \
  LANES(__vabsss##n(a), W, true, clamp(abs(x), W, true))                                                               \
  LANES(__vneg##n(a), W, true, -x)                                                                                     \
  LANES(__vnegss##n(a), W, true, clamp(-x, W, true))                                                                   \
  LANES(__vadd##n(a, b), W, true, x + y)                                                                               \
  LANES(__vaddss##n(a, b), W, true, clamp(x + y, W, true))                                                             \
  LANES(__vaddus##n(a, b), W, false, clamp(x + y, W, false))                                                           \
  LANES(__vsub##n(a, b), W, true, x - y)                                                                               \
  LANES(__vsubss##n(a, b), W, true, clamp(x - y, W, true))                                                             \
  LANES(__vsubus##n(a, b), W, false, clamp(x - y, W, false))                                                           \
  LANES(__vabsdiffs##n(a, b), W, true, abs(x - y))                                                                     \
  LANES(__vabsdiffu##n(a, b), W, false, abs(x - y))                                                                    \
  LANES(__vavgs##n(a, b), W, true, static_cast<int>(round((x + y) / 2.0)))                                             \
  LANES(__vavgu##n(a, b), W, false, (x + y + 1) / 2)                                                                   \
  LANES(__vhaddu##n(a, b), W, false, (x + y) / 2)                                                                      \
  LANES(__vmaxs##n(a, b), W, true, x > y ? x : y)                                                                      \
  LANES(__vmaxu##n(a, b), W, false, x > y ? x : y)                                                                     \
  LANES(__vmins##n(a, b), W, true, x < y ? x : y)                                                                      \
  LANES(__vminu##n(a, b), W, false, x < y ? x : y)                                                                     \
  LANES(__vcmpeq##n(a, b), W, true, x == y ? ~0 : 0)                                                                   \
  LANES(__vcmpne##n(a, b), W, true, x != y ? ~0 : 0)                                                                   \
  LANES(__vcmpgts##n(a, b), W, true, x > y ? ~0 : 0)                                                                   \
  LANES(__vcmpgtu##n(a, b), W, false, x > y ? ~0 : 0)                                                                  \
  LANES(__vcmpges##n(a, b), W, true, x >= y ? ~0 : 0)                                                                  \
  LANES(__vcmpgeu##n(a, b), W, false, x >= y ? ~0 : 0)                                                                 \
  LANES(__vcmplts##n(a, b), W, true, x < y ? ~0 : 0)                                                                   \
  LANES(__vcmpltu##n(a, b), W, false, x < y ? ~0 : 0)                                                                  \
  LANES(__vcmples##n(a, b), W, true, x <= y ? ~0 : 0)                                                                  \
  LANES(__vcmpleu##n(a, b), W, false, x <= y ? ~0 : 0)                                                                 \
  LANES(__vseteq##n(a, b), W, true, x == y)                                                                            \
  LANES(__vsetne##n(a, b), W, true, x != y)                                                                            \
  LANES(__vsetgts##n(a, b), W, true, x > y)                                                                            \
  LANES(__vsetgtu##n(a, b), W, false, x > y)                                                                           \
  LANES(__vsetges##n(a, b), W, true, x >= y)                                                                           \
  LANES(__vsetgeu##n(a, b), W, false, x >= y)                                                                          \
  LANES(__vsetlts##n(a, b), W, true, x < y)                                                                            \
  LANES(__vsetltu##n(a, b), W, false, x < y)                                                                           \
  LANES(__vsetles##n(a, b), W, true, x <= y)                                                                           \
  LANES(__vsetleu##n(a, b), W, false, x <= y)                                                                          \
  {                                                                                                                    \
    u32 s = 0, u = 0;                                                                                                  \
    for (int i = 0; i < 32 / W; ++i) {                                                                                 \
      s += static_cast<u32>(abs(lane(a, i, W, true) - lane(b, i, W, true)));                                           \
      u += static_cast<u32>(abs(lane(a, i, W, false) - lane(b, i, W, false)));                                         \
    }                                                                                                                  \
    CHECK(__vsads##n(a, b) == s && __vsadu##n(a, b) == u, "sad " #n " %08x %08x", a, b);                               \
  }
static int most(int x, int y) { return x > y ? x : y; }
static int least(int x, int y) { return x < y ? x : y; }

static void words(u32 a, u32 b, u32 c) {
  PACKED(2, 16)
  PACKED(4, 8)
  LANES(__vimax3_s16x2(a, b, c), 16, true, most(most(x, y), lane(c, i, 16, true)))
  LANES(__vimin3_u16x2(a, b, c), 16, false, least(least(x, y), lane(c, i, 16, false)))
  LANES(__viaddmax_s16x2(a, b, c), 16, true, most(static_cast<short>(x + y), lane(c, i, 16, true)))
  LANES(__viaddmin_s16x2_relu(a, b, c), 16, true, most(0, least(static_cast<short>(x + y), lane(c, i, 16, true))))
  LANES(__vimax_s16x2_relu(a, b), 16, true, most(0, most(x, y)))
  int sa = static_cast<int>(a), sb = static_cast<int>(b), sc = static_cast<int>(c);
  CHECK(__vimax3_s32(sa, sb, sc) == most(most(sa, sb), sc) && __vimin3_u32(a, b, c) == min(min(a, b), c), "dpx");
  CHECK(__viaddmax_s32(sa, sb, sc) == most(static_cast<int>(a + b), sc) && __viaddmin_u32(a, b, c) == min(a + b, c),
        "dpx");
  CHECK(__vimin3_s32_relu(sa, sb, sc) == most(0, least(least(sa, sb), sc)), "dpx");
  bool first = false;
  CHECK(__vibmax_s32(sa, sb, &first) == most(sa, sb) && first == (sa >= sb), "dpx");

  bool upper = false, lower = false;
  LANES(__vibmin_s16x2(a, b, &upper, &lower), 16, true, least(x, y))
  CHECK(upper == (lane(a, 1, 16, true) <= lane(b, 1, 16, true)) &&
            lower == (lane(a, 0, 16, true) <= lane(b, 0, 16, true)),
        "dpx");
  LANES(__vibmax_u16x2(a, b, &upper, &lower), 16, false, most(x, y))
  CHECK(upper == (a >> 16 >= b >> 16) && lower == ((a & 0xffff) >= (b & 0xffff)), "dpx");

  int ones = 0, top = 32, bottom = 0;
  u32 reversed = 0;
  for (int i = 0; i < 32; ++i) {
    if (!(a >> i & 1)) continue;
    ++ones, top = 31 - i, reversed |= 1u << (31 - i);
    if (!bottom) bottom = i + 1;
  }
  CHECK(__popc(a) == ones && __clz(sa) == top && __ffs(sa) == bottom && __brev(a) == reversed, "%08x", a);
  u64 wide = static_cast<u64>(b) << 32 | a;
  CHECK(__popcll(wide) == ones + __popc(b) && __clzll(static_cast<long long>(wide)) == (b ? __clz(sb) : 32 + top),
        "%llx", wide);
  CHECK(__ffsll(static_cast<long long>(wide)) == (a ? bottom : b ? 32 + __ffs(sb) : 0), "%llx", wide);
  CHECK(__brevll(wide) == (static_cast<u64>(reversed) << 32 | __brev(b)), "%llx", wide);

  unsigned char bytes[8];
  memcpy(bytes, &wide, 8);
  u32 picked = 0;
  for (int i = 0; i < 4; ++i) picked |= static_cast<u32>(bytes[c >> 4 * i & 7]) << 8 * i;
  CHECK(__byte_perm(a, b, c) == picked, "%08x %08x %08x", a, b, c);
  for (u32 s : {0u, 1u, 31u, 32u, 33u, 63u, c}) {
    u32 k = s & 31, clamped = s > 32 ? 32 : s;
    u32 left = k ? b << k | a >> (32 - k) : b, right = k ? a >> k | b << (32 - k) : a;
    CHECK(__funnelshift_l(a, b, s) == left && __funnelshift_r(a, b, s) == right, "shift %u", s);
    CHECK(__funnelshift_lc(a, b, s) == (clamped == 32 ? a : left) &&
              __funnelshift_rc(a, b, s) == (clamped == 32 ? b : right),
          "shift %u", s);
  }

  int low = static_cast<int>(a & 0xffffff), other = static_cast<int>(b & 0xffffff);
  if (low & 0x800000) low -= 0x1000000;
  if (other & 0x800000) other -= 0x1000000;
  CHECK(__mul24(sa, sb) == static_cast<int>(static_cast<int64_t>(low) * other) &&
            __umul24(a, b) == static_cast<u32>(uint64_t(a & 0xffffff) * (b & 0xffffff)),
        "mul24");
  CHECK(__mulhi(sa, sb) == static_cast<int>((static_cast<__int128>(sa) * sb) >> 32) &&
            __umulhi(a, b) == static_cast<u32>(uint64_t(a) * b >> 32),
        "mulhi");
  u64 p = static_cast<u64>(b) << 32 | c;
  // The high word by schoolbook multiplication of halves.
  u64 al = static_cast<u32>(wide), ah = wide >> 32, pl = static_cast<u32>(p), ph = p >> 32,
      cross = ah * pl + (al * pl >> 32), more = al * ph + static_cast<u32>(cross);
  u64 high = ah * ph + (cross >> 32) + (more >> 32);
  CHECK(__umul64hi(wide, p) == high, "%llx %llx", wide, p);
  u64 corrected = high - (wide >> 63 ? p : 0) - (p >> 63 ? wide : 0);
  CHECK(__mul64hi(static_cast<long long>(wide), static_cast<long long>(p)) == static_cast<long long>(corrected),
        "%llx %llx", wide, p);
  CHECK(__sad(sa, sb, c) == static_cast<u32>(llabs(static_cast<long long>(sa) - sb)) + c &&
            __usad(a, b, c) == (a > b ? a - b : b - a) + c,
        "sad");
  CHECK(__hadd(sa, sb) == static_cast<int>(floor((static_cast<double>(sa) + sb) / 2)) &&
            __rhadd(sa, sb) == static_cast<int>(ceil((static_cast<double>(sa) + sb) / 2)),
        "hadd");
  CHECK(__uhadd(a, b) == static_cast<u32>(floor((static_cast<double>(a) + b) / 2)) &&
            __urhadd(a, b) == static_cast<u32>(ceil((static_cast<double>(a) + b) / 2)),
        "uhadd");

  u32 four = c, unsigned_four = c, lo = c, hi = c, ulo = c;
  for (int i = 0; i < 4; ++i)
    four += static_cast<u32>(lane(a, i, 8, true) * lane(b, i, 8, true)),
        unsigned_four += static_cast<u32>(lane(a, i, 8, false) * lane(b, i, 8, false));
  for (int i = 0; i < 2; ++i) {
    lo += static_cast<u32>(lane(a, i, 16, true) * lane(b, i, 8, true));
    hi += static_cast<u32>(lane(a, i, 16, true) * lane(b, i + 2, 8, true));
    ulo += static_cast<u32>(lane(a, i, 16, false) * lane(b, i, 8, false));
  }
  CHECK(__dp4a(sa, sb, sc) == static_cast<int>(four) && __dp4a(a, b, c) == unsigned_four, "dp4a");
  CHECK(__dp2a_lo(sa, sb, sc) == static_cast<int>(lo) && __dp2a_hi(sa, sb, sc) == static_cast<int>(hi) &&
            __dp2a_lo(a, b, c) == ulo,
        "dp2a");

  CHECK(__float_as_uint(__uint_as_float(a)) == a || isnan(__uint_as_float(a)), "bits");
  CHECK(static_cast<u32>(__double2hiint(__hiloint2double(sa, sb))) == a || isnan(__hiloint2double(sa, sb)), "bits");
  int found = -1;
  u32 base = c & 31;
  int n = static_cast<int>(c >> 5 & 7) - 3;
  if (n > 0)
    for (int i = static_cast<int>(base), k = 0; i < 32 && found < 0; ++i)
      if ((a >> i & 1) && ++k == n) found = i;
  if (n < 0)
    for (int i = static_cast<int>(base), k = 0; i >= 0 && found < 0; --i)
      if ((a >> i & 1) && ++k == -n) found = i;
  if (n == 0 && (a >> base & 1)) found = static_cast<int>(base);
  CHECK(__fns(a, base, n) == static_cast<u32>(found), "fns %08x %u %d", a, base, n);
}

template <class T> static void layout(const char* name, size_t size, size_t alignment) {
  CHECK(sizeof(T) == size && alignof(T) == alignment, "%s", name);
}
#define LAYOUT(T, size, alignment) layout<T>(#T, size, alignment);
#define FAMILY(T, size, a2, a4)                                                                                        \
  LAYOUT(T##1, size, size) LAYOUT(T##2, 2 * size, a2) LAYOUT(T##3, 3 * size, size) LAYOUT(T##4, 4 * size, a4)

int main() {
  for (int i = 0; i < 60000; ++i) words(edge(draw()), edge(draw()), edge(draw()));
  words(0, 0, 0);
  words(0x80000000u, 0x80000000u, 0x80000000u);
  words(0x80008000u, 0x7fff7fffu, 0xffffffffu);

  CHECK(min(-1, 2u) == 2u && max(-1, 2u) == UINT_MAX && min(3ll, 2ull) == 2ull && max(-1l, 1ul) == ULONG_MAX,
        "mixed signs are unsigned");
  CHECK(max(1.0f, NAN) == 1.0f && max(NAN, 1.0f) == 1.0f && min(1.0, static_cast<double>(NAN)) == 1.0 &&
            isnan(max(NAN, NAN)),
        "NaN loses");
  CHECK(signbit(min(0.0f, -0.0f)) && signbit(min(-0.0f, 0.0f)) && !signbit(max(0.0f, -0.0f)) &&
            !signbit(max(-0.0f, 0.0f)),
        "zeros");
  CHECK(max(1.0f, 2.0) == 2.0 && min(short(3), 4) == 3 && max('a', 1) == 'a', "mixes");

  FAMILY(char, 1, 2, 4)
  FAMILY(uchar, 1, 2, 4)
  FAMILY(short, 2, 4, 8)
  FAMILY(ushort, 2, 4, 8)
  FAMILY(int, 4, 8, 16)
  FAMILY(uint, 4, 8, 16)
  FAMILY(long, 8, 16, 16)
  FAMILY(ulong, 8, 16, 16)
  FAMILY(longlong, 8, 16, 16)
  FAMILY(ulonglong, 8, 16, 16)
  FAMILY(float, 4, 8, 16)
  FAMILY(double, 8, 16, 16)
  LAYOUT(double4_16a, 32, 16)
  LAYOUT(double4_32a, 32, 32)
  LAYOUT(dim3, 12, 4)
  dim3 d(7), e = make_uint3(1, 2, 3);
  CHECK(d.x == 7 && d.y == 1 && d.z == 1 && e.z == 3 && static_cast<uint3>(e).y == 2, "dim3");
  float4 v = make_float4(1, 2, 3, 4);
  CHECK(v.x == 1 && v.y == 2 && v.z == 3 && v.w == 4, "make_float4");
  return finish();
}
