// x-request-id: a new one, and that of what the server answers itself (no handler is there to set
// it).
#pragma once

#include <string>
#include <string_view>

namespace levin {

// 32 hex digits nobody has had.
std::string NewRequestId();

// What the client sent, cut to 128 characters; one made up if that is empty or not visible ASCII.
std::string OwnAnswerId(std::string_view sent);

// The value of the first x-request-id field in a head that could not be parsed, e.g. because it is
// too long: of whole lines only, "" if there is none.
std::string_view RequestIdInHead(std::string_view head);

}  // namespace levin
