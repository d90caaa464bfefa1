// One native object used by several environments of the process: share() gives a token, a string that can be posted to
// a worker, and fromShared() there gives a handle of the same object. A token keeps nothing alive.
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <unordered_map>

#include "entry.hpp"

namespace finch::node {
namespace {

// Told apart from every other process's, whose numbers would lead to other objects.
uint64_t process_mark() {
  static const uint64_t mark = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }();
  return mark;
}

// Of any thread. Never destroyed: workers may still end while the process does.
template <typename T>
class Registry {
 public:
  static Registry& instance() {
    static Registry* const registry = new Registry();
    return *registry;
  }

  // The object's number, the same each time.
  uint64_t add(const std::shared_ptr<T>& object, uint32_t dimension) {
    std::lock_guard lock(mutex_);
    if (const auto at = numbers_.find(object); at != numbers_.end()) return at->second;
    if (objects_.size() >= prune_at_) {
      prune();
      prune_at_ = 2 * objects_.size() + kLeastPruned;
    }
    const uint64_t number = ++last_;
    objects_.emplace(number, Entry{object, dimension});
    try {
      numbers_.emplace(object, number);
    } catch (...) {
      objects_.erase(number);
      throw;
    }
    return number;
  }

  // Null when it is gone.
  std::shared_ptr<T> find(uint64_t number, uint32_t* dimension) {
    std::lock_guard lock(mutex_);
    const auto at = objects_.find(number);
    if (at == objects_.end()) return nullptr;
    *dimension = at->second.dimension;
    return at->second.object.lock();
  }

  size_t count() {
    std::lock_guard lock(mutex_);
    prune();
    return objects_.size();
  }

 private:
  struct Entry {
    std::weak_ptr<T> object;
    uint32_t dimension;
  };
  static constexpr size_t kLeastPruned = 64;

  void prune() {
    std::erase_if(numbers_, [](const auto& entry) { return entry.first.expired(); });
    std::erase_if(objects_, [](const auto& entry) { return entry.second.object.expired(); });
  }

  std::mutex mutex_;
  std::unordered_map<uint64_t, Entry> objects_;
  std::map<std::weak_ptr<T>, uint64_t, std::owner_less<>> numbers_;
  uint64_t last_ = 0;
  size_t prune_at_ = kLeastPruned;
};

template <typename T>
Napi::Value share(const Arguments& arguments) {
  const char* kind = HandleKind<T>::name;
  const Box<T>& box = arguments.handle<T>(0, kind);
  char token[64];
  std::snprintf(token, sizeof(token), "toolfinch-%s:%016" PRIx64 ":%" PRIu64, kind, process_mark(),
                Registry<T>::instance().add(box.object, box.dimension));
  return Napi::String::New(arguments.env(), token);
}

bool read_number(std::string_view text, int base, uint64_t* out) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && rest == text.data() + text.size();
}

template <typename T>
Napi::Value from_shared(const Arguments& arguments) {
  const std::string kind = HandleKind<T>::name;
  const std::string token = read_string(arguments.env(), arguments[0], "token", Surrogates::replace);
  const std::string start = "toolfinch-" + kind + ":";
  constexpr size_t kMarkDigits = 16;
  uint64_t mark = 0;
  uint64_t number = 0;
  const std::string_view rest = std::string_view(token).substr(std::min(start.size(), token.size()));
  if (token.rfind(start, 0) != 0 || rest.size() < kMarkDigits + 2 || rest[kMarkDigits] != ':' ||
      !read_number(rest.substr(0, kMarkDigits), 16, &mark) || !read_number(rest.substr(kMarkDigits + 1), 10, &number)) {
    refuse_argument("Expected token to be what share() of " + with_article(kind) + " gave but received " +
                    describe(arguments.env(), arguments[0]) + ".");
  }
  if (mark != process_mark()) {
    refuse_argument("This token comes from another process (or another copy of the addon): " + with_article(kind) +
                    " is shared by the workers of one process. Between processes, share a file and open it mapped.");
  }
  uint32_t dimension = 0;
  std::shared_ptr<T> object = Registry<T>::instance().find(number, &dimension);
  if (object == nullptr) {
    refuse(FINCH_CLOSED, "The " + kind +
                             " of this token is gone: it was closed, or collected, everywhere. Keep it open until " +
                             "the worker says that it has it.");
  }
  return make_handle(arguments.env(), std::move(object), dimension);
}

Napi::Value shared_count(const Arguments& arguments) {
  const size_t count = Registry<finch_index>::instance().count() + Registry<finch_bandit>::instance().count();
  return Napi::Number::New(arguments.env(), static_cast<double>(count));
}

constexpr Export kExports[] = {
    {"indexShare", sync_entry<share<finch_index>>},   {"indexFromShared", sync_entry<from_shared<finch_index>>},
    {"banditShare", sync_entry<share<finch_bandit>>}, {"banditFromShared", sync_entry<from_shared<finch_bandit>>},
    {"sharedCount", sync_entry<shared_count>},
};

}  // namespace

std::span<const Export> shared_exports() { return kExports; }

}  // namespace finch::node
