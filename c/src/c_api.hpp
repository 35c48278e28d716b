// The C interface's handles, and the conversion of exceptions to a status and a text of the thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"
#include "warmgraph/warmgraph.h"
#include "warmgraph/warmgraph.hpp"

struct wg_stream {
    enum class Owner : std::uint8_t { user, device, recorder };

    wg_stream(Owner its_owner, warmgraph::Stream&& its) : owner(its_owner), own(std::move(its)), stream(*own) {}
    explicit wg_stream(warmgraph::Stream& of_recorder) : owner(Owner::recorder), stream(of_recorder) {}
    wg_stream(const wg_stream&) = delete;
    wg_stream& operator=(const wg_stream&) = delete;

    Owner owner;
    std::optional<warmgraph::Stream> own; ///< empty for a recorder's stream, which the recorder owns
    warmgraph::Stream& stream;
};

struct wg_device {
    warmgraph::Device device;
    wg_stream default_stream;
    std::string id, name;
};

struct wg_buffer {
    warmgraph::Buffer buffer;
};

struct wg_program {
    warmgraph::Program program;
};

struct wg_event {
    warmgraph::Event event;
};

struct wg_watch {
    warmgraph::StreamWatch watch;
};

struct wg_cache {
    warmgraph::Cache cache;
    std::string directory, disabled_reason;
};

struct wg_artifacts {
    std::vector<std::byte> bytes;
    std::string info;
};

struct wg_preload {
    warmgraph::Preload preload;
};

struct wg_function {
    warmgraph::Function function;
};

struct wg_pair {
    warmgraph::Pair pair;
};

struct wg_report {
    warmgraph::Report report;
};

struct wg_recorder {
    explicit wg_recorder(warmgraph::Recorder& of_run) : recorder(of_run), main(of_run.stream()) {}
    warmgraph::Recorder& recorder;
    wg_stream main;
    std::deque<wg_stream> forks; // a deque, so that handles stay valid while it grows
};

namespace warmgraph::c_api {

/// Thrown when the callback returned nonzero and no wg_ function failed in it. It is not an Exception, so that
/// recording takes it as a failure of the wrapped code, like any exception of a C++ callable.
class CallbackFailed : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The last failure of this thread.
struct Failure {
    wg_status status = wg_ok;
    std::string text;
    std::uint64_t count = 0; ///< number of failures in this thread, to see whether a new one happened
};
[[nodiscard]] const Failure& last_failure() noexcept;

/// Stores the exception that is being handled as the thread's last failure, and returns its status.
wg_status remember_current_exception() noexcept;

/// Runs f. An exception becomes the status and the thread's text.
template <class F>
wg_status guarded(F&& f) noexcept
{
    try {
        f();
        return wg_ok;
    } catch (...) {
        return remember_current_exception();
    }
}

/// Runs f and returns its value, or `otherwise` if it throws. Getters use it.
template <class T, class F>
T guarded_get(T otherwise, F&& f) noexcept
{
    T value = otherwise;
    guarded([&] { value = f(); });
    return value;
}

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args)
{
    throw Exception(ErrorCode::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

/// Returns the object that a pointer points to. Throws if it is null: the text names `what`, and `cure` says what to
/// pass.
template <class T>
T& need(T* pointer, std::string_view what, std::string_view cure)
{
    if (pointer == nullptr) refuse("{} is null: pass {}", what, cure);
    return *pointer;
}

inline const char* need_text(const char* text, std::string_view what)
{
    return &need(text, what, "a text that ends with a zero byte");
}

template <class T>
std::span<const T> need_array(const T* first, std::uint64_t count, std::string_view what)
{
    if (first == nullptr && count != 0)
        refuse("{} is null with {} elements: pass the array, or 0 elements", what, count);
    return {first, static_cast<std::size_t>(count)};
}

/// Sets an `out` handle to null before anything can fail.
template <class T>
T*& need_out(T** out)
{
    T*& handle = need(out, "out", "a variable for the handle");
    handle = nullptr;
    return handle;
}

/// Runs f and stores the handle that it returns in `out`; NULL if it throws.
template <class T, class F>
wg_status guarded_handle(T** out, F&& f) noexcept
{
    return guarded([&] {
        T*& handle = need_out(out);
        handle = f();
    });
}

[[nodiscard]] inline wg_device& need_device(wg_device* device)
{
    return need(device, "device", "one from wg_device_open");
}
[[nodiscard]] inline const wg_device& need_device(const wg_device* device)
{
    return need(device, "device", "one from wg_device_open");
}
[[nodiscard]] inline wg_stream& need_stream(wg_stream* stream)
{
    return need(stream, "stream", "wg_device_stream(device) for the default one");
}

[[nodiscard]] DType to_dtype(wg_dtype dtype, std::string_view of);
[[nodiscard]] PairHalf to_half(wg_pair_half half);
[[nodiscard]] std::optional<Policy> to_policy(wg_policy policy);
[[nodiscard]] std::map<std::string, std::string> to_map(const wg_key_value* list, std::uint64_t count,
                                                        std::string_view what);

[[nodiscard]] inline Address to_address(const wg_address& address) noexcept { return {address.base, address.offset}; }
[[nodiscard]] inline MemoryRef to_memory(const wg_memory& memory) noexcept
{
    return {to_address(memory.address), memory.size};
}
[[nodiscard]] inline wg_address from_address(const Address& address) noexcept { return {address.base, address.offset}; }

// The sizes of the structs in the first version (0.1.0). A smaller size is refused, also after a struct has grown.
inline constexpr std::size_t k_least_cache_options = 80, k_least_function_spec = 160, k_least_statistics = 56,
                             k_least_kind_statistics = 64, k_least_launch_options = 56, k_least_native_capture = 64,
                             k_least_adoption = 48, k_least_preload_progress = 40, k_least_preload_options = 40,
                             k_least_pair_spec = 56, k_least_entry_query = 32;
static_assert(sizeof(wg_cache_options) >= k_least_cache_options && sizeof(wg_function_spec) >= k_least_function_spec &&
              sizeof(wg_statistics) >= k_least_statistics && sizeof(wg_kind_statistics) >= k_least_kind_statistics &&
              sizeof(wg_launch_options) >= k_least_launch_options &&
              sizeof(wg_native_capture) >= k_least_native_capture && sizeof(wg_adoption) >= k_least_adoption &&
              sizeof(wg_preload_progress) >= k_least_preload_progress &&
              sizeof(wg_preload_options) >= k_least_preload_options && sizeof(wg_pair_spec) >= k_least_pair_spec &&
              sizeof(wg_entry_query) >= k_least_entry_query);

/// Reads the caller's spec; members that its version does not have take their defaults. Throws if the name is null.
[[nodiscard]] wg_function_spec known_spec(const wg_function_spec* spec);
[[nodiscard]] Spec to_spec(const wg_function_spec& from);
/// Reads a caller's spec whose name is not used. `what` names the spec in errors.
[[nodiscard]] Spec to_unnamed_spec(const wg_function_spec* from, const char* what);
[[nodiscard]] std::vector<TensorDecl> to_tensors(const wg_tensor_decl* first, std::uint64_t count,
                                                 std::string_view what);
/// Makes a callable from a C callback. A failure inside becomes the Exception that the C++ function would have thrown,
/// so that a refusal to record stays a refusal.
[[nodiscard]] Callable to_callable(const std::string& name, wg_callback callback, void* user);
[[nodiscard]] std::vector<Arg> to_args(const wg_arg* args, std::uint64_t count);
/// Returns the misses as the text that wg_function_misses writes.
[[nodiscard]] std::string misses_text(const std::vector<Miss>& misses);
[[nodiscard]] std::vector<Buckets> to_buckets(const wg_function_spec& from);
/// Converts an argument. Its name must live as long as the result.
[[nodiscard]] Arg to_arg(const wg_arg& from);

/// Makes tiers of the callbacks. They call `release` at their end only after release_with(): until then, the caller
/// owns its data.
[[nodiscard]] std::vector<TierOptions> to_tiers(const wg_cache_options& options);
void release_with(const std::vector<TierOptions>& tiers) noexcept;

/// Throws invalid_argument if the size is below `least`, or so large that the caller cannot have set it.
void check_size(std::uint64_t size, std::size_t least, std::string_view what);

/// Copies a caller's struct, whose first member is its size, over a struct of this version that has the defaults.
void copy_versioned(void* to, std::size_t known, const void* from, std::size_t least, std::string_view what);

/// Copies the first `size` bytes of this version's struct to a caller's struct. Further members of the caller's struct
/// become 0.
void write_versioned(void* to, std::uint64_t size, const void* from, std::size_t known) noexcept;

/// Writes a text as snprintf does.
void write_text(std::string_view from, char* text, std::uint64_t capacity, std::uint64_t* length);

} // namespace warmgraph::c_api
