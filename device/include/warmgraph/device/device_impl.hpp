// Private parts of Device and Program.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/store/load_mark.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

class Programs;

/// The programs of a cache, and the policy for using them.
struct ProgramUse {
    std::shared_ptr<Programs> programs; ///< null: without a cache
    Policy policy = Policy::read_write;
};

struct Device::Impl {
    std::shared_ptr<backends::Device> device;
    std::shared_ptr<backends::Stream> default_stream;
    std::mutex default_stream_mutex; ///< one thread at a time may use the stream, which all Device objects share

    /// Returns the target for which code is loaded. Thread-safe; asks the driver once.
    [[nodiscard]] const store::LoadTarget& load_target();

    // Programs outside wrapped callables belong to the cache that was last used with this device. Thread-safe.
    void use_programs(const ProgramUse& use);
    [[nodiscard]] ProgramUse programs() const; ///< `programs` is null if that cache was destroyed

private:
    std::once_flag m_target_asked;
    store::LoadTarget m_target;
    mutable std::mutex m_programs_mutex; ///< guards the following members
    std::weak_ptr<Programs> m_programs;
    Policy m_programs_policy = Policy::read_write;
};

struct Program::Impl {
    std::shared_ptr<Device::Impl> device;
    std::string name, source, options;
    Digest digest;    // digest of the program's source and options
    std::mutex mutex; // guards `module`: the first launch compiles, other launches wait
    std::shared_ptr<backends::Module> module;

    /// Loads the module from a cache's compiled programs or compiles it, once.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> compiled();
    /// Compiles without a cache.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> compile() const;
};

struct DeviceAccess {
    static const std::shared_ptr<Device::Impl>& impl(const Device& device) noexcept { return device.m_impl; }
};
struct ProgramAccess {
    /// Returns the digest of source and options, without the name.
    static const Digest& source_digest(const Program& program) noexcept { return program.m_impl->digest; }
    static Program::Impl& impl(const Program& program) noexcept { return *program.m_impl; }
};

} // namespace warmgraph
