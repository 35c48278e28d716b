// The promise to users: a program gives the same results with a cache and without. A scene is such a program. It runs
// three times: natively (policy off), with an empty cache, and with the cache of the second run. All results must be
// equal to the native results.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cache_options.hpp"
#include "matchers.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {

/// The outcomes and results of a scene's calls, in order.
struct CallResults {
    std::vector<std::string> outcomes;
    std::vector<std::string> reasons;
    std::vector<std::vector<std::int32_t>> results; ///< all words that the program can see after each call
};

/// A scene makes its own memory and state, wraps functions in the cache, and calls them. It does the same each time.
using Scene = std::function<void(Cache&, CallResults&)>;

class PromiseTest : public testing::Test {
protected:
    static constexpr std::int64_t k_count = 256; ///< elements of 4 bytes
    static constexpr std::uint64_t k_bytes = k_count * 4;
    static constexpr Launch k_launch{.grid = {2, 1, 1}, .block = {128, 1, 1}};

    explicit PromiseTest(std::string_view id) : device{id} {}

    [[nodiscard]] CacheOptions options(Policy policy) const
    {
        return cache_options("promises", dir.path() / "cache", policy);
    }
    /// Waits until all work of the program in all streams is done.
    virtual void settle() { device.synchronize(); }
    [[nodiscard]] CallResults see(Policy policy, const Scene& scene) const
    {
        CallResults seen;
        Cache cache{options(policy)};
        scene(cache, seen);
        return seen;
    }
    void call(CallResults& seen, Function& function, const std::vector<Arg>& args,
              std::initializer_list<const Buffer*> results)
    {
        note(seen, function.call(args), function, results);
    }
    void note(CallResults& seen, Outcome outcome, const Function& function,
              std::initializer_list<const Buffer*> results)
    {
        seen.outcomes.emplace_back(to_string(outcome));
        seen.reasons.push_back(function.report().reason);
        note_results(seen, results);
    }
    void note_results(CallResults& seen, std::initializer_list<const Buffer*> results)
    {
        settle();
        auto& all = seen.results.emplace_back();
        for (const Buffer* buffer : results) {
            const auto words = buffer->read<std::int32_t>();
            all.insert(all.end(), words.begin(), words.end());
        }
    }
    /// The results that are compared when every call is refused. If the callable counts its runs on the host, the
    /// captures count, too; then only the result of the first call can be compared.
    enum class Compared : std::uint8_t { all_calls, first_call };
    void expect_refused(const Scene& scene, const testing::Matcher<const std::string&>& why,
                        Compared compared = Compared::all_calls)
    {
        CallResults native = see(Policy::off, scene);
        for (const char* process : {"with an empty cache", "with what that left"}) {
            CallResults cached = see(Policy::read_write, scene);
            ASSERT_FALSE(cached.results.empty());
            EXPECT_THAT(cached.outcomes, Each("refused")) << process;
            EXPECT_THAT(cached.reasons.front(), why) << process;
            expect_equal(native, cached, process, compared == Compared::all_calls ? native.results.size() : 1);
        }
    }
    /// Expects these outcomes with an empty cache. Expects the native results in that run, and in a further run with
    /// the cache that it made.
    CallResults expect_native(const Scene& scene, const testing::Matcher<const std::vector<std::string>&>& outcomes)
    {
        const CallResults native = see(Policy::off, scene), cached = see(Policy::read_write, scene);
        EXPECT_THAT(cached.outcomes, outcomes) << testing::PrintToString(cached.reasons);
        expect_equal(native, cached, "with an empty cache", native.results.size());
        CallResults later = see(Policy::read_write, scene);
        expect_equal(native, later, "with what that left", native.results.size());
        return later;
    }
    /// Expects that the first call records, and that all later calls replay.
    void expect_recorded(const Scene& scene)
    {
        const CallResults later =
            expect_native(scene, testing::ResultOf(
                                     [](const std::vector<std::string>& all) {
                                         return all.front() == "recorded" &&
                                                std::all_of(all.begin() + 1, all.end(),
                                                            [](const auto& one) { return one == "replayed"; });
                                     },
                                     true));
        EXPECT_THAT(later.outcomes, Each("replayed")) << testing::PrintToString(later.reasons);
    }
    static void expect_equal(const CallResults& native, const CallResults& cached, const std::string& process,
                             std::size_t calls)
    {
        ASSERT_EQ(cached.results.size(), native.results.size()) << process;
        for (std::size_t i = 0; i < calls; ++i)
            EXPECT_EQ(cached.results[i], native.results[i])
                << process << ", call " << i + 1 << ", which was "
                << cached.outcomes[std::min(i, cached.outcomes.size() - 1)] << ": "
                << cached.reasons[std::min(i, cached.reasons.size() - 1)];
    }
    [[nodiscard]] Buffer words(std::int32_t first, std::int64_t count = k_count) const
    {
        std::vector<std::int32_t> values(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<std::int32_t>(i);
        return device.upload<std::int32_t>(values);
    }
    [[nodiscard]] Buffer filled(std::int32_t value, std::int64_t count = k_count) const
    {
        return device.upload<std::int32_t>(std::vector<std::int32_t>(static_cast<std::size_t>(count), value));
    }
    /// x -> y
    [[nodiscard]] static Spec spec(const Program& program) { return x_to_y(i32, k_count, {program}); }

    TempDir dir;
    Device device;
};

} // namespace warmgraph::test
