// Private parts of Device and Program.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/store/load_mark.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

struct Device::Impl {
    std::shared_ptr<backends::Device> device;
    std::shared_ptr<backends::Stream> default_stream;
    std::mutex default_stream_mutex; ///< a stream is one thread's at a time, and this one is everybody's

    /// Whom its code is given to. Thread-safe; asks the driver once.
    [[nodiscard]] const store::LoadTarget& load_target();

private:
    std::once_flag m_target_asked;
    store::LoadTarget m_target;
};

struct Program::Impl {
    std::shared_ptr<Device::Impl> device;
    std::string name, source, options;
    Digest digest;    // of source and options
    std::mutex mutex; // guards module: the first launch compiles, others wait for it
    std::shared_ptr<backends::Module> module;

    [[nodiscard]] Result<std::shared_ptr<backends::Module>> compiled();
};

struct DeviceAccess {
    static const std::shared_ptr<Device::Impl>& impl(const Device& device) noexcept { return device.m_impl; }
};
struct ProgramAccess {
    /// Of source and options, whatever its name.
    static const Digest& source_digest(const Program& program) noexcept { return program.m_impl->digest; }
};

} // namespace warmgraph
