// Uses warmgraph/replay.h as a service does, on entries that the whole library recorded. The answers must be equal, and
// the same cases must be refused.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "facade_fixture.hpp"
#include "replayer_fixture.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test::opencl_test {
namespace {

using testing::HasSubstr;

constexpr std::size_t k_floats = 64;

std::vector<float> counting(float first)
{
    std::vector<float> values(k_floats);
    std::iota(values.begin(), values.end(), first);
    return values;
}

std::vector<float> times(float factor, std::vector<float> values)
{
    for (float& value : values) value *= factor;
    return values;
}

class Replayer : public FacadeTest {
protected:
    /// Records the function y = x * factor with these options.
    void record_scale(const CacheOptions& with, Spec spec, const std::string& name = "scale") const
    {
        Cache cache{with};
        spec.scalars = {scalar("factor", f32, -100, 100)};
        Function f = cache.wrap(name, device, spec, [this](Recorder& r) {
            r.stream().launch(program, "scale", k_launch, r["x"], r["y"], r.scalar<float>("factor"));
        });
        const Buffer x = floats(0), y = device.allocate(k_floats * 4);
        ASSERT_EQ(f({{"x", x}, {"y", y}, {"factor", 2.0F}}), Outcome::recorded) << f.report().reason;
        device.synchronize();
    }
    void record_scale() const { record_scale(options(), vector_spec()); }

    [[nodiscard]] std::string folder() const { return (dir.path() / "cache").string(); }
    [[nodiscard]] Handle<wgr_cache> open() const
    {
        const std::string where = folder();
        return open_cache(options_of("toy", where));
    }
    /// Changes the only entry in the folder.
    void edit(const std::function<void(cachefmt::Entry&)>& change) const
    {
        auto store = store::LocalStore::open(folder());
        ASSERT_TRUE(store);
        const auto functions = (*store)->functions();
        ASSERT_TRUE(functions && functions->size() == 1);
        const auto variants = (*store)->variants(functions->front());
        ASSERT_TRUE(variants && variants->size() == 1);
        const cachefmt::EntryKey key = variants->front().header->key;
        auto entry = (*store)->entry(key);
        ASSERT_TRUE(entry && *entry);
        ASSERT_TRUE((*store)->remove(key));
        change(**entry);
        (**entry).header.key.guards_digest = cachefmt::guards_digest((**entry).header.guards);
        const auto published = (*store)->publish(**entry);
        ASSERT_TRUE(published) << published.error().message;
    }
    void set_fact(std::string_view name, const std::string& value) const
    {
        edit([&](cachefmt::Entry& entry) {
            for (auto& fact : entry.header.guards.facts)
                if (fact.name == name) fact.value = value;
        });
    }
    void expect_not_loaded(wgr_status status, const std::string& text, const char* digest = nullptr) const
    {
        const auto cache = open();
        wgr_function* function = nullptr;
        expect_refused(wgr_load(cache.get(), here.get(), "scale", digest, &function), status, text);
        EXPECT_EQ(function, nullptr);
    }

    Handle<wgr_device> here = open_device("opencl");
};

TEST_F(Replayer, GivesWhatTheFunctionGives)
{
    record_scale();
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    const Room x{here.get(), counting(5)}, y{here.get(), counting(0)}, elsewhere{here.get(), counting(0)};
    for (const float factor : {2.0F, 3.0F, -1.5F}) {
        ASSERT_EQ(told(launch(f, {x.tensor(), y.tensor()}, {real(factor)})), "wgr_ok");
        ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
        EXPECT_EQ(y.read<float>(), times(factor, counting(5)));
    }
    ASSERT_EQ(told(launch(f, {y.tensor(), elsewhere.tensor()}, {real(2)})), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(elsewhere.read<float>(), times(-3, counting(5)));
}

TEST_F(Replayer, TellsWhatAFunctionWants)
{
    record_scale();
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    std::uint64_t count = 0;
    const wgr_region* const regions = wgr_regions(f.get(), &count);
    ASSERT_EQ(count, 2U);
    EXPECT_STREQ(regions[0].name, "x");
    EXPECT_STREQ(regions[1].name, "y");
    EXPECT_EQ(regions[0].kind, wgr_input);
    EXPECT_EQ(regions[1].kind, wgr_output);
    for (const wgr_region& region : {regions[0], regions[1]}) {
        EXPECT_EQ(region.dtype, wgr_f32);
        ASSERT_EQ(region.rank, 1U);
        EXPECT_EQ(region.sizes[0], 64);
        EXPECT_EQ(region.strides[0], 1);
        EXPECT_EQ(region.bytes, 256U);
        EXPECT_EQ(region.alignment, 256U);
        EXPECT_EQ(region.on_host, 0);
    }
    const wgr_number_decl* const numbers = wgr_numbers(f.get(), &count);
    ASSERT_EQ(count, 1U);
    EXPECT_STREQ(numbers[0].name, "factor");
    EXPECT_EQ(numbers[0].dtype, wgr_f32);
    EXPECT_EQ(numbers[0].fixed, 0);
    EXPECT_EQ(numbers[0].low, real(-100).bits);
    EXPECT_EQ(numbers[0].high, real(100).bits);
}

TEST_F(Replayer, RefusesACallThatIsNotTheRecordedOne)
{
    record_scale();
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    const Room x{here.get(), counting(5)}, y{here.get(), counting(0)}, large{here.get(), std::vector<float>(256)};
    const std::vector<wgr_number> two{real(2)};
    const std::int64_t fewer[] = {32}, as_many[] = {64}, steps[] = {2}, two_by[] = {2, 32}, negative[] = {-64};
    const auto shaped = [&](const Room& room, const std::int64_t* sizes, const std::int64_t* strides,
                            std::uint64_t rank,
                            wgr_dtype dtype) { return wgr_tensor{room.memory(), sizes, strides, rank, dtype}; };
    EXPECT_EQ(told(launch(f, {shaped(x, as_many, nullptr, 1, wgr_f32), y.tensor()}, two)), "wgr_ok");
    expect_refused(launch(f, {shaped(x, fewer, nullptr, 1, wgr_f32), y.tensor()}, two), wgr_stale, "input x: sizes");
    expect_refused(launch(f, {shaped(x, two_by, nullptr, 2, wgr_f32), y.tensor()}, two), wgr_stale, "x");
    expect_refused(launch(f, {shaped(large, as_many, steps, 1, wgr_f32), y.tensor()}, two), wgr_stale, "strides");
    expect_refused(launch(f, {shaped(x, as_many, nullptr, 1, wgr_i32), y.tensor()}, two), wgr_stale, "dtype");
    expect_refused(launch(f, {shaped(x, negative, nullptr, 1, wgr_f32), y.tensor()}, two), wgr_invalid_argument,
                   "negative");
    expect_refused(launch(f, {shaped(x, as_many, nullptr, 1, 99), y.tensor()}, two), wgr_invalid_argument, "type 99");
    const auto moved = [](const Room& room, std::uint64_t bytes) {
        const wgr_memory all = room.memory();
        return as_recorded({all.base, all.offset + bytes, all.size - bytes});
    };
    expect_refused(launch(f, {moved(large, 128), y.tensor()}, two), wgr_stale, "alignment");
    EXPECT_EQ(told(launch(f, {moved(large, 256), y.tensor()}, two)), "wgr_ok");
    expect_refused(launch(f, {x.tensor(), x.tensor()}, two), wgr_stale, "overlap");
    expect_refused(launch(f, {large.tensor(), moved(large, 128)}, two), wgr_stale, "y");
    expect_refused(launch(f, {moved(x, 128), y.tensor()}, two), wgr_invalid_argument,
                   "needs 256 bytes, its memory has 128");
    expect_refused(launch(f, {as_recorded({}), y.tensor()}, two), wgr_invalid_argument, "'x' has no memory");
    expect_refused(launch(f, {as_recorded({0, 4096, 256}), y.tensor()}, two), wgr_invalid_argument,
                   "not one that wgr_memory_create returned");
    EXPECT_EQ(told(launch(f, {x.tensor(), y.tensor()}, two)), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(y.read<float>(), times(2, counting(5)));
}

TEST_F(Replayer, RefusesOtherCountsAndNumbers)
{
    record_scale();
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    const Room x{here.get(), counting(5)}, y{here.get(), counting(0)};
    const std::vector<wgr_tensor> both{x.tensor(), y.tensor()};
    expect_refused(launch(f, {x.tensor()}, {real(2)}), wgr_invalid_argument, "1 tensors and 1 numbers were given");
    expect_refused(launch(f, {x.tensor(), y.tensor(), y.tensor()}, {real(2)}), wgr_invalid_argument,
                   "expected 2 and 1");
    expect_refused(launch(f, both), wgr_invalid_argument, "0 numbers");
    expect_refused(launch(f, both, {real(2), real(2)}), wgr_invalid_argument, "2 numbers");
    expect_refused(launch(f, both, {real(101)}), wgr_invalid_argument, "outside its recorded range [-100, 100]");
    expect_refused(launch(f, both, {wgr_number{wgr_u8, 2}}), wgr_invalid_argument, "number of type u8");
    expect_refused(launch(f, both, {wgr_number{77, 2}}), wgr_invalid_argument, "type 77");
    EXPECT_EQ(told(launch(f, both, {whole(3)})), "wgr_ok") << "a whole number is a real one";
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(y.read<float>(), times(3, counting(5)));
}

TEST_F(Replayer, RefusesAValueThatItWasNotRecordedFor)
{
    Cache recorder{options()};
    Spec spec = vector_spec();
    spec.values = {scalar("n", i32)};
    Function recorded = recorder.wrap("add_int", device, spec, [this](Recorder& r) {
        r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], r.scalar<int>("n"));
    });
    const Buffer from = floats(0), to = device.allocate(k_floats * 4);
    ASSERT_EQ(recorded({{"x", from}, {"y", to}, {"n", 3}}), Outcome::recorded) << recorded.report().reason;
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "add_int");
    ASSERT_TRUE(f) << wgr_last_error();
    std::uint64_t count = 0;
    const wgr_number_decl* const numbers = wgr_numbers(f.get(), &count);
    ASSERT_EQ(count, 1U);
    EXPECT_EQ(numbers[0].fixed, 1);
    EXPECT_EQ(numbers[0].low, 3U);
    const Room x{here.get(), counting(5)}, y{here.get(), counting(0)};
    expect_refused(launch(f, {x.tensor(), y.tensor()}, {whole(4)}), wgr_stale, "value n");
    ASSERT_EQ(told(launch(f, {x.tensor(), y.tensor()}, {whole(3)})), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(y.read<float>(), counting(8));
}

TEST_F(Replayer, KeepsAStateFromLaunchToLaunch)
{
    Cache recorder{options()};
    const Buffer sum = floats(0), more = floats(1);
    Spec spec;
    spec.inputs = {input("x", f32, {k_count})};
    spec.states = {{"sum", sum.memory(), Access::read_write, f32, {k_count}, {}}};
    spec.code = {program};
    Function recorded = recorder.wrap("accumulate", device, spec, [this](Recorder& r) {
        r.stream().launch(program, "accumulate", k_launch, r["sum"], r["x"]);
    });
    ASSERT_EQ(recorded({{"x", more}}), Outcome::recorded) << recorded.report().reason;
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "accumulate");
    ASSERT_TRUE(f) << wgr_last_error();
    std::uint64_t count = 0;
    EXPECT_EQ(wgr_regions(f.get(), &count)[1].kind, wgr_state);
    const Room x{here.get(), std::vector<float>(k_floats, 1.0F)}, total{here.get(), counting(0)};
    ASSERT_EQ(told(wgr_prepare(f.get(), std::vector{x.tensor(), total.tensor()}.data(), 2, nullptr, 0)), "wgr_ok");
    EXPECT_EQ(total.read<float>(), counting(0)) << "nothing runs yet";
    for (int i = 0; i < 3; ++i) ASSERT_EQ(told(launch(f, {x.tensor(), total.tensor()})), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(total.read<float>(), counting(3));
}

TEST_F(Replayer, LaunchesFromSeveralThreads)
{
    record_scale();
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale"), g = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f && g) << wgr_last_error();
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            const auto factor = static_cast<float>(thread + 1);
            const Room x{here.get(), counting(factor)}, y{here.get(), counting(0)};
            for (int i = 0; i < 20; ++i) {
                wrong += launch(thread % 2 == 0 ? f : g, {x.tensor(), y.tensor()}, {real(factor)}) != wgr_ok;
                wrong += wgr_device_synchronize(here.get(), nullptr) != wgr_ok;
                wrong += y.read<float>() != times(factor, counting(factor));
            }
        });
    threads.clear();
    EXPECT_EQ(wrong, 0);
}

// --- Stored entries

TEST_F(Replayer, ListsEntriesAndWantsTheNameOfOneWhereSeveralFit)
{
    record_scale();
    Spec larger = vector_spec();
    larger.version = "2"; // other code of the same function, between which only the loading program can choose
    record_scale(options(), larger);
    const auto cache = open();
    const auto entries = list(cache.get(), here.get(), "scale");
    ASSERT_EQ(wgr_entries_count(entries.get()), 2U);
    EXPECT_EQ(wgr_entries_at(entries.get(), 2), nullptr);
    std::string codes;
    for (std::uint64_t i = 0; i < 2; ++i) {
        const wgr_entry& entry = *wgr_entries_at(entries.get(), i);
        EXPECT_STREQ(entry.misfit, "");
        EXPECT_NE(std::string(entry.recorded), "");
        codes += std::string(entry.code) + "|";
        const auto f = load(cache.get(), here.get(), "scale", entry.digest);
        EXPECT_TRUE(f) << wgr_last_error();
    }
    EXPECT_THAT(codes,
                testing::AllOf(HasSubstr("code.version 2"), HasSubstr("code.build_id "), HasSubstr("program.small ")));
    expect_not_loaded(wgr_stale, "several entries of 'scale' fit");
    expect_not_loaded(wgr_not_found, "there is no entry 0000", std::string(64, '0').c_str());
    expect_not_loaded(wgr_invalid_argument, "expected 64 hex digits", "12");
    EXPECT_EQ(wgr_entries_count(list(cache.get(), here.get(), "other").get()), 0U);
}

TEST_F(Replayer, RefusesAnotherDeviceDriverFormatOrFunction)
{
    const std::pair<std::string_view, wgr_status> facts[] = {{"device.units", wgr_stale},
                                                             {"driver.version", wgr_stale},
                                                             {cachefmt::fact::k_format, wgr_stale},
                                                             {cachefmt::fact::k_function, wgr_stale},
                                                             {cachefmt::fact::k_rank, wgr_stale}};
    for (const auto& [fact, status] : facts) {
        std::filesystem::remove_all(folder());
        record_scale();
        set_fact(fact, "77");
        expect_not_loaded(status, std::string(fact) + " 77 recorded");
        const auto cache = open();
        const auto entries = list(cache.get(), here.get(), "scale");
        ASSERT_EQ(wgr_entries_count(entries.get()), 1U);
        EXPECT_THAT(wgr_entries_at(entries.get(), 0)->misfit, HasSubstr(std::string(fact)));
        expect_not_loaded(status, std::string(fact), wgr_entries_at(entries.get(), 0)->digest);
    }
}

TEST_F(Replayer, RefusesAFactThatOnlyOneSideHas)
{
    record_scale();
    edit([](cachefmt::Entry& entry) {
        entry.header.guards.facts.push_back({"zone.of.tomorrow", "1", cachefmt::Role::must_match});
    });
    expect_not_loaded(wgr_stale, "zone.of.tomorrow");
    edit([](cachefmt::Entry& entry) {
        std::erase_if(entry.header.guards.facts,
                      [](const auto& fact) { return fact.name == "zone.of.tomorrow" || fact.name == "device.units"; });
    });
    expect_not_loaded(wgr_stale, "device.units");
}

TEST_F(Replayer, HoldsTheEnvironmentToWhatWasRecorded)
{
    const auto set = [this](const char* value) {
        device.synchronize(); // the driver's threads must not read the environment while it changes
        static_cast<void>(wgr_device_synchronize(here.get(), nullptr));
        if (value != nullptr)
            ::setenv("WARMGRAPH_TEST_GUARD", value, 1);
        else
            ::unsetenv("WARMGRAPH_TEST_GUARD");
    };
    set("a");
    Spec spec = vector_spec();
    spec.environment = {"WARMGRAPH_TEST_GUARD"};
    spec.config = {{"layers", "3"}};
    record_scale(options(), spec);
    set("b");
    expect_not_loaded(wgr_stale, "env.WARMGRAPH_TEST_GUARD a recorded, b now");
    set(nullptr);
    expect_not_loaded(wgr_stale, "env.WARMGRAPH_TEST_GUARD");
    set("a");
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    const Room x{here.get(), counting(5)}, y{here.get(), counting(0)};
    EXPECT_EQ(told(launch(f, {x.tensor(), y.tensor()}, {real(2)})), "wgr_ok");
    set("b");
    expect_refused(launch(f, {x.tensor(), y.tensor()}, {real(2)}), wgr_stale, "WARMGRAPH_TEST_GUARD is 'b' now");
    set("a");
    EXPECT_EQ(told(launch(f, {x.tensor(), y.tensor()}, {real(2)})), "wgr_ok");
    set(nullptr);
}

TEST_F(Replayer, FindsAModelByItsNameConfigurationShapesAndRank)
{
    CacheOptions with = options();
    with.config = {{"dtype", "f16"}};
    with.shapes = ShapeMode::dynamic;
    with.world_size = 4;
    with.global_rank = 2;
    with.tp_rank = 1;
    record_scale(with, vector_spec());
    const std::string where = folder();
    const wgr_key_value config[] = {{"dtype", "f16"}}, other[] = {{"dtype", "f32"}};
    wgr_cache_options right = options_of("toy", where);
    right.config = config;
    right.config_count = 1;
    right.dynamic = 1;
    right.world_size = 4;
    right.global_rank = 2;
    right.tp_rank = 1;
    const auto loads = [&](const wgr_cache_options& opened) {
        const auto cache = open_cache(opened);
        return load(cache.get(), here.get(), "scale") != nullptr;
    };
    EXPECT_TRUE(loads(right)) << wgr_last_error();
    for (const auto& change : std::vector<std::function<void(wgr_cache_options&)>>{
             [](auto& options) { options.model = "other"; }, [&](auto& options) { options.config = other; },
             [](auto& options) { options.dynamic = 0; }, [](auto& options) { options.global_rank = 3; },
             [](auto& options) { options.tp_rank = -1; }}) {
        wgr_cache_options wrong = right;
        change(wrong);
        EXPECT_FALSE(loads(wrong));
        EXPECT_THAT(wgr_last_error(), HasSubstr("there is no entry of 'scale'"));
    }
}

TEST_F(Replayer, RefusesWhatIsDamaged)
{
    record_scale();
    const auto entry = entries().front();
    auto bytes = file_bytes(entry);
    bytes[bytes.size() - 9] ^= 1;
    write_file(entry, bytes);
    expect_not_loaded(wgr_corrupt, "payload");
    EXPECT_FALSE(std::filesystem::exists(entry));
    EXPECT_TRUE(std::filesystem::exists(dir.path() / "cache/quarantine"));
}

TEST_F(Replayer, WritesNothingWhereItIsToldSo)
{
    record_scale();
    auto bytes = file_bytes(entries().front());
    bytes[bytes.size() - 9] ^= 1;
    write_file(entries().front(), bytes);
    const std::string where = folder();
    wgr_cache_options options = options_of("toy", where);
    options.read_only = 1;
    const auto cache = open_cache(options);
    EXPECT_FALSE(load(cache.get(), here.get(), "scale"));
    EXPECT_EQ(entries().size(), 1U);
    EXPECT_FALSE(std::filesystem::exists(dir.path() / "cache/quarantine"));
}

TEST_F(Replayer, RefusesAnEntryWhoseCodeIsMissing)
{
    record_scale();
    std::filesystem::remove_all(dir.path() / "cache/images");
    expect_not_loaded(wgr_not_found, "is missing or damaged");
}

TEST_F(Replayer, RefusesAnEntryThatNobodyTrustedSigned)
{
    const std::string key = "one:hmac-sha256:" + std::string(64, 'a'),
                      other = "two:hmac-sha256:" + std::string(64, 'b');
    CacheOptions with = options();
    with.signing.sign_with = key;
    record_scale(with, vector_spec());
    const std::string where = folder();
    wgr_cache_options options = options_of("toy", where);
    options.require_signed = 1;
    options.accept_key_count = 1;
    const auto loads = [&](const std::string& accepted) {
        const char* const keys[] = {accepted.c_str()};
        options.accept_keys = keys;
        const auto cache = open_cache(options);
        wgr_function* function = nullptr;
        const wgr_status status = wgr_load(cache.get(), here.get(), "scale", nullptr, &function);
        static_cast<void>(wgr_function_destroy(function));
        return status;
    };
    EXPECT_EQ(loads(key), wgr_ok) << wgr_last_error();
    EXPECT_EQ(loads(other), wgr_untrusted) << wgr_last_error();
    EXPECT_THAT(wgr_last_error(), HasSubstr("signed with key 'one'"));
    options.accept_key_count = 0;
    wgr_cache* cache = nullptr;
    expect_refused(wgr_cache_open(&options, &cache), wgr_invalid_argument, "signature");
}

TEST_F(Replayer, RefusesWhatOnlyTheWholeLibraryReplays)
{
    const auto refused = [&](const std::string& text, const std::function<void(cachefmt::Entry&)>& change) {
        std::filesystem::remove_all(folder());
        record_scale();
        edit(change);
        expect_not_loaded(wgr_unsupported, text);
    };
    refused("the forward or the backward of a pair",
            [](auto& entry) { entry.header.recording = {cachefmt::new_recording_id(), cachefmt::Part::forward}; });
    refused("event 'ready'", [](auto& entry) { entry.graph.events = {"ready"}; });
    refused("the external semaphore 'frame'", [](auto& entry) { entry.graph.semaphores = {"frame"}; });
    refused("the host function 'notify'", [](auto& entry) {
        entry.graph.nodes.push_back(cachefmt::HostNode{"notify"});
        entry.header.info.node_count = 2;
    });
}

TEST_F(Replayer, RefusesAGraphThatIsNotItsInterfaces)
{
    const auto refused = [&](wgr_status status, const std::string& text,
                             const std::function<void(cachefmt::Entry&)>& change) {
        std::filesystem::remove_all(folder());
        record_scale();
        edit(change);
        expect_not_loaded(status, text);
    };
    refused(wgr_corrupt, "'z', does not match the function's declaration",
            [](auto& entry) { entry.graph.regions[1].name = "z"; });
    refused(wgr_corrupt, "'x', does not match the function's declaration",
            [](auto& entry) { entry.graph.regions[0].kind = cachefmt::RegionKind::output; });
    refused(wgr_corrupt, "1 scalar", [](auto& entry) { entry.graph.scalars[0].name = "other"; });
    refused(wgr_corrupt, "its interface is", [](auto& entry) {
        for (auto& fact : entry.header.guards.facts)
            if (fact.name == "interface") fact.value += "; scalar n i32 [0, x]";
    });
    refused(wgr_stale, "its recordings differ (recompiled)", [](auto& entry) {
        entry.header.kind = cachefmt::EntryKind::tombstone;
        entry.header.info.reason = "recompiled";
        entry.graph = {};
    });
}

TEST_F(Replayer, RefusesConstantsOverTheirLimit)
{
    Cache recorder{options()};
    const Buffer table = floats(1);
    Spec spec = vector_spec();
    spec.constants = {{"table", table.memory()}};
    Function recorded = recorder.wrap("scale", device, spec, [&](Recorder& r) {
        r.stream().launch(program, "add", k_launch, r["x"], table, r["y"]);
    });
    const Buffer from = floats(0), to = device.allocate(k_floats * 4);
    ASSERT_EQ(recorded({{"x", from}, {"y", to}}), Outcome::recorded) << recorded.report().reason;
    const std::string where = folder();
    wgr_cache_options options = options_of("toy", where);
    options.max_constant_bytes = 100;
    const auto small = open_cache(options);
    EXPECT_FALSE(load(small.get(), here.get(), "scale"));
    EXPECT_THAT(wgr_last_error(), HasSubstr("constants have 256 bytes, expected at most 100"));
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    const Room x{here.get(), std::vector<float>(k_floats, 1.0F)}, y{here.get(), counting(0)};
    ASSERT_EQ(told(launch(f, {x.tensor(), y.tensor()})), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    EXPECT_EQ(y.read<float>(), counting(2));
}

// --- The interface itself

TEST_F(Replayer, RefusesNulls)
{
    record_scale();
    const auto cache = open();
    const auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    wgr_device* device_out = here.get();
    wgr_cache* cache_out = cache.get();
    wgr_entries* entries_out = nullptr;
    wgr_function* function_out = f.get();
    wgr_memory memory{1, 1, 1};
    wgr_cache_options options = WGR_CACHE_OPTIONS;
    char byte = 0;
    const auto null = [](wgr_status status, const char* what) {
        expect_refused(status, wgr_invalid_argument, std::string(what) + " is null");
    };
    null(wgr_device_open(nullptr, &device_out), "id");
    EXPECT_EQ(device_out, nullptr);
    null(wgr_device_open("opencl", nullptr), "out");
    null(wgr_device_synchronize(nullptr, nullptr), "device");
    null(wgr_memory_create(nullptr, 4, &memory), "device");
    EXPECT_EQ(memory.size, 0U);
    null(wgr_memory_create(here.get(), 4, nullptr), "out");
    null(wgr_memory_destroy(nullptr, memory), "device");
    null(wgr_upload(nullptr, memory, &byte, 1), "device");
    null(wgr_upload(here.get(), memory, nullptr, 1), "from");
    null(wgr_download(nullptr, memory, &byte, 1), "device");
    null(wgr_download(here.get(), memory, nullptr, 1), "to");
    null(wgr_cache_open(nullptr, &cache_out), "options");
    EXPECT_EQ(cache_out, nullptr);
    null(wgr_cache_open(&options, &cache_out), "options.model");
    options.model = "toy";
    null(wgr_cache_open(&options, nullptr), "out");
    options.config_count = 1;
    null(wgr_cache_open(&options, &cache_out), "options.config");
    null(wgr_entries_list(nullptr, here.get(), "scale", &entries_out), "cache");
    null(wgr_entries_list(cache.get(), nullptr, "scale", &entries_out), "device");
    null(wgr_entries_list(cache.get(), here.get(), nullptr, &entries_out), "function");
    null(wgr_entries_list(cache.get(), here.get(), "scale", nullptr), "out");
    null(wgr_load(nullptr, here.get(), "scale", nullptr, &function_out), "cache");
    EXPECT_EQ(function_out, nullptr);
    null(wgr_load(cache.get(), nullptr, "scale", nullptr, &function_out), "device");
    null(wgr_load(cache.get(), here.get(), nullptr, nullptr, &function_out), "function");
    null(wgr_load(cache.get(), here.get(), "scale", nullptr, nullptr), "out");
    null(wgr_launch(nullptr, nullptr, nullptr, 0, nullptr, 0), "function");
    null(wgr_launch(f.get(), nullptr, nullptr, 2, nullptr, 0), "tensors");
    null(wgr_launch(f.get(), nullptr, nullptr, 0, nullptr, 1), "numbers");
    null(wgr_prepare(nullptr, nullptr, 0, nullptr, 0), "function");
    std::uint64_t count = 7;
    EXPECT_EQ(wgr_regions(nullptr, &count), nullptr);
    EXPECT_EQ(count, 0U);
    EXPECT_EQ(wgr_numbers(nullptr, nullptr), nullptr);
    EXPECT_EQ(wgr_entries_count(nullptr), 0U);
    EXPECT_EQ(wgr_entries_at(nullptr, 0), nullptr);
    for (const wgr_status status : {wgr_device_close(nullptr), wgr_cache_close(nullptr), wgr_entries_destroy(nullptr),
                                    wgr_function_destroy(nullptr)})
        EXPECT_EQ(status, wgr_ok);
}

TEST_F(Replayer, SaysWhatIsWrongWithWhatItOpens)
{
    const std::string nowhere = (dir.path() / "nowhere").string();
    wgr_cache* cache = nullptr;
    wgr_device* other = nullptr;
    wgr_cache_options options = options_of("toy", nowhere);
    expect_refused(wgr_cache_open(&options, &cache), wgr_not_found, "does not exist: record first");
    EXPECT_FALSE(std::filesystem::exists(nowhere)) << "nobody asked for a folder";
    options.model = "a/b";
    expect_refused(wgr_cache_open(&options, &cache), wgr_invalid_argument, "model name 'a/b'");
    options = options_of("toy", nowhere);
    options.global_rank = 1;
    expect_refused(wgr_cache_open(&options, &cache), wgr_invalid_argument, "rank");
    options.size = 8;
    expect_refused(wgr_cache_open(&options, &cache), wgr_invalid_argument, "initialise them with WGR_CACHE_OPTIONS");
    expect_refused(wgr_device_open("opencl:999", &other), wgr_not_found, "999");
    expect_refused(wgr_device_open("vulkan", &other), wgr_not_found, "vulkan");
    int queue = 0;
    expect_refused(wgr_device_synchronize(here.get(), &queue), wgr_unsupported, "pass NULL for its own queue");
    EXPECT_THAT(wgr_backends(), HasSubstr("opencl"));
    EXPECT_STREQ(wgr_version(), WARMGRAPH_VERSION);
}

TEST_F(Replayer, IsSwitchedOffFromOutside)
{
    record_scale();
    const std::string where = folder();
    const wgr_cache_options options = options_of("toy", where);
    wgr_cache* cache = nullptr;
    for (const auto& [name, value] : {std::pair{"WARMGRAPH_POLICY", "off"}, {"WARMGRAPH_KINDS", "-entries"}}) {
        ::setenv(name, value, 1);
        expect_refused(wgr_cache_open(&options, &cache), wgr_unsupported, name);
        ::unsetenv(name);
    }
}

TEST_F(Replayer, LeavesNoMarkOfALoadBehind)
{
    record_scale();
    const auto marks = [this] {
        std::size_t count = 0;
        for (const auto& file : std::filesystem::recursive_directory_iterator(dir.path() / "cache"))
            count += file.path().filename().string().starts_with(".loading-");
        return count;
    };
    auto cache = open();
    auto f = load(cache.get(), here.get(), "scale");
    ASSERT_TRUE(f) << wgr_last_error();
    EXPECT_EQ(marks(), 0U) << "nobody launches it yet";
    const Room x{here.get(), counting(5)}, y{here.get(), counting(0)};
    ASSERT_EQ(told(launch(f, {x.tensor(), y.tensor()}, {real(2)})), "wgr_ok");
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
    ASSERT_EQ(told(launch(f, {x.tensor(), y.tensor()}, {real(2)})), "wgr_ok");
    EXPECT_EQ(marks(), 0U) << "its first launch is done";
    ASSERT_EQ(told(wgr_device_synchronize(here.get(), nullptr)), "wgr_ok");
}

} // namespace
} // namespace warmgraph::test::opencl_test
