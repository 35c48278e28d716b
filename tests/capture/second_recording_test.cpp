// A second recording is made under the guards of a stored entry. Some cases prove that the function changes each time,
// others do not. The tests use the fake backend.
#include <functional>
#include <map>
#include <stdexcept>

#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test::second_recording_test {
namespace {

using cachefmt::Entry;
using cachefmt::KernelNode;
using cachefmt::RegionKind;

constexpr std::int32_t k_values = 32;
constexpr std::uint64_t k_bytes = k_values * 4;

class SecondRecording : public testing::Test {
protected:
    SecondRecording() { backends::register_backend(fake); }

    [[nodiscard]] CacheOptions options(Policy policy) const
    {
        return cache_options("toy", dir.path() / "cache", policy);
    }
    /// Calls the function y = x + amount, which uses scratch, once in a new cache, as a new process does.
    Outcome call(Policy policy = Policy::read_write)
    {
        const Device device{"fake:0"};
        const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
        Spec spec = x_to_y(i32, k_values, {program});
        const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_values, 5)),
                     y = device.allocate(k_bytes);
        Cache cache{options(policy)};
        Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
            if (in_callable) in_callable();
            const Address scratch = r.alloc("scratch", scratch_bytes) + scratch_offset;
            if (has_more_scratch) static_cast<void>(r.alloc("more", k_bytes));
            r.stream().copy(scratch, r["x"], k_bytes);
            if (copies_twice) r.stream().copy(scratch, r["x"], k_bytes);
            r.stream().launch(program, "add_scalar", {.grid = {1}, .block = {k_values}}, scratch, amount, k_values);
            r.stream().copy(r["y"], scratch, k_bytes);
        });
        if (before_call) before_call();
        f({{"x", x}, {"y", y}});
        fake->clear_faults();
        device.synchronize();
        EXPECT_EQ(y.read<std::int32_t>(), std::vector<std::int32_t>(k_values, 5 + amount))
            << "the function's own answer";
        reason = f.report().reason;
        return f.report().outcome;
    }
    /// Changes the entry on disk. The changed file can still be decoded.
    void forge(const std::function<void(Entry&)>& change) const
    {
        const auto store = *store::LocalStore::open(dir.path() / "cache");
        Entry entry = stored();
        change(entry);
        const auto published = store->publish(entry);
        ASSERT_TRUE(published) << published.error().message;
    }
    [[nodiscard]] Entry stored() const
    {
        const auto store = *store::LocalStore::open(dir.path() / "cache");
        const auto function = store->functions()->at(0);
        const auto variants = *store->variants(function);
        EXPECT_EQ(variants.size(), 1U);
        return **store->entry({function, variants.at(0).guards_digest});
    }
    static cachefmt::Region& scratch_of(Entry& entry)
    {
        return *std::ranges::find(entry.graph.regions, RegionKind::arena, &cachefmt::Region::kind);
    }
    static KernelNode& kernel_of(Entry& entry)
    {
        for (auto& node : entry.graph.nodes)
            if (auto* const kernel = std::get_if<KernelNode>(&node)) return *kernel;
        throw std::logic_error("the entry has no kernel");
    }
    void forget() const { std::filesystem::remove_all(dir.path() / "cache"); }

    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
    TempDir dir;
    std::int32_t amount = 37;              ///< no guard sees this amount
    std::uint64_t scratch_bytes = k_bytes; ///< sizes in an allocator depend on its earlier calls
    std::uint64_t scratch_offset = 0;
    bool has_more_scratch = false;
    bool copies_twice = false;
    std::function<void()> before_call, in_callable;
    std::string reason;
};

TEST_F(SecondRecording, ThatDoesSomethingElseIsRecompiled)
{
    ASSERT_EQ(call(), Outcome::recorded) << reason;
    ++amount;
    EXPECT_EQ(call(Policy::refresh), Outcome::refused);
    EXPECT_THAT(reason, HasSubstr("recompiled"));
    EXPECT_EQ(stored().header.kind, cachefmt::EntryKind::tombstone);
}

TEST_F(SecondRecording, ThatDoesTheSameInAnotherWayIsRecompiled)
{
    ASSERT_EQ(call(), Outcome::recorded) << reason;
    copies_twice = true;
    EXPECT_EQ(call(Policy::refresh), Outcome::refused);
    EXPECT_THAT(reason, HasSubstr("nodes: 3 against 4"));
}

/// Each of these causes makes the stored graph differ from the graph of the function; the driver refuses the stored
/// graph.
TEST_F(SecondRecording, OverAnEntryThatCannotBeRestoredTakesItsPlace)
{
    const std::map<std::string, std::function<void(Entry&)>> causes{
        {"a kernel that its code does not have", [](Entry& entry) { kernel_of(entry).kernel = "nothing"; }},
        {"a block that the device does not launch", [](Entry& entry) { kernel_of(entry).block[0] = 1U << 20U; }},
        {"a parameter too many",
         [](Entry& entry) { kernel_of(entry).params.push_back(kernel_of(entry).params.back()); }},
        {"more memory than there is", [](Entry& entry) { scratch_of(entry).size = 2ULL << 30U; }},
        {"code that is not there", [](Entry& entry) { entry.graph.images[0].digest = sha256({}); }},
        {"a host function of another process", [](Entry& entry) {
             entry.graph.nodes.emplace_back(cachefmt::HostNode{"nobody's"});
             ++entry.header.info.node_count;
         }}};
    for (const auto& [cause, change] : causes)
        for (const Policy policy : {Policy::read_write, Policy::refresh}) {
            SCOPED_TRACE(cause + (policy == Policy::refresh ? ", refreshed" : ""));
            forget();
            ASSERT_EQ(call(), Outcome::recorded) << reason;
            const auto good = cachefmt::graph_digest(stored().graph);
            forge(change);
            EXPECT_EQ(call(policy), Outcome::recorded) << reason;
            EXPECT_EQ(cachefmt::graph_digest(stored().graph), good);
            EXPECT_EQ(call(), Outcome::replayed) << reason;
        }
}

/// The driver may accept the same graph a moment later.
TEST_F(SecondRecording, OverAnEntryThatTheDriverRefusedOnceTakesItsPlace)
{
    for (const std::string entry : {"load", "allocate", "instantiate", "exec.launch"})
        for (const ErrorCode code : {ErrorCode::driver_failed, ErrorCode::out_of_memory}) {
            SCOPED_TRACE(entry + ", " + std::string(to_string(code)));
            forget();
            before_call = nullptr;
            ASSERT_EQ(call(), Outcome::recorded) << reason;
            ++amount;
            before_call = [&] { fake->inject({.entry = entry, .error = {code, "injected fault"}}); };
            EXPECT_EQ(call(), Outcome::recorded) << reason;
            EXPECT_EQ(stored().header.kind, cachefmt::EntryKind::graph);
            before_call = nullptr;
            EXPECT_EQ(call(), Outcome::replayed) << reason;
        }
}

class OtherScratch : public SecondRecording {
protected:
    OtherScratch()
    {
        EXPECT_EQ(call(), Outcome::recorded) << reason;
        first = cachefmt::graph_digest(stored().graph);
    }
    /// Publishes the entry that is now on disk while this process records, as another process would.
    void publish_meanwhile()
    {
        const Entry entry = stored();
        const auto store = *store::LocalStore::open(dir.path() / "cache");
        ASSERT_TRUE(store->remove(entry.header.key));
        in_callable = [this, entry] {
            const auto open = *store::LocalStore::open(dir.path() / "cache");
            if (*open->header(entry.header.key)) return;
            EXPECT_TRUE(open->publish(entry));
        };
    }
    void take_other_scratch()
    {
        scratch_bytes = 4 * k_bytes;
        scratch_offset = 2 * k_bytes;
        has_more_scratch = true;
    }
    Digest first;
};

TEST_F(OtherScratch, LeavesTheEntryOnDiskWhereThatGivesTheSameAnswer)
{
    publish_meanwhile();
    take_other_scratch();
    EXPECT_EQ(call(), Outcome::recorded) << reason;
    EXPECT_EQ(cachefmt::graph_digest(stored().graph), first);
    in_callable = nullptr;
    EXPECT_EQ(call(Policy::require_hit), Outcome::replayed) << reason;
}

TEST_F(OtherScratch, ReplacesTheEntryOnDiskWhereARefreshIsAskedFor)
{
    take_other_scratch();
    EXPECT_EQ(call(Policy::refresh), Outcome::recorded) << reason;
    EXPECT_NE(cachefmt::graph_digest(stored().graph), first);
    EXPECT_EQ(call(Policy::require_hit), Outcome::replayed) << reason;
}

TEST_F(OtherScratch, BesideOtherWorkIsRecompiled)
{
    take_other_scratch();
    ++amount;
    EXPECT_EQ(call(Policy::refresh), Outcome::refused);
    EXPECT_THAT(reason, HasSubstr("recompiled"));
}

TEST_F(OtherScratch, OfAnEntryThatGivesAnotherAnswerIsRecompiled)
{
    forge([](Entry& entry) { // the changed graph reads past the end of its own result
        scratch_of(entry).size = 2 * k_bytes;
        std::get<cachefmt::CopyNode>(entry.graph.nodes.back()).source.addend += k_bytes;
    });
    EXPECT_EQ(call(Policy::refresh), Outcome::refused);
    EXPECT_THAT(reason, HasSubstr("recompiled"));
    EXPECT_EQ(stored().header.kind, cachefmt::EntryKind::tombstone);
}

TEST_F(OtherScratch, OfAnEntryThatCannotBeRunTakesItsPlace)
{
    std::uint64_t launches = 0; // launches while recording; the stored graph is equal and is not launched
    before_call = [&] { fake->clear_calls(); };
    ASSERT_EQ(call(Policy::refresh), Outcome::recorded) << reason;
    launches = fake->call_count("exec.launch");
    take_other_scratch();
    before_call = [&] { fake->inject({.entry = "exec.launch", .nth = launches + 1}); };
    EXPECT_EQ(call(Policy::refresh), Outcome::recorded) << reason;
    EXPECT_NE(cachefmt::graph_digest(stored().graph), first);
    before_call = nullptr;
    EXPECT_EQ(call(Policy::require_hit), Outcome::replayed) << reason;
}

} // namespace
} // namespace warmgraph::test::second_recording_test
