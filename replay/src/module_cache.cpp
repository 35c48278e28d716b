#include "warmgraph/replay/module_cache.hpp"

namespace warmgraph::replay {

namespace {

Digest digest_of(const std::vector<cachefmt::ModuleVariable>& variables)
{
    if (variables.empty()) return {};
    Bytes all;
    for (const auto& variable : variables) {
        append(all, static_cast<std::uint64_t>(variable.name.size()));
        for (const char c : variable.name) append(all, c);
        append(all, static_cast<std::uint64_t>(variable.contents.size()));
        all.insert(all.end(), variable.contents.begin(), variable.contents.end());
    }
    return sha256(all);
}

} // namespace

Result<std::shared_ptr<backends::Module>> ModuleCache::load(const std::shared_ptr<backends::Device>& device,
                                                            const cachefmt::ImageRef& image,
                                                            const std::function<Result<Bytes>()>& bytes)
{
    Key key{device, image.digest, digest_of(image.variables)};
    // The lock is held while loading: a second thread that wants the same image must wait for it anyway, and
    // drivers load no faster from several threads (design 6.7).
    const std::scoped_lock lock{m_mutex};
    if (const auto known = m_modules.find(key); known != m_modules.end()) return known->second;
    auto contents = bytes();
    if (!contents) return std::unexpected(contents.error());
    auto module = device->load(*contents);
    if (!module) return std::unexpected(module.error());
    if (auto written = (*module)->write_variables(image.variables); !written) return std::unexpected(written.error());
    ++m_loaded;
    return m_modules.emplace(std::move(key), std::move(*module)).first->second;
}

std::size_t ModuleCache::loaded() const noexcept
{
    const std::scoped_lock lock{m_mutex};
    return m_loaded;
}

} // namespace warmgraph::replay
