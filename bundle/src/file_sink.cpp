#include "warmgraph/base/output_file.hpp"
#include "warmgraph/bundle/writer.hpp"

namespace warmgraph::bundle {
namespace {

class FileSink final : public Sink {
public:
    explicit FileSink(OutputFile file) : m_file(std::move(file)) {}

    [[nodiscard]] Result<void> append(ByteView bytes) override { return m_file.append(bytes); }
    [[nodiscard]] Result<void> finish(ByteView first) override
    {
        if (auto ok = m_file.write_at(0, first); !ok) return ok;
        return m_file.commit();
    }

private:
    OutputFile m_file;
};

} // namespace

Result<std::unique_ptr<Sink>> into_file(const std::filesystem::path& path)
{
    auto file = OutputFile::open(path, OutputFile::k_private);
    if (!file) return within("bundle", file.error());
    return std::make_unique<FileSink>(std::move(*file));
}

} // namespace warmgraph::bundle
