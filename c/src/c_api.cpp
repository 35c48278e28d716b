// The C interface: errors, names and conversions.
#include "c_api.hpp"

#include <algorithm>
#include <cstring>

#include "warmgraph/base/log.hpp"

namespace warmgraph::c_api {

namespace {

thread_local Failure t_failure;

void remember(ErrorCode code, const char* text) noexcept
{
    t_failure.status = static_cast<wg_status>(code);
    ++t_failure.count;
    try {
        t_failure.text = text;
    } catch (const std::bad_alloc&) {
        t_failure.text = "out of memory"; // so short that std::string allocates nothing
    }
}

} // namespace

const Failure& last_failure() noexcept { return t_failure; }

void write_text(std::string_view from, char* text, std::uint64_t capacity, std::uint64_t* length)
{
    if (text == nullptr && capacity != 0)
        refuse("text is null with a capacity of {} bytes: pass a buffer, or a capacity of 0", capacity);
    if (length != nullptr) *length = from.size();
    if (capacity == 0) return;
    const std::size_t written = std::min<std::size_t>(from.size(), capacity - 1);
    std::memcpy(text, from.data(), written);
    text[written] = '\0';
}

wg_status remember_current_exception() noexcept
{
    try {
        throw;
    } catch (const Exception& thrown) {
        remember(thrown.code(), thrown.what());
    } catch (const CallbackFailed& thrown) {
        remember(ErrorCode::invalid_argument, thrown.what());
    } catch (const std::bad_alloc&) {
        remember(ErrorCode::out_of_memory, "out of host memory");
    } catch (const std::exception& thrown) {
        remember(ErrorCode::internal, thrown.what());
    } catch (...) {
        remember(ErrorCode::internal, "an exception was thrown that is not a std::exception");
    }
    return t_failure.status;
}

DType to_dtype(wg_dtype dtype, std::string_view of)
{
    if (dtype < 0 || dtype >= k_dtype_count)
        refuse("'{}' has the type {}, expected a wg_dtype, 0 to {}", of, dtype, k_dtype_count - 1);
    return static_cast<DType>(dtype);
}

std::optional<Policy> to_policy(wg_policy policy)
{
    switch (policy) {
    case wg_policy_default: return std::nullopt;
    case wg_policy_read_write: return Policy::read_write;
    case wg_policy_read_only: return Policy::read_only;
    case wg_policy_refresh: return Policy::refresh;
    case wg_policy_off: return Policy::off;
    case wg_policy_require_hit: return Policy::require_hit;
    case wg_policy_no_compile: return Policy::no_compile;
    default: refuse("policy is {}, expected a wg_policy, 0 to {}", policy, static_cast<int>(wg_policy_no_compile));
    }
}

std::map<std::string, std::string> to_map(const wg_key_value* list, std::uint64_t count, std::string_view what)
{
    std::map<std::string, std::string> result;
    for (const wg_key_value& pair : need_array(list, count, what)) {
        const char* key = pair.key; // a model has hundreds of keys: the message is made only for an error
        if (key == nullptr) need_text(key, fmt::format("a key of {}", what));
        if (pair.value == nullptr) need_text(pair.value, fmt::format("the value of '{}' in {}", key, what));
        if (!result.emplace(key, pair.value).second) refuse("'{}' is given twice in {}", key, what);
    }
    return result;
}

void check_size(std::uint64_t size, std::size_t least, std::string_view what)
{
    constexpr std::uint64_t k_most = 4096; // bytes: far more than any version of a struct has
    if (size < least || size > k_most)
        refuse("{} has the size {}, expected at least {}: set it to sizeof({})", what, size, least, what);
}

void copy_versioned(void* to, std::size_t known, const void* from, std::size_t least, std::string_view what)
{
    std::uint64_t size = 0;
    std::memcpy(&size, from, sizeof size);
    check_size(size, least, what);
    const auto* bytes = static_cast<const std::byte*>(from);
    if (size > known && std::any_of(bytes + known, bytes + size, [](std::byte byte) { return byte != std::byte{0}; }))
        throw Exception(
            ErrorCode::unsupported,
            fmt::format("{} sets members that warmgraph {} does not have: use a newer library, or leave them 0", what,
                        version()));
    std::memcpy(to, from, std::min<std::size_t>(size, known));
}

void write_versioned(void* to, std::uint64_t size, const void* from, std::size_t known) noexcept
{
    std::memset(to, 0, size);
    std::memcpy(to, from, std::min<std::size_t>(size, known));
}

} // namespace warmgraph::c_api

using namespace warmgraph;        // NOLINT: the functions of the C interface are in no namespace
using namespace warmgraph::c_api; // NOLINT

const char* wg_version() { return version().data(); }

const char* wg_backends() { return built_backends().data(); }

const char* wg_last_error() { return c_api::last_failure().text.c_str(); }

const char* wg_status_name(wg_status status)
{
    if (status == wg_ok) return "ok";
    if (status < wg_invalid_argument || status > wg_untrusted) return "unknown";
    return to_string(static_cast<ErrorCode>(status)).data();
}

wg_status wg_receive_log(void (*receive)(wg_log_level level, const char* line, void* user), void* user)
{
    return guarded([&] {
        LogReceiver receiver;
        if (receive != nullptr)
            receiver = [receive, user](spdlog::level::level_enum level, const std::string& line) {
                receive(static_cast<wg_log_level>(level), line.c_str(), user);
            };
        if (!set_log_receiver(std::move(receiver)))
            refuse("the log receiver cannot be set by a log receiver: set it outside");
    });
}

wg_status wg_limit_log(wg_log_level least)
{
    return guarded([&] {
        if (least < wg_log_trace || least > wg_log_error) refuse("the log level is {}, expected a wg_log_level", least);
        limit_log(static_cast<spdlog::level::level_enum>(least));
    });
}

const char* wg_outcome_name(wg_outcome outcome)
{
    if (outcome < wg_outcome_recorded || outcome > wg_outcome_refused) return "unknown";
    return to_string(static_cast<Outcome>(outcome)).data();
}
