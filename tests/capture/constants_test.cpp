// Memory whose contents an entry stores. A process without this memory gets the contents; a process in which the memory
// has other contents gets a miss.
#include "facade_fixture.hpp"

namespace warmgraph::test::constants_test {
namespace {

class ConstantTest : public FacadeTest {
protected:
    /// The spec of y = x + table.
    [[nodiscard]] Spec table_spec(const MemoryRef& table) const
    {
        Spec spec = vector_spec();
        spec.constants = {constant("table", table)};
        spec.version = "1";
        return spec;
    }
    [[nodiscard]] Function add_table(Cache& cache, const MemoryRef& table) const
    {
        return cache.wrap("add_table", device, table_spec(table), [this](Recorder& r) {
            r.stream().launch(program, "add", k_launch, r["x"], r["table"], r["y"]);
        });
    }
    /// Calls the function with 1, 2, ... and returns y.
    [[nodiscard]] std::vector<float> call(Function& f, Outcome expected) const
    {
        const Buffer x = floats(1), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), expected) << f.report().reason;
        return read(y);
    }
    [[nodiscard]] static std::vector<float> sums(float first, float step)
    {
        std::vector<float> result(k_count);
        for (std::size_t i = 0; i < result.size(); ++i) result[i] = first + step * static_cast<float>(i);
        return result;
    }
    /// Records in another process, with the table 100, 101, ...
    void record() const
    {
        Cache cache{options()};
        const Buffer table = floats(100);
        Function f = add_table(cache, table);
        EXPECT_EQ(call(f, Outcome::recorded), sums(101, 2));
    }
};

TEST_F(ConstantTest, ItsContentsComeWithTheEntryToWhoHasNone)
{
    {
        Cache cache{options()};
        const Buffer table = floats(100);
        Function f = add_table(cache, table);
        EXPECT_EQ(call(f, Outcome::recorded), sums(101, 2));
        EXPECT_EQ(call(f, Outcome::replayed), sums(101, 2));
        EXPECT_THAT(cache.readable("add_table"), HasSubstr("constant"));
    }
    Cache cache{options(Policy::require_hit)};
    Function loaded = cache.load("add_table", device, table_spec({}));
    EXPECT_EQ(call(loaded, Outcome::replayed), sums(101, 2));
    Spec without = table_spec({});
    without.constants.clear(); // constants are not a part of the interface
    Cache second{options(Policy::require_hit)};
    Function other = second.load("add_table", device, without);
    EXPECT_EQ(call(other, Outcome::replayed), sums(101, 2));
}

TEST_F(ConstantTest, OtherContentsUnderItsNameAreNoHit)
{
    record();
    Cache cache{options()};
    const Buffer same = floats(100), other = floats(200);
    Function hit = add_table(cache, same);
    EXPECT_EQ(call(hit, Outcome::replayed), sums(101, 2));
    Cache second{options()};
    Function refused = add_table(second, other);
    EXPECT_EQ(call(refused, Outcome::refused), sums(201, 2));
    EXPECT_THAT(refused.report().reason, HasSubstr("the constant 'table' has other contents"));
    EXPECT_EQ(entries().size(), 1U) << "nothing is recorded over it";
}

TEST_F(ConstantTest, OneThatTheFunctionWritesIsRefused)
{
    Cache cache{options()};
    const Buffer table = floats(0), x = floats(1), y = device.allocate(k_count * 4);
    Function f = cache.wrap("advance", device, table_spec(table), [this](Recorder& r) {
        r.stream().launch(program, "accumulate", k_launch, r["table"], r["x"]);
        r.stream().copy(r["y"], r["table"], k_count * 4);
    });
    for (int i = 1; i < 4; ++i) {
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
        const auto count = static_cast<float>(i);
        EXPECT_EQ(read(y), sums(count, 1 + count));
    }
    EXPECT_THAT(f.report().reason, HasSubstr("changes the constant 'table'"));
}

TEST_F(ConstantTest, MoreThanMayBeKeptIsRefused)
{
    Cache cache{options()};
    const Buffer table = floats(100);
    Spec spec = table_spec(table);
    spec.max_constant_bytes = k_count * 4 - 1;
    Function f = cache.wrap("f", device, spec, [this](Recorder& r) {
        r.stream().launch(program, "add", k_launch, r["x"], r["table"], r["y"]);
    });
    EXPECT_EQ(call(f, Outcome::refused), sums(101, 2));
    EXPECT_THAT(f.report().reason, HasSubstr("its constants have 256 bytes, expected at most 255"));
}

/// An entry may ask for any amount of memory, so the loading process sets a limit.
TEST_F(ConstantTest, MoreThanMayBeKeptIsNotLoaded)
{
    record();
    Cache cache{options(Policy::read_only)};
    Spec spec = table_spec({});
    spec.max_constant_bytes = k_count * 4 - 1;
    Function loaded = cache.load("add_table", device, spec);
    EXPECT_THAT(message_of(thrown_by([&] { loaded({{"x", m_x}, {"y", m_y}}); })),
                HasSubstr("constants have 256 bytes, expected at most 255"));
}

TEST_F(ConstantTest, FunctionsWithTheSameContentsShareOneFile)
{
    Cache cache{options()};
    const Buffer table = floats(100), copy = floats(100);
    Function one = add_table(cache, table);
    EXPECT_EQ(call(one, Outcome::recorded), sums(101, 2));
    const auto blobs = [this] {
        std::size_t count = 0;
        for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "cache" / "images"))
            count += item.is_regular_file() ? 1 : 0;
        return count;
    };
    const std::size_t before = blobs();
    Function other = cache.wrap("other", device, table_spec(copy), [this](Recorder& r) {
        r.stream().launch(program, "add", k_launch, r["table"], r["x"], r["y"]);
    });
    EXPECT_EQ(call(other, Outcome::recorded), sums(101, 2));
    EXPECT_EQ(blobs(), before);
}

TEST_F(ConstantTest, WithoutMemoryTheCallableHasNone)
{
    Cache cache{options()};
    Function f = add_table(cache, {});
    const Buffer x = floats(1), y = device.allocate(k_count * 4);
    EXPECT_THAT(message_of(thrown_by([&] { f({{"x", x}, {"y", y}}); })),
                HasSubstr("the constant 'table', which has no memory in this process"));
}

TEST_F(ConstantTest, IsNoMemoryOfTheCall)
{
    Cache cache{options()};
    const Buffer x = floats(1), y = device.allocate(k_count * 4);
    Function f = add_table(cache, x);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
    EXPECT_EQ(read(y), sums(2, 2));
    EXPECT_THAT(f.report().reason, HasSubstr("overlaps memory of the call"));
}

TEST_F(ConstantTest, OpenedAheadItIsComparedAtTheFirstUse)
{
    record();
    Cache cache{options()};
    const Buffer other = floats(200);
    Function f = add_table(cache, other);
    (void)cache.preload();
    EXPECT_EQ(call(f, Outcome::refused), sums(201, 2));
    EXPECT_THAT(f.report().reason, HasSubstr("the constant 'table' has other contents"));
}

TEST_F(ConstantTest, TheirNamesAreBindingsNames)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    spec.constants = {constant("x")};
    EXPECT_TRUE(failed_with(thrown_by([&] { (void)cache.wrap("f", device, spec, [](Recorder&) {}); }),
                            ErrorCode::invalid_argument, "'x' is declared twice"));
}

} // namespace
} // namespace warmgraph::test::constants_test
