// Loads the modules of one graph: registered modules of this process if they fit, other modules from their stored
// images.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "image_reader.hpp"
#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph::replay {

/// One thread may use an object. The constructor's arguments must outlive the object. `before_first`: as
/// Loading::begin.
class CodeLoader {
public:
    CodeLoader(std::shared_ptr<backends::Device> device, ModuleCache& cache, const cachefmt::Graph& graph,
               const ImageSource& images, std::function<Result<void>()> before_first = {});

    /// Binds registered modules if `registered` says so, and begins to read the other images. `regions`: the addresses
    /// of constants, which variables may hold. Errors: those of find_registered_modules().
    [[nodiscard]] Result<void> begin(RegisteredModules registered, std::span<const MemoryRef> regions);
    /// Returns the modules in the graph's order. `function` as in ModuleUser. Errors: those of the image source and of
    /// the driver.
    [[nodiscard]] Result<std::vector<std::shared_ptr<backends::Module>>> finish(std::uint64_t function);

private:
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> load(std::size_t index, std::uint64_t function);
    /// Returns the image's bytes for the driver.
    [[nodiscard]] Result<Bytes> take(const cachefmt::ImageRef& image);

    std::shared_ptr<backends::Device> m_device;
    ModuleCache& m_cache;
    const cachefmt::Graph& m_graph;
    const ImageSource& m_source;
    std::function<Result<void>()> m_before_first;             ///< empty after its call
    std::vector<std::shared_ptr<backends::Module>> m_modules; ///< by image; null if the module is not loaded yet
    std::vector<cachefmt::ImageRef> m_images;                 ///< the graph's images, with this process's addresses
    std::optional<ImageReader> m_reader;
};

} // namespace warmgraph::replay
