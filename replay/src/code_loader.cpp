#include "code_loader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "registered_modules.hpp"

namespace warmgraph::replay {

namespace {

/// Fills in the addresses of constants that the image's variables hold. The same image with other addresses is another
/// module.
cachefmt::ImageRef with_addresses(cachefmt::ImageRef image, std::span<const MemoryRef> regions)
{
    for (auto& variable : image.variables)
        for (const auto& slot : variable.slots) {
            const std::uint64_t address = regions[slot.target].address.flat() + static_cast<std::uint64_t>(slot.addend);
            std::memcpy(variable.contents.data() + slot.offset, &address, sizeof address);
        }
    return image;
}

} // namespace

CodeLoader::CodeLoader(std::shared_ptr<backends::Device> device, ModuleCache& cache, const cachefmt::Graph& graph,
                       const ImageSource& images, std::function<Result<void>()> before_first)
    : m_device(std::move(device)),
      m_cache(cache),
      m_graph(graph),
      m_source(images),
      m_before_first(std::move(before_first)),
      m_modules(graph.images.size())
{
}

Result<void> CodeLoader::begin(RegisteredModules registered, std::span<const MemoryRef> regions)
{
    if (registered == RegisteredModules::bind) {
        auto found = find_registered_modules(*m_device, m_graph);
        if (!found) return std::unexpected(found.error());
        m_modules = std::move(*found);
    }
    m_images.reserve(m_graph.images.size()); // the reader keeps pointers to the elements
    std::vector<const cachefmt::ImageRef*> wanted;
    for (std::size_t i = 0; i < m_graph.images.size(); ++i) {
        const auto& image = m_images.emplace_back(with_addresses(m_graph.images[i], regions));
        if (!m_modules[i] && !m_cache.has(*m_device, image)) wanted.push_back(&image);
    }
    m_reader.emplace(m_source, std::move(wanted));
    return {};
}

Result<std::shared_ptr<backends::Module>> CodeLoader::load(std::size_t index, std::uint64_t function)
{
    const auto& image = m_images[index];
    const auto equal =
        std::ranges::count_if(std::span(m_graph.images).first(index), [&](const cachefmt::ImageRef& other) {
            return other.digest == image.digest && other.variables == m_graph.images[index].variables;
        });
    return m_cache.load(m_device, image, {function, static_cast<std::uint32_t>(equal)}, [&] { return take(image); });
}

Result<Bytes> CodeLoader::take(const cachefmt::ImageRef& image)
{
    auto bytes = m_reader->take(image);
    const auto before = bytes ? std::exchange(m_before_first, nullptr) : nullptr;
    if (before)
        if (auto ok = before(); !ok) return std::unexpected(ok.error());
    return bytes;
}

Result<std::vector<std::shared_ptr<backends::Module>>> CodeLoader::finish(std::uint64_t function)
{
    for (std::size_t i = 0; i < m_modules.size(); ++i) {
        if (m_modules[i]) continue;
        auto module = load(i, function);
        if (!module) return within("load image " + short_hex(m_images[i].digest), module.error());
        m_modules[i] = std::move(*module);
    }
    // All images were already loaded, so it was not called yet.
    if (const auto before = std::exchange(m_before_first, nullptr))
        if (auto ok = before(); !ok) return std::unexpected(ok.error());
    return std::move(m_modules);
}

} // namespace warmgraph::replay
