// One case: a wrapped callable does work of one CUDA library. It runs in three processes: native (without a cache),
// record, replay. The results of record and replay are compared with the native results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmgraph/warmgraph.hpp"

struct CUstream_st;

namespace warmgraph::test::libraries {

/// The flat address of another region of the case, in this process.
using AddressOf = std::function<std::uint64_t(std::string_view region)>;
/// Returns the bytes that a region has before each call.
using Contents = std::function<std::vector<std::byte>(const AddressOf&)>;

enum class Kind : std::uint8_t { input, output, state, weights };

/// How elements are read when results are compared.
enum class Reading : std::uint8_t {
    as_declared,
    e4m3, ///< 8-bit floats that are declared as u8
};

/// A range of device memory in a case. Inputs, states and weights have the same contents in each process and before
/// each call. Outputs have other contents before each call, so that an unwritten result is noticed.
struct Region {
    std::string name;
    Kind kind = Kind::input;
    DType dtype = f32;
    std::int64_t count = 0; ///< number of elements
    Contents contents{};    ///< empty: pseudo-random numbers between -1 and 1, or integers between -1000 and 1000
    Reading reading = Reading::as_declared;
};

struct Case {
    std::vector<Region> regions;
    /// Makes handles and plans once, before the first call. Not called in a process that only replays.
    std::function<void()> set_up{};
    Callable work{};
    std::vector<Program> code{};
    std::vector<std::string> no_addresses{};
    Undeclared undeclared = Undeclared::refuse;
    /// Whether the numbers continue from call to call and are counted on the host. A replay would repeat them, so the
    /// call must be refused.
    bool is_counting = false;
};

using MakeCase = std::function<Case(const Device&)>;

struct Cases {
    struct Entry {
        std::string name;
        MakeCase make;
    };
    std::vector<Entry> entries;
    std::vector<std::pair<std::string, std::string>> left_out; ///< the libraries that are left out, and the reasons

    void add(std::string name, MakeCase make) { entries.push_back({std::move(name), std::move(make)}); }
    void leave_out(std::string library, std::string why) { left_out.emplace_back(std::move(library), std::move(why)); }
};

// Each of these functions adds the cases of one file in this folder.
void add_cublas_cases(Cases& all);
void add_cublaslt_cases(Cases& all);
void add_cufft_cases(Cases& all);
void add_cusparse_cases(Cases& all);
void add_cusolver_cases(Cases& all);
void add_curand_cases(Cases& all);
void add_cudnn_cases(Cases& all);
void add_cub_thrust_cases(Cases& all);

/// The case cannot run on this machine, which is not an error: the library is missing, or the device is too old.
class Lacking : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Finds a library's functions by name. The library is opened at run time: this program then starts without it, and a
/// process that only replays does not need it.
class Library {
public:
    explicit Library(std::initializer_list<const char*> names);
    template <class F>
    [[nodiscard]] F find(const char* name) const
    {
        return reinterpret_cast<F>(find_address(name));
    }

private:
    [[nodiscard]] void* find_address(const char* name) const;
    void* m_handle = nullptr;
    std::string m_name;
};

/// A function by its name. The macros of cuBLAS are applied (cublasCreate becomes cublasCreate_v2). Not for overloaded
/// functions.
#define WG_FIND(library, name) WG_FIND_EXPANDED(library, name)
#define WG_FIND_EXPANDED(library, name) (library).find<decltype(&::name)>(#name)

/// Calls a function of a library. Throws an error with the text of the call if the status is not 0 (all libraries
/// return 0 for success).
#define WG_LIBRARY_CALL(library, name, ...)                                                                            \
    ::warmgraph::test::libraries::expect_ok(static_cast<int>(WG_FIND(library, name)(__VA_ARGS__)), #name)

inline void expect_ok(int status, const char* call)
{
    if (status != 0) throw std::runtime_error(std::string{call} + " failed with status " + std::to_string(status));
}

[[nodiscard]] inline CUstream_st* stream_of(Recorder& r) { return static_cast<CUstream_st*>(r.stream().native()); }

/// Declares scratch of at least `bytes` and returns its address. `bytes` may be 0.
[[nodiscard]] inline void* scratch(Recorder& r, const char* name, std::size_t bytes)
{
    constexpr std::size_t k_least = 256;
    return r.alloc(name, bytes < k_least ? k_least : bytes).pointer();
}

/// Adds the work of an object T to the case `described`. The object is made outside of the callable, and the callable
/// calls T::enqueue(Recorder&).
template <class T, class... Args>
[[nodiscard]] Case with_work(Case described, Args... args)
{
    auto made = std::make_shared<std::unique_ptr<T>>();
    const auto get = [made, args...]() -> T& {
        if (!*made) *made = std::make_unique<T>(args...);
        return **made;
    };
    described.set_up = [get] { static_cast<void>(get()); };
    described.work = [get](Recorder& r) { get().enqueue(r); };
    return described;
}

/// Fixed contents that are the same in every process.
template <class T>
[[nodiscard]] Contents values(std::vector<T> list)
{
    return [list = std::move(list)](const AddressOf&) {
        std::vector<std::byte> bytes(list.size() * sizeof(T));
        std::memcpy(bytes.data(), list.data(), bytes.size());
        return bytes;
    };
}

} // namespace warmgraph::test::libraries
