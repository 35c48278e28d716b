#include "tiers/local/load_marks.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>

#include <unistd.h>

#include "tiers/local/folder_tag.hpp"
#include "tiers/local/temporary.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::store {
namespace {

constexpr std::size_t k_mark_digits = 16; ///< digits of the guards' digest, and of the target's digest

/// The parts of a mark's name.
struct MarkName {
    std::string_view entry, target; ///< the first digits of two digests
    unsigned row = 0;               ///< number of deaths in a row, if the writer dies
    std::string_view place;
    pid_t process = 0;
    std::uint64_t start = 0;
};

template <class Number>
bool read_whole(std::string_view text, Number& number) noexcept
{
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return !text.empty() && error == std::errc{} && end == text.data() + text.size() && text.front() != '-' &&
           (text.front() != '0' || text.size() == 1);
}

std::string_view cut_first(std::string_view& text) noexcept
{
    const std::string_view word = text.substr(0, text.find('-'));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    return word;
}

std::string_view cut_last(std::string_view& text) noexcept
{
    const std::size_t dash = text.rfind('-');
    if (dash == std::string_view::npos) return {};
    const std::string_view word = text.substr(dash + 1);
    text.remove_suffix(word.size() + 1);
    return word;
}

bool is_digits(std::string_view text) noexcept
{
    return text.size() == k_mark_digits &&
           std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Parses ".loading-<entry>-<target>-<row>-<host>.<namespace>-<boot>-<pid>-<start>-<number>".
std::optional<MarkName> parse_mark(std::string_view name) noexcept
{
    if (!name.starts_with(k_load_mark_prefix)) return std::nullopt;
    name.remove_prefix(k_load_mark_prefix.size());
    MarkName mark;
    mark.entry = cut_first(name);
    mark.target = cut_first(name);
    std::uint64_t number = 0;
    if (!is_digits(mark.entry) || !is_digits(mark.target) || !read_whole(cut_first(name), mark.row) ||
        !read_whole(cut_last(name), number) || !read_whole(cut_last(name), mark.start) ||
        !read_whole(cut_last(name), mark.process) || mark.row == 0)
        return std::nullopt;
    mark.place = name;
    return is_writer_place(mark.place) ? std::optional(mark) : std::nullopt;
}

std::string first_digits(const Digest& digest) { return to_hex(digest).substr(0, k_mark_digits); }

std::string digits_of(const LoadTarget& target)
{
    return first_digits(Sha256{}.update_field(target.driver).update_field(target.device).finish());
}

struct DeadMark {
    MarkName name; ///< views of `file`
    std::string_view file;
    std::chrono::system_clock::time_point made;
};

/// The marks among `items` that `concerns` accepts and whose writers are dead.
template <class Concerns>
std::vector<DeadMark> dead_marks(const Disk& disk, const Path& folder, const std::vector<DirectoryItem>& items,
                                 Concerns concerns)
{
    std::vector<DeadMark> dead;
    for (const DirectoryItem& item : items) {
        const auto name = item.type == FileType::regular ? parse_mark(item.name) : std::nullopt;
        if (!name || !concerns(*name)) continue;
        const bool is_near = name->place == writer_place();
        if (is_near && is_running(name->process, name->start)) continue;
        const auto info = disk.files.info(folder / item.name);
        if (!info || !*info) continue; // the load ended meanwhile
        if (!is_near && disk.clock.wall() - (*info)->modified < k_load_takes_at_most) continue;
        dead.push_back({*name, item.name, (*info)->modified});
    }
    return dead;
}

std::uint64_t remove_marks(const Disk& disk, const Path& folder, const std::vector<DeadMark>& marks)
{
    std::uint64_t count = 0;
    for (const DeadMark& mark : marks) {
        if (const auto removed = disk.files.remove(folder / mark.file); !removed)
            log().debug("cannot remove the file that marks a load: {}", removed.error().message);
        else
            ++count;
    }
    return count;
}

Error condemned(const LoadTarget& target)
{
    return {ErrorCode::driver_failed,
            fmt::format("its code is not given to the driver any more (version {}, {}): the last {} processes in a row "
                        "died while they loaded it; the function is recorded again, or runs as it is; if the processes "
                        "ended for another reason, put the entry's file back (docs/trust.md)",
                        printable(target.driver, 64), printable(target.device, 64), k_deaths_that_condemn)};
}

} // namespace

LoadTarget load_target(const std::string& name, const std::vector<cachefmt::Fact>& facts)
{
    const auto fact = [&facts](std::string_view of) {
        const auto found = std::ranges::find(facts, of, &cachefmt::Fact::name);
        return found != facts.end() ? found->value : std::string{};
    };
    return {fact(cachefmt::fact::k_driver_version), fmt::format("{} ({})", name, fact("device.architecture"))};
}

class LoadMarks::MarkFile final : public LoadMark {
public:
    MarkFile(LoadMarks& all, Path path, const Digest& entry, std::string target, unsigned row)
        : m_all(all), m_path(std::move(path)), m_entry(first_digits(entry)), m_target(std::move(target)), m_row(row)
    {
    }
    ~MarkFile() override
    {
        if (::getpid() != m_process || m_has_failed) return; // in a forked child the load belongs to the parent
        {
            const std::scoped_lock guard(m_all.m_mutex);
            m_all.m_marks.erase(this);
        }
        remove();
    }
    void fail() noexcept override
    {
        if (::getpid() != m_process) return;
        const std::scoped_lock guard(m_all.m_mutex);
        m_all.m_marks.erase(this); // so that an exit does not end this mark
        m_has_failed = true;
    }
    void succeed() noexcept override
    {
        try {
            if (m_row > 1 && ::getpid() == m_process) forget_deaths();
        } catch (const std::exception& error) {
            log().debug("processes that died in earlier loads are still counted: {}", error.what());
        }
    }
    void remove() const noexcept
    try {
        if (const auto removed = m_all.m_disk.files.remove(m_path); !removed)
            log().debug("cannot remove the file that marks a load: {}", removed.error().message);
    } catch (const std::exception& error) {
        log().debug("cannot remove the file that marks a load: {}", error.what());
    }
    /// REQUIRES: LoadMarks::m_mutex is held.
    void wait() noexcept { m_is_waiting = true; }
    /// True if an exit now counts as a death in this load. REQUIRES: LoadMarks::m_mutex is held.
    [[nodiscard]] bool is_in_driver() const noexcept { return !m_is_waiting && m_thread == std::this_thread::get_id(); }

private:
    void forget_deaths() const
    {
        const Path folder = m_path.parent_path();
        const auto items = m_all.m_disk.files.list(folder);
        if (!items) return;
        remove_marks(m_all.m_disk, folder, dead_marks(m_all.m_disk, folder, *items, [this](const MarkName& mark) {
                         return mark.entry == m_entry && mark.target == m_target;
                     }));
    }

    LoadMarks& m_all;
    Path m_path;
    std::string m_entry;
    std::string m_target;
    unsigned m_row;
    pid_t m_process = ::getpid();
    std::thread::id m_thread = std::this_thread::get_id();
    bool m_is_waiting = false; ///< this load waits for the work of its launch; guarded by LoadMarks::m_mutex
    bool m_has_failed = false;
};

bool is_load_mark(std::string_view name) noexcept { return parse_mark(name).has_value(); }

std::vector<std::string> spent_load_marks(const Disk& disk, const Path& folder, const std::vector<DirectoryItem>& items)
{
    const auto has_entry = [&](std::string_view digits) {
        return std::ranges::any_of(items, [&](const DirectoryItem& item) {
            return item.name.starts_with(digits) && Layout::entry_digest(item.name);
        });
    };
    std::vector<std::string> spent;
    for (const DeadMark& mark : dead_marks(disk, folder, items, [](const MarkName&) { return true; }))
        if (disk.clock.wall() - mark.made > k_deaths_count_for || !has_entry(mark.name.entry))
            spent.emplace_back(mark.file);
    return spent;
}

std::uint64_t remove_dead_load_marks(const Disk& disk, const Path& folder, const std::optional<Digest>& entry)
{
    const auto items = disk.files.list(folder);
    if (!items) return 0;
    const std::string digits = entry ? first_digits(*entry) : "";
    return remove_marks(disk, folder, dead_marks(disk, folder, *items, [&](const MarkName& mark) {
                            return !entry || mark.entry == digits;
                        }));
}

Result<std::unique_ptr<LoadMark>> LoadMarks::make(const EntryKey& key, const LoadTarget& target, unsigned row)
{
    // Do not make a deleted cache again for a mark.
    if (!has_tag(m_disk.files)) return fail(ErrorCode::not_found, "the cache folder has no CACHEDIR.TAG");
    static std::atomic<std::uint64_t> next_number = 0; // counts this process's marks in all stores
    const pid_t process = ::getpid();
    const std::string digits = digits_of(target);
    const std::string name =
        fmt::format("{}{}-{}-{}-{}-{}-{}-{}", k_load_mark_prefix, first_digits(key.guards_digest), digits, row,
                    writer_place(), process, start_of_process(process), next_number++);
    const Path path = m_disk.layout.function(key.function) / name;
    const std::string text =
        fmt::format("{} since {}: its code is given to driver {} on {}\n", to_text(key),
                    to_iso8601(m_disk.clock.wall()), printable(target.driver, 128), printable(target.device, 128));
    // Made before the guard, and so destroyed after it: the destructor takes the mutex.
    auto mark = std::make_unique<MarkFile>(*this, path, key.guards_digest, digits, row);
    const std::scoped_lock guard(m_mutex);
    if (m_is_exiting) return nullptr;
    if (!m_at_exit) m_at_exit.emplace([this] { end_at_exit(); });
    m_marks.insert(mark.get());
    if (auto made = m_disk.files.write_new(path, as_bytes(text), m_disk.modes.file, Durability::unsynced); !made)
        return std::unexpected(made.error());
    return std::unique_ptr<LoadMark>(std::move(mark));
}

Result<std::unique_ptr<LoadMark>> LoadMarks::begin(const EntryKey& key, const LoadTarget& target) noexcept
try {
    if (!m_disk.writable()) return nullptr;
    const Path folder = m_disk.layout.function(key.function);
    const auto items = m_disk.files.list(folder);
    if (!items) return nullptr; // a folder that cannot be listed cannot be written either
    const std::string entry = first_digits(key.guards_digest), on = digits_of(target);
    unsigned deaths = 0; // deaths in a row
    for (const DeadMark& mark : dead_marks(
             m_disk, folder, *items, [&](const MarkName& name) { return name.entry == entry && name.target == on; }))
        deaths = std::max(deaths, mark.name.row);
    if (deaths >= k_deaths_that_condemn) return std::unexpected(condemned(target));
    auto made = make(key, target, deaths + 1);
    if (made) return made;
    log().debug("no file marks a load: {}", made.error().message);
    return nullptr;
} catch (const std::exception& error) {
    log().debug("no file marks a load: {}", error.what());
    return nullptr;
}

void LoadMarks::forget(const EntryKey& key) noexcept
try {
    if (m_disk.writable() && has_tag(m_disk.files))
        remove_dead_load_marks(m_disk, m_disk.layout.function(key.function), key.guards_digest);
} catch (const std::exception& error) {
    log().debug("processes that died in earlier loads are still counted: {}", error.what());
}

void LoadMarks::end_at_exit() noexcept
{
    const std::scoped_lock guard(m_mutex);
    m_is_exiting = true;
    for (const MarkFile* const mark : m_marks)
        if (!mark->is_in_driver()) mark->remove();
}

void LoadMarks::end_behind(std::unique_ptr<LoadMark> mark, IsDone is_done) noexcept
try {
    const std::scoped_lock guard(m_mutex);
    static_cast<MarkFile&>(*mark).wait();
    m_waiting.push_back({std::move(mark), std::move(is_done), m_disk.clock.steady()});
    ++m_waiting_count;
} catch (const std::exception& error) {
    log().debug("the end of a load is not waited for: {}", error.what());
}

bool LoadMarks::goes_on(const PendingMark& one) const
{
    const auto done = one.is_done();
    if (!done)
        one.mark->fail();
    else if (*done)
        one.mark->succeed();
    return done && !*done && m_disk.clock.steady() - one.since < k_first_launch_counts_for;
}

bool LoadMarks::settle() noexcept
{
    if (m_waiting_count == 0 || ::getpid() != m_process) return false;
    std::list<PendingMark> asked;
    {
        const std::scoped_lock guard(m_mutex);
        asked.swap(m_waiting);
    }
    try { // without holding the mutex, because ending a mark takes it
        m_waiting_count -= std::erase_if(asked, [this](const PendingMark& one) { return !goes_on(one); });
    } catch (const std::exception& error) {
        log().debug("cannot determine whether loads have ended: {}", error.what());
    }
    const std::scoped_lock guard(m_mutex);
    m_waiting.splice(m_waiting.end(), asked);
    return m_waiting_count != 0;
}

LoadMarks::~LoadMarks()
{
    static_cast<void>(settle());
    m_waiting.clear();
}

} // namespace warmgraph::store
