// A bounded fan-out: many photos, at most sixteen at a time, and a few that cannot be read.
//
//   album                       in memory
//   album sqlite:album.db       in a file
//
// Activities with a tag are taken only by workers that serve it: this process says that it has a
// graphics card.
#include <chrono>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>

namespace flow = holdfast::flow;
using namespace std::chrono_literals;

namespace {

struct Photo {
    std::string url;
    int width = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Photo, url, width)

struct Album {
    std::vector<std::string> thumbnails;
    std::vector<std::string> unreadable;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Album, thumbnails, unreadable)

std::string shrink(Photo photo) {
    if (photo.width <= 0) {
        throw flow::permanent("Unreadable", photo.url + " is not a photo");
    }
    return photo.url + "?width=" + std::to_string(photo.width / 10);
}

}  // namespace

HOLDFAST_NAME(shrink, "album.shrink");

namespace {

flow::Workflow<Album> build_album(flow::Context& ctx, std::vector<Photo> photos) {
    // An ordinary lambda that makes operations; it is not a coroutine and captures nothing.
    auto shots = co_await flow::map(ctx, photos, 16, [](flow::Context& c, const Photo& photo) {
        return c.activity<&shrink>(photo).tag("gpu").timeout(30s);
    });
    Album album;
    for (std::size_t i = 0; i < shots.size(); ++i) {
        if (shots[i]) {
            album.thumbnails.push_back(*shots[i]);
        } else {
            album.unreadable.push_back(photos[i].url);
        }
    }
    ctx.status({{"done", album.thumbnails.size()}, {"failed", album.unreadable.size()}});
    co_return album;
}

}  // namespace

HOLDFAST_NAME(build_album, "album.build");

namespace {

std::vector<Photo> holiday() {
    constexpr int photos_count = 40;
    std::vector<Photo> photos;
    for (int i = 1; i <= photos_count; ++i) {
        const bool readable = i % 13 != 0;
        photos.push_back({.url = "photo-" + std::to_string(i), .width = readable ? i * 100 : 0});
    }
    return photos;
}

void run(const std::string& url) {
    auto store = flow::open(url);
    flow::Registry registry;
    registry.activity<&shrink>().workflow<&build_album>();
    flow::RuntimeOptions options;
    options.tags = flow::TagFilter::default_and({"gpu"});
    flow::Runtime runtime{store, registry, options};
    flow::Client client{store};

    const flow::StartOptions once{.duplicate = flow::DuplicatePolicy::use_existing};
    client.start_with<&build_album>(once, "holiday", holiday());
    const auto album = client.result<&build_album>("holiday", 30s);
    std::cout << album->thumbnails.size() << " thumbnails, the first is "
              << album->thumbnails.front() << '\n';
    for (const std::string& photo : album->unreadable) {
        std::cout << photo << " could not be read\n";
    }
    std::cout << "status " << client.info("holiday")->custom_status->json << '\n';
    runtime.drain(10s);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? argv[1] : "sqlite::memory:");
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "album: " << error.what() << '\n';
        return 1;
    }
}
