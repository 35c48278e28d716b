// Images of one graph, read on a thread of their own while the driver loads those before them: for twenty small ones
// both take about as long (2 ms each of a decode step's on an H200).
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

/// Used by the thread that made it. `images` and the graph's images outlive it.
class ImageReader {
public:
    /// `wanted`: of the graph's images those that will be asked for, in that order. A guess: others are read when they
    /// are asked for.
    ImageReader(const ImageSource& images, std::vector<const cachefmt::ImageRef*> wanted);
    ImageReader(const ImageReader&) = delete;
    ImageReader& operator=(const ImageReader&) = delete;
    ~ImageReader(); ///< waits for the one that is being read

    /// What `images` gives for it.
    [[nodiscard]] Result<Bytes> take(const cachefmt::ImageRef& image);

private:
    struct Read {
        const cachefmt::ImageRef* image;
        Result<Bytes> bytes;
    };
    void read_all() noexcept;
    [[nodiscard]] bool has_room() const noexcept; ///< for one more that is read ahead

    const ImageSource& m_images;
    std::vector<const cachefmt::ImageRef*> m_wanted;
    std::size_t m_taken = 0; // of those in m_wanted
    std::mutex m_mutex;      // guards what follows
    std::condition_variable m_changed;
    std::deque<Read> m_read;   // ready, in order
    std::uint64_t m_bytes = 0; // of m_read
    bool m_stopped = false;    // by either side
    std::thread m_thread;
};

} // namespace warmgraph::replay
