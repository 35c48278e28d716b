// Functions without their callable: stored entries are replayed, and on a miss the caller gets an error.
#include "facade_fixture.hpp"

namespace warmgraph::test::loading_test {
namespace {

class Loading : public FacadeTest {
protected:
    [[nodiscard]] Spec versioned(const std::string& version = "1") const
    {
        Spec spec = vector_spec();
        spec.version = version;
        return spec;
    }
    void record(const Spec& spec)
    {
        Cache cache{options()};
        Function f = cache.wrap("f", device, spec, [this](Recorder& r) {
            r.stream().launch(program, "add_one", k_launch, r["x"], r["y"]);
        });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        ASSERT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded);
    }
    /// Returns the exception that a call of the loaded function throws.
    std::optional<Exception> thrown_by_call(const CacheOptions& with, const Spec& spec)
    {
        Cache cache{with};
        Function f = cache.load("f", device, spec);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        auto thrown = thrown_by([&] { f({{"x", x}, {"y", y}}); });
        statistics = cache.statistics();
        return thrown;
    }
    Statistics statistics;
};

TEST_F(Loading, ReplaysWhatAnotherProcessRecorded)
{
    record(versioned());
    for (const Policy policy : {Policy::read_write, Policy::read_only, Policy::refresh, Policy::require_hit}) {
        Cache cache{options(policy)};
        Function f = cache.load("f", device, versioned());
        const Buffer x = floats(3), other = floats(7), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::replayed);
        EXPECT_EQ(read(y), read(floats(4)));
        EXPECT_EQ(f({{"x", other}, {"y", y}}), Outcome::replayed) << "inputs are rebound";
        EXPECT_EQ(read(y), read(floats(8)));
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U);
        EXPECT_EQ(f.report().outcome, Outcome::replayed);
    }
}

TEST_F(Loading, AMissThrowsAndSaysWhy)
{
    const auto nothing_there = thrown_by_call(options(), versioned());
    ASSERT_TRUE(failed_with(nothing_there, ErrorCode::miss_forbidden));
    EXPECT_THAT(nothing_there->what(),
                AllOf(HasSubstr("'f' can only be replayed"), HasSubstr("no entry"), HasSubstr("Cache::wrap")));
    EXPECT_EQ(statistics.of(ArtifactKind::entries).misses, 1U);
    record(versioned());
    EXPECT_TRUE(failed_with(thrown_by_call(options(), versioned("2")), ErrorCode::miss_forbidden, "code.version"));
    EXPECT_THAT(message_of(thrown_by_call(options(Policy::off), versioned())), HasSubstr("policy off"));
}

TEST_F(Loading, AMissIsLookedUpAgainAtTheNextCall)
{
    Cache cache{options()};
    Function f = cache.load("f", device, versioned());
    EXPECT_TRUE(thrown_by([&] { f({{"x", m_x}, {"y", m_y}}); }));
    record(versioned()); // stands for another process that records in the meantime
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
    EXPECT_EQ(read(m_y), read(floats(1)));
}

TEST_F(Loading, AnEntryThatCannotBeUsedThrowsWhatStoodInTheWay)
{
    record(versioned());
    auto bytes = file_bytes(entries().at(0));
    bytes[bytes.size() - 1] ^= 1; // the last byte is in the payload: headers and guards stay valid
    write_file(entries().at(0), bytes);
    EXPECT_TRUE(failed_with(thrown_by_call(options(), versioned()), ErrorCode::corrupt));
    EXPECT_EQ(statistics.cache_faults, 1U);
}

TEST_F(Loading, NeedsAVersionAndAFreeName)
{
    Cache cache{options()};
    EXPECT_TRUE(failed_with(thrown_by([&] { (void)cache.load("f", device, vector_spec()); }),
                            ErrorCode::invalid_argument, "Spec::version"));
    const Function f = cache.load("f", device, versioned());
    EXPECT_THAT(message_of(thrown_by([&] { (void)cache.load("f", device, versioned()); })),
                HasSubstr("'f' is wrapped already"));
    EXPECT_EQ(thrown_by([&] { (void)cache.load("../f", device, versioned()); })->code(), ErrorCode::invalid_argument);
}

TEST_F(Loading, ANameIsFreeAgainWhenItsFunctionIsGone)
{
    record(versioned());
    Cache cache{options()};
    for (int i = 0; i < 3; ++i) {
        Function f = cache.load("f", device, versioned());
        Function moved = std::move(f);
        EXPECT_EQ(moved({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
    }
}

} // namespace
} // namespace warmgraph::test::loading_test
