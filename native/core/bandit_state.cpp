// A bandit's arms as bytes and back: docs/bandit-state-format.md.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "bandit.hpp"
#include "error.hpp"
#include "hash.hpp"
#include "kernels/bandit/bandit.hpp"

namespace finch {
namespace {

constexpr char kMagic[8] = {'F', 'N', 'C', 'H', 'B', 'N', 'D', 'T'};
constexpr uint32_t kVersion = 4;
constexpr uint32_t kOldestVersion = 2;
constexpr uint32_t kFirstWithBudget = 3;
constexpr uint32_t kFirstWithContrast = 4;
constexpr size_t kHeaderBytes = 48;
constexpr size_t kContrastBytes = 16;  // before its vectors
constexpr size_t kChecksumBytes = 8;

constexpr size_t padded(size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

// The budget of trials.
constexpr size_t budget_bytes(uint32_t version) noexcept {
  return version >= kFirstWithContrast ? 32 : version >= kFirstWithBudget ? 24 : 0;
}

// Of an arm, before its id.
constexpr size_t arm_bytes(uint32_t version) noexcept { return version >= kFirstWithContrast ? 64 : 56; }

size_t vector_bytes(const BanditRule& rule) noexcept {
  return rule.keeps_vectors() ? 2 * static_cast<size_t>(rule.dimension) * sizeof(float) : 0;
}

// Little-endian, whatever the machine.
class Writer {
 public:
  explicit Writer(unsigned char* at) noexcept : at_(at) {}

  void u32(uint32_t v) noexcept { put(v, 4); }
  void u64(uint64_t v) noexcept { put(v, 8); }
  void f32(float v) noexcept { u32(std::bit_cast<uint32_t>(v)); }
  void f64(double v) noexcept { u64(std::bit_cast<uint64_t>(v)); }
  void f32s(const float* v, size_t count) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(at_, v, count * sizeof(float));
      at_ += count * sizeof(float);
    } else {
      for (size_t i = 0; i < count; ++i) f32(v[i]);
    }
  }
  void bytes(std::string_view v) noexcept {
    std::memcpy(at_, v.data(), v.size());
    std::memset(at_ + v.size(), 0, padded(v.size()) - v.size());
    at_ += padded(v.size());
  }

 private:
  void put(uint64_t v, int bytes) noexcept {
    for (int i = 0; i < bytes; ++i) *at_++ = static_cast<unsigned char>(v >> (8 * i));
  }
  unsigned char* at_;
};

// Reads what the caller has made sure is there.
class Reader {
 public:
  Reader(const unsigned char* at, size_t size) noexcept : at_(at), left_(size) {}

  size_t left() const noexcept { return left_; }
  uint32_t u32() noexcept { return static_cast<uint32_t>(get(4)); }
  uint64_t u64() noexcept { return get(8); }
  float f32() noexcept { return std::bit_cast<float>(u32()); }
  double f64() noexcept { return std::bit_cast<double>(u64()); }
  std::string_view bytes(size_t size) noexcept {
    const std::string_view v(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    left_ -= size;
    return v;
  }

 private:
  uint64_t get(int bytes) noexcept {
    uint64_t v = 0;
    for (int i = 0; i < bytes; ++i) v |= static_cast<uint64_t>(*at_++) << (8 * i);
    left_ -= static_cast<size_t>(bytes);
    return v;
  }
  const unsigned char* at_;
  size_t left_;
};

// One that has learnt something; nullptr: none.
const Contrast* contrast_of(const ArmTable& table, const Arm& arm) noexcept {
  const Contrast* contrast = table.contrast(arm);
  return contrast == nullptr || contrast->is_empty() ? nullptr : contrast;
}

size_t state_bytes(const BanditRule& rule, const ArmTable& table) noexcept {
  size_t size = kHeaderBytes + budget_bytes(kVersion) + kChecksumBytes;
  table.each([&](const Arm& arm) {
    size += arm_bytes(kVersion) + padded(arm.id.view().size()) + vector_bytes(rule);
    if (contrast_of(table, arm) != nullptr) size += kContrastBytes + vector_bytes(rule);
  });
  return size;
}

void write_state(const BanditRule& rule, const ArmTable& table, unsigned char* buffer, size_t size) {
  std::vector<const Arm*> sorted;
  sorted.reserve(table.size());
  table.each([&](const Arm& arm) { sorted.push_back(&arm); });
  std::sort(sorted.begin(), sorted.end(), [](const Arm* a, const Arm* b) { return a->id.view() < b->id.view(); });

  Writer out(buffer);
  out.bytes({kMagic, sizeof(kMagic)});
  out.u32(kVersion);
  out.u32(static_cast<uint32_t>(rule.form));
  out.u32(rule.dimension);
  out.f32(rule.lambda);
  out.f32(rule.gamma);
  out.u32(0);
  out.u64(sorted.size());
  out.u64(size - kHeaderBytes - kChecksumBytes);
  out.f64(table.budget.first);
  out.f64(table.budget.repeated);
  out.f64(table.budget.in_context);
  out.f64(table.budget.time);
  for (const Arm* each : sorted) {
    const Arm& arm = *each;
    out.u32(static_cast<uint32_t>(arm.id.view().size()));
    out.u32(arm.availability.failures);
    out.f32(arm.prior);
    out.f32(arm.last_outcome);
    out.u64(arm.updates);
    out.f64(arm.evidence);
    out.f64(arm.reward_sum);
    out.f64(arm.availability.level);
    out.f64(arm.availability.time);
    const Contrast* contrast = contrast_of(table, arm);
    out.u32(contrast == nullptr ? 0 : 1);
    out.u32(contrast == nullptr ? 0 : contrast->foreseen);
    out.bytes(arm.id.view());
    if (rule.keeps_vectors()) {
      out.f32s(arm.vectors(), rule.dimension);
      out.f32s(arm.vectors() + rule.stride(), rule.dimension);
    }
    if (contrast != nullptr) {
      out.f64(contrast->balance);
      out.f64(contrast->time);
      out.f32s(contrast->worked(), rule.dimension);
      out.f32s(contrast->failed(), rule.dimension);
    }
  }
  out.u64(checksum(buffer, size - kChecksumBytes));
}

bool in_unit(double v) noexcept { return v >= 0.0 && v <= 1.0; }

// What no sequence of outcomes can have made is corrupt, also when the checksum is right. nullptr: plausible.
const char* implausible(const BanditRule& rule, const Arm& arm) noexcept {
  const double most = rule.gamma < 1.0f ? 1.0 / (1.0 - static_cast<double>(rule.gamma)) : 1.8446744073709552e19;
  if (arm.updates == 0) return "an arm without updates";
  if (arm.updates > kMostUpdates) return "updates";
  if (!(arm.evidence >= 1.0 && arm.evidence <= std::min(most, static_cast<double>(arm.updates)) * 1.000001)) {
    return "evidence";
  }
  if (!(arm.reward_sum >= 0.0 && arm.reward_sum <= arm.evidence * 1.000001)) return "sum of rewards";
  if (!in_unit(static_cast<double>(arm.prior))) return "prior";
  if (!in_unit(static_cast<double>(arm.last_outcome))) return "last outcome";
  if (!in_unit(arm.availability.level)) return "availability";
  if (!std::isfinite(arm.availability.time)) return "time";
  if (arm.availability.failures > arm.updates) return "failures in a row";
  if (!rule.keeps_vectors()) return nullptr;
  const float* a = arm.vectors();
  const float* b = a + rule.stride();
  const double d = static_cast<double>(rule.dimension);
  const double a_most = (2.0 * static_cast<double>(rule.lambda) + d * (arm.evidence + 1.0)) * 1.001;
  const double b_most = std::sqrt(d) * (arm.evidence + 1.0) * 1.001;
  // b^2 <= (sum of weights) A (Cauchy and Schwarz), the first b being like an outcome of weight 1 / lambda. The factor
  // leaves room for rounding; float32 sums stand still before they have 2^32 terms.
  const double weights = 16.0 * (std::min(arm.evidence, 0x1p32) + 1.0 / static_cast<double>(rule.lambda));
  for (size_t i = 0; i < rule.dimension; ++i) {
    if (!(a[i] >= kSmallestA && static_cast<double>(a[i]) <= a_most)) return "A";
    const double bi = static_cast<double>(b[i]);
    if (!(std::fabs(bi) <= b_most)) return "b";
    if (!(bi * bi <= weights * static_cast<double>(a[i]))) return "b beside A";
  }
  return nullptr;
}

// As `implausible`. Sums of at most 10 contexts' worth, each sqrt(d) long; the balance is at most 5.
const char* implausible(const Arm& arm, const Contrast& contrast) noexcept {
  if (contrast.is_empty()) return "a contrast without failures";
  if (contrast.foreseen > arm.updates) return "failures foreseen";
  if (!(std::fabs(contrast.balance) <= 5.000001)) return "a contrast's balance";
  if (!std::isfinite(contrast.time)) return "a contrast's time";
  const double most = 10.0 * std::sqrt(static_cast<double>(contrast.dimension())) * 1.001;
  const float* sums = contrast.worked();
  for (size_t i = 0; i < 2 * contrast.dimension(); ++i) {
    if (!(std::fabs(static_cast<double>(sums[i])) <= most)) return "a contrast's sum";
  }
  return nullptr;
}

finch_status corrupt(const char* what) noexcept {
  return fail(FINCH_CORRUPT,
              "bandit state: %s is wrong; nothing was changed. Restore the bytes from a copy or start afresh.", what);
}

// The contrast behind an arm's vectors.
finch_status read_contrast(const BanditRule& rule, uint32_t foreseen, Reader* in, Arm* arm, ArmTable* table) {
  if (rule.form != FINCH_BANDIT_CALIBRATED) return corrupt("a contrast in this form");
  if (in->left() < kContrastBytes + vector_bytes(rule)) return corrupt("a contrast's length");
  Contrast* contrast = table->make_contrast(arm, rule.dimension);
  contrast->foreseen = foreseen;
  contrast->balance = in->f64();
  contrast->time = in->f64();
  for (size_t i = 0; i < 2 * static_cast<size_t>(rule.dimension); ++i) contrast->room()[i] = in->f32();
  contrast->measure();
  const char* wrong = implausible(*arm, *contrast);
  return wrong == nullptr ? FINCH_OK : corrupt(wrong);
}

// One arm into the table, which the caller throws away on failure. `last` is the id before, empty at first.
finch_status read_arm(const BanditRule& rule, uint32_t version, Reader* in, std::string_view* last, ArmTable* table) {
  if (in->left() < arm_bytes(version)) return corrupt("an arm's length");
  const size_t id_bytes = in->u32();
  if (id_bytes < 1 || id_bytes > FINCH_MAX_ID_BYTES) return corrupt("an id's length");
  const uint32_t failures = in->u32();
  const float prior = in->f32();
  const float last_outcome = in->f32();
  const uint64_t updates = in->u64();
  const double evidence = in->f64();
  const double reward_sum = in->f64();
  const double level = in->f64();
  const double time = in->f64();
  const uint32_t has_contrast = version >= kFirstWithContrast ? in->u32() : 0;
  const uint32_t foreseen = version >= kFirstWithContrast ? in->u32() : 0;
  if (has_contrast > 1 || (has_contrast == 0 && foreseen != 0)) return corrupt("an arm's contrast");
  if (in->left() < padded(id_bytes) + vector_bytes(rule)) return corrupt("an arm's length");
  const std::string_view id = in->bytes(id_bytes);
  for (const char c : in->bytes(padded(id_bytes) - id_bytes)) {
    if (c != 0) return corrupt("padding");
  }
  if (!last->empty() && !(*last < id)) return corrupt("the order of ids");
  *last = id;
  Arm* arm = table->make(id, hash_id(id), rule, prior);
  arm->last_outcome = last_outcome;
  arm->updates = updates;
  arm->evidence = evidence;
  arm->reward_sum = reward_sum;
  arm->availability.level = level;
  arm->availability.time = time;
  arm->availability.failures = failures;
  if (rule.keeps_vectors()) {
    for (size_t i = 0; i < rule.dimension; ++i) arm->vectors()[i] = in->f32();
    for (size_t i = 0; i < rule.dimension; ++i) arm->vectors()[rule.stride() + i] = in->f32();
    arm->inverse.store(Inverse::stale, std::memory_order_relaxed);
  }
  const char* wrong = implausible(rule, *arm);
  if (wrong != nullptr) return corrupt(wrong);
  table->evidence += evidence_units(evidence);
  return has_contrast == 0 ? FINCH_OK : read_contrast(rule, foreseen, in, arm, table);
}

finch_status read_header(const BanditRule& rule, const unsigned char* buffer, size_t size, uint64_t* arms,
                         uint32_t* version) noexcept {
  if (size < kHeaderBytes + kChecksumBytes) return corrupt("the length");
  if (std::memcmp(buffer, kMagic, sizeof(kMagic)) != 0) return corrupt("the signature");
  Reader in(buffer + sizeof(kMagic), size - sizeof(kMagic));
  *version = in.u32();
  if (*version < kOldestVersion || *version > kVersion) {
    return fail(FINCH_VERSION,
                "bandit state of version %u; this build reads versions %u to %u. Use a matching release.", *version,
                kOldestVersion, kVersion);
  }
  if (Reader(buffer + size - kChecksumBytes, kChecksumBytes).u64() != checksum(buffer, size - kChecksumBytes)) {
    return corrupt("the checksum");
  }
  const uint32_t form = in.u32();
  const uint32_t dimension = in.u32();
  const float lambda = in.f32();
  const float gamma = in.f32();
  const uint32_t zero = in.u32();
  *arms = in.u64();
  if (zero != 0) return corrupt("a reserved field");
  if (in.u64() != size - kHeaderBytes - kChecksumBytes) return corrupt("the length");
  if (dimension != rule.dimension) {
    return fail(FINCH_DIMENSION, "bandit state of dimension %u; this bandit has dimension %u.", dimension,
                rule.dimension);
  }
  if (form != static_cast<uint32_t>(rule.form) || lambda != rule.lambda || gamma != rule.gamma) {
    return fail(
        FINCH_INVALID_ARGUMENT,
        "bandit state made with form %u, lambda %g, gamma %g; this bandit has form %d, lambda %g, gamma %g. Create it "
        "with the state's options.",
        form, static_cast<double>(lambda), static_cast<double>(gamma), rule.form, static_cast<double>(rule.lambda),
        static_cast<double>(rule.gamma));
  }
  return FINCH_OK;
}

finch_status read_budget(uint32_t version, Reader* in, TrialBudget* budget) noexcept {
  if (version < kFirstWithBudget) return FINCH_OK;
  if (in->left() < budget_bytes(version)) return corrupt("the length");
  for (double* tokens : {&budget->first, &budget->repeated, &budget->in_context}) {
    if (tokens == &budget->in_context && version < kFirstWithContrast) continue;
    *tokens = in->f64();
    if (!(*tokens >= 0.0 && *tokens <= TrialBudget::kMostTrials)) return corrupt("the budget of trials");
  }
  budget->time = in->f64();
  return std::isfinite(budget->time) ? FINCH_OK : corrupt("the budget's time");
}

finch_status read_state(const BanditRule& rule, const unsigned char* buffer, size_t size, ArmTable* table) {
  uint64_t count = 0;
  uint32_t version = 0;
  finch_status status = read_header(rule, buffer, size, &count, &version);
  if (status != FINCH_OK) return status;
  Reader in(buffer + kHeaderBytes, size - kHeaderBytes - kChecksumBytes);
  status = read_budget(version, &in, &table->budget);
  if (status != FINCH_OK) return status;
  if (count > in.left() / (arm_bytes(version) + padded(1) + vector_bytes(rule))) return corrupt("the number of arms");
  table->reserve(static_cast<size_t>(count));
  std::string_view last;
  for (uint64_t i = 0; i < count; ++i) {
    status = read_arm(rule, version, &in, &last, table);
    if (status != FINCH_OK) return status;
  }
  return in.left() == 0 ? FINCH_OK : corrupt("the length");
}

}  // namespace
}  // namespace finch

extern "C" {

finch_status finch_bandit_serialize(const finch_bandit* bandit, void* buffer, size_t capacity, size_t* size) {
  return finch::guarded([&]() -> finch_status {
    if (bandit == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "bandit is NULL; expected a handle.");
    if (size == nullptr)
      return finch::fail(FINCH_INVALID_ARGUMENT, "size is NULL; pass where to put the number of bytes.");
    std::shared_lock lock(bandit->mutex);
    const size_t needed = finch::state_bytes(bandit->rule, bandit->table);
    if (buffer != nullptr && capacity < needed) {
      *size = needed;
      return finch::fail(FINCH_INVALID_ARGUMENT,
                         "buffer has %zu bytes; expected at least %zu. Allocate that and try again.", capacity, needed);
    }
    if (buffer != nullptr) {
      finch::write_state(bandit->rule, bandit->table, static_cast<unsigned char*>(buffer), needed);
    }
    *size = needed;
    return FINCH_OK;
  });
}

finch_status finch_bandit_deserialize(finch_bandit* bandit, const void* buffer, size_t size) {
  return finch::guarded([&]() -> finch_status {
    if (bandit == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "bandit is NULL; expected a handle.");
    if (buffer == nullptr) return finch::fail(FINCH_INVALID_ARGUMENT, "buffer is NULL; expected %zu bytes.", size);
    finch::ArmTable table(bandit->rule);
    const finch_status status =
        finch::read_state(bandit->rule, static_cast<const unsigned char*>(buffer), size, &table);
    if (status != FINCH_OK) return status;
    std::unique_lock lock(bandit->mutex);
    bandit->table.swap(table);
    lock.unlock();  // the old arms are freed outside
    return FINCH_OK;
  });
}

}  // extern "C"
