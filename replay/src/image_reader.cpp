#include "image_reader.hpp"

#include <algorithm>
#include <exception>
#include <system_error>

namespace warmgraph::replay {

namespace {

/// With fewer images no thread is started: starting it takes as long as reading them.
constexpr std::size_t k_least = 3;
constexpr std::size_t k_ahead = 16; ///< the most images that are read ahead
/// Most bytes of images that are read ahead: large images must not fill the memory.
constexpr std::uint64_t k_bytes_ahead = 16U << 20U;

} // namespace

ImageReader::ImageReader(const ImageSource& images, std::vector<const cachefmt::ImageRef*> wanted)
    : m_images(images), m_wanted(std::move(wanted))
{
    if (m_wanted.size() < k_least) {
        m_wanted.clear();
        return;
    }
    try {
        m_thread = std::thread{[this] { read_all(); }};
    } catch (const std::system_error&) { // no thread could start, so images are read on demand
        m_wanted.clear();
    }
}

ImageReader::~ImageReader()
{
    if (!m_thread.joinable()) return;
    {
        const std::scoped_lock lock(m_mutex);
        m_stopped = true;
    }
    m_changed.notify_all();
    m_thread.join();
}

bool ImageReader::has_room() const noexcept { return m_read.size() < k_ahead && m_bytes < k_bytes_ahead; }

void ImageReader::read_all() noexcept
try {
    for (const cachefmt::ImageRef* const image : m_wanted) {
        {
            std::unique_lock lock(m_mutex);
            m_changed.wait(lock, [this] { return m_stopped || has_room(); });
            if (m_stopped) return;
        }
        auto bytes = m_images(*image);
        const std::scoped_lock lock(m_mutex);
        m_bytes += bytes ? bytes->size() : 0;
        m_read.push_back({image, std::move(bytes)});
        m_changed.notify_all();
    }
} catch (const std::exception&) { // take() reads the image itself and returns the error
    const std::scoped_lock lock(m_mutex);
    m_stopped = true;
    m_changed.notify_all();
}

Result<Bytes> ImageReader::take(const cachefmt::ImageRef& image)
{
    const auto place =
        std::ranges::find(m_wanted.begin() + static_cast<std::ptrdiff_t>(m_taken), m_wanted.end(), &image);
    if (place == m_wanted.end()) return m_images(image);
    m_taken = static_cast<std::size_t>(place - m_wanted.begin()) + 1;
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_changed.wait(lock, [this] { return m_stopped || !m_read.empty(); });
        if (m_read.empty()) { // the reading thread failed
            lock.unlock();
            return m_images(image);
        }
        ReadImage next = std::move(m_read.front());
        m_read.pop_front();
        m_bytes -= next.bytes ? next.bytes->size() : 0;
        m_changed.notify_all();
        if (next.image == &image) return std::move(next.bytes);
    }
}

} // namespace warmgraph::replay
