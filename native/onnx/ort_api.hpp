// The part of onnxruntime's C API that Toolfinch calls. The library is opened at run time; its function table is
// append-only, so a place in it, once released, keeps its meaning. Everything used here has been there since version 3
// of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "toolfinch.h"

namespace finch::ort {

struct Status;
struct Env;
struct MemoryInfo;
struct Session;
struct Value;
struct RunOptions;
struct TypeInfo;
struct TensorInfo;
struct SessionOptions;
struct Allocator;

#if defined(_WIN32)
using PathChar = wchar_t;
#else
using PathChar = char;
#endif

enum Severity : int { kSeverityError = 3, kSeverityFatal = 4 };
enum ElementType : int { kFloat = 1, kInt64 = 7 };
enum OnnxType : int { kTensor = 1 };
enum AllocatorType : int { kDeviceAllocator = 0 };
enum MemoryType : int { kDefaultMemory = 0 };
enum Optimization : int { kOptimizeAll = 99 };

using Logger = void (*)(void* parameter, int severity, const char* category, const char* id, const char* where,
                        const char* message);

using Unused = void (*)();

// Places of the table, in its order. A function returns NULL or a status to release.
struct Api {
  Unused unused_0[2];
  const char* (*get_error_message)(const Status* status);  // 2
  Unused unused_3[1];
  Status* (*create_env_with_logger)(Logger logger, void* parameter, int severity, const char* id, Env** out);  // 4
  Unused unused_5[1];
  Status* (*disable_telemetry)(const Env* env);                                                                   // 6
  Status* (*create_session)(const Env* env, const PathChar* path, const SessionOptions* options, Session** out);  // 7
  Unused unused_8[1];
  Status* (*run)(Session* session, const RunOptions* options, const char* const* input_names,
                 const Value* const* inputs, size_t input_count, const char* const* output_names, size_t output_count,
                 Value** outputs);                          // 9
  Status* (*create_session_options)(SessionOptions** out);  // 10
  Unused unused_11[6];
  Status* (*disable_memory_pattern)(SessionOptions* options);  // 17
  Unused unused_18[1];
  Status* (*disable_cpu_arena)(SessionOptions* options);  // 19
  Unused unused_20[2];
  Status* (*set_session_log_severity)(SessionOptions* options, int severity);  // 22
  Status* (*set_optimization)(SessionOptions* options, int level);             // 23
  Status* (*set_intra_op_threads)(SessionOptions* options, int threads);       // 24
  Status* (*set_inter_op_threads)(SessionOptions* options, int threads);       // 25
  Unused unused_26[4];
  Status* (*session_input_count)(const Session* session, size_t* out);   // 30
  Status* (*session_output_count)(const Session* session, size_t* out);  // 31
  Unused unused_32[1];
  Status* (*session_input_type)(const Session* session, size_t index, TypeInfo** out);   // 33
  Status* (*session_output_type)(const Session* session, size_t index, TypeInfo** out);  // 34
  Unused unused_35[1];
  Status* (*session_input_name)(const Session* session, size_t index, Allocator* allocator, char** out);   // 36
  Status* (*session_output_name)(const Session* session, size_t index, Allocator* allocator, char** out);  // 37
  Unused unused_38[1];
  Status* (*create_run_options)(RunOptions** out);  // 39
  Unused unused_40[1];
  Status* (*set_run_log_severity)(RunOptions* options, int severity);  // 41
  Unused unused_42[4];
  Status* (*set_terminate)(RunOptions* options);  // 46
  Unused unused_47[2];
  Status* (*create_tensor_with_data)(const MemoryInfo* info, void* data, size_t bytes, const int64_t* shape,
                                     size_t rank, int type, Value** out);  // 49
  Unused unused_50[1];
  Status* (*tensor_data)(Value* value, void** out);  // 51
  Unused unused_52[3];
  Status* (*tensor_info_of_type)(const TypeInfo* type, const TensorInfo** out);  // 55
  Unused unused_56[4];
  Status* (*element_type)(const TensorInfo* info, int* out);                     // 60
  Status* (*dimension_count)(const TensorInfo* info, size_t* out);               // 61
  Status* (*dimensions)(const TensorInfo* info, int64_t* values, size_t count);  // 62
  Unused unused_63[2];
  Status* (*tensor_info_of_value)(const Value* value, TensorInfo** out);  // 65
  Unused unused_66[3];
  Status* (*create_cpu_memory_info)(int allocator_type, int memory_type, MemoryInfo** out);  // 69
  Unused unused_70[6];
  Status* (*allocator_free)(Allocator* allocator, void* pointer);  // 76
  Unused unused_77[1];
  Status* (*default_allocator)(Allocator** out);  // 78
  Unused unused_79[14];
  void (*release_status)(Status* status);  // 93
  Unused unused_94[1];
  void (*release_session)(Session* session);                 // 95
  void (*release_value)(Value* value);                       // 96
  void (*release_run_options)(RunOptions* options);          // 97
  void (*release_type_info)(TypeInfo* info);                 // 98
  void (*release_tensor_info)(TensorInfo* info);             // 99
  void (*release_session_options)(SessionOptions* options);  // 100
  Unused unused_101[24];
  Status* (*get_available_providers)(char*** out, int* count);          // 125
  Status* (*release_available_providers)(char** providers, int count);  // 126
};

static_assert(offsetof(Api, run) == 9 * sizeof(void*));
static_assert(offsetof(Api, set_inter_op_threads) == 25 * sizeof(void*));
static_assert(offsetof(Api, session_output_name) == 37 * sizeof(void*));
static_assert(offsetof(Api, set_terminate) == 46 * sizeof(void*));
static_assert(offsetof(Api, dimensions) == 62 * sizeof(void*));
static_assert(offsetof(Api, default_allocator) == 78 * sizeof(void*));
static_assert(offsetof(Api, release_session_options) == 100 * sizeof(void*));
static_assert(offsetof(Api, release_available_providers) == 126 * sizeof(void*));

// An opened library. Lives as long as the process: its threads-local and static state cannot be unloaded safely.
struct Runtime {
  const Api* api;
  Env* env;
  MemoryInfo* cpu;
  Allocator* allocator;
  std::string version;
  void* library;

  // A function that the library exports beside the table, or NULL.
  Unused find(const char* name) const noexcept;
};

// Opens the library at `path` (UTF-8), once per process and file. FINCH_DEVICE: missing, not loadable, too old.
finch_status load(const char* path, const Runtime** out);

// The message of a failed status on one line, shortened; releases it. NULL gives "".
std::string describe(const Api& api, Status* status);

}  // namespace finch::ort
