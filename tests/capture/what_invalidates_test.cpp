// A table with every fact that a start of a program depends on, and the kinds of cached objects that a change of the
// fact invalidates. One start fills a folder. Another start, with one change, looks up each kind. It uses the facade
// and the CUDA backend on the fake driver, with one kind enabled at a time, and writes nothing.
#include <algorithm>
#include <numeric>

#include "cache_options.hpp"
#include "cuda_or_fake.hpp"
#include "facade_fixture.hpp"
#include "reseal.hpp"
#include "warmgraph/backends/built.hpp"
#include "warmgraph/backends/registry.hpp"
#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test::what_invalidates_test {
namespace {

namespace fs = std::filesystem;
using Config = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

constexpr std::int64_t k_declared = 256, k_called = 512; // a call with the other size is worth a profile
constexpr const char* k_variable = "WARMGRAPH_TEST_INVALIDATES";

/// All facts on which a start depends, and its cache folder.
struct Start {
    fs::path cache;
    int units = 132, compute_minor = 0, driver_api = 13000;
    bool has_other_driver = false, has_other_compiler = false;
    std::string source = "#include \"tile.h\"\nkernel add_scalar(memory x, value amount, value n)\n";
    std::string options = "-D ROWS=1", header = "#define TILE 8\n", headers_in = "headers";
    std::string model = "toy", function = "f", version = "1", environment = "a";
    Config config{{"dtype", "i32"}}, model_config{{"layers", "2"}};
    DType dtype = i32;
    std::vector<TunedConfig> candidates{{{"WORK", 1}}, {{"WORK", 2}}};
    std::map<std::string, std::int64_t> problem{{"count", k_declared}};
    std::string pytorch = "2.11.0+cu130";
};

/// The expected result for one kind. For a miss of graphs or programs, `facts` names the facts that differ. The reason
/// contains `words`.
struct Cell {
    enum class Is : std::uint8_t { hit, miss } is = Is::hit;
    Names facts{};
    std::string words{};
};
const Cell k_hit{};
/// For profiles, and for PyTorch's artifacts, a miss has no reason.
const Cell k_miss{Cell::Is::miss};
Cell differs(Names facts) { return {Cell::Is::miss, std::move(facts)}; }
Cell says(std::string words) { return {Cell::Is::miss, {}, std::move(words)}; }

/// The expected results of a row. The kinds that the row does not set are hits.
struct Cells {
    Cell graphs{}, compiled{}, tuned{}, profile{}, torch{};
};
struct Row {
    const char* fact;
    void (*change)(Start&);
    Cells expected{};
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.fact; }

/// Changes the format in the folder's files with that extension: in binary files byte 8, in text files the member
/// "format".
void write_another_format(const fs::path& cache, const std::string& extension)
{
    std::size_t changed = 0;
    for (const auto& item : fs::recursive_directory_iterator(cache)) {
        if (item.path().extension() != extension) continue;
        auto text = file_bytes(item.path());
        constexpr std::string_view k_member = "\"format\": 1";
        const auto member = std::ranges::search(text, k_member);
        Bytes bytes{as_bytes({text.data(), text.size()}).begin(), as_bytes({text.data(), text.size()}).end()};
        bytes.at(member.empty() ? 8 : static_cast<std::size_t>(member.end() - text.begin()) - 1) = std::byte{'7'};
        if (extension == ".wg") reseal_marks(bytes); // a writer of another format would seal the file, too
        std::ranges::transform(bytes, text.begin(), [](std::byte byte) { return static_cast<char>(byte); });
        write_file(item.path(), text);
        ++changed;
    }
    ASSERT_GE(changed, 1U) << "there is none of " << extension;
}

/// Writes the entries as a library with another format would, under the names that this library gives them.
void write_entries_of_another_library(const fs::path& cache)
{
    const auto store = store::LocalStore::open(cache).value();
    const auto functions = store->functions().value();
    ASSERT_EQ(functions.size(), 1U);
    const auto variants = store->variants(functions.front()).value();
    ASSERT_FALSE(variants.empty());
    for (const store::Variant& variant : variants) {
        const cachefmt::EntryKey key{functions.front(), variant.guards_digest};
        cachefmt::Entry entry = store->entry(key).value().value();
        auto& facts = entry.header.guards.facts;
        std::ranges::find(facts, "entry.format", &cachefmt::Fact::name)->value = "77";
        entry.header.key.guards_digest = cachefmt::guards_digest(entry.header.guards);
        ASSERT_TRUE(store->remove(key).has_value());
        ASSERT_TRUE(store->publish(entry).has_value());
    }
}

std::vector<char> from_hex(const std::string& text)
{
    std::vector<char> bytes;
    for (std::size_t at = 0; at + 1 < text.size(); at += 2)
        bytes.push_back(static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16)));
    return bytes;
}

/// Copies of the fake driver, made for each process, because a recording uses one driver. The backend reads the
/// driver's version from the file's name, and the compiler's build from the build id.
struct Libraries {
    TempDir dir;
    std::string driver = copy("libcuda.so.580.1", file_bytes(WARMGRAPH_FAKE_CUDA));
    std::string other_driver = copy("libcuda.so.580.2", file_bytes(WARMGRAPH_FAKE_CUDA));
    std::string other_compiler = copy("libnvrtc.so", of_another_build());

private:
    [[nodiscard]] std::string copy(const char* name, const std::vector<char>& bytes) const
    {
        write_file(dir.path() / name, bytes);
        return (dir.path() / name).string();
    }
    [[nodiscard]] static std::vector<char> of_another_build()
    {
        auto bytes = file_bytes(WARMGRAPH_FAKE_CUDA);
        const auto id = from_hex(build_id_of_file(WARMGRAPH_FAKE_CUDA).value());
        *std::ranges::search(bytes, id).begin() ^= 1; // changes the build id in the file's bytes
        return bytes;
    }
};
const Libraries& libraries()
{
    static const Libraries all;
    return all;
}

class WhatInvalidates : public testing::TestWithParam<Row> {
protected:
    WhatInvalidates()
    {
        static_cast<void>(backends::open_built_device("none")); // this build's own backends must be registered first
        m_key = SigningKey::generate("test", SignatureKind::hmac_sha256).value().secret_line();
    }
    ~WhatInvalidates() override { ::unsetenv(k_variable); }

    struct Machine {
        std::shared_ptr<backends::Backend> backend;
        Device device;
    };
    /// The machine on which a process with these facts starts.
    [[nodiscard]] Machine machine_of(const Start& start) const
    {
        m_driver.reset();
        m_driver.set_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, start.units);
        m_driver.set_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, start.compute_minor);
        m_driver.set_driver_version(start.driver_api);
        const std::string& driver = start.has_other_driver ? libraries().other_driver : libraries().driver;
        const std::string& compiler = start.has_other_compiler ? libraries().other_compiler : libraries().driver;
        auto backend = backends::make_cuda_backend({driver, compiler, driver});
        backends::register_backend(backend);
        write_headers(start);
        ::setenv(k_variable, start.environment.c_str(), 1);
        return {backend, Device{"cuda"}};
    }
    [[nodiscard]] CacheOptions options(const Start& start, Policy policy,
                                       const std::optional<std::set<ArtifactKind>>& kinds = {}) const
    {
        CacheOptions result = cache_options(start.model, start.cache, policy);
        result.config = start.model_config;
        result.signing.sign_with = m_key;
        result.kinds = kinds;
        return result;
    }
    [[nodiscard]] Program program_of(const Start& start, const Device& device) const
    {
        return device.program("small", start.source, start.options + " -I " + (dir.path() / start.headers_in).string());
    }
    /// The function y = x + 1 for any size. For a type that the kernel does not have, only the copy matters.
    [[nodiscard]] Function function_of(const Start& start, const Device& device, Cache& cache,
                                       BucketRule rule = BucketRule::fixed) const
    {
        Spec spec = x_to_y(start.dtype, k_declared);
        spec.version = start.version;
        spec.config = start.config;
        spec.environment = {k_variable};
        const Program program = program_of(start, device);
        spec.code = {program};
        if (rule != BucketRule::fixed) {
            Buckets buckets;
            buckets.dimensions = {{"x", 0, 0}, {"y", 0}};
            buckets.rule = rule;
            buckets.most = 2;
            spec.buckets = {buckets};
        }
        return cache.wrap(start.function, device, spec, [program](Recorder& r) {
            const auto count = static_cast<std::int32_t>(r.sizes("x")[0]);
            const Launch launch{.grid = {static_cast<std::uint32_t>(count + 127) / 128}, .block = {128}};
            r.stream().copy(r["y"], r["x"], static_cast<std::uint64_t>(count) * 4);
            r.stream().launch(program, "add_scalar", launch, r["y"], std::int32_t{1}, count);
        });
    }
    static void call(const Start& start, const Device& device, Function& f, std::int64_t count)
    {
        std::vector<std::int32_t> values(static_cast<std::size_t>(count));
        std::iota(values.begin(), values.end(), 5);
        const Buffer x = device.upload<std::int32_t>(values),
                     y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        f({{"x", Tensor{x, start.dtype, {count}, {}}}, {"y", Tensor{y, start.dtype, {count}, {}}}});
        device.synchronize();
        for (auto& value : values) ++value;
        EXPECT_EQ(y.read<std::int32_t>(), values) << "a hit or a miss, the result is right";
    }
    [[nodiscard]] TunableKernel kernel_of(const Start& start, const Device& device) const
    {
        TunableKernel kernel;
        kernel.name = "tile";
        kernel.source = start.source;
        kernel.options = start.options + " -I " + (dir.path() / start.headers_in).string();
        kernel.problem = start.problem;
        kernel.candidates = start.candidates;
        kernel.work = [device] {
            const auto y = std::make_shared<Buffer>(device.upload<std::int32_t>(std::vector<std::int32_t>(k_declared)));
            const auto launch = [y](Stream& stream, const Program& program, const TunedConfig&) {
                stream.zero(y->memory().address, y->size());
                stream.launch(program, "add_scalar", Launch{.grid = {2}, .block = {128}}, *y, std::int32_t{1},
                              static_cast<std::int32_t>(k_declared));
            };
            return TuningWork{launch, {{*y, i32}}};
        };
        return kernel;
    }
    /// The facts of PyTorch's artifacts, with the names that the Python package uses (facts_of in
    /// python/warmgraph/torch/record/_mega_cache.py).
    [[nodiscard]] static Config torch_facts(const Start& start, const Device& device)
    {
        return {{"model", start.model},
                {"torch", start.pytorch},
                {"cuda", "13.0"},
                {"gpu", device.name()},
                {"gpu.architecture", fmt::format("sm_9{}", start.compute_minor)}};
    }

    /// Runs the starts that make one object of each kind. Buckets are learnt from earlier calls.
    void fill(const Start& start) const
    {
        const Machine machine = machine_of(start);
        machine.device.prepare_recording();
        Cache cache{options(start, Policy::read_write)};
        Function f = function_of(start, machine.device, cache);
        call(start, machine.device, f, k_declared);
        ASSERT_EQ(f.report().outcome, Outcome::recorded) << f.report().reason;
        call(start, machine.device, f, k_called);
        const Tuned tuned = cache.tuner(machine.device, quick()).tune(kernel_of(start, machine.device));
        ASSERT_EQ(tuned.report().outcome, TuningOutcome::tuned) << tuned.report().reason;
        cache.put_artifact("torch", torch_facts(start, machine.device), as_bytes("pickles"));
    }
    void learn(const Start& start) const
    {
        const Machine machine = machine_of(start);
        Cache cache{options(start, Policy::read_write)};
        Function f = function_of(start, machine.device, cache, BucketRule::learnt);
        call(start, machine.device, f, k_declared);
        ASSERT_EQ(f.buckets().at(0), (std::vector<std::int64_t>{k_declared, k_called}));
    }

    // --- The results of a start, for one kind at a time

    [[nodiscard]] Cell look_up_graph(const Start& start) const
    {
        const Machine machine = machine_of(start);
        Cache cache{options(start, Policy::read_only, std::set{ArtifactKind::entries})};
        Function f = function_of(start, machine.device, cache);
        call(start, machine.device, f, k_declared);
        if (f.report().outcome == Outcome::replayed) return k_hit;
        Cell cell = says(f.report().reason);
        const auto misses = f.misses();
        for (const MissedFact& fact : misses.at(0).differences) cell.facts.push_back(fact.fact);
        return cell;
    }
    [[nodiscard]] Cell look_up_compiled(const Start& start) const
    {
        const Machine machine = machine_of(start);
        Cache cache{options(start, Policy::read_only, std::set{ArtifactKind::compiled})};
        Function f = function_of(start, machine.device, cache);
        call(start, machine.device, f, k_declared);
        const Statistics statistics = cache.statistics();
        EXPECT_EQ(statistics.of(ArtifactKind::compiled).hits + statistics.of(ArtifactKind::compiled).made, 1U);
        if (statistics.of(ArtifactKind::compiled).hits == 1) return k_hit;
        Cell cell = says(statistics.of(ArtifactKind::compiled).miss_reasons.at(0));
        const auto store = store::LocalStore::open(start.cache, {.access = store::StoreMode::read_only}).value();
        const auto misses = store->program_misses().value().list;
        for (const auto& fact : misses.at(0).differences) cell.facts.push_back(fact.fact);
        return cell;
    }
    [[nodiscard]] Cell look_up_tuned(const Start& start) const
    {
        const Machine machine = machine_of(start);
        Cache cache{options(start, Policy::read_only, std::set{ArtifactKind::tuned})};
        const Tuned tuned = cache.tuner(machine.device, quick()).tune(kernel_of(start, machine.device));
        EXPECT_NE(tuned.report().outcome, TuningOutcome::tuned) << "the cache folder is read-only";
        return tuned.report().outcome == TuningOutcome::stored ? k_hit : says(tuned.report().reason);
    }
    /// Looks a profile up. Profiles are used only for buckets.
    [[nodiscard]] Cell look_up_profile(const Start& start) const
    {
        const Machine machine = machine_of(start);
        Cache cache{options(start, Policy::read_only, std::set{ArtifactKind::profiles})};
        Function f = function_of(start, machine.device, cache, BucketRule::learnt);
        call(start, machine.device, f, k_declared);
        const bool is_learnt = f.buckets().at(0) == std::vector<std::int64_t>{k_declared, k_called};
        const Statistics statistics = cache.statistics();
        EXPECT_EQ(statistics.of(ArtifactKind::profiles).hits, is_learnt ? 1U : 0U);
        EXPECT_EQ(statistics.of(ArtifactKind::profiles).misses, is_learnt ? 0U : 1U);
        return is_learnt ? k_hit : k_miss;
    }
    [[nodiscard]] Cell look_up_torch(const Start& start) const
    {
        const Machine machine = machine_of(start);
        const Cache cache{options(start, Policy::read_only)};
        const auto facts = torch_facts(start, machine.device);
        bool is_there = false;
        const auto thrown = thrown_by([&] { is_there = cache.artifact("torch", facts).has_value(); });
        if (is_there) return k_hit;
        return thrown ? says(thrown->what()) : k_miss;
    }

    TempDir dir;

private:
    /// The options for using the stored winner without validation. Validation is tested elsewhere, and it would build
    /// the default.
    [[nodiscard]] static TuningOptions quick()
    {
        return {.validation = TuningValidation::at_first_run, .rounds = 1, .batch_ms = 0};
    }
    void write_headers(const Start& start) const
    {
        fs::create_directories(dir.path() / start.headers_in);
        std::ofstream(dir.path() / start.headers_in / "tile.h") << start.header;
    }

    FakeCuda m_driver{libraries().driver};
    std::string m_key;
};

void expect_cell(const char* kind, const Cell& found, const Cell& expected)
{
    SCOPED_TRACE(kind);
    ASSERT_EQ(found.is == Cell::Is::hit, expected.is == Cell::Is::hit)
        << "it is the other way round; " << testing::PrintToString(found.facts) << " " << found.words;
    EXPECT_THAT(found.facts, testing::UnorderedElementsAreArray(expected.facts)) << "all that differs, and no more";
    EXPECT_THAT(found.words, HasSubstr(expected.words));
}

TEST_P(WhatInvalidates, ExactlyWhatDependsOnIt)
{
    const auto& [fact, change, expected] = GetParam();
    Start start;
    start.cache = dir.path() / "cache";
    fill(start);
    learn(start);
    change(start);
    if (HasFatalFailure()) return;
    expect_cell("graphs", look_up_graph(start), expected.graphs);
    expect_cell("compiled", look_up_compiled(start), expected.compiled);
    expect_cell("tuned", look_up_tuned(start), expected.tuned);
    expect_cell("profile", look_up_profile(start), expected.profile);
    expect_cell("torch", look_up_torch(start), expected.torch);
}

const Cell k_other_tuned = says("no stored configuration"); // the file has another name, so the reason is not known

const Row k_nothing[]{
    {"Nothing", [](Start&) {}},
    {"WhereHeadersLie", [](Start& start) { start.headers_in = "moved"; }},
};
const Row k_version[]{
    {"VersionOfTheFunction", [](Start& start) { start.version = "2"; }, {.graphs = differs({"code.version"})}},
    {"VersionOfTheCompiler",
     [](Start& start) { start.has_other_compiler = true; },
     {.compiled = differs({"compiler"})}},
    {"VersionOfPyTorch", [](Start& start) { start.pytorch = "2.12.0+cu130"; }, {.torch = k_miss}},
    {"VersionOfTheLibrary",
     [](Start& start) { write_entries_of_another_library(start.cache); },
     {.graphs = differs({"entry.format"})}},
    {"FormatOfEntries",
     [](Start& start) { write_another_format(start.cache, ".wg"); },
     {.graphs = says("entry has format 55, this warmgraph reads")}},
    {"FormatOfPrograms",
     [](Start& start) { write_another_format(start.cache, ".compiled"); },
     {.compiled = says("has format 55, expected 1")}},
    {"FormatOfConfigurations",
     [](Start& start) { write_another_format(start.cache, ".best_config"); },
     {.tuned = says("has format 7, expected 1")}},
    {"FormatOfProfiles", [](Start& start) { write_another_format(start.cache, ".profile"); }, {.profile = k_miss}},
    {"FormatOfPyTorchsArtifacts",
     [](Start& start) { write_another_format(start.cache, ".mega_cache"); },
     {.torch = says("has format 55, expected 1")}},
};
const Row k_device[]{
    {"SizeOfTheDevice",
     [](Start& start) { start.units = 78; },
     {.graphs = differs({"device.units"}), .tuned = k_other_tuned}},
    {"ArchitectureOfTheDevice",
     [](Start& start) { start.compute_minor = 1; },
     {.graphs = differs({"device.architecture"}),
      .compiled = differs({"target"}),
      .tuned = k_other_tuned,
      .torch = k_miss}},
};
// A cubin fits its architecture with any version of the driver.
const Row k_driver[]{
    {"Driver",
     [](Start& start) { start.has_other_driver = true; },
     {.graphs = differs({"driver.version"}), .tuned = says("driver.version 580.1, but this process has 580.2")}},
    {"InterfaceOfTheDriver",
     [](Start& start) { start.driver_api = 13010; },
     {.graphs = differs({"runtime.version"}), .tuned = says("runtime.version 13.0, but this process has 13.1")}},
};
const Row k_options_code_and_headers[]{
    {"Options",
     [](Start& start) { start.options = "-D ROWS=2"; },
     {.graphs = differs({"program.small"}), .compiled = differs({"options"}), .tuned = k_other_tuned}},
    {"Code",
     [](Start& start) { start.source += "kernel scale(memory x, value factor, value n)\n"; },
     {.graphs = differs({"program.small"}), .compiled = differs({"source"}), .tuned = k_other_tuned}},
    {"CommentInTheCode",
     [](Start& start) { start.source += "// said\n"; },
     {.graphs = differs({"program.small"}), .compiled = differs({"source"})}},
    {"Headers",
     [](Start& start) { start.header = "#define TILE 9\n"; },
     {.graphs = differs({"program.small"}), .compiled = differs({"header tile.h"}), .tuned = k_other_tuned}},
};
const Row k_configuration[]{
    {"ConfigurationOfTheFunction",
     [](Start& start) { start.config["dtype"] = "f32"; },
     {.graphs = differs({"config.dtype"})}},
    {"ConfigurationOfTheModel", // the folder gets another name
     [](Start& start) { start.model_config["layers"] = "3"; },
     {.graphs = says("no entry"), .profile = k_miss}},
    {"Candidates",
     [](Start& start) { start.candidates.push_back({{"WORK", 4}}); },
     {.tuned = says("among other candidates")}},
    {"SizesOfTheKernel", [](Start& start) { start.problem["count"] = 7; }, {.tuned = k_other_tuned}},
    {"Environment",
     [](Start& start) { start.environment = "b"; },
     {.graphs = differs({std::string("env.") + k_variable})}},
};
const Row k_what_is_called[]{
    {"NameOfTheModel",
     [](Start& start) { start.model = "other"; },
     {.graphs = says("no entry"), .profile = k_miss, .torch = k_miss}},
    {"NameOfTheFunction", [](Start& start) { start.function = "g"; }, {.graphs = says("no entry"), .profile = k_miss}},
    {"TypesOfTheArguments",
     [](Start& start) { start.dtype = u32; },
     {.graphs = differs({"input x: dtype", "input y: dtype"}), .profile = k_miss}},
};

std::string name_of(const testing::TestParamInfo<Row>& info) { return info.param.fact; }
INSTANTIATE_TEST_SUITE_P(Nothing, WhatInvalidates, testing::ValuesIn(k_nothing), name_of);
INSTANTIATE_TEST_SUITE_P(Version, WhatInvalidates, testing::ValuesIn(k_version), name_of);
INSTANTIATE_TEST_SUITE_P(Device, WhatInvalidates, testing::ValuesIn(k_device), name_of);
INSTANTIATE_TEST_SUITE_P(Driver, WhatInvalidates, testing::ValuesIn(k_driver), name_of);
INSTANTIATE_TEST_SUITE_P(OptionsCodeAndHeaders, WhatInvalidates, testing::ValuesIn(k_options_code_and_headers),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Configuration, WhatInvalidates, testing::ValuesIn(k_configuration), name_of);
INSTANTIATE_TEST_SUITE_P(WhatIsCalled, WhatInvalidates, testing::ValuesIn(k_what_is_called), name_of);

} // namespace
} // namespace warmgraph::test::what_invalidates_test
