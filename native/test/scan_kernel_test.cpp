#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/codes.hpp"
#include "kernels/kernels.hpp"
#include "kernels/scan/rounding.hpp"
#include "kernels/scan/scan.hpp"

namespace {

using finch::ScanFormat;
using finch::Survivor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kDistinctRows = 24, kQueries = 70;

std::vector<size_t> dimensions() {
  std::vector<size_t> out;
  for (size_t d = 1; d <= 130; ++d) out.push_back(d);
  for (const size_t d : {383, 384, 385, 767, 768, 769, 1024, 4097}) out.push_back(d);
  return out;
}

// `bytes` that end where the allocation does (a sanitizer sees the first byte beyond), aligned to 64 but for `shift`.
class Block {
 public:
  explicit Block(size_t bytes, size_t shift = 0)
      : base_(static_cast<char*>(::operator new[](bytes + shift, std::align_val_t{64}))), shift_(shift) {}
  char* get() const { return base_.get() + shift_; }

 private:
  struct Free {
    void operator()(char* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<char[], Free> base_;
  size_t shift_;
};

// `bytes` that end where a page begins that may not be touched.
class Guarded {
 public:
  explicit Guarded(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t used = (bytes + page - 1) / page * page;
    size_ = used + page;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_ + used, page, PROT_NONE) != 0) std::abort();
    data_ = base_ + used - bytes;
  }
  ~Guarded() { munmap(base_, size_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  char* get() const { return data_; }

 private:
  char* base_;
  char* data_;
  size_t size_;
};

void make_unit(std::vector<float>& x) {
  double norm = 0;
  for (const float v : x) norm += double{v} * v;
  norm = std::sqrt(norm);
  for (float& v : x) v = static_cast<float>(v / norm);
}

// Unit vectors: random ones, and among them some whose elements span all magnitudes, are all the same, or one.
std::vector<float> draw(std::mt19937& random, size_t d, size_t kind) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-30, 0);
  std::vector<float> x(d);
  for (float& v : x) v = normal(random);
  if (kind % 6 == 3) {
    for (float& v : x) v = std::ldexp(v, exponent(random));
  } else if (kind % 6 == 4) {
    for (float& v : x) v = v < 0 ? -1.0f : 1.0f;
  } else if (kind % 6 == 5) {
    std::fill(x.begin(), x.end(), 0.0f);
    x[random() % d] = random() % 2 == 0 ? 1.0f : -1.0f;
  }
  make_unit(x);
  return x;
}

size_t row_bytes(finch_storage storage, size_t d) {
  return storage == FINCH_STORAGE_F32 ? d * sizeof(float) : finch::code_stride(storage, static_cast<uint32_t>(d));
}

// A row as the kernels read it; returns its scale.
float encode(finch_storage storage, const std::vector<float>& x, char* out) {
  if (storage == FINCH_STORAGE_F32) {
    std::memcpy(out, x.data(), x.size() * sizeof(float));
    return 1.0f;
  }
  return finch::encode_vector(storage, x.data(), static_cast<uint32_t>(x.size()), reinterpret_cast<uint8_t*>(out));
}

// Element i of a row: what its code stands for, i8 without the scale.
double decode(finch_storage storage, const char* row, size_t i) {
  if (storage == FINCH_STORAGE_I8) return static_cast<uint8_t>(row[i]) - 128;
  if (storage == FINCH_STORAGE_F32) {
    float x;
    std::memcpy(&x, row + i * sizeof(x), sizeof(x));
    return x;
  }
  uint16_t code;
  std::memcpy(&code, row + i * sizeof(code), sizeof(code));
  return storage == FINCH_STORAGE_BF16 ? finch::from_bf16(code) : finch::from_f16(code);
}

size_t workspace_bytes(const ScanFormat& format, size_t d) {
  return format.workspace_bytes == nullptr ? 0 : format.workspace_bytes(d);
}

// A query as the format multiplies it: rounded to bf16 where a prepared one has two bytes a number, in integers for i8.
std::vector<double> as_multiplied(finch_storage storage, const ScanFormat& format, const float* x, size_t d) {
  std::vector<double> out(x, x + d);
  if (storage == FINCH_STORAGE_I8) {
    finch::quantize_i8(x, d, [&](size_t i, int32_t code) { out[i] = code; });
  } else if (storage == FINCH_STORAGE_BF16 && format.few_bytes(64) == 64 * sizeof(uint16_t)) {
    for (size_t i = 0; i < d; ++i) out[i] = finch::from_bf16(finch::to_bf16(x[i]));
  }
  return out;
}

class Problem {
 public:
  Problem(finch_storage storage, const ScanFormat& format, size_t d, uint32_t seed)
      : storage_(storage), format_(format), d_(d) {
    std::mt19937 random(seed);
    std::vector<std::vector<double>> multiplied;
    for (size_t q = 0; q < kQueries; ++q) {
      const auto x = draw(random, d, q);
      queries_.insert(queries_.end(), x.begin(), x.end());
      multiplied.push_back(as_multiplied(storage, format, x.data(), d));
    }
    for (size_t r = 0; r < kDistinctRows; ++r) {
      // Rows of float32 have the alignment of a float, and the first rows score about 1 and -1.
      rows_.emplace_back(row_bytes(storage, d), storage == FINCH_STORAGE_F32 ? r % 16 * sizeof(float) : 0);
      auto x = draw(random, d, r);
      if (r < 2) std::copy_n(queries_.begin(), d, x.begin());
      if (r == 1) std::transform(x.begin(), x.end(), x.begin(), std::negate<>());
      scales_.push_back(encode(storage, x, rows_.back().get()));
      std::vector<double> y(d);
      for (size_t i = 0; i < d; ++i) y[i] = decode(storage, rows_.back().get(), i);
      for (size_t q = 0; q < kQueries; ++q) {
        double sum = 0;
        for (size_t i = 0; i < d; ++i) sum += y[i] * multiplied[q][i];
        exact_.push_back(sum);
      }
    }
  }

  size_t dimension() const { return d_; }
  const float* query(size_t q) const { return queries_.data() + q * d_; }
  const char* row(size_t r) const { return rows_[r].get(); }

  // Whether a score is right: to the bit for i8, within half the bound between two kernels for the others.
  testing::AssertionResult right(size_t row, size_t query, float score) const {
    const double sum = exact_[row * kQueries + query];
    if (storage_ == FINCH_STORAGE_I8) {
      const float expected = static_cast<float>(static_cast<int32_t>(sum)) * scales_[row];
      if (score == expected) return testing::AssertionSuccess();
    } else if (std::abs(score - sum) <= finch::scan_error_bound(d_) / 2 + format_.rounding) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "d " << d_ << " row " << row << " query " << query << ": " << score
                                       << " instead of " << sum << " * " << scales_[row];
  }

  // What a call returns for rows[i] and the queries from `first` on. Every survivor must be among what was asked for.
  std::vector<Survivor> few(const std::vector<size_t>& rows, size_t first, size_t count, const float* bars) const {
    const Block prepared(count * format_.few_bytes(d_));
    for (size_t q = 0; q < count; ++q) {
      format_.prepare(query(first + q), d_, prepared.get() + q * format_.few_bytes(d_));
    }
    const List list(*this, rows);
    std::vector<Survivor> out(rows.size() * count);
    out.resize(format_.few(list.view(), prepared.get(), count, d_, bars, out.data()));
    return out;
  }

  std::vector<Survivor> panels(const std::vector<size_t>& rows, size_t first, size_t count, const float* bars) const {
    const size_t panels = (count + format_.panel - 1) / format_.panel;
    const Block packed(panels * format_.panel_bytes(d_));
    for (size_t p = 0; p < panels; ++p) {
      const size_t q = p * format_.panel;
      format_.pack(query(first + q), std::min(format_.panel, count - q), d_,
                   packed.get() + p * format_.panel_bytes(d_));
    }
    std::vector<float> lanes(panels * format_.panel, kInfinity);
    std::copy_n(bars, count, lanes.begin());
    List list(*this, rows);
    if (format_.widen != nullptr) list.widen(format_, d_);
    std::vector<Survivor> out(rows.size() * lanes.size());
    const Block workspace(workspace_bytes(format_, d_));
    out.resize(format_.panels(list.view(workspace.get()), packed.get(), panels, d_, lanes.data(), out.data()));
    return out;
  }

 private:
  // Pointers to rows as a mask leaves them: in any order and place.
  class List {
   public:
    List(const Problem& problem, const std::vector<size_t>& rows) {
      for (const size_t r : rows) {
        codes_.push_back(problem.row(r));
        scales_.push_back(problem.scales_[r]);
      }
    }
    void widen(const ScanFormat& format, size_t d) {
      for (const void*& row : codes_) {
        wide_.emplace_back(format.wide_bytes(d));
        format.widen(row, d, wide_.back().get());
        row = wide_.back().get();
      }
    }
    finch::ScanRows view(void* workspace = nullptr) const {
      return {codes_.data(), scales_.data(), codes_.size(), workspace};
    }

   private:
    std::vector<const void*> codes_;
    std::vector<float> scales_;
    std::vector<Block> wide_;
  };

  finch_storage storage_;
  const ScanFormat& format_;
  size_t d_;
  std::vector<float> queries_;
  std::vector<Block> rows_;
  std::vector<float> scales_;
  std::vector<double> exact_;
};

using Call = std::vector<Survivor> (Problem::*)(const std::vector<size_t>&, size_t, size_t, const float*) const;

struct Case {
  const finch::Kernels* kernels;
  finch_storage storage;
  const ScanFormat* format;
  std::string name;
};

// Every format of every table, and its filter where there is one.
std::vector<Case> cases() {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "i8"};
  std::vector<Case> out;
  for (const finch::Kernels* table : finch::available_kernels()) {
    for (const auto storage : {FINCH_STORAGE_F32, FINCH_STORAGE_BF16, FINCH_STORAGE_F16, FINCH_STORAGE_I8}) {
      const std::string name = std::string(table->name) + "_" + kNames[storage];
      out.push_back({table, storage, &table->scan_format(storage), name});
      if (table->filter[storage] != nullptr) out.push_back({table, storage, table->filter[storage], name + "_filter"});
    }
  }
  return out;
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Scan : public testing::TestWithParam<Case> {
 protected:
  const finch::Kernels& kernels() const { return *GetParam().kernels; }
  finch_storage storage() const { return GetParam().storage; }
  const ScanFormat& format() const { return *GetParam().format; }
  Problem problem(size_t d) const { return Problem(storage(), format(), d, static_cast<uint32_t>(d)); }
};

std::vector<size_t> some_rows(std::mt19937& random, size_t count) {
  std::vector<size_t> rows(count);
  for (size_t& r : rows) r = random() % kDistinctRows;
  return rows;
}

// The whole matrix of scores: with bars of minus infinity every pair comes back, once.
std::vector<float> all_scores(const Problem& problem, Call call, const std::vector<size_t>& rows, size_t first,
                              size_t count) {
  const std::vector<float> bars(count, -kInfinity);
  std::vector<float> scores(rows.size() * count, std::nanf(""));
  const auto survivors = (problem.*call)(rows, first, count, bars.data());
  EXPECT_EQ(survivors.size(), scores.size());
  for (const Survivor& s : survivors) {
    if (s.row >= rows.size() || s.query >= count) {
      ADD_FAILURE() << "a pair that was not asked for: row " << s.row << " query " << s.query;
      continue;
    }
    scores[s.row * count + s.query] = s.score;
  }
  return scores;
}

void check_call(const Problem& problem, Call call, std::mt19937& random, size_t row_count, size_t count) {
  const auto rows = some_rows(random, row_count);
  const size_t first = random() % (kQueries - count + 1);
  const auto scores = all_scores(problem, call, rows, first, count);
  for (size_t r = 0; r < row_count; ++r) {
    for (size_t q = 0; q < count; ++q) {
      ASSERT_TRUE(problem.right(rows[r], first + q, scores[r * count + q])) << row_count << " rows, " << count;
    }
  }
  // Bars at scores: a score that equals its bar reaches it. Some bars nothing reaches.
  std::vector<float> bars(count);
  for (size_t q = 0; q < count; ++q) {
    bars[q] = random() % 5 == 0 ? kInfinity : scores[random() % row_count * count + q];
  }
  std::vector<int> expected, got(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) expected.push_back(scores[i] >= bars[i % count]);
  for (const Survivor& s : (problem.*call)(rows, first, count, bars.data())) {
    ASSERT_LT(s.row * count + s.query, got.size());
    ++got[s.row * count + s.query];
    ASSERT_EQ(std::bit_cast<uint32_t>(s.score), std::bit_cast<uint32_t>(scores[s.row * count + s.query]));
  }
  ASSERT_EQ(got, expected) << "d " << problem.dimension() << ", " << row_count << " rows, " << count << " queries";
  // A row's scores do not depend on the other rows of the call.
  const size_t r = random() % row_count;
  const auto alone = all_scores(problem, call, {rows[r]}, first, count);
  ASSERT_EQ(std::memcmp(alone.data(), scores.data() + r * count, count * sizeof(float)), 0)
      << "d " << problem.dimension() << ", " << row_count << " rows, " << count << " queries";
}

std::vector<size_t> row_counts() {
  std::vector<size_t> out{48, 64, finch::kScanRows};
  for (size_t n = 1; n <= 20; ++n) out.push_back(n);
  return out;
}

TEST_P(Scan, FewAndPanelsAreRightAtEveryDimension) {
  std::mt19937 random(1);
  const auto counts = row_counts();
  for (const size_t d : dimensions()) {
    const Problem problem = this->problem(d);
    for (size_t count = 1; count <= finch::kFewQueries; ++count) {
      check_call(problem, &Problem::few, random, counts[random() % counts.size()], count);
    }
    for (const size_t count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 70}) {
      check_call(problem, &Problem::panels, random, counts[random() % counts.size()], count);
    }
    if (HasFatalFailure()) return;
  }
}

TEST_P(Scan, FewAndPanelsAreRightAtEveryShape) {
  std::mt19937 random(2);
  for (const size_t d : {5, 64, 97, 384}) {
    const Problem problem = this->problem(d);
    for (const size_t rows : row_counts()) {
      for (size_t count = 1; count <= kQueries; ++count) {
        if (count <= finch::kFewQueries) check_call(problem, &Problem::few, random, rows, count);
        if (count <= 9 || count % 13 == 0 || count == 31 || count == 33 || count == 70) {
          check_call(problem, &Problem::panels, random, rows, count);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

// One query's score is the canonical one: dot's bits for float32, and the same however many rows there are.
TEST_P(Scan, OneQueryHasTheBitsOfDot) {
  if (storage() != FINCH_STORAGE_F32) {
    EXPECT_EQ(format().few_bytes(100) % finch::kCodeAlign, 0u) << "queries as long as the rows' padded codes";
    return;
  }
  for (const size_t d : dimensions()) {
    const Problem problem = this->problem(d);
    std::vector<size_t> rows(kDistinctRows);
    for (size_t r = 0; r < rows.size(); ++r) rows[r] = r;
    for (const size_t q : {0, 4, 69}) {
      const auto scores = all_scores(problem, &Problem::few, rows, q, 1);
      for (const size_t r : rows) {
        const float dot = kernels().dot(problem.query(q), reinterpret_cast<const float*>(problem.row(r)), d);
        ASSERT_EQ(std::bit_cast<uint32_t>(scores[r]), std::bit_cast<uint32_t>(dot)) << "d " << d << " row " << r;
      }
    }
  }
}

// Nothing is touched beyond rows, queries, panels, widened rows, bars and the list of survivors.
TEST_P(Scan, StaysInsideItsOperands) {
  std::mt19937 random(3);
  for (const size_t d : dimensions()) {
    const auto x = draw(random, d, 0);
    const Guarded row(row_bytes(storage(), d));
    const float scale = encode(storage(), x, row.get());
    for (const size_t count : {1, 2, 3, 7, 8}) {
      for (const size_t n : {1, 2, 3, 7, 15}) {
        const Guarded codes(n * sizeof(void*)), scales(n * sizeof(float)), bars(count * sizeof(float));
        const Guarded out(n * count * sizeof(Survivor)), prepared(count * format().few_bytes(d));
        std::fill_n(reinterpret_cast<const void**>(codes.get()), n, row.get());
        std::fill_n(reinterpret_cast<float*>(scales.get()), n, scale);
        std::fill_n(reinterpret_cast<float*>(bars.get()), count, -kInfinity);
        for (size_t q = 0; q < count; ++q) {
          format().prepare(x.data(), d, prepared.get() + q * format().few_bytes(d));
        }
        const finch::ScanRows rows{reinterpret_cast<const void* const*>(codes.get()),
                                   reinterpret_cast<const float*>(scales.get()), n};
        ASSERT_EQ(format().few(rows, prepared.get(), count, d, reinterpret_cast<const float*>(bars.get()),
                               reinterpret_cast<Survivor*>(out.get())),
                  n * count);
      }
    }
    const size_t lanes = 2 * format().panel;
    const Guarded wide(format().widen == nullptr ? 0 : format().wide_bytes(d));
    if (format().widen != nullptr) format().widen(row.get(), d, wide.get());
    const Guarded packed(2 * format().panel_bytes(d)), workspace(workspace_bytes(format(), d));
    for (size_t p = 0; p < 2; ++p) format().pack(x.data(), 1, d, packed.get() + p * format().panel_bytes(d));
    for (const size_t n : {1, 6, 23}) {
      const Guarded codes(n * sizeof(void*)), scales(n * sizeof(float)), bars(lanes * sizeof(float));
      const Guarded out(n * lanes * sizeof(Survivor));
      std::fill_n(reinterpret_cast<const void**>(codes.get()), n, format().widen == nullptr ? row.get() : wide.get());
      std::fill_n(reinterpret_cast<float*>(scales.get()), n, scale);
      std::fill_n(reinterpret_cast<float*>(bars.get()), lanes, -kInfinity);
      const finch::ScanRows rows{reinterpret_cast<const void* const*>(codes.get()),
                                 reinterpret_cast<const float*>(scales.get()), n, workspace.get()};
      ASSERT_EQ(format().panels(rows, packed.get(), 2, d, reinterpret_cast<const float*>(bars.get()),
                                reinterpret_cast<Survivor*>(out.get())),
                n * lanes);
    }
  }
}

// The longest vectors there are, every element as large as it gets: the sums must not overflow on the way.
TEST_P(Scan, HoldsTheLargestSums) {
  constexpr size_t kLongest = 65536;
  for (const bool same : {true, false}) {
    std::vector<float> x(kLongest, 1.0f / 256.0f), y(kLongest, same ? 1.0f / 256.0f : -1.0f / 256.0f);
    // The last row changes its sign half way: the largest partial sum, then back.
    std::vector<float> half = x;
    std::fill(half.begin() + kLongest / 2, half.end(), -1.0f / 256.0f);
    const Block row(row_bytes(storage(), kLongest)), turning(row_bytes(storage(), kLongest));
    const float scale = encode(storage(), x, row.get());
    encode(storage(), half, turning.get());
    // i8: a query's scale is left out of its scores, so its elements are 127.
    const double exact = (same ? 1.0 : -1.0) * (storage() == FINCH_STORAGE_I8 ? 127.0 * kLongest / 256.0 : 1.0);
    const Block prepared(2 * format().few_bytes(kLongest)), packed(format().panel_bytes(kLongest));
    for (size_t q = 0; q < 2; ++q)
      format().prepare(y.data(), kLongest, prepared.get() + q * format().few_bytes(kLongest));
    format().pack(y.data(), 1, kLongest, packed.get());
    const void* codes[2] = {row.get(), turning.get()};
    const float scales[2] = {scale, scale};
    std::vector<float> bars(format().panel, kInfinity);
    bars[0] = -kInfinity;
    std::vector<Survivor> out(2 * std::max<size_t>(2, format().panel));
    const double tolerance = storage() == FINCH_STORAGE_I8 ? std::abs(exact) * 0x1p-22
                                                           : finch::scan_error_bound(kLongest) + format().rounding;
    const auto check = [&](size_t found, size_t expected) {
      ASSERT_EQ(found, expected);
      for (size_t i = 0; i < found; ++i) {
        EXPECT_NEAR(out[i].score, out[i].row == 0 ? exact : 0.0, tolerance) << "query " << out[i].query;
      }
    };
    check(format().few({codes, scales, 2}, prepared.get(), 1, kLongest, bars.data(), out.data()), 2);
    const float open[2] = {-kInfinity, -kInfinity};
    check(format().few({codes, scales, 2}, prepared.get(), 2, kLongest, open, out.data()), 4);
    std::vector<Block> wide;
    if (format().widen != nullptr) {
      for (const void*& code : codes) {
        wide.emplace_back(format().wide_bytes(kLongest));
        format().widen(code, kLongest, wide.back().get());
        code = wide.back().get();
      }
    }
    const Block workspace(workspace_bytes(format(), kLongest));
    check(format().panels({codes, scales, 2, workspace.get()}, packed.get(), 1, kLongest, bars.data(), out.data()), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(AllTables, Scan, testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

}  // namespace
