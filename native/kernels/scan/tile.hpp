// The loops of family scan, written once; each instruction set's file names its lanes. Everything here is a template
// over types of the including file's unnamed namespace, so that no two files share (and no linker mixes) instances
// compiled with different flags.
//
// A Panel type:
//   kWidth                      lanes
//   kRows, kVectors             the tile: rows x vectors of lanes that fit the registers
//   Vector, Accumulator, Word   Word: what one broadcast takes of a row (a float, two bf16, four i8)
//   words(d)                    words in a row
//   kHeader                     bytes of a panel before its words (i8: what every accumulator starts from)
//   start(header, c), load(packed), broadcast(row word), multiply_add, score(accumulator, scale), load_bars,
//   reach(score, bars) -> bits, store(float*, score)
//   Where one load of a row serves several words (multiplication by a lane): kGroup words of it, their Group type,
//   load_group(row words), multiply_lane<word of the group>(accumulator, group, vector). Words left over are
//   broadcast; without broadcast, words(d) are whole groups.
// A Few type:
//   kStep, kCodeBytes           elements per step; bytes of one in a row; whole steps only when kPadded
//   Row, Query, Accumulator     loads convert from codes
//   zero, load_row, load_query, load_row_tail, load_query_tail, multiply_add
//   canonical(chains) -> the score of one pair; reduce(accumulators) -> those of a row against several queries
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/scan/scan.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#define FINCH_UNROLL _Pragma("GCC unroll 16")
#elif defined(__clang__)
#define FINCH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FINCH_UNROLL
#endif

// The processor's own prefetching stops at the end of a page and with it, for the next rows, in the middle of the work.
#if defined(__GNUC__)
#define FINCH_PREFETCH(address) __builtin_prefetch(address)
#else
#define FINCH_PREFETCH(address) static_cast<void>(address)
#endif

namespace finch {

template <typename P>
struct PanelScan {
  static constexpr size_t kPanel = P::kWidth * P::kVectors;
  using Word = typename P::Word;

  static size_t bytes(size_t d) {
    return (P::kHeader + P::words(d) * kPanel * sizeof(Word) + kCodeAlign - 1) / kCodeAlign * kCodeAlign;
  }

  template <size_t R, size_t... Lane>
  static void lanes(typename P::Accumulator (&sum)[R][P::kVectors], const auto(&x)[R], const Word* packed,
                    std::index_sequence<Lane...>) {
    (lane<Lane>(sum, x, packed + Lane * kPanel), ...);
  }
  template <size_t Lane, size_t R>
  static void lane(typename P::Accumulator (&sum)[R][P::kVectors], const auto(&x)[R], const Word* packed) {
    typename P::Vector q[P::kVectors];
    FINCH_UNROLL
    for (size_t c = 0; c < P::kVectors; ++c) q[c] = P::load(packed + c * P::kWidth);
    FINCH_UNROLL
    for (size_t r = 0; r < R; ++r) {
      FINCH_UNROLL
      for (size_t c = 0; c < P::kVectors; ++c) sum[r][c] = P::template multiply_lane<Lane>(sum[r][c], x[r], q[c]);
    }
  }

  template <size_t R>
  static Survivor* tile(const ScanRows& rows, size_t first, const char* panel, size_t words, size_t query,
                        const float* bars, Survivor* out) {
    const Word* row[R];
    typename P::Accumulator sum[R][P::kVectors];
    FINCH_UNROLL
    for (size_t r = 0; r < R; ++r) {
      row[r] = static_cast<const Word*>(rows.codes[first + r]);
      FINCH_UNROLL
      for (size_t c = 0; c < P::kVectors; ++c) sum[r][c] = P::start(panel, c);
    }
    const Word* packed = reinterpret_cast<const Word*>(panel + P::kHeader);
    size_t w = 0;
    if constexpr (requires { P::kGroup; }) {
      for (; w + P::kGroup <= words; w += P::kGroup, packed += P::kGroup * kPanel) {
        typename P::Group x[R];
        FINCH_UNROLL
        for (size_t r = 0; r < R; ++r) x[r] = P::load_group(row[r] + w);
        lanes(sum, x, packed, std::make_index_sequence<P::kGroup>{});
      }
    }
    if constexpr (requires { &P::broadcast; }) {
      for (; w < words; ++w, packed += kPanel) {
        typename P::Vector q[P::kVectors];
        FINCH_UNROLL
        for (size_t c = 0; c < P::kVectors; ++c) q[c] = P::load(packed + c * P::kWidth);
        FINCH_UNROLL
        for (size_t r = 0; r < R; ++r) {
          const typename P::Vector x = P::broadcast(row[r] + w);
          FINCH_UNROLL
          for (size_t c = 0; c < P::kVectors; ++c) sum[r][c] = P::multiply_add(sum[r][c], x, q[c]);
        }
      }
    }
    FINCH_UNROLL
    for (size_t c = 0; c < P::kVectors; ++c) {
      const auto bar = P::load_bars(bars + c * P::kWidth);
      FINCH_UNROLL
      for (size_t r = 0; r < R; ++r) {
        const auto score = P::score(sum[r][c], rows.scales, first + r);
        uint32_t reached = P::reach(score, bar);
        if (reached == 0) continue;
        alignas(64) float scores[P::kWidth];
        P::store(scores, score);
        for (; reached != 0; reached &= reached - 1) {
          const auto lane = static_cast<uint32_t>(std::countr_zero(reached));
          *out++ = {scores[lane], static_cast<uint32_t>(first + r),
                    static_cast<uint32_t>(query + c * P::kWidth + lane)};
        }
      }
    }
    return out;
  }

  // Rows in groups that stay in the first cache while all panels pass.
  static size_t run(const ScanRows& rows, const void* packed, size_t panels, size_t d, const float* bars,
                    Survivor* out) {
    const Survivor* const begin = out;
    const size_t panel_bytes = bytes(d);
    const size_t words = P::words(d);
    const auto pass = [&]<size_t R>(size_t first) {
      const char* panel = static_cast<const char*>(packed);
      for (size_t p = 0; p < panels; ++p, panel += panel_bytes) {
        out = tile<R>(rows, first, panel, words, p * kPanel, bars + p * kPanel, out);
      }
    };
    size_t r = 0;
    for (; r + P::kRows <= rows.count; r += P::kRows) pass.template operator()<P::kRows>(r);
    if constexpr (P::kRows > 4) {
      for (; r + 4 <= rows.count; r += 4) pass.template operator()<4>(r);
    }
    for (; r < rows.count; ++r) pass.template operator()<1>(r);
    return static_cast<size_t>(out - begin);
  }
};

template <typename F>
struct FewScan {
  template <size_t R, size_t Q>
  static Survivor* block(const ScanRows& rows, size_t first, const char* queries, size_t query_bytes, size_t query,
                         size_t d, const float* bars, Survivor* out) {
    // One accumulator chain per pair, or for one query F::kChains: then it is the canonical order.
    constexpr size_t kChains = Q == 1 ? F::kChains : 1;
    typename F::Accumulator sum[R][Q][kChains];
    FINCH_UNROLL
    for (size_t r = 0; r < R; ++r) {
      FINCH_UNROLL
      for (size_t q = 0; q < Q; ++q) {
        FINCH_UNROLL
        for (size_t j = 0; j < kChains; ++j) sum[r][q][j] = F::zero();
      }
    }
    const void* row[R];
    FINCH_UNROLL
    for (size_t r = 0; r < R; ++r) row[r] = rows.codes[first + r];
    // Measured: with two or four queries the processor's own prefetching does better alone.
    constexpr bool kFetches = Q == 1 || Q >= 8;
    // The group after this one; the last of a call fetches itself, which costs nothing.
    const char* next[R];
    const size_t ahead = first + 2 * R <= rows.count ? R : 0;
    FINCH_UNROLL
    for (size_t r = 0; r < R; ++r) next[r] = static_cast<const char*>(rows.codes[first + ahead + r]);
    const char* own[Q];
    FINCH_UNROLL
    for (size_t q = 0; q < Q; ++q) own[q] = queries + (query + q) * query_bytes;

    const size_t length = F::kPadded ? (d + F::kStep - 1) / F::kStep * F::kStep : d;
    size_t i = 0;
    for (; i + kChains * F::kStep <= length; i += kChains * F::kStep) {
      FINCH_UNROLL
      for (size_t j = 0; j < kChains; ++j) {
        // Rows in registers, queries one at a time: with all of both, three rows and eight queries would not fit.
        typename F::Row y[R];
        FINCH_UNROLL
        for (size_t r = 0; r < R; ++r) {
          if (kFetches && j * F::kStep * F::kCodeBytes % 64 == 0) {
            FINCH_PREFETCH(next[r] + (i + j * F::kStep) * F::kCodeBytes);
          }
          y[r] = F::load_row(row[r], i + j * F::kStep);
        }
        FINCH_UNROLL
        for (size_t q = 0; q < Q; ++q) {
          const typename F::Query x = F::load_query(own[q], i + j * F::kStep);
          FINCH_UNROLL
          for (size_t r = 0; r < R; ++r) sum[r][q][j] = F::multiply_add(sum[r][q][j], y[r], x);
        }
      }
    }
    FINCH_UNROLL
    for (size_t j = 0; j < kChains; ++j) {
      if (i >= length) continue;
      const size_t lanes = length - i < F::kStep ? length - i : F::kStep;
      typename F::Row y[R];
      FINCH_UNROLL
      for (size_t r = 0; r < R; ++r) y[r] = F::load_row_tail(row[r], i, lanes);
      FINCH_UNROLL
      for (size_t q = 0; q < Q; ++q) {
        const typename F::Query x = F::load_query_tail(own[q], i, lanes);
        FINCH_UNROLL
        for (size_t r = 0; r < R; ++r) sum[r][q][j] = F::multiply_add(sum[r][q][j], y[r], x);
      }
      i += lanes;
    }
    FINCH_UNROLL
    for (size_t r = 0; r < R; ++r) {
      float score[Q];
      if constexpr (Q == 1) {
        score[0] = F::template canonical<kChains>(sum[r][0], own[0], d, rows.scales, first + r);
      } else {
        F::template reduce<Q>(sum[r], own, d, rows.scales, first + r, score);
      }
      FINCH_UNROLL
      for (size_t q = 0; q < Q; ++q) {
        if (score[q] >= bars[query + q]) {
          *out++ = {score[q], static_cast<uint32_t>(first + r), static_cast<uint32_t>(query + q)};
        }
      }
    }
    return out;
  }

  static size_t run(const ScanRows& rows, const void* queries, size_t count, size_t d, const float* bars,
                    Survivor* out) {
    const Survivor* const begin = out;
    const char* prepared = static_cast<const char*>(queries);
    const size_t query_bytes = F::bytes(d);
    size_t q = 0;
    const auto pass = [&]<size_t R, size_t Q>() {
      size_t r = 0;
      for (; r + R <= rows.count; r += R) out = block<R, Q>(rows, r, prepared, query_bytes, q, d, bars, out);
      for (; r < rows.count; ++r) out = block<1, Q>(rows, r, prepared, query_bytes, q, d, bars, out);
      q += Q;
    };
    while (count - q >= 8) pass.template operator()<F::kRowsOf8, 8>();
    if (count - q >= 4) pass.template operator()<F::kRowsOf4, 4>();
    if (count - q >= 2) pass.template operator()<F::kRowsOf2, 2>();
    if (count - q >= 1) pass.template operator()<F::kRowsOf1, 1>();
    return static_cast<size_t>(out - begin);
  }
};

// A format whose panels read its codes, and one whose codes are widened for them.
template <typename Few, typename Panel>
constexpr ScanFormat direct_format(void (*prepare)(const float*, size_t, void*),
                                   void (*pack)(const float*, size_t, size_t, void*)) {
  return {Few::bytes, prepare, FewScan<Few>::run, Panel::kPanel, Panel::bytes, pack, Panel::run, nullptr, nullptr};
}
template <typename Few, typename Panel>
constexpr ScanFormat widened_format(void (*prepare)(const float*, size_t, void*),
                                    void (*pack)(const float*, size_t, size_t, void*), size_t (*wide_bytes)(size_t),
                                    void (*widen)(const void*, size_t, void*)) {
  ScanFormat format = direct_format<Few, Panel>(prepare, pack);
  format.wide_bytes = wide_bytes;
  format.widen = widen;
  return format;
}

}  // namespace finch
