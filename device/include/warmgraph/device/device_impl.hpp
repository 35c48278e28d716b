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

/// Whose programs are made, and under which policy.
struct ProgramUse {
    std::shared_ptr<Programs> programs; ///< null: of no cache
    Policy policy = Policy::read_write;
};

struct Device::Impl {
    std::shared_ptr<backends::Device> device;
    std::shared_ptr<backends::Stream> default_stream;
    std::mutex default_stream_mutex; ///< a stream is one thread's at a time, and this one is everybody's

    /// Whom its code is given to. Thread-safe; asks the driver once.
    [[nodiscard]] const store::LoadTarget& load_target();

    // Programs that are run outside of wrapped callables are those of the cache that the device was last given to.
    // Thread-safe.
    void use_programs(const ProgramUse& use);
    [[nodiscard]] ProgramUse programs() const; ///< null where that cache is gone

private:
    std::once_flag m_target_asked;
    store::LoadTarget m_target;
    mutable std::mutex m_programs_mutex; ///< guards what follows
    std::weak_ptr<Programs> m_programs;
    Policy m_programs_policy = Policy::read_write;
};

struct Program::Impl {
    std::shared_ptr<Device::Impl> device;
    std::string name, source, options;
    Digest digest;    // of source and options
    std::mutex mutex; // guards module: the first launch compiles, others wait for it
    std::shared_ptr<backends::Module> module;

    /// From a cache's compiled programs, else compiled, once.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> compiled();
    /// Without a cache.
    [[nodiscard]] Result<std::shared_ptr<backends::Module>> compile() const;
};

struct DeviceAccess {
    static const std::shared_ptr<Device::Impl>& impl(const Device& device) noexcept { return device.m_impl; }
};
struct ProgramAccess {
    /// Of source and options, whatever its name.
    static const Digest& source_digest(const Program& program) noexcept { return program.m_impl->digest; }
    static Program::Impl& impl(const Program& program) noexcept { return *program.m_impl; }
};

} // namespace warmgraph
