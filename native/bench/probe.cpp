// The addon of bench/: limits, vectors and references, and the core timed without Node.
#include <napi.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "affinity.hpp"
#include "core_times.hpp"
#include "limits.hpp"
#include "vectors.hpp"

namespace finch::bench {
namespace {

size_t whole(const Napi::CallbackInfo& info, size_t i) {
  if (!info[i].IsNumber()) throw Napi::TypeError::New(info.Env(), "argument " + std::to_string(i) + " is no number");
  const double value = info[i].As<Napi::Number>().DoubleValue();
  if (!(value >= 0 && value <= 9e15)) throw Napi::RangeError::New(info.Env(), "expected a number of things");
  return static_cast<size_t>(value);
}

double seconds(const Napi::CallbackInfo& info, size_t i) { return info[i].ToNumber().DoubleValue(); }

Napi::Float32Array floats(const Napi::CallbackInfo& info, size_t i) {
  if (!info[i].IsTypedArray() || info[i].As<Napi::TypedArray>().TypedArrayType() != napi_float32_array) {
    throw Napi::TypeError::New(info.Env(), "argument " + std::to_string(i) + " is no Float32Array");
  }
  return info[i].As<Napi::Float32Array>();
}

Napi::Value text(Napi::Env env, const char* value) {
  return value == nullptr ? env.Null() : Napi::Value(Napi::String::New(env, value));
}

Napi::Float64Array numbers(Napi::Env env, const Rounds& values) {
  auto array = Napi::Float64Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

template <class Work>
auto reported(Napi::Env env, Work&& work) {
  try {
    return work();
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Napi::Error::New(env, error.what());
  }
}

Napi::Value cpus(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(allowed_cpus()));
}

Napi::Value pin(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), pin_process(whole(info, 0))); }

Napi::Value levels(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Limits& found = limits();
  Napi::Object object = Napi::Object::New(env);
  object.Set("read", text(env, found.read_level));
  object.Set("f32", text(env, found.f32_level));
  object.Set("bf16", text(env, found.bf16_level));
  object.Set("i8", text(env, found.i8_level));
  object.Set("tile", text(env, found.tile_level));
  return object;
}

// What bandwidth is measured on: one block, grown as needed, every page touched.
struct Block {
  std::byte* data = nullptr;
  size_t bytes = 0;
  ~Block() { std::free(data); }
};
Block block;

// bandwidth(bytes, threads, way, seconds): bytes per second.
Napi::Value bandwidth(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const size_t bytes = whole(info, 0) / 4096 * 4096;
  const size_t way = whole(info, 2);
  if (limits().read_level == nullptr || bytes == 0 || way > 2) {
    throw Napi::RangeError::New(env, "expected at least one page, way 0 to 2 and a machine with AVX2 or NEON");
  }
  if (bytes > block.bytes) {
    std::free(block.data);
    block.data = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
    block.bytes = block.data == nullptr ? 0 : bytes;
    if (block.data == nullptr) throw Napi::Error::New(env, "no memory for the working set");
    std::memset(block.data, 1, bytes);
  }
  return Napi::Number::New(env, read_bandwidth(block.data, bytes, whole(info, 1), way, seconds(info, 3)));
}

// peak(kind, threads, seconds): operations per second; 0 without such a unit. kind: f32, bf16, i8, tileBf16, tileI8.
Napi::Value peak(const Napi::CallbackInfo& info) {
  const std::string name = info[0].ToString();
  constexpr const char* kNames[] = {"f32", "bf16", "i8", "tileBf16", "tileI8"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) {
      return Napi::Number::New(info.Env(), peak_rate(static_cast<Kind>(i), whole(info, 1), seconds(info, 2)));
    }
  }
  throw Napi::RangeError::New(info.Env(), "unknown kind " + name);
}

// fill(out, dimension, seed, clusters, centreSeed, width)
Napi::Value fill(const Napi::CallbackInfo& info) {
  Napi::Float32Array out = floats(info, 0);
  const size_t dimension = whole(info, 1);
  Spread spread;
  spread.clusters = whole(info, 3);
  spread.centre_seed = whole(info, 4);
  spread.width = static_cast<float>(seconds(info, 5));
  fill_unit(out.Data(), out.ElementLength() / dimension, dimension, whole(info, 2), spread, allowed_cpus());
  return info.Env().Undefined();
}

// truth(matrix, queries, dimension, k): the rows and float64 scores of an exact search.
Napi::Value truth(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Float32Array matrix = floats(info, 0);
  const Napi::Float32Array queries = floats(info, 1);
  const size_t dimension = whole(info, 2);
  const Truth found = exact_top(matrix.Data(), matrix.ElementLength() / dimension, queries.Data(),
                                queries.ElementLength() / dimension, dimension, whole(info, 3), allowed_cpus());
  auto rows = Napi::Uint32Array::New(env, found.rows.size());
  std::copy(found.rows.begin(), found.rows.end(), rows.Data());
  Napi::Object object = Napi::Object::New(env);
  object.Set("k", Napi::Number::New(env, static_cast<double>(found.k)));
  object.Set("rows", rows);
  object.Set("scores", numbers(env, found.scores));
  return object;
}

// dot64(matrix, row, queries, query, dimension): one float64 dot product.
Napi::Value dot(const Napi::CallbackInfo& info) {
  const Napi::Float32Array matrix = floats(info, 0);
  const Napi::Float32Array queries = floats(info, 2);
  const size_t dimension = whole(info, 4);
  const size_t row = whole(info, 1);
  const size_t query = whole(info, 3);
  if ((row + 1) * dimension > matrix.ElementLength() || (query + 1) * dimension > queries.ElementLength()) {
    throw Napi::RangeError::New(info.Env(), "there is no such row");
  }
  return Napi::Number::New(info.Env(),
                           dot64(matrix.Data() + row * dimension, queries.Data() + query * dimension, dimension));
}

// banditTimes(dimension, arms, candidates, rounds): nanoseconds per arm, one number a round.
Napi::Value bandit(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return reported(env, [&]() -> Napi::Value {
    const BanditTimes times = bandit_times(whole(info, 0), whole(info, 1), whole(info, 2), whole(info, 3));
    Napi::Object object = Napi::Object::New(env);
    object.Set("scoreResident", numbers(env, times.score_resident));
    object.Set("scoreScattered", numbers(env, times.score_scattered));
    object.Set("updateResident", numbers(env, times.update_resident));
    object.Set("updateScattered", numbers(env, times.update_scattered));
    return object;
  });
}

// truncateTimes(n, dimension, rounds): nanoseconds per call, one number a round.
Napi::Value truncate(const Napi::CallbackInfo& info) {
  return reported(info.Env(), [&]() -> Napi::Value {
    return numbers(info.Env(), truncate_times(whole(info, 0), whole(info, 1), whole(info, 2)));
  });
}

// A call that does nothing, and one that takes a view: what crossing into native code costs.
Napi::Value nothing(const Napi::CallbackInfo& info) { return info.Env().Undefined(); }
Napi::Value view(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(info[0].As<Napi::Float32Array>().ElementLength()));
}
Napi::Value ten(const Napi::CallbackInfo& info) { return Napi::Float32Array::New(info.Env(), 10); }

Napi::Object fill_exports(Napi::Env env, Napi::Object object) {
  object.Set("cpus", Napi::Function::New(env, cpus));
  object.Set("pin", Napi::Function::New(env, pin));
  object.Set("levels", Napi::Function::New(env, levels));
  object.Set("bandwidth", Napi::Function::New(env, bandwidth));
  object.Set("peak", Napi::Function::New(env, peak));
  object.Set("fill", Napi::Function::New(env, fill));
  object.Set("truth", Napi::Function::New(env, truth));
  object.Set("dot64", Napi::Function::New(env, dot));
  object.Set("banditTimes", Napi::Function::New(env, bandit));
  object.Set("truncateTimes", Napi::Function::New(env, truncate));
  object.Set("nothing", Napi::Function::New<nothing>(env));
  object.Set("view", Napi::Function::New<view>(env));
  object.Set("ten", Napi::Function::New<ten>(env));
  return object;
}

}  // namespace

Napi::Object probe_exports(Napi::Env env, Napi::Object object) { return fill_exports(env, object); }

}  // namespace finch::bench

using finch::bench::probe_exports;

NODE_API_MODULE(toolfinch_probe, probe_exports)
