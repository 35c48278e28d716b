#pragma once

#include <memory>
#include <mutex>

#include "core.hpp"
#include "module.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/graph_builder.hpp"

namespace warmgraph::backends::opencl {

/// A device that was found, before it is opened.
struct FoundDevice {
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    std::uint16_t ordinal = 0;
    DeviceInfo info;
};

class OpenclDevice final : public Device, private Compiler {
public:
    [[nodiscard]] static Result<std::shared_ptr<Device>> open(const FoundDevice& found);

    [[nodiscard]] std::string id() const override { return m_found.info.id; }
    [[nodiscard]] std::string backend() const override { return "opencl"; }
    [[nodiscard]] std::string name() const override { return m_found.info.name; }
    [[nodiscard]] std::uint16_t ordinal() const noexcept override { return m_found.ordinal; }
    [[nodiscard]] const DeviceLimits& limits() const noexcept override { return m_limits; }
    [[nodiscard]] std::vector<cachefmt::Fact> facts() const override;
    [[nodiscard]] std::string replay_mode() const override { return m_core->replay.reason; }

    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size) override { return m_core->memory.allocate(size); }
    void release(const MemoryRef& memory) noexcept override { m_core->memory.release(memory); }
    [[nodiscard]] MemoryTally& tally() noexcept override { return m_core->memory.tally(); }
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size) override
    {
        return m_core->memory.reserve_shadow(size);
    }
    [[nodiscard]] Result<void> upload(const Address& to, ByteView bytes) override;
    [[nodiscard]] Result<void> download(std::span<std::byte> to, const Address& from) override;

    [[nodiscard]] Compiler& compiler() override { return *this; }
    [[nodiscard]] Result<std::unique_ptr<Module>> load(ByteView image) override;
    [[nodiscard]] Result<std::unique_ptr<Stream>> create_stream() override;
    [[nodiscard]] Result<std::unique_ptr<GraphBuilder>> graph_builder(std::size_t nodes) override;

private:
    explicit OpenclDevice(const FoundDevice& found) : m_found(found) {}
    [[nodiscard]] Result<std::unique_ptr<Module>> compile(std::string_view source, std::string_view options) override;
    [[nodiscard]] Result<CompilerIdentity> identity(std::string_view options) override;
    [[nodiscard]] bool compiles_at_launch() const noexcept override { return true; }
    [[nodiscard]] std::optional<CompiledImage> compiled(Module& module) override;
    [[nodiscard]] Result<std::unique_ptr<Module>> load_compiled(std::string_view source, std::string_view options,
                                                                const CompiledImage& compiled,
                                                                Recompile again) override;
    [[nodiscard]] Result<void> read_limits();
    [[nodiscard]] Target target() const;

    FoundDevice m_found;
    DeviceLimits m_limits;
    std::unique_ptr<Core> m_core;
    Queue m_transfers; ///< the queue for uploads and downloads
    std::string m_identity;
    bool m_is_pocl = false;
};

} // namespace warmgraph::backends::opencl
