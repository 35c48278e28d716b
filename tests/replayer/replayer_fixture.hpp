// Helpers for the tests of warmgraph/replay.h: handles that own their objects, and calls.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warmgraph/replay.h"

namespace warmgraph::test {

template <class T>
using Handle = std::unique_ptr<T, wgr_status (*)(T*)>;

/// Returns "wgr_ok", or the status and the error's text.
[[nodiscard]] inline std::string told(wgr_status status)
{
    return status == wgr_ok ? "wgr_ok" : std::to_string(status) + ": " + wgr_last_error();
}

/// Expects this status, and an error text that contains `text`.
inline void expect_refused(wgr_status status, wgr_status expected, const std::string& text)
{
    EXPECT_EQ(status, expected) << told(status);
    EXPECT_THAT(wgr_last_error(), testing::HasSubstr(text));
}

[[nodiscard]] inline Handle<wgr_device> open_device(const char* id)
{
    wgr_device* device = nullptr;
    EXPECT_EQ(told(wgr_device_open(id, &device)), "wgr_ok");
    return {device, wgr_device_close};
}

[[nodiscard]] inline wgr_cache_options options_of(const char* model, const std::string& folder)
{
    wgr_cache_options options = WGR_CACHE_OPTIONS;
    options.model = model;
    options.cache_dir = folder.c_str();
    options.world_size = 1;
    options.global_rank = 0;
    return options;
}

[[nodiscard]] inline Handle<wgr_cache> open_cache(const wgr_cache_options& options)
{
    wgr_cache* cache = nullptr;
    EXPECT_EQ(told(wgr_cache_open(&options, &cache)), "wgr_ok");
    return {cache, wgr_cache_close};
}

/// Loads a function. Returns null when the load is refused; wgr_last_error() then says why.
[[nodiscard]] inline Handle<wgr_function> load(wgr_cache* cache, wgr_device* device, const char* name,
                                               const char* digest = nullptr)
{
    wgr_function* function = nullptr;
    static_cast<void>(wgr_load(cache, device, name, digest, &function));
    return {function, wgr_function_destroy};
}

[[nodiscard]] inline wgr_tensor as_recorded(const wgr_memory& memory) { return {memory, nullptr, nullptr, 0, 0}; }

[[nodiscard]] inline wgr_number real(float value)
{
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return {wgr_f32, bits};
}

[[nodiscard]] inline wgr_number whole(std::int64_t value) { return {wgr_i64, static_cast<std::uint64_t>(value)}; }

[[nodiscard]] inline wgr_status launch(const Handle<wgr_function>& function, const std::vector<wgr_tensor>& tensors,
                                       const std::vector<wgr_number>& numbers = {}, void* stream = nullptr)
{
    return wgr_launch(function.get(), stream, tensors.data(), tensors.size(), numbers.data(), numbers.size());
}

/// Device memory with given contents.
class Room {
public:
    template <class T>
    Room(wgr_device* device, const std::vector<T>& contents) : m_device(device)
    {
        EXPECT_EQ(told(wgr_memory_create(device, contents.size() * sizeof(T), &m_memory)), "wgr_ok");
        EXPECT_EQ(told(wgr_upload(device, m_memory, contents.data(), m_memory.size)), "wgr_ok");
    }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room() { static_cast<void>(wgr_memory_destroy(m_device, m_memory)); }

    [[nodiscard]] const wgr_memory& memory() const noexcept { return m_memory; }
    [[nodiscard]] wgr_tensor tensor() const noexcept { return as_recorded(m_memory); }
    template <class T>
    [[nodiscard]] std::vector<T> read() const
    {
        std::vector<T> contents(m_memory.size / sizeof(T));
        EXPECT_EQ(told(wgr_download(m_device, m_memory, contents.data(), m_memory.size)), "wgr_ok");
        return contents;
    }

private:
    wgr_device* m_device;
    wgr_memory m_memory{};
};

/// The entries of a function. wgr_entries_list returns them.
[[nodiscard]] inline Handle<wgr_entries> list(wgr_cache* cache, wgr_device* device, const char* name)
{
    wgr_entries* entries = nullptr;
    EXPECT_EQ(told(wgr_entries_list(cache, device, name, &entries)), "wgr_ok");
    return {entries, wgr_entries_destroy};
}

} // namespace warmgraph::test
