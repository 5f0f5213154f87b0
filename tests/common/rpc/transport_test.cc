#include "common/rpc/transport.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "levin/v1/engine.grpc.pb.h"

namespace levin {
namespace {

TEST(Transport, KnowsAnAddressWhenItSeesOne) {
  for (const char* good : {"127.0.0.1:0", "[::1]:50061", "leader-0.levin:50061", "unix:/tmp/x"}) {
    EXPECT_TRUE(CheckAddress(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string("127.0.0.1"), std::string(":1"), std::string("h:65536"), std::string("h:-1"),
        std::string("h:1x"), std::string("unix:"), std::string(),
        "unix:" + std::string(108, 'p')}) {
    EXPECT_EQ(CheckAddress(bad).code(), Code::kInvalidArgument) << bad;
  }
}

// A server wants a service to start; this one answers UNIMPLEMENTED.
using AnyService = v1::Engine::CallbackService;

TEST(Transport, PortZeroIsShownAsThePortItBecame) {
  AnyService service;
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  Result<ListeningServer> server = StartServer(builder, "127.0.0.1:0");
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_EQ(server->address.rfind("127.0.0.1:", 0), 0u);
  EXPECT_NE(server->address, "127.0.0.1:0");
}

TEST(Transport, ATakenPortIsRefusedByName) {
  AnyService service, other;
  grpc::ServerBuilder first, second;
  first.RegisterService(&service);
  second.RegisterService(&other);
  Result<ListeningServer> server = StartServer(first, "127.0.0.1:0");
  ASSERT_TRUE(server);
  Result<ListeningServer> again = StartServer(second, server->address);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().reason(), "PORT_IN_USE");
  EXPECT_NE(again.error().message().find(server->address), std::string::npos);
}

TEST(Transport, AUnixSocketConnects) {
  char dir[] = "/tmp/levin-transport-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string address = std::string("unix:") + dir + "/s";
  {
    AnyService service;
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    Result<ListeningServer> server = StartServer(builder, address);
    ASSERT_TRUE(server) << server.error().message();
    EXPECT_EQ(server->address, address);
    const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(10);
    EXPECT_TRUE(MakeChannel(address)->WaitForConnected(deadline));
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace levin
