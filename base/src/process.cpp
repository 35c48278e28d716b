#include "warmgraph/base/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace warmgraph {
namespace {

using Notes = std::span<const std::byte>;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::string hex_of(std::span<const std::byte> bytes)
{
    std::string text;
    for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

/// Reads one PT_NOTE segment; `unit` is its alignment (4, or 8 for some notes of binutils).
std::optional<std::string> build_id_in(Notes notes, std::size_t unit)
{
    constexpr std::size_t k_head = sizeof(ElfW(Nhdr));
    while (notes.size() >= k_head) {
        ElfW(Nhdr) head;
        std::memcpy(&head, notes.data(), k_head);
        const std::size_t content = round_up(k_head + head.n_namesz, unit);
        if (content > notes.size() || head.n_descsz > notes.size() - content) return std::nullopt;
        const char* name = reinterpret_cast<const char*>(notes.data() + k_head);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
            return hex_of(notes.subspan(content, head.n_descsz));
        }
        const std::size_t next = round_up(content + head.n_descsz, unit);
        if (next >= notes.size()) break;
        notes = notes.subspan(next);
    }
    return std::nullopt;
}

/// A regular file that is open for reading.
class ReadOnlyFile {
public:
    explicit ReadOnlyFile(const std::string& path)
        : m_file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY))
    {
        struct stat info{};
        m_is_regular = m_file >= 0 && ::fstat(m_file, &info) == 0 && S_ISREG(info.st_mode);
    }
    ReadOnlyFile(const ReadOnlyFile&) = delete;
    ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;
    ~ReadOnlyFile()
    {
        if (m_file >= 0) ::close(m_file);
    }
    [[nodiscard]] bool read(std::span<std::byte> bytes, std::uint64_t offset) const
    {
        return m_is_regular && offset <= INT64_MAX &&
               ::pread(m_file, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
                   static_cast<ssize_t>(bytes.size());
    }

private:
    int m_file;
    bool m_is_regular = false;
};

struct Object {
    std::uintptr_t code = 0;
    bool found = false;
    std::string path; ///< "" for the program itself
    std::optional<std::string> build_id;
};

int visit(dl_phdr_info* info, std::size_t, void* data)
{
    auto& object = *static_cast<Object*>(data);
    const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
    for (const auto& header : headers) {
        const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_LOAD && object.code >= start && object.code - start < header.p_memsz)
            object.found = true;
    }
    if (!object.found) return 0;
    object.path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    for (const auto& header : headers) {
        if (header.p_type != PT_NOTE || object.build_id) continue;
        const auto* start = reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr);
        object.build_id = build_id_in(Notes(start, header.p_memsz), header.p_align == 8 ? 8 : 4);
    }
    return 1;
}

Object object_of(const void* code)
{
    Object object;
    object.code = reinterpret_cast<std::uintptr_t>(code);
    ::dl_iterate_phdr(visit, &object);
    return object;
}

struct MapsLine {
    std::uint64_t start = 0, end = 0;
    std::string_view permissions, name;
};

/// Parses a line like "7f2c-7f2e r-xp 00000000 08:01 173521      /usr/lib/libc.so.6".
std::optional<MapsLine> parse(std::string_view line)
{
    const auto word = [&line] {
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        const std::string_view found = line.substr(0, line.find(' '));
        line.remove_prefix(found.size());
        return found;
    };
    const std::string_view range = word();
    const char* const end = range.data() + range.size();
    MapsLine parsed;
    const auto first = std::from_chars(range.data(), end, parsed.start, 16);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return std::nullopt;
    const auto last = std::from_chars(first.ptr + 1, end, parsed.end, 16);
    if (last.ec != std::errc{} || last.ptr != end || parsed.end <= parsed.start) return std::nullopt;
    parsed.permissions = word();
    for (int skipped = 0; skipped < 3; ++skipped) static_cast<void>(word()); // offset, device, inode
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    parsed.name = line; // the name may contain spaces
    return parsed;
}

/// Fields of /proc/<pid>/stat (proc(5)). All zero if it cannot be read.
struct ProcessStatus {
    char state = 0;
    std::uint64_t threads = 0, start = 0;
};

/// Allocates no memory, because callers may have run out of it.
ProcessStatus status_of(pid_t process) noexcept
{
    constexpr std::size_t k_state = 3, k_threads = 20, k_start = 22; // numbers of fields, from 1
    std::array<char, 32> path{};
    *fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/stat", process).out = '\0';
    const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    std::array<char, 1024> buffer{};
    const ssize_t size = ::read(file, buffer.data(), buffer.size());
    ::close(file);
    std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    // The second field is the program's name in brackets, which may contain any character.
    text.remove_prefix(std::min(text.rfind(')') + 1, text.size()));
    ProcessStatus status;
    for (std::size_t field = k_state; field <= k_start && !text.empty(); ++field) {
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(word.size());
        if (field == k_state && !word.empty()) status.state = word.front();
        std::uint64_t number = 0;
        std::from_chars(word.data(), word.data() + word.size(), number);
        if (field == k_threads) status.threads = number;
        if (field == k_start) status.start = number;
    }
    return status;
}

} // namespace

std::uint64_t start_of_process(pid_t process) noexcept { return status_of(process).start; }

bool is_running(pid_t process, std::uint64_t start) noexcept
{
    if (process <= 0 || (::kill(process, 0) != 0 && errno == ESRCH)) return false;
    const ProcessStatus status = status_of(process);
    if (status.start == 0) return true; // a process of another user, whose data is hidden
    if (start != 0 && status.start != start) return false;
    // A process whose first thread has ended looks like a zombie, but still has other threads.
    return (status.state != 'Z' && status.state != 'X') || status.threads > 1;
}

std::optional<std::string> build_id_of_file(const std::string& path)
{
    constexpr std::size_t k_most_headers = 128, k_most_notes = 4096; // k_most_notes: bytes of a segment of notes
    const ReadOnlyFile file(path);
    ElfW(Ehdr) head{};
    if (!file.read(std::as_writable_bytes(std::span(&head, 1)), 0)) return std::nullopt;
    const bool is_ours = std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                         head.e_ident[EI_CLASS] == (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) &&
                         head.e_phentsize == sizeof(ElfW(Phdr)) && head.e_phnum <= k_most_headers;
    if (!is_ours) return std::nullopt;
    std::vector<ElfW(Phdr)> headers(head.e_phnum);
    if (!file.read(std::as_writable_bytes(std::span(headers)), head.e_phoff)) return std::nullopt;
    for (const auto& header : headers) {
        if (header.p_type != PT_NOTE || header.p_filesz > k_most_notes) continue;
        std::vector<std::byte> notes(header.p_filesz);
        if (!file.read(notes, header.p_offset)) continue;
        if (auto id = build_id_in(Notes(notes), header.p_align == 8 ? 8 : 4)) return id;
    }
    return std::nullopt;
}

std::optional<std::string> build_id_of(const void* code) noexcept
{
    try {
        return object_of(code).build_id;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

std::string binary_of(const void* code)
{
    if (code == nullptr) return "(no binary)"; // frequent in programs that only load: do not search
    const Object object = object_of(code);
    if (!object.found) return "(no binary)";
    if (!object.path.empty()) return object.path;
    std::array<char, 4096> path{};
    const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
    return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "(this program)";
}

std::string host_name()
{
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
    return name.data();
}

std::string boot_id()
{
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    return file >> id ? id : "unknown";
}

int above_standard_streams(int descriptor) noexcept
{
    if (descriptor < 0 || descriptor > STDERR_FILENO) return descriptor;
    const int above = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(descriptor);
    errno = error;
    return above;
}

std::string random_uuid()
{
    std::array<unsigned char, 16> bytes{};
    // OpenSSL is not used here: its first random number takes 0.7 ms of the start.
    if (::getentropy(bytes.data(), bytes.size()) != 0)
        throw std::system_error(errno, std::system_category(), "getentropy gives no random numbers");
    bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40); // version 4
    bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80); // variant 1
    constexpr std::string_view k_digits = "0123456789abcdef";
    std::string text;
    text.reserve(36);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += k_digits[bytes[i] >> 4];
        text += k_digits[bytes[i] & 0x0f];
    }
    return text;
}

HostMappings::HostMappings(std::string_view text)
{
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const auto parsed = parse(line);
        if (parsed && parsed->permissions.starts_with('r'))
            m_mappings.push_back({parsed->start, parsed->end, std::string(parsed->name)});
    }
    std::ranges::sort(m_mappings, {}, &Mapping::start);
}

HostMappings HostMappings::read()
{
    std::ifstream file("/proc/self/maps");
    std::stringstream text;
    text << file.rdbuf();
    return HostMappings(text.view());
}

std::optional<std::string> HostMappings::at(std::uint64_t address) const
{
    const auto after = std::ranges::upper_bound(m_mappings, address, {}, &Mapping::start);
    if (after == m_mappings.begin() || address >= std::prev(after)->end) return std::nullopt;
    return std::prev(after)->name;
}

std::optional<std::string> environment(const char* name)
{
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

} // namespace warmgraph
