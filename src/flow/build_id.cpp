// The build id that the linker wrote into the running program.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <link.h>

#include <holdfast/base/hex.hpp>
#include <holdfast/flow/runtime.hpp>

namespace holdfast::flow {
namespace {

// Enough to tell builds apart, and short enough to be kept in a string without an allocation.
constexpr std::size_t own_id_bytes_max = 6;
constexpr std::string_view owner{"GNU\0", 4};

std::size_t padded(std::size_t bytes) {
    return (bytes + 3U) & ~std::size_t{3};
}

// Empty if it is not among these notes.
std::string id_among(std::span<const std::byte> notes) {
    ElfW(Nhdr) head{};
    while (notes.size() >= sizeof head) {
        std::memcpy(&head, notes.data(), sizeof head);
        notes = notes.subspan(sizeof head);
        const std::size_t name = padded(head.n_namesz);
        const std::size_t body = padded(head.n_descsz);
        if (name > notes.size() || body > notes.size() - name) {
            return {};
        }
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == owner.size() &&
            std::memcmp(notes.data(), owner.data(), owner.size()) == 0) {
            return to_hex(
                notes.subspan(name, std::min<std::size_t>(head.n_descsz, own_id_bytes_max)));
        }
        notes = notes.subspan(name + body);
    }
    return {};
}

// The program itself comes first, and then the libraries it has loaded.
int look(dl_phdr_info* info, std::size_t, void* found) {
    for (const ElfW(Phdr) & part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
        if (part.p_type != PT_NOTE) {
            continue;
        }
        const auto* const begin = std::bit_cast<const std::byte*>(
            static_cast<std::uintptr_t>(info->dlpi_addr + part.p_vaddr));
        std::string id = id_among({begin, part.p_memsz});
        if (!id.empty()) {
            *static_cast<std::string*>(found) = std::move(id);
            break;
        }
    }
    return 1;  // No more.
}

}  // namespace

const std::string& program_build_id() {
    static const std::string id = [] {
        std::string found;
        ::dl_iterate_phdr(&look, &found);
        return found;
    }();
    return id;
}

}  // namespace holdfast::flow
