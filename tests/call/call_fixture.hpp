// A fixture with a function's declaration, on a device that is only host memory, and without a cache.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "thrown.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/call/argument_reader.hpp"
#include "warmgraph/call/declaration.hpp"

namespace warmgraph::test {

class CallTest : public testing::Test {
protected:
    CallTest() { log().set_level(spdlog::level::off); }

    /// Declares "f" with an input x, an output y and a state s, which have 64 bytes each.
    [[nodiscard]] std::shared_ptr<Declaration> declare(Callable callable = {}, Spec spec = {})
    {
        spec.inputs = {input("x", DType::i32, {4, 4})};
        spec.outputs = {output("y", DType::i32, {4, 4})};
        spec.states = {state("s", memory.back(), DType::i32, {16})};
        auto its = std::make_shared<Declaration>();
        its->name = "f";
        its->path = "model/rank/f";
        its->label = "model/f";
        its->interface = *interface_of(spec);
        its->spec = std::move(spec);
        its->callable = std::move(callable);
        its->key = {"model", "rank", "f"};
        its->device = device;
        its->number = 1;
        return its;
    }
    [[nodiscard]] std::vector<Arg> arguments() const { return {{"x", memory[0]}, {"y", memory[1]}}; }
    [[nodiscard]] MemoryRef allocate() const { return *device->device->allocate(64); }
    [[nodiscard]] static Digest digest_of(char c) { return sha256(Bytes(1, static_cast<std::byte>(c))); }

    std::shared_ptr<backends::FakeBackend> backend = backends::make_fake_backend();
    std::shared_ptr<Device::Impl> device = [this] {
        auto opened = std::make_shared<Device::Impl>();
        opened->device = *backend->open("0");
        opened->default_stream = *opened->device->create_stream();
        return opened;
    }();
    std::vector<MemoryRef> memory{allocate(), allocate(), allocate()};
};

} // namespace warmgraph::test
