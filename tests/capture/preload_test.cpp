// Cache::preload restores entries before their first calls, in the right order, even while the program does other
// things.
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "facade_fixture.hpp"

namespace warmgraph::test::preload_test {
namespace {

namespace fs = std::filesystem;

class PreloadAll : public FacadeTest {
protected:
    [[nodiscard]] Spec spec_of(const std::string& version = "1") const
    {
        Spec spec;
        spec.inputs = {input("x", f32, {k_count})};
        spec.outputs = {output("y", f32, {k_count})};
        spec.code = {program};
        spec.version = version;
        return spec;
    }
    /// The function y = x + 1 for any multiple of 16 elements.
    [[nodiscard]] Function any_size(Cache& cache, const std::string& name = "f") const
    {
        return cache.wrap(name, device, spec_of(), [this](Recorder& r) {
            const auto groups = static_cast<std::uint32_t>(r.sizes("x")[0] / 16);
            r.stream().launch(program, "add_one", {.grid = {groups}, .block = {16}}, r["x"], r["y"]);
        });
    }
    /// Calls `f` with `count` elements and checks the result.
    Outcome call(Function& f, std::int64_t count) const
    {
        const Buffer x = floats(5, count), y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        const Outcome outcome = f({{"x", Tensor{x, f32, {count}, {}}}, {"y", Tensor{y, f32, {count}, {}}}});
        EXPECT_EQ(read(y), read(floats(6, count)));
        return outcome;
    }
    void record(const std::vector<std::int64_t>& counts, const std::string& name = "f") const
    {
        Cache cache{options()};
        Function f = any_size(cache, name);
        for (const std::int64_t count : counts) ASSERT_EQ(call(f, count), Outcome::recorded);
    }
    static PreloadOptions all() { return {.wait = PreloadWait::all}; }
};

TEST_F(PreloadAll, RestoresEveryShapeAndCountsEachHitAtItsFirstUse)
{
    record({16, 32, 48, 64});
    Cache cache{options(Policy::require_hit)};
    Function f = any_size(cache);
    const Preload preload = cache.preload(all());
    EXPECT_EQ(preload.progress().loaded, 4U);
    EXPECT_EQ(preload.progress().failed, 0U);
    EXPECT_EQ(preload.progress().total, 4U);
    EXPECT_EQ(preload.progress().function, "f");
    EXPECT_GT(preload.progress().elapsed_ms, 0);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 0U);
    EXPECT_EQ(cache.statistics().images_loaded, 1U) << "images are shared";
    fs::remove_all(dir.path() / "cache"); // from now on, nothing can be read from the cache
    for (int round = 0; round < 2; ++round)
        for (const std::int64_t count : {48, 16, 64, 32}) EXPECT_EQ(call(f, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 4U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 0U);
    EXPECT_NE(cache.statistics().of(ArtifactKind::entries).saved_ms, 0)
        << "counted; a stopped machine may make it negative";
    EXPECT_EQ(f.report().outcome, Outcome::replayed);
}

TEST_F(PreloadAll, RestoresTheMostUrgentBeforeItReturnsAndTheRestInOrder)
{
    record({16}, "a");
    record({48}, "b");
    record({32}, "c");
    Cache cache{options()};
    const Function a = any_size(cache, "a"), b = any_size(cache, "b"), c = any_size(cache, "c");
    std::vector<std::string> order;
    std::vector<std::size_t> opened;
    std::promise<void> go;
    PreloadOptions urgent;
    urgent.threads = 1; // one thread, because several threads report in the order in which they finish
    urgent.urgency = [](std::string_view, std::span<const TensorDecl> inputs) {
        EXPECT_EQ(inputs.size(), 1U);
        EXPECT_EQ(inputs[0].name, "x");
        return static_cast<int>(inputs[0].sizes[0]);
    };
    urgent.progress = [&, released = go.get_future().share()](const PreloadProgress& now) {
        if (now.loaded > 1) released.wait();
        order.push_back(now.function);
        opened.push_back(now.loaded);
        EXPECT_EQ(now.total, 3U);
    };
    Preload preload = cache.preload(urgent);
    EXPECT_EQ(order, std::vector<std::string>{"b"});
    EXPECT_GE(preload.progress().loaded, 1U);
    go.set_value();
    preload.wait();
    preload.wait(); // a second wait is harmless
    EXPECT_EQ(order, (std::vector<std::string>{"b", "c", "a"}));
    EXPECT_EQ(opened, (std::vector<std::size_t>{1, 2, 3}));
}

TEST_F(PreloadAll, TheFirstIsRestoredBeforeAnythingElseIsLookedAtAndTheRestBehindIt)
{
    record({16}, "a");
    record({48}, "b");
    record({32}, "c");
    Cache cache{options()};
    Function a = any_size(cache, "a"), b = any_size(cache, "b"), c = any_size(cache, "c");
    std::vector<std::string> order;
    std::promise<void> go;
    std::atomic<int> asked = 0;
    PreloadOptions named;
    named.first = "a";
    named.threads = 1;
    named.urgency = [&, released = go.get_future().share()](std::string_view function, std::span<const TensorDecl>) {
        released.wait();
        ++asked;
        return function == "c" ? 1 : 0;
    };
    named.progress = [&](const PreloadProgress& now) { order.push_back(now.function); };
    Preload preload = cache.preload(named);
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(preload.progress().loaded, 1U);
    EXPECT_EQ(preload.progress().total, 1U);
    EXPECT_EQ(call(a, 16), Outcome::replayed) << "it waits for nobody";
    go.set_value();
    preload.wait();
    EXPECT_EQ(order, (std::vector<std::string>{"a", "c", "b"}));
    EXPECT_EQ(preload.progress().loaded, 3U);
    EXPECT_EQ(preload.progress().total, 3U);
    for (auto& [function, count] : {std::pair{&b, 48}, {&c, 32}}) EXPECT_EQ(call(*function, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 0U);
}

TEST_F(PreloadAll, TheFirstIsRightBeforeAndAfterItsGraphIsInstantiated)
{
    record({16}, "a");
    record({48}, "b");
    for (const bool is_kept : {true, false}) {
        Cache cache{options(Policy::require_hit)};
        Function a = any_size(cache, "a"), b = any_size(cache, "b");
        PreloadOptions named;
        named.first = "a";
        std::optional<Preload> preload{cache.preload(named)};
        if (!is_kept) preload.reset(); // then the second call must instantiate the graph
        for (int i = 0; i < 3; ++i) EXPECT_EQ(call(a, 16), Outcome::replayed);
        if (preload) preload->wait();
        for (int i = 0; i < 3; ++i) EXPECT_EQ(call(a, 16), Outcome::replayed);
        EXPECT_EQ(call(b, 48), Outcome::replayed);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 2U);
    }
}

TEST_F(PreloadAll, AFirstThatNobodyCallsIsInstantiatedAllTheSame)
{
    record({16}, "a");
    record({48}, "b");
    Cache cache{options(Policy::require_hit)};
    Function a = any_size(cache, "a");
    const Function b = any_size(cache, "b");
    PreloadOptions named;
    named.first = "a";
    Preload preload = cache.preload(named);
    preload.wait();
    EXPECT_EQ(preload.progress().loaded, 2U);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(a, 16), Outcome::replayed);
}

TEST_F(PreloadAll, AFirstThatHasNothingLeavesItToUrgency)
{
    record({16}, "a");
    record({48}, "b");
    Cache cache{options()};
    const Function a = any_size(cache, "a"), b = any_size(cache, "b"), none = any_size(cache, "none");
    for (const char* name : {"none", "unknown"}) {
        std::vector<std::string> order;
        PreloadOptions named = all();
        named.first = name;
        named.threads = 1;
        named.urgency = [](std::string_view function, std::span<const TensorDecl>) { return function == "b" ? 1 : 0; };
        named.progress = [&](const PreloadProgress& now) { order.push_back(now.function); };
        (void)cache.preload(named);
        EXPECT_EQ(order, (std::vector<std::string>{"b", "a"})) << name;
    }
}

TEST_F(PreloadAll, WhatUrgencyThrowsBehindTheFirstLeavesAllEqual)
{
    record({16}, "a");
    record({48}, "b");
    Cache cache{options()};
    const Function a = any_size(cache, "a"), b = any_size(cache, "b");
    PreloadOptions named = all();
    named.first = "a";
    named.urgency = [](std::string_view, std::span<const TensorDecl>) -> int { throw std::runtime_error("no"); };
    const Preload preload = cache.preload(named);
    EXPECT_EQ(preload.progress().loaded, 2U);
}

TEST_F(PreloadAll, DestroyingTheOpeningWhileTheRestIsPlannedEnds)
{
    record({16}, "a");
    record({48}, "b");
    Cache cache{options()};
    Function a = any_size(cache, "a");
    const Function b = any_size(cache, "b");
    for (int i = 0; i < 20; ++i) {
        PreloadOptions named;
        named.first = "a";
        const Preload preload = cache.preload(named);
    }
    EXPECT_EQ(call(a, 16), Outcome::replayed);
}

TEST_F(PreloadAll, WithoutUrgencyStartsWithTheMostRecentlyUsed)
{
    for (const char* name : {"a", "b", "c"}) record({16}, name);
    auto time = fs::file_time_type::clock::now();
    for (const auto& path : entries()) { // in the order of their names: a, b, c
        const bool last = path.parent_path().filename() == "b";
        fs::last_write_time(path, last ? time + std::chrono::hours{1} : time -= std::chrono::hours{1});
    }
    for (int round = 0; round < 2; ++round) { // preloading alone does not count as a use
        Cache cache{options()};
        const Function a = any_size(cache, "a"), b = any_size(cache, "b"), c = any_size(cache, "c");
        std::vector<std::string> order;
        PreloadOptions plain = all();
        plain.threads = 1;
        plain.progress = [&](const PreloadProgress& now) { order.push_back(now.function); };
        (void)cache.preload(plain);
        EXPECT_EQ(order, (std::vector<std::string>{"b", "a", "c"}));
    }
    {
        Cache cache{options()};
        Function c = any_size(cache, "c");
        fs::last_write_time(entries().at(1), time); // b
        (void)cache.preload(all());
        EXPECT_EQ(call(c, 16), Outcome::replayed); // this use is the first that counts
    }
    EXPECT_GT(fs::last_write_time(entries().at(2)), fs::last_write_time(entries().at(0)));
}

TEST_F(PreloadAll, ADamagedEntryFailsAloneAndIsRecordedAgainWhenItIsCalled)
{
    record({16, 32, 48});
    auto payload = file_bytes(entries().at(0));
    payload.back() ^= 1;
    write_file(entries().at(0), payload);
    auto header = file_bytes(entries().at(1));
    header[header.size() / 2] ^= 1;
    header[40] ^= 1;
    write_file(entries().at(1), header);
    Cache cache{options()};
    Function f = any_size(cache);
    const Preload preload = cache.preload(all());
    EXPECT_EQ(preload.progress().loaded, 1U);
    EXPECT_EQ(preload.progress().failed, 2U);
    EXPECT_EQ(preload.progress().total, 3U);
    EXPECT_EQ(cache.statistics().cache_faults, 2U);
    int recorded = 0;
    for (const std::int64_t count : {16, 32, 48}) recorded += call(f, count) == Outcome::recorded ? 1 : 0;
    EXPECT_EQ(recorded, 2);
}

TEST_F(PreloadAll, ACallMeanwhileRestoresItsOwnEntryAndNothingIsThereTwice)
{
    record({16, 32, 48});
    Cache cache{options(Policy::require_hit)};
    Function f = any_size(cache);
    std::promise<void> called;
    PreloadOptions slow;
    slow.urgency = [](std::string_view, std::span<const TensorDecl> inputs) {
        return -static_cast<int>(inputs[0].sizes[0]);
    };
    slow.progress = [done = called.get_future().share()](const PreloadProgress& now) {
        if (now.loaded == 2) done.wait(); // stops between the second and the third load
    };
    Preload preload = cache.preload(slow);
    EXPECT_EQ(call(f, 48), Outcome::replayed) << "not opened yet";
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U);
    called.set_value();
    preload.wait();
    EXPECT_EQ(preload.progress().loaded, 3U);
    for (const std::int64_t count : {48, 32, 16}) EXPECT_EQ(call(f, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 3U) << "the one that the call restored counts once";
    EXPECT_EQ(cache.statistics().images_loaded, 1U);
}

TEST_F(PreloadAll, KeepsMoreVariantsThanTheLimit)
{
    record({16, 32, 48, 64});
    CacheOptions narrow = options(Policy::require_hit);
    narrow.max_variants = 2;
    Cache cache{narrow};
    Function f = any_size(cache);
    const Preload preload = cache.preload(all());
    for (int round = 0; round < 2; ++round)
        for (const std::int64_t count : {16, 32, 48, 64}) EXPECT_EQ(call(f, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 4U) << "the second round found them in memory";
}

TEST_F(PreloadAll, RestoresFromSeveralThreadsAndReportsOneAtATime)
{
    record({16, 32, 48, 64});
    Cache cache{options(Policy::require_hit)};
    Function f = any_size(cache);
    std::atomic<int> reporting = 0;
    std::vector<std::size_t> counts;
    PreloadOptions several;
    several.wait = PreloadWait::all;
    several.threads = 4;
    several.progress = [&](const PreloadProgress& now) {
        EXPECT_EQ(++reporting, 1);
        counts.push_back(now.loaded);
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
        --reporting;
    };
    EXPECT_EQ(cache.preload(several).progress().loaded, 4U);
    EXPECT_EQ(counts, (std::vector<std::size_t>{1, 2, 3, 4}));
    for (const std::int64_t count : {16, 32, 48, 64}) EXPECT_EQ(call(f, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 4U);
}

TEST_F(PreloadAll, DestroyingTheOpeningStopsAfterTheCurrentEntry)
{
    record({16, 32, 48, 64});
    Cache cache{options(Policy::require_hit)};
    Function f = any_size(cache);
    std::atomic<std::size_t> opened = 0;
    std::atomic<bool> is_ending = false;
    PreloadOptions slow;
    slow.threads = 1;
    slow.progress = [&](const PreloadProgress& now) {
        opened = now.loaded;
        if (now.loaded < 2) return;
        while (!is_ending) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds{500}); // in the meantime the destructor asks for the end
    };
    {
        const Preload preload = cache.preload(slow);
        while (opened < 2) std::this_thread::yield();
        is_ending = true;
    }
    EXPECT_LT(opened, 4U); // 2, unless this thread was stopped before it asked
    for (const std::int64_t count : {16, 32, 48, 64}) EXPECT_EQ(call(f, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 4U);
}

TEST_F(PreloadAll, OutlivesTheCacheAndItsFunctions)
{
    record({16, 32, 48});
    std::optional<Preload> preload;
    std::promise<void> gone;
    {
        Cache cache{options()};
        const Function f = any_size(cache);
        PreloadOptions slow;
        slow.threads = 1;
        slow.progress = [done = gone.get_future().share()](const PreloadProgress& now) {
            if (now.loaded == 2) done.wait();
        };
        preload.emplace(cache.preload(slow));
        while (preload->progress().loaded < 2) std::this_thread::yield();
    }
    gone.set_value();
    preload->wait();
    EXPECT_EQ(preload->progress().loaded, 2U);
    EXPECT_EQ(preload->progress().total, 2U) << "an entry of a function that is gone is not to be restored";
}

TEST_F(PreloadAll, BindsStatesWhereTheyAreDeclaredAndFollowsThemAfterwards)
{
    const Buffer state_memory = floats(0), elsewhere = floats(100);
    const auto wrap = [&](Cache& cache) {
        Spec spec;
        spec.inputs = {input("x", f32, {k_count})};
        spec.states = {state("s", state_memory)};
        spec.code = {program};
        spec.version = "1";
        return cache.wrap("accumulate", device, spec,
                          [this](Recorder& r) { r.stream().launch(program, "accumulate", k_launch, r["s"], r["x"]); });
    };
    const Buffer ones = device.upload<float>(std::vector<float>(k_count, 1.0f));
    {
        Cache cache{options()};
        Function f = wrap(cache);
        EXPECT_EQ(f({{"x", ones}}), Outcome::recorded);
    }
    Cache cache{options(Policy::require_hit)};
    Function f = wrap(cache);
    EXPECT_EQ(cache.preload(all()).progress().loaded, 1U);
    EXPECT_EQ(f({{"x", ones}}), Outcome::replayed);
    EXPECT_EQ(read(state_memory), read(floats(2)));
    f.bind("s", elsewhere);
    EXPECT_EQ(f({{"x", ones}}), Outcome::replayed);
    EXPECT_EQ(read(elsewhere), read(floats(101)));
}

TEST_F(PreloadAll, LeavesEntriesOfOtherFactsPoliciesAndFunctionsAlone)
{
    record({16});
    {
        Cache cache{options()};
        const Function other = cache.load("f", device, spec_of("2"));
        EXPECT_EQ(cache.preload(all()).progress().total, 0U) << "another version";
    }
    {
        Cache cache{options()};
        EXPECT_EQ(cache.preload(all()).progress().total, 0U) << "no function";
    }
    for (const Policy policy : {Policy::off, Policy::refresh}) {
        Cache cache{options(policy)};
        const Function f = any_size(cache);
        EXPECT_EQ(cache.preload(all()).progress().total, 0U);
    }
    Cache cache{options()};
    const Function f = cache.load("f", device, spec_of());
    EXPECT_EQ(cache.preload(all()).progress().total, 1U) << "a loaded function's";
}

TEST_F(PreloadAll, WhatTheProgressCallbackThrowsIsNotTheCallers)
{
    record({16, 32});
    Cache cache{options()};
    const Function f = any_size(cache);
    PreloadOptions throwing;
    throwing.progress = [](const PreloadProgress&) { throw std::runtime_error("no screen"); };
    Preload preload = cache.preload(throwing);
    preload.wait();
    EXPECT_EQ(preload.progress().loaded, 2U);
}

TEST_F(PreloadAll, InsideAFunctionIsRefused)
{
    Cache cache{options(Policy::off)};
    Function f = cache.wrap("f", device, vector_spec(), [&](Recorder&) { (void)cache.preload(); });
    const Buffer x = floats(0), y = device.allocate(k_count * 4);
    const auto thrown = thrown_by([&] { f({{"x", x}, {"y", y}}); });
    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), ErrorCode::invalid_argument);
    EXPECT_THAT(thrown->what(), testing::HasSubstr("preload is called inside 'f'"));
}

} // namespace
} // namespace warmgraph::test::preload_test
