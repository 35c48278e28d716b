// The modules of one graph: this process's own where they do, the others loaded from their stored images.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "image_reader.hpp"
#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph::replay {

/// Used by one thread. What its constructor takes outlives it. `before_first`: as Loading::begin.
class CodeLoader {
public:
    CodeLoader(std::shared_ptr<backends::Device> device, ModuleCache& cache, const cachefmt::Graph& graph,
               const ImageSource& images, std::function<Result<void>()> before_first = {});

    /// Binds registered modules where `registered` says so, and begins to read the images of the others. `regions`: where
    /// constants lie, whose addresses variables hold. Errors: find_registered_modules().
    [[nodiscard]] Result<void> begin(RegisteredModules registered, std::span<const MemoryRef> regions);
    /// In the graph's order. `function` as in ModuleUser. Errors: of the source, or of the driver.
    [[nodiscard]] Result<std::vector<std::shared_ptr<backends::Module>>> finish(std::uint64_t function);

private:
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> load(std::size_t index, std::uint64_t function);
    /// What the driver is given next.
    [[nodiscard]] Result<Bytes> take(const cachefmt::ImageRef& image);

    std::shared_ptr<backends::Device> m_device;
    ModuleCache& m_cache;
    const cachefmt::Graph& m_graph;
    const ImageSource& m_source;
    std::function<Result<void>()> m_before_first;             ///< empty once it was called
    std::vector<std::shared_ptr<backends::Module>> m_modules; ///< by image, null where it is still to be loaded
    std::vector<cachefmt::ImageRef> m_images;                 ///< the graph's, with this process's addresses
    std::optional<ImageReader> m_reader;
};

} // namespace warmgraph::replay
