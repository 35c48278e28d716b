// An owned CUgraph.
#pragma once

#include <utility>

#include "device/driver.hpp"

namespace warmgraph::backends::cuda {

class NativeGraph {
public:
    explicit NativeGraph(const Driver& driver) noexcept : m_driver(&driver) {}
    NativeGraph(NativeGraph&& other) noexcept : m_driver(other.m_driver), m_graph(std::exchange(other.m_graph, nullptr))
    {
    }
    NativeGraph& operator=(NativeGraph&& other) noexcept
    {
        std::swap(m_driver, other.m_driver);
        std::swap(m_graph, other.m_graph);
        return *this;
    }
    ~NativeGraph()
    {
        if (m_graph != nullptr)
            static_cast<void>(m_driver->status("cuGraphDestroy", m_driver->cuGraphDestroy, m_graph));
    }
    [[nodiscard]] CUgraph get() const noexcept { return m_graph; }
    [[nodiscard]] CUgraph* out() noexcept { return &m_graph; }

private:
    const Driver* m_driver;
    CUgraph m_graph = nullptr;
};

} // namespace warmgraph::backends::cuda
