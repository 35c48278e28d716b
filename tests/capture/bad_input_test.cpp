// Each wrong input leads to a clear error or to a counted miss.
#include <sys/stat.h>
#include <unistd.h>

#include "facade_fixture.hpp"
#include "lacking.hpp"

namespace warmgraph::test::bad_input_test {
namespace {

class BadInput : public FacadeTest {
protected:
    void expect_invalid(const std::function<void()>& f, const std::string& text)
    {
        EXPECT_TRUE(failed_with(thrown_by(f), ErrorCode::invalid_argument, text)) << "expected: " << text;
    }
};

TEST_F(BadInput, NamesThatAreNoFolderNamesAreRefused)
{
    Cache cache{options()};
    for (const std::string& name : {std::string{"a/b"}, std::string{".."}, std::string{"a\0b", 3},
                                    std::string(300, 'x'), std::string{}, std::string{".hidden"}, std::string{"-rf"}}) {
        expect_invalid([&] { (void)add_one(cache, name); }, "function name");
        CacheOptions bad = options();
        bad.model = name;
        expect_invalid([&] { Cache{bad}; }, "model name");
    }
}

TEST_F(BadInput, AnUnknownDeviceListsWhatThereIs)
{
    EXPECT_TRUE(failed_with(thrown_by([] { Device{"opencl:no such device"}; }), ErrorCode::not_found, "opencl:0"));
    EXPECT_TRUE(thrown_by([] { Device{"quantum:0"}; }));
}

TEST_F(BadInput, MissingUnknownAndRepeatedArguments)
{
    Cache cache{options()};
    Function f = add_one(cache);
    expect_invalid([&] { f({{"x", m_x}}); }, "'y' is missing");
    expect_invalid([&] { f({{"x", m_x}, {"y", m_y}, {"z", m_y}}); }, "'z' is not declared: declared are x, y");
    expect_invalid([&] { f({{"x", m_x}, {"y", m_y}, {"x", m_x}}); }, "'x' is given twice");
    expect_invalid([&] { f({{"x", 1}, {"y", m_y}}); }, "'x' is a number in this call");
    EXPECT_TRUE(entries().empty());
}

TEST_F(BadInput, LayoutsThatAreNone)
{
    Cache cache{options()};
    const Buffer memory = device.allocate(6);
    const auto wrap = [&](const Spec& spec) { (void)cache.wrap("f", device, spec, [](Recorder&) {}); };
    Spec spec;
    spec.states = {state("s", memory, f32)};
    expect_invalid([&] { wrap(spec); }, "'s' has 6 bytes, which is not a multiple of the 4 bytes of its type f32");
    spec.states = {{"s", memory, Access::read_write, f16, {3}, {1, 1}}};
    expect_invalid([&] { wrap(spec); }, "'s' is declared with 2 strides for 1 dimensions");
    spec.states = {{"s", memory, Access::read_write, f16, {3}, {-1}}};
    expect_invalid([&] { wrap(spec); }, "'s' is declared with a negative stride");
}

TEST_F(BadInput, ABufferThatIsTooSmall)
{
    Cache cache{options()};
    Function f = add_one(cache);
    const Buffer x = floats(0), y = device.allocate(k_count * 4 - 4);
    expect_invalid([&] { f({{"x", x}, {"y", y}}); }, "'y' needs 256 bytes, its memory has 252");
    const Tensor strided{x, f32, {k_count}, {2}};
    const Buffer ok = device.allocate(k_count * 4);
    expect_invalid([&] { f({{"x", strided}, {"y", ok}}); }, "'x' needs 508 bytes");
}

TEST_F(BadInput, MalformedTensors)
{
    Cache cache{options()};
    Function f = add_one(cache);
    expect_invalid([&] { f({{"x", Tensor{m_x, f32, {-1}, {}}}, {"y", m_y}}); }, "negative");
    expect_invalid([&] { f({{"x", Tensor{m_x, f32, {4, 4}, {4}}}, {"y", m_y}}); }, "1 strides for 2 dimensions");
    expect_invalid([&] { f({{"x", Tensor{m_x, f32, std::vector<std::int64_t>(9, 1), {}}}, {"y", m_y}}); },
                   "9 dimensions");
    expect_invalid([&] { f({{"x", MemoryRef{}}, {"y", m_y}}); }, "no memory");
}

TEST_F(BadInput, WrongDtypeShapeStrideAlignmentAndAliasingMissWithTheField)
{
    const Buffer x = floats(0, 4 * k_count), y = device.allocate(8 * k_count);
    CacheOptions recording = options();
    {
        Cache cache{recording};
        Function f = add_one(cache);
        f({{"x", x}, {"y", y}});
    }
    const auto reason = [&](const Tensor& tensor, const MemoryRef& out) {
        Cache cache{options(Policy::read_only)};
        Function f = add_one(cache);
        EXPECT_EQ(f({{"x", tensor}, {"y", out}}), Outcome::eager);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U);
        return f.report().reason;
    };
    EXPECT_THAT(reason({x, i32, {k_count}, {}}, y),
                AllOf(HasSubstr("input x: dtype"), HasSubstr("f32"), HasSubstr("i32")));
    EXPECT_THAT(reason({x, f32, {2 * k_count}, {}}, y), HasSubstr("input x: sizes"));
    EXPECT_THAT(reason({x, f32, {k_count}, {2}}, y), HasSubstr("input x: strides"));
    const MemoryRef offset{x.memory().address + 128, 4 * k_count};
    EXPECT_THAT(reason({offset, f32, {k_count}, {}}, y), HasSubstr("input x: alignment"));
    EXPECT_THAT(reason({y, f32, {k_count}, {}}, y), HasSubstr("alias"));
}

TEST_F(BadInput, MemoryOfNobodyIsAnErrorAndNotACrash)
{
    Cache cache{options(Policy::off)};
    Function f = add_one(cache);
    const Buffer y = device.allocate(k_count * 4);
    const MemoryRef bogus{{0xdead'beef'0000, 0}, k_count * 4};
    expect_invalid([&] { f({{"x", bogus}, {"y", y}}); }, "x");
}

TEST_F(BadInput, ACacheFolderThatIsAFileTurnsCachingOff)
{
    std::ofstream{dir.path() / "cache"} << "in the way";
    Cache cache{options()};
    EXPECT_THAT(cache.disabled_reason(), HasSubstr((dir.path() / "cache").string()));
    Function f = add_one(cache);
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::eager);
    EXPECT_EQ(read(m_y), read(floats(1)));
    EXPECT_GE(cache.statistics().cache_faults, 1U);
}

TEST_F(BadInput, ACacheFolderWithOtherFilesTurnsCachingOffAndIsNotTouched)
{
    std::filesystem::create_directory(dir.path() / "cache");
    std::ofstream{dir.path() / "cache" / "notes.txt"} << "mine";
    {
        Cache cache{options()};
        EXPECT_THAT(cache.disabled_reason(), HasSubstr("contains 'notes.txt'"));
        EXPECT_THAT(cache.disabled_reason(), HasSubstr("give a folder of its own"));
        Function f = add_one(cache);
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::eager);
        EXPECT_EQ(read(y), read(floats(1)));
    }
    std::filesystem::remove(dir.path() / "cache" / "notes.txt");
    EXPECT_TRUE(std::filesystem::is_empty(dir.path() / "cache"));
    EXPECT_EQ(Cache{options()}.disabled_reason(), "") << "an empty folder is taken";
}

TEST_F(BadInput, ACacheFolderOfATrustedOwnerIsReadAndNotWritten)
{
    if (::geteuid() != 0) WARMGRAPH_SKIP_LACKING("the right to give files to another user (root)");
    {
        Cache cache{options()};
        Function f = add_one(cache);
        EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded);
    }
    for (const auto& item : std::filesystem::recursive_directory_iterator(dir.path() / "cache"))
        ASSERT_EQ(::chown(item.path().c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown((dir.path() / "cache").c_str(), 65534, 65534), 0);
    const auto outcome = [&](const CacheOptions& given) {
        Cache cache{given};
        Function f = add_one(cache);
        return f({{"x", m_x}, {"y", m_y}});
    };
    EXPECT_EQ(outcome(options()), Outcome::eager);
    CacheOptions trusting = options();
    trusting.trusted_owners = {65534};
    EXPECT_EQ(outcome(trusting), Outcome::replayed);
    ASSERT_EQ(::setenv("WARMGRAPH_TRUSTED_OWNERS", "1,65534", 1), 0);
    EXPECT_EQ(outcome(options()), Outcome::replayed);
    ASSERT_EQ(::setenv("WARMGRAPH_TRUSTED_OWNERS", "nobody", 1), 0);
    expect_invalid([&] { Cache{options()}; }, "WARMGRAPH_TRUSTED_OWNERS is 'nobody', expected user ids like 1000");
    ASSERT_EQ(::unsetenv("WARMGRAPH_TRUSTED_OWNERS"), 0);
}

TEST_F(BadInput, ARelativeFolderIsResolvedOnceWhenTheCacheIsOpened)
{
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    CacheOptions relative = options();
    relative.cache_dir = "cache";
    Cache cache{relative};
    std::filesystem::create_directory(dir.path() / "elsewhere");
    std::filesystem::current_path(dir.path() / "elsewhere");
    Function f = add_one(cache);
    f({{"x", m_x}, {"y", m_y}});
    std::filesystem::current_path(before);
    EXPECT_EQ(entries().size(), 1U);
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "elsewhere" / "cache"));
}

TEST_F(BadInput, BadRanksAndLimits)
{
    CacheOptions bad = options();
    bad.global_rank = 1;
    expect_invalid([&] { Cache{bad}; }, "rank");
    bad = options();
    bad.max_variants = 0;
    expect_invalid([&] { Cache{bad}; }, "max_variants");
}

TEST_F(BadInput, BadDeclarations)
{
    Cache cache{options()};
    const auto wrap = [&](const Spec& spec) { (void)cache.wrap("f", device, spec, [](Recorder&) {}); };
    Spec twice = vector_spec();
    twice.outputs[0].name = "x";
    expect_invalid([&] { wrap(twice); }, "'x' is declared twice");
    Spec bad_scalar = vector_spec();
    bad_scalar.scalars = {scalar("n", f16)};
    expect_invalid([&] { wrap(bad_scalar); }, "expected i32, u32, i64, u64, f32 or f64");
    bad_scalar.scalars = {scalar("n", i32, 0, 1e12)};
    expect_invalid([&] { wrap(bad_scalar); }, "i32 cannot hold");
    bad_scalar.scalars = {scalar("n", i32, 5, 1)};
    expect_invalid([&] { wrap(bad_scalar); }, "empty range");
    expect_invalid([&] { (void)cache.wrap("f", device, vector_spec(), Callable{}); }, "empty callable");
    {
        const Function g = add_one(cache, "g");
        expect_invalid([&] { (void)add_one(cache, "g"); }, "wrapped already");
    }
    EXPECT_NO_THROW((void)add_one(cache, "g")) << "the name is free again";
}

TEST_F(BadInput, BadAnswersInsideTheCallableReachTheCaller)
{
    Cache cache{options()};
    Function unknown = cache.wrap("unknown", device, vector_spec(), [](Recorder& r) { (void)r["nothing"]; });
    expect_invalid([&] { unknown({{"x", m_x}, {"y", m_y}}); }, "declared are x, y");
    Function sizes = cache.wrap("sizes", device, vector_spec(), [](Recorder& r) {
        (void)r.alloc("s", 16);
        (void)r.alloc("s", 32);
    });
    expect_invalid([&] { sizes({{"x", m_x}, {"y", m_y}}); }, "give each size its own name");
    Function kernel = cache.wrap("kernel", device, vector_spec(),
                                 [this](Recorder& r) { r.stream().launch(program, "no_such", k_launch, r["x"]); });
    EXPECT_THAT(message_of(thrown_by([&] { kernel({{"x", m_x}, {"y", m_y}}); })),
                AllOf(HasSubstr("no_such"), HasSubstr("add_one")));
}

TEST_F(BadInput, ANullStreamIsAnError)
{
    Cache cache{options()};
    Function f = add_one(cache);
    Stream moved_from = device.stream();
    const Stream elsewhere = std::move(moved_from);
    expect_invalid([&] { f(moved_from, {{"x", m_x}, {"y", m_y}}); }, "stream is null");
}

TEST_F(BadInput, BindingAnotherSizeOrAnInput)
{
    const Buffer w = floats(0), small = device.allocate(16);
    Spec spec = vector_spec();
    spec.states = {weights("w", w)};
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec, [](Recorder&) {});
    expect_invalid([&] { f.bind("w", small); }, "expected 256 as declared");
    expect_invalid([&] { f.bind("x", w); }, "no state 'x'");
}

TEST_F(BadInput, BufferCopiesThatDoNotFit)
{
    Buffer buffer = device.allocate(16);
    std::vector<std::byte> bytes(17);
    expect_invalid([&] { buffer.upload(bytes); }, "the buffer has 16");
    expect_invalid([&] { buffer.download(bytes); }, "the buffer has 16");
    expect_invalid([&] { buffer.upload(std::span{bytes}.first(1), 16); }, "offset 16");
}

} // namespace
} // namespace warmgraph::test::bad_input_test
