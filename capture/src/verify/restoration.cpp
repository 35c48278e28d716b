#include "verify/restoration.hpp"

#include <algorithm>

#include "classify/unused_words.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph {

namespace {

enum class ImageForm : std::uint8_t { cut, whole };

struct ImageSet {
    std::vector<cachefmt::ImageRef> refs;         ///< references to the images, without duplicates
    std::vector<std::uint32_t> index_of_module;   ///< index into `refs`
    std::vector<std::pair<Digest, Bytes>> images; ///< the images' bytes, without duplicates
    [[nodiscard]] std::size_t bytes() const
    {
        std::size_t sum = 0;
        for (const auto& [digest, image] : images) sum += image.size();
        return sum;
    }
    /// Whether both sets hold the same code.
    [[nodiscard]] bool same_code(const ImageSet& other) const
    {
        return std::ranges::equal(
            images, other.images, {}, [](const auto& image) { return image.first; },
            [](const auto& image) { return image.first; });
    }
};

Result<ImageSet> gather_images(const RestorationRequest& request, ImageForm form)
{
    ImageSet set;
    const auto kernels = cachefmt::kernels_in_use(request.graph.nodes, request.modules.size());
    for (std::size_t i = 0; i < request.modules.size(); ++i) {
        auto image = form == ImageForm::cut ? request.modules[i]->image_of(kernels[i]) : request.modules[i]->image();
        if (!image) return within("read back the device code", image.error());
        const Digest digest = sha256(*image);
        cachefmt::ImageRef ref{digest, image->size(), request.modules[i]->origin(), request.labels[i],
                               request.state[i]};
        // A module with state is never merged with another one.
        const bool is_itself = request.modules[i]->keeps_state();
        const auto known = std::ranges::find_if(set.refs, [&](const cachefmt::ImageRef& other) {
            return !is_itself && other.digest == ref.digest && other.origin == ref.origin &&
                   other.variables == ref.variables;
        });
        set.index_of_module.push_back(static_cast<std::uint32_t>(known - set.refs.begin()));
        if (known == set.refs.end()) set.refs.push_back(std::move(ref));
        if (std::ranges::find(set.images, digest, [](const auto& other) { return other.first; }) == set.images.end())
            set.images.emplace_back(digest, std::move(*image));
    }
    return set;
}

cachefmt::Entry entry_with(const RestorationRequest& request, const ImageSet& images)
{
    cachefmt::Entry entry{request.header, request.graph};
    entry.graph.images = images.refs;
    for (auto& node : entry.graph.nodes)
        if (auto* kernel = std::get_if<cachefmt::KernelNode>(&node))
            kernel->image = images.index_of_module[kernel->image];
    entry.header.info.node_count = static_cast<std::uint32_t>(entry.graph.nodes.size());
    entry.header.info.image_count = static_cast<std::uint32_t>(entry.graph.images.size());
    return entry;
}

Result<Recording> attempt(const RestorationRequest& request, const ImageSet& images, replay::ModuleCache& modules,
                          const Verify& verify)
{
    const auto entry = entry_with(request, images);
    auto bytes = cachefmt::encode(entry);
    if (!bytes) return std::unexpected(bytes.error());
    auto decoded = cachefmt::decode(*bytes, entry.header.key);
    if (!decoded) return within("read the recording back", decoded.error());
    Recording recording{std::move(*decoded), images.images, nullptr};
    recording.images.insert(recording.images.end(), request.constants.begin(), request.constants.end());

    const auto image_of = [&recording](const cachefmt::ImageRef& image) -> Result<Bytes> {
        for (const auto& [digest, contents] : recording.images)
            if (digest == image.digest) return contents;
        return fail(ErrorCode::internal, "image {} was not gathered", short_hex(image.digest));
    };
    const auto& graph = recording.entry.graph;
    const auto restore = [&](replay::RegisteredModules own) {
        Phases unmeasured; // not reported, because the verification's phase counts all of this time
        return replay::Executable::restore(request.device, graph, modules, image_of,
                                           bindings_of(graph, request.regions, request.scalars, request.handles),
                                           unmeasured, own, request.function);
    };
    auto executable = restore(replay::RegisteredModules::ignore);
    if (!executable) return std::unexpected(executable.error());
    recording.executable = std::move(*executable);
    if (auto verified = verify.run(*recording.executable); !verified) {
        // NOLINTNEXTLINE(bugprone-unused-return-value): its work never ends
        if (verify.is_abandoned()) static_cast<void>(recording.executable.release());
        return std::unexpected(verified.error());
    }
    // The next launch uses the caller's memory, not the memory of trials.
    recording.executable->instantiate_at_next_launch();
    // The stored form is verified. In this process later calls use the function's own modules, because the host's
    // writes to variables would not reach copies.
    const auto binds = replay::binds_registered_modules(*request.device, graph);
    if (!binds) return std::unexpected(binds.error());
    if (!*binds) return recording;
    recording.executable = nullptr; // frees its arena before the graph is restored again
    auto bound = restore(replay::RegisteredModules::bind);
    if (!bound) return within("bind it to registered modules", bound.error());
    recording.executable = std::move(*bound);
    return recording;
}

} // namespace

void describe_declared(cachefmt::Graph& graph, const backends::Device& device, const Frame& frame,
                       const cachefmt::Guards& guards)
{
    for (std::size_t i = 0; i < frame.tensors.size(); ++i) {
        graph.regions[i].alignment = guards.tensors[i].alignment;
        graph.regions[i].space = device.space_of(frame.memory[i].address);
    }
}

namespace {

Result<Recording> restore_cut_or_whole(const RestorationRequest& request, replay::ModuleCache& modules,
                                       const Verify& verify)
{
    const auto& name = request.header.key.function.function;
    const auto cut = gather_images(request, ImageForm::cut);
    auto recording = cut ? attempt(request, *cut, modules, verify) : Result<Recording>{std::unexpected(cut.error())};
    if (recording) {
        log().debug("'{}': {} cut down to the kernels in use, {} bytes", name, plural(cut->images.size(), "image"),
                    cut->bytes());
        return recording;
    }
    // Nothing may run on damaged memory, or beside a trial that never ends.
    if (recording.error().code == ErrorCode::partly_launched || verify.is_abandoned()) return recording;
    const auto whole = gather_images(request, ImageForm::whole);
    if (!whole || (cut && whole->same_code(*cut))) return recording; // cutting the images was not the cause
    log().debug("'{}': images cut down to the kernels in use do not work ({}): trying the whole images, {} bytes", name,
                recording.error().message, whole->bytes());
    return attempt(request, *whole, modules, verify);
}

void set_words(RestorationRequest& request, std::span<const UnusedWord> words, UnusedFill what)
{
    for (const UnusedWord& word : words)
        set_unused(std::get<cachefmt::KernelNode>(request.graph.nodes[word.node]).params[word.param].value, word, what);
}

/// Finds the word that the results depend on, by halving: each try has zeros in one half and captured values elsewhere;
/// other values are never used. `failure`: the error with all words zero. Returns `failure` if the zeros are not the
/// cause, or no more trials may run.
Error blame(const RestorationRequest& request, replay::ModuleCache& modules, const Verify& verify, Error failure)
{
    const auto try_zeros = [&](std::span<const UnusedWord> zero) -> Result<bool> {
        auto tried = request;
        set_words(tried, request.unused, UnusedFill::as_captured);
        set_words(tried, zero, UnusedFill::zero);
        auto recording = restore_cut_or_whole(tried, modules, verify);
        if (recording) return true;
        if (recording.error().code != ErrorCode::verification_failed || verify.is_abandoned())
            return std::unexpected(recording.error());
        return false;
    };
    const auto is_right = try_zeros({});
    if (!is_right) return is_right.error();
    if (!*is_right) return failure;
    std::span<const UnusedWord> suspects = request.unused;
    while (suspects.size() > 1) {
        const auto half = suspects.first(suspects.size() / 2);
        const auto is_innocent = try_zeros(half);
        if (!is_innocent) return is_innocent.error();
        suspects = *is_innocent ? suspects.subspan(half.size()) : half;
    }
    const auto is_alone_right = try_zeros(suspects);
    if (!is_alone_right) return is_alone_right.error();
    if (*is_alone_right) return failure; // only several words together cause the failure
    const UnusedWord& word = suspects.front();
    return {
        ErrorCode::not_recordable,
        fmt::format("{} a value that differs in each capture and follows no region or scalar ({:#x} and then {:#x}), "
                    "and the results depend on it: pass a value that is new in each call (a counter, a clock, a random "
                    "number) as a scalar or in declared memory; if it is an address: declare its memory",
                    word.place, word.was, word.is)};
}

} // namespace

Result<Recording> restore_verified(const RestorationRequest& request, replay::ModuleCache& modules,
                                   const Verify& verify)
{
    auto recording = restore_cut_or_whole(request, modules, verify);
    if (recording) {
        if (!request.unused.empty())
            log().debug("'{}': {} uninitialised words of parameters are stored as zeros",
                        request.header.key.function.function, request.unused.size());
        return recording;
    }
    if (request.unused.empty() || recording.error().code != ErrorCode::verification_failed || verify.is_abandoned())
        return recording;
    return std::unexpected(blame(request, modules, verify, recording.error()));
}

} // namespace warmgraph
