// Adopts foreign graphs that were captured on a CUDA device, through the facade.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "cuda_facade_fixture.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/capture/stored_capture.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test::cuda_adoption_test {
namespace {

class CudaAdoption : public CudaFacade {
protected:
    CudaAdoption()
    {
        adoption.first.graph = driver.capture_copies(x, pool, y);
        adoption.first.regions = {{"x", x}, {"y", y}};
        adoption.first.scratch = {{"pool", pool}};
    }
    ~CudaAdoption() override
    {
        driver.destroy(adoption.first.graph);
        if (adoption.second) driver.destroy(adoption.second->graph);
    }
    /// Captures the same work again, with all memory at other addresses.
    void capture_again()
    {
        const MemoryRef moved_y{y2.memory().address + k_bytes, k_bytes};
        const MemoryRef moved_pool{pool2.memory().address + 512, k_bytes};
        adoption.second = NativeCapture{
            driver.capture_copies(x2, moved_pool, moved_y), {{"x", x2}, {"y", moved_y}}, {{"pool", moved_pool}}, {}};
    }
    std::optional<Exception> refusal()
    {
        Cache cache{options()};
        return thrown_by([&] { (void)cache.adopt("copy", device, spec(), adoption); });
    }
    Driver driver;
    Buffer x = numbers(0), y = device.allocate(k_bytes), pool = device.allocate(k_bytes);
    Buffer x2 = numbers(0), y2 = device.allocate(2 * k_bytes), pool2 = device.allocate(3 * k_bytes);
    Adoption adoption;
};

TEST_F(CudaAdoption, IsProvenBySecondCaptureAndReplaysElsewhereAlsoInTheNextCache)
{
    capture_again();
    y.write(counting(77));
    {
        Cache cache{options()};
        Function f = cache.adopt("copy", device, spec(), adoption);
        EXPECT_EQ(f.report().outcome, Outcome::recorded) << f.report().reason;
        EXPECT_EQ(f.report().reason, "");
        EXPECT_GE(f.report().recording_bytes, 3 * k_bytes) << "the memory is put back from copies";
        EXPECT_EQ(read(y), counting(77)) << "the caller's memory is put back";
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 1U);
        const Buffer other = numbers(9), out = device.allocate(k_bytes);
        EXPECT_EQ(f({{"x", other}, {"y", out}}), Outcome::replayed);
        EXPECT_EQ(read(out), counting(9));
    }
    Cache cache{options()};
    Function f = cache.load("copy", device, spec());
    EXPECT_EQ(cache.preload({.wait = PreloadWait::all}).progress().loaded, 1U);
    const Buffer other = numbers(4), out = device.allocate(k_bytes);
    EXPECT_EQ(f({{"x", other}, {"y", out}}), Outcome::replayed);
    EXPECT_EQ(read(out), counting(4));
}

TEST_F(CudaAdoption, EachRunOfTheOriginalIsShownToWhoKnowsWhatTheFunctionGave)
{
    capture_again();
    y.write(counting(77));
    std::vector<std::vector<std::int32_t>> seen;
    adoption.after_run = [&] { seen.push_back(read(y)); };
    adoption.agreement = [&] {
        EXPECT_EQ(seen.size(), 3U) << "after the last run";
        return std::string{"bitwise"};
    };
    Cache cache{options()};
    Function f = cache.adopt("copy", device, spec(), adoption);
    EXPECT_THAT(seen, Each(counting(0)));
    EXPECT_EQ(read(y), counting(77)) << "the caller's memory is put back";
    EXPECT_THAT(cache.readable("copy"), HasSubstr("bitwise (3 runs), the answer bitwise"));
}

TEST_F(CudaAdoption, WhatIsNotWhatTheFunctionGaveIsRefusedAndTheMemoryPutBack)
{
    capture_again();
    y.write(counting(77));
    const auto refuse = [] { throw std::runtime_error("it gives another y than the function"); };
    for (const bool at_once : {true, false}) {
        adoption.after_run = [=] {
            if (at_once) refuse();
        };
        adoption.agreement = [=]() -> std::string {
            refuse();
            return {};
        };
        Cache cache{options()};
        EXPECT_TRUE(failed_with(thrown_by([&] { (void)cache.adopt("copy", device, spec(), adoption); }),
                                ErrorCode::not_recordable, "it gives another y than the function"));
        EXPECT_EQ(read(y), counting(77));
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).refused, 1U);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 0U);
        EXPECT_THROW((void)cache.load("copy", device, spec())({{"x", x}, {"y", y}}), Exception) << "nothing is there";
    }
}

TEST_F(CudaAdoption, AWatchTellsOfWorkInAStreamThatDoesNotCapture)
{
    device.prepare_recording();
    Stream belongs = device.stream(), forked = device.stream(), other = device.stream();
    const StreamWatch watch{belongs};
    belongs.zero(y.memory().address, k_bytes);
    forked.wait(belongs.record());
    forked.zero(y.memory().address, k_bytes);
    EXPECT_EQ(watch.stray(), "");
    other.zero(y2.memory().address, k_bytes);
    EXPECT_THAT(watch.stray(), HasSubstr("in another stream"));
}

/// The backward half is recorded again under a new id. The same forward half must then get the new id, too.
TEST_F(CudaAdoption, APartHasTheIdOfItsLastRecording)
{
    capture_again();
    Cache cache{options()};
    for (const std::uint64_t id : {std::uint64_t{0xab}, std::uint64_t{0xcd}}) {
        adoption.part = AdoptedPart{1, id, PairHalf::backward};
        static_cast<void>(cache.adopt("copy", device, spec(), adoption));
        EXPECT_THAT(cache.readable("copy"), HasSubstr(fmt::format("backward of 00000000000000010000000000{:06x}", id)));
    }
    adoption.part.reset();
    static_cast<void>(cache.adopt("copy", device, spec(), adoption));
    EXPECT_THAT(cache.readable("copy"), Not(HasSubstr("backward of")));
}

TEST_F(CudaAdoption, TheSameWorkTwiceIsNoDifferenceAndOtherWorkIsRecompiled)
{
    capture_again();
    Cache cache{options()};
    for (int i = 0; i < 2; ++i) EXPECT_NO_THROW((void)cache.adopt("copy", device, spec(), adoption));
    const NativeCapture first = adoption.first, second = *adoption.second;
    const MemoryRef half{x.memory().address, k_bytes / 2}, half2{x2.memory().address, k_bytes / 2};
    adoption.first.graph = driver.capture_copies(half, pool, y);
    adoption.second->graph = driver.capture_copies(half2, second.scratch[0].second, second.regions[1].second);
    EXPECT_TRUE(failed_with(thrown_by([&] { (void)cache.adopt("copy", device, spec(), adoption); }),
                            ErrorCode::not_recordable, "with a different graph"));
    EXPECT_THAT(message_of(thrown_by([&] { (void)cache.adopt("copy", device, spec(), adoption); })),
                HasSubstr("recorded twice under the same guards"))
        << "the tombstone is obeyed";
    driver.destroy(first.graph);
    driver.destroy(second.graph);
}

/// Another process: its allocator made other calls before, and returns more and larger pieces.
class CudaAdoptionElsewhere : public CudaAdoption {
protected:
    CudaAdoptionElsewhere()
    {
        capture_again();
        Cache cache{options()};
        EXPECT_NO_THROW((void)cache.adopt("copy", device, spec(), adoption));
        first = stored().graph;
        other.first = captured(x, y, more);
        other.second = captured(x2, y2, more2);
    }
    ~CudaAdoptionElsewhere() override
    {
        driver.destroy(other.first.graph);
        driver.destroy(other.second->graph);
    }
    [[nodiscard]] NativeCapture captured(const Buffer& from, const Buffer& to, const Buffer& scratch) const
    {
        const std::uint64_t piece = 2 * k_bytes;
        const MemoryRef memory = scratch.memory(), used{memory.address + piece + 512, k_bytes};
        return {driver.capture_copies(from, used, {to.memory().address, k_bytes}),
                {{"x", from}, {"y", {to.memory().address, k_bytes}}},
                {{"pool", {memory.address, piece}}, {"more", {memory.address + piece, piece}}},
                {}};
    }
    [[nodiscard]] cachefmt::Entry stored() const
    {
        const auto store = *store::LocalStore::open(dir.path() / "cache");
        const auto function = store->functions()->at(0);
        return **store->entry({function, store->variants(function)->at(0).guards_digest});
    }
    void forge(const std::function<void(cachefmt::Graph&)>& change) const
    {
        const auto store = *store::LocalStore::open(dir.path() / "cache");
        cachefmt::Entry entry = stored();
        change(entry.graph);
        ASSERT_TRUE(store->publish(entry));
    }
    static cachefmt::Region& scratch_of(cachefmt::Graph& graph)
    {
        return *std::ranges::find(graph.regions, cachefmt::RegionKind::arena, &cachefmt::Region::kind);
    }
    void expect_replayed()
    {
        Cache cache{options(Policy::require_hit)};
        Function f = cache.load("copy", device, spec());
        const Buffer from = numbers(4), to = device.allocate(k_bytes);
        EXPECT_EQ(f({{"x", from}, {"y", to}}), Outcome::replayed);
        EXPECT_EQ(read(to), counting(4));
    }
    Buffer more = device.allocate(4 * k_bytes), more2 = device.allocate(4 * k_bytes);
    Adoption other;
    cachefmt::Graph first;
};

TEST_F(CudaAdoptionElsewhere, LeavesTheEntryOnDiskWhereThatGivesTheSameAnswer)
{
    y.write(counting(77));
    Cache cache{options()};
    Function f = cache.adopt("copy", device, spec(), other);
    EXPECT_EQ(f.report().outcome, Outcome::recorded);
    EXPECT_EQ(f.report().reason, "");
    EXPECT_EQ(read(y), counting(77)) << "the caller's memory is put back";
    const Buffer from = numbers(9), to = device.allocate(k_bytes);
    EXPECT_EQ(f({{"x", from}, {"y", to}}), Outcome::replayed);
    EXPECT_EQ(read(to), counting(9));
    EXPECT_EQ(stored().graph, first);
    expect_replayed();
}

TEST_F(CudaAdoptionElsewhere, IsRecompiledWhereTheEntryOnDiskGivesAnotherAnswer)
{
    forge([](cachefmt::Graph& graph) { // the changed graph reads past the end of its own result
        scratch_of(graph).size = 2 * k_bytes;
        std::get<cachefmt::CopyNode>(graph.nodes.back()).source.addend += k_bytes;
    });
    Cache cache{options()};
    EXPECT_THAT(message_of(thrown_by([&] { (void)cache.adopt("copy", device, spec(), other); })),
                HasSubstr("with a different graph"));
    EXPECT_EQ(stored().header.kind, cachefmt::EntryKind::tombstone);
}

TEST_F(CudaAdoptionElsewhere, TakesTheEntrysPlaceWhereThatCannotBeRestored)
{
    forge([](cachefmt::Graph& graph) { scratch_of(graph).size = 1ULL << 39U; });
    Cache cache{options()};
    EXPECT_NO_THROW((void)cache.adopt("copy", device, spec(), adoption));
    EXPECT_EQ(stored().graph, first);
    expect_replayed();
}

TEST_F(CudaAdoption, UnderAPolicyThatRecordsNothingIsRefusedOrStaysInTheProcess)
{
    capture_again();
    {
        Cache recording{options()}; // makes the folder, which must exist for a read-only cache
    }
    Cache strict{options(Policy::require_hit)};
    EXPECT_TRUE(failed_with(thrown_by([&] { (void)strict.adopt("copy", device, spec(), adoption); }),
                            ErrorCode::miss_forbidden));
    for (const Policy policy : {Policy::read_only, Policy::off}) {
        Cache cache{options(policy)};
        Function f = cache.adopt("copy", device, spec(), adoption);
        EXPECT_THAT(f.report().reason, HasSubstr("not published"));
        const Buffer other = numbers(4), out = device.allocate(k_bytes);
        EXPECT_EQ(f({{"x", other}, {"y", out}}), Outcome::replayed);
        EXPECT_EQ(read(out), counting(4));
    }
}

// These tests of the facade do not depend on the driver, so they run only on the fake driver.
#ifdef WARMGRAPH_FAKE_CUDA
/// The adopted graph is kept only in this process. If a module was registered for it, the graph could not be loaded
/// again.
TEST_F(CudaAdoption, WhatStaysInTheProcessIsDroppedWhenAModuleIsRegistered)
{
    capture_again();
    {
        Cache recording{options()}; // makes the folder, which must exist for a read-only cache
    }
    Cache cache{options(Policy::read_only)};
    Function f = cache.adopt("copy", device, spec(), adoption);
    const Buffer other = numbers(4), out = device.allocate(k_bytes);
    EXPECT_EQ(f({{"x", other}, {"y", out}}), Outcome::replayed);
    const auto backend = backends::make_cuda_backend();
    const auto opened = backend->open("");
    ASSERT_TRUE(opened);
    const auto compiled = take((*opened)->compiler().compile(k_program, ""));
    const Bytes image = *compiled->image();
    CUmodule module = nullptr;
    Driver::check(driver.call<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, image.data()));
    device.register_module(module, image);
    EXPECT_TRUE(failed_with(thrown_by([&] { f({{"x", other}, {"y", out}}); }), ErrorCode::miss_forbidden));
}
#endif

// The same cases run on a device in tests/gpu/torch/operators.py.
#ifdef WARMGRAPH_FAKE_CUDA
/// In the second capture, a kernel copies another number of elements.
class UnsteadyAdoption : public CudaAdoption {
protected:
    UnsteadyAdoption()
    {
        device.prepare_recording();
        const auto opened = backends::make_cuda_backend()->open("");
        image = *(*(*opened)->compiler().compile("kernel copy(memory to, memory from, value n)\n", ""))->image();
        CUmodule module = nullptr;
        Driver::check(driver.call<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, image.data()));
        Driver::check(driver.call<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&copy, module, "copy"));
        driver.destroy(adoption.first.graph);
        const MemoryRef moved_y{y2.memory().address + k_bytes, k_bytes};
        adoption.first = {captured(x, y, k_count), {{"x", x}, {"y", y}}, {}, {}};
        adoption.second = NativeCapture{captured(x2, moved_y, k_count - 1), {{"x", x2}, {"y", moved_y}}, {}, {}};
    }
    [[nodiscard]] CUgraph captured(const MemoryRef& from, const MemoryRef& to, std::int32_t count) const
    {
        CUgraph graph = nullptr;
        Stream stream = device.stream();
        auto* const native = static_cast<CUstream>(stream.native());
        CUdeviceptr target = to.address.flat(), source = from.address.flat();
        std::array<void*, 3> arguments{&target, &source, &count};
        Driver::check(driver.call<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture")(
            native, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        Driver::check(driver.call<decltype(&cuLaunchKernel)>("cuLaunchKernel")(copy, 2, 1, 1, 128, 1, 1, 0, native,
                                                                               arguments.data(), nullptr));
        Driver::check(driver.call<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(native, &graph));
        return graph;
    }
    Bytes image;
    CUfunction copy = nullptr;
};

TEST_F(UnsteadyAdoption, IsRefusedForWhatTheResultsDependOnOrUnrunForWhoIsStrict)
{
    EXPECT_THAT(message_of(refusal()), HasSubstr("the results depend on it"));
    Spec strict = spec();
    strict.strict = true;
    Cache cache{options()};
    EXPECT_THAT(message_of(thrown_by([&] { (void)cache.adopt("copy", device, strict, adoption); })),
                HasSubstr("follows no region"));
    EXPECT_EQ(read(x), counting(0));
}
#endif

TEST_F(CudaAdoption, WithWrongRegionsOrScratchIsInvalid)
{
    adoption.first.regions.pop_back();
    auto thrown = refusal();
    ASSERT_TRUE(failed_with(thrown, ErrorCode::invalid_argument, "'y' is missing"));
    adoption.first.regions = {{"x", x}, {"y", y}};
    capture_again();
    adoption.second->scratch[0].first = "workspace";
    thrown = refusal();
    EXPECT_TRUE(failed_with(thrown, ErrorCode::invalid_argument, "no scratch 'pool'"));
}

/// Two processes share captures: one writes a capture, and the other uses it as the second capture of an adoption.
class CudaPairing : public CudaAdoption {
protected:
    CudaPairing()
    {
        capture_again();
        others.first = *adoption.second;
        others.captures = folder.string();
        adoption.second.reset();
        adoption.captures = folder.string();
    }
    ~CudaPairing() override { driver.destroy(others.first.graph); }
    [[nodiscard]] std::vector<std::filesystem::path> files() const
    {
        std::vector<std::filesystem::path> found;
        for (const auto& item : std::filesystem::directory_iterator{folder}) found.push_back(item.path());
        return found;
    }
    static Bytes contents(const std::filesystem::path& file)
    {
        std::ifstream stream{file, std::ios::binary};
        const std::string text{std::istreambuf_iterator<char>{stream}, {}};
        const ByteView view = as_bytes(text);
        return {view.begin(), view.end()};
    }
    static void replace(const std::filesystem::path& file, ByteView bytes)
    {
        std::ofstream{file, std::ios::binary} << as_text(bytes);
    }
    /// Writes a capture file as another process does.
    void write_as_another_process()
    {
        Cache cache{options()};
        const std::filesystem::path file = folder / cache.write_capture("copy", device, spec(), others);
        auto capture = take(decode_capture(contents(file)));
        capture.process = "another one";
        replace(file, encode(capture));
    }
    /// Adopts. Returns the refusal, or nullopt if there is none. Expects this number of ignored files.
    std::optional<Exception> refusal_of_pair(std::uint64_t ignored)
    {
        Cache cache{options()};
        auto thrown = thrown_by([&] { (void)cache.adopt("copy", device, spec(), adoption); });
        EXPECT_EQ(cache.statistics().captures_ignored, ignored);
        EXPECT_EQ(cache.statistics().captures_paired, 0U);
        return thrown;
    }
    std::filesystem::path folder = dir.path() / "captures";
    Adoption others;
};

TEST_F(CudaPairing, AnotherProcessesCaptureProvesTheEntry)
{
    write_as_another_process();
    {
        Cache cache{options()};
        Function f = cache.adopt("copy", device, spec(), adoption);
        EXPECT_EQ(f.report().outcome, Outcome::recorded) << f.report().reason;
        EXPECT_EQ(cache.statistics().captures_paired, 1U);
    }
    Cache cache{options()};
    Function f = cache.load("copy", device, spec());
    const Buffer other = numbers(4), out = device.allocate(k_bytes);
    EXPECT_EQ(f({{"x", other}, {"y", out}}), Outcome::replayed);
    EXPECT_EQ(read(out), counting(4));
}

TEST_F(CudaPairing, WithoutAFolderOrAFileOrWithItsOwnThereIsNothingToPairWith)
{
    auto thrown = refusal_of_pair(0);
    ASSERT_TRUE(failed_with(thrown, ErrorCode::not_found));
    {
        Cache cache{options()};
        (void)cache.write_capture("copy", device, spec(), others);
        EXPECT_EQ(cache.statistics().captures_written, 1U);
    }
    thrown = refusal_of_pair(1);
    ASSERT_TRUE(failed_with(thrown, ErrorCode::not_found, "this process wrote it"));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    thrown = refusal_of_pair(0);
    EXPECT_TRUE(failed_with(thrown, ErrorCode::not_found));
}

TEST_F(CudaPairing, DamagedNewerAndForeignFilesAreCountedAndIgnored)
{
    write_as_another_process();
    const std::filesystem::path good = files().at(0);
    const Bytes whole = contents(good);
    Bytes damaged = whole, newer = whole;
    damaged.back() ^= std::byte{1};
    newer[8] = std::byte{9};
    auto other = *decode_capture(whole);
    other.key.guards_digest = {};
    const std::string name = good.string().substr(0, good.string().size() - std::string_view{".wgcapture"}.size());
    replace(name + "1.wgcapture", damaged);
    replace(name + "2.wgcapture", newer);
    replace(name + "3.wgcapture", encode(other));
    replace(folder / "notes.txt", damaged);
    std::filesystem::rename(good, folder / "kept");
    for (const auto& file : files()) std::filesystem::permissions(file, std::filesystem::perms{0600});
    const auto thrown = refusal_of_pair(3);
    ASSERT_TRUE(failed_with(thrown, ErrorCode::not_found));
    EXPECT_THAT(thrown->what(), AllOf(HasSubstr("the digest does not match"), HasSubstr("format 9, expected 1"),
                                      HasSubstr("other guards")));
    std::filesystem::rename(folder / "kept", good);
    Cache cache{options()};
    EXPECT_NO_THROW((void)cache.adopt("copy", device, spec(), adoption));
    EXPECT_EQ(cache.statistics().captures_paired, 1U);
    EXPECT_EQ(cache.statistics().captures_ignored, 3U);
}

TEST_F(CudaPairing, AFileOrFolderThatOthersMayWriteIsNotRead)
{
    write_as_another_process();
    std::filesystem::permissions(files().at(0), std::filesystem::perms{0622});
    auto thrown = refusal_of_pair(1);
    ASSERT_TRUE(failed_with(thrown, ErrorCode::not_found));
    std::filesystem::permissions(files().at(0), std::filesystem::perms{0600});
    std::filesystem::permissions(folder, std::filesystem::perms{0777});
    thrown = refusal_of_pair(0);
    EXPECT_TRUE(failed_with(thrown, ErrorCode::permission_denied, "can be written by other users"));
}

TEST_F(CudaPairing, FourFilesOfOneCallAreKept)
{
    for (int i = 0; i < 6; ++i) write_as_another_process();
    EXPECT_EQ(files().size(), 4U);
}

TEST_F(CudaPairing, MemoryThatLiesWhereItLayProvesNothing)
{
    std::swap(adoption.first, others.first);
    write_as_another_process();
    std::swap(adoption.first, others.first);
    EXPECT_TRUE(failed_with(refusal_of_pair(1), ErrorCode::not_recordable, "had the same address"));
}

TEST_F(CudaPairing, AFolderAndASecondCaptureAreTooMany)
{
    adoption.second = others.first;
    EXPECT_TRUE(failed_with(refusal(), ErrorCode::invalid_argument));
    adoption.second.reset();
    Cache cache{options()};
    others.captures.clear();
    EXPECT_TRUE(failed_with(thrown_by([&] { (void)cache.write_capture("copy", device, spec(), others); }),
                            ErrorCode::invalid_argument));
}

} // namespace
} // namespace warmgraph::test::cuda_adoption_test
