// finch_bandit_deserialize on damaged states. The mutator makes length and checksum right again, so that what lies
// behind them is reached.
#include <cmath>

#include "core/hash.hpp"
#include "input.hpp"

using finch_fuzz::checked;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

constexpr size_t kHeader = 48;
constexpr size_t kBudget = 32;  // in version 4
constexpr size_t kArm = 64;     // in version 4, before the id
constexpr uint32_t kVersion = 4;
constexpr size_t kChecksum = 8;

finch_bandit* make(uint32_t dimension, int32_t form, float lambda, float gamma) {
  finch_bandit_options options{};
  options.size = sizeof(options);
  options.dimension = dimension;
  options.form = form;
  options.lambda = lambda;
  options.gamma = gamma;
  finch_bandit* bandit = nullptr;
  return finch_bandit_create(&options, &bandit) == FINCH_OK ? bandit : nullptr;
}

std::vector<unsigned char> bytes_of(const finch_bandit* bandit) {
  size_t size = 0;
  FUZZ_CHECK(finch_bandit_serialize(bandit, nullptr, 0, &size) == FINCH_OK);
  std::vector<unsigned char> out(size);
  FUZZ_CHECK(finch_bandit_serialize(bandit, out.data(), out.size(), &size) == FINCH_OK && size == out.size());
  return out;
}

template <typename T>
T read(const uint8_t* data, size_t at) {
  T v;
  std::memcpy(&v, data + at, sizeof(v));
  return v;
}

// The bandit that the state claims to be of, when there can be one that is not too large to try.
finch_bandit* made_for(const uint8_t* data, size_t size) {
  if (size < kHeader) return nullptr;
  const auto dimension = read<uint32_t>(data, 16);
  if (dimension > 4096) return nullptr;
  return make(dimension, read<int32_t>(data, 12), read<float>(data, 20), read<float>(data, 24));
}

void use(finch_bandit* bandit, uint32_t dimension) {
  uint64_t arms = 0;
  uint64_t memory = 0;
  FUZZ_CHECK(finch_bandit_arms(bandit, &arms, &memory) == FINCH_OK);
  const std::vector<unsigned char> state = bytes_of(bandit);
  std::vector<float> x(dimension);
  for (uint32_t i = 0; i < dimension; ++i) x[i] = static_cast<float>(i % 7) - 2.5f;
  size_t at = kHeader + kBudget;
  const bool vectors = read<uint32_t>(state.data(), 12) != FINCH_BANDIT_MEAN;
  std::vector<finch_string> ids;
  for (uint64_t i = 0; i < arms && i < 32; ++i) {
    const auto id_bytes = read<uint32_t>(state.data(), at);
    ids.push_back({reinterpret_cast<const char*>(state.data()) + at + kArm, id_bytes});
    const bool contrast = read<uint32_t>(state.data(), at + 56) != 0;
    at += kArm + (id_bytes + 7) / 8 * 8 + (vectors ? size_t{8} * dimension : 0);
    if (contrast) at += 16 + size_t{8} * dimension;
  }
  std::vector<finch_arm_score> scores(ids.size());
  FUZZ_CHECK(finch_bandit_score(bandit, ids.data(), nullptr, ids.size(), x.data(), 1e12, 1, scores.data()) == FINCH_OK);
  for (const finch_arm_score& score : scores) {
    FUZZ_CHECK(std::isfinite(score.mean) && std::isfinite(score.bonus) && score.bonus >= 0.0f, "%g + %g",
               static_cast<double>(score.mean), static_cast<double>(score.bonus));
    FUZZ_CHECK(score.availability >= 0.0f && score.availability <= 1.0f && score.updates >= 1);
  }
  for (const finch_string& id : ids) {
    const finch_outcome outcome{id, x.data(), 0.5f, 1.0f, 1e12};
    FUZZ_CHECK(finch_bandit_update(bandit, &outcome, 1) == FINCH_OK);
  }
  FUZZ_CHECK(finch_bandit_score(bandit, ids.data(), nullptr, ids.size(), x.data(), 1e12, 1, scores.data()) == FINCH_OK);
  for (const finch_arm_score& score : scores) {
    FUZZ_CHECK(std::isfinite(score.mean) && std::isfinite(score.bonus), "after an update: %g + %g",
               static_cast<double>(score.mean), static_cast<double>(score.bonus));
  }
  // What one bandit writes, another like it reads.
  const std::vector<unsigned char> after = bytes_of(bandit);
  finch_bandit* again = made_for(after.data(), after.size());
  FUZZ_CHECK(again != nullptr);
  FUZZ_CHECK(finch_bandit_deserialize(again, after.data(), after.size()) == FINCH_OK, "its own state is refused");
  FUZZ_CHECK(bytes_of(again) == after, "the state changed on the way");
  finch_bandit_release(again);
  FUZZ_CHECK(finch_bandit_drop(bandit, ids.data(), ids.size()) == FINCH_OK);
}

void mend(uint8_t* data, size_t size) {
  if (size < kHeader + kChecksum) return;
  const uint64_t arms = size - kHeader - kChecksum;
  std::memcpy(data + 40, &arms, sizeof(arms));
  const uint64_t sum = finch::checksum(data, size - kChecksum);
  std::memcpy(data + size - kChecksum, &sum, sizeof(sum));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  finch_bandit* bandit = made_for(data, size);
  if (bandit == nullptr) bandit = make(3, FINCH_BANDIT_CALIBRATED, 1.0f, 0.95f);
  // An arm that a refused state must leave alone.
  std::vector<float> x(65536, 1.0f);
  const finch_outcome outcome{{"kept", 4}, x.data(), 0.5f, 1.0f, 5.0};
  FUZZ_CHECK(finch_bandit_update(bandit, &outcome, 1) == FINCH_OK);
  const std::vector<unsigned char> before = bytes_of(bandit);

  std::vector<uint8_t> exact(data, data + size);
  exact.shrink_to_fit();
  const finch_status status = checked(finch_bandit_deserialize(bandit, exact.data(), size));
  if (status == FINCH_OK) {
    // An older version is written as the latest.
    FUZZ_CHECK(read<uint32_t>(data, 8) < kVersion || bytes_of(bandit) == exact,
               "read and written again, the state differs");
    use(bandit, read<uint32_t>(data, 16));
  } else {
    FUZZ_CHECK(bytes_of(bandit) == before, "a refused state changed the bandit");
  }
  finch_bandit_release(bandit);
  return 0;
}

#if defined(FINCH_LIBFUZZER)
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  // Half the time inside one field, so that lengths stay what they are.
  if (size > kHeader + kChecksum && seed % 2 == 0) {
    const size_t at = kHeader - 36 + seed / 2 % (size - kChecksum - kHeader + 36 - 7);
    const size_t width = size_t{1} << (seed / 7 % 4);
    LLVMFuzzerMutate(data + at / width * width, width, width);
  } else {
    size = LLVMFuzzerMutate(data, size, max_size);
  }
  if (seed % 17 != 0) mend(data, size);
  return size;
}
#endif
