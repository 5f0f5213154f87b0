#include "common/rpc/callback_threads.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <chrono>
#include <memory>

namespace levin {
namespace {

// A channel becomes a user with its first callback call: here one whose deadline has passed, which
// connects nowhere.
struct User {
  User() {
    context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
    stub.UnaryCall(&context, "/levin.v1.None/None", grpc::StubOptions(), &request, &response,
                   [](grpc::Status) {});
  }
  grpc::GenericStub stub{grpc::CreateChannel("unix:/dev/null", grpc::InsecureChannelCredentials())};
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1};
  grpc::ByteBuffer response;
};

}  // namespace

void KeepCallbackThreads() {
  // Never deleted: that is its use. Volatile, so that the pointer is really kept and no leak
  // checker takes it for lost.
  static User* volatile user = new User;
  (void)user;
}

}  // namespace levin
