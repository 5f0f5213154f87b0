"""A generated gRPC client (Debian's grpcio) against a running server."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from levin_server import DEMO, ROOT, Server  # noqa: E402

try:
    import google.protobuf
    import grpc
except ImportError:
    print("SKIPPED: python3-grpcio or python3-protobuf is not installed; 0 gRPC client tests run")
    sys.exit(77)

# The very compiler that the build used; the plugin stands beside it.
GENERATED = tempfile.TemporaryDirectory()
FOREIGN = "/usr/share/grpc-proto"
PLUGIN = shutil.which("grpc_python_plugin")
for include, files in ((ROOT / "proto", ["levin/v1/inference.proto", "levin/v1/engine.proto"]),
                       (FOREIGN, ["grpc/health/v1/health.proto", "grpc/reflection/v1alpha/reflection.proto"])):
    subprocess.run(["protoc", f"-I{include}", f"--plugin=protoc-gen-grpc_python={PLUGIN}",
                    f"--python_out={GENERATED.name}", f"--grpc_python_out={GENERATED.name}", *files], check=True)
sys.path.insert(0, GENERATED.name)
# The generated package "grpc" must be found beside the library of the same name.
grpc.__path__.append(str(pathlib.Path(GENERATED.name) / "grpc"))
from levin.v1 import inference_pb2 as pb, inference_pb2_grpc  # noqa: E402
from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from grpc.reflection.v1alpha import reflection_pb2, reflection_pb2_grpc  # noqa: E402

EXAMPLE = next(c for c in json.loads((DEMO / "examples.json").read_text())["cases"] if not c.get("tools"))


class GrpcClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--tensor-parallel-size", 2, "--dtype", "float32")
        cls.channel = grpc.insecure_channel(cls.server.grpc)
        cls.stub = inference_pb2_grpc.InferenceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        assert cls.server.stop() == 0

    def chat_request(self, **fields):
        messages = [pb.ChatMessage(role=m["role"], parts=[pb.ContentPart(text=m["content"])]) for m in EXAMPLE["messages"]]
        return pb.ChatRequest(messages=messages, sampling=pb.SamplingParams(temperature=0),
                              output=pb.OutputOptions(return_token_ids=True, **fields))

    def test_generate_from_ids_gives_the_examples_tokens(self):
        request = pb.GenerateRequest(token_ids=pb.TokenIds(ids=EXAMPLE["prompt_ids"]),
                                     sampling=pb.SamplingParams(temperature=0),
                                     output=pb.OutputOptions(return_token_ids=True))
        events = list(self.stub.Generate(request, timeout=60))
        ids = [i for e in events if e.HasField("delta") for i in e.delta.token_ids]
        self.assertEqual(ids, EXAMPLE["output_ids"])
        self.assertEqual("".join(e.delta.text for e in events if e.HasField("delta")), EXAMPLE["output_text"])
        self.assertEqual(events[0].WhichOneof("event"), "started")
        self.assertEqual(events[0].started.prompt_tokens, len(EXAMPLE["prompt_ids"]))
        self.assertEqual([e.WhichOneof("event") for e in events[-2:]], ["choice_finished", "completed"])
        self.assertEqual(events[-2].choice_finished.finish_reason, pb.FINISH_REASON_STOP)
        self.assertEqual(events[-1].completed.usage.completion_tokens, len(EXAMPLE["output_ids"]))

    def test_chat_deltas_whole_and_http_agree(self):
        deltas = list(self.stub.Chat(self.chat_request(), timeout=60))
        text = "".join(e.delta.content for e in deltas if e.HasField("delta"))
        whole = list(self.stub.Chat(self.chat_request(mode=pb.OUTPUT_MODE_WHOLE), timeout=60))
        self.assertEqual(len(whole), 1)
        choice = whole[0].completed.choices[0]
        http = self.server.chat(EXAMPLE["messages"])["choices"][0]["message"]["content"]
        self.assertEqual(text, EXAMPLE["output_text"])
        self.assertEqual(choice.text, text)
        self.assertEqual(http, text)
        self.assertEqual(list(choice.token_ids), EXAMPLE["output_ids"])

    def test_abort_by_generation_id_ends_the_stream_with_cancelled(self):
        request = pb.GenerateRequest(text="The code of", stopping=pb.StoppingCriteria(max_tokens=4000, ignore_eos=True),
                                     generation_id="to-be-aborted")
        stream = self.stub.Generate(request, timeout=60)
        for event in stream:
            if event.HasField("delta"):
                break
        duplicate = self.stub.Generate(request, timeout=60)
        with self.assertRaises(grpc.RpcError) as refused:
            list(duplicate)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.ALREADY_EXISTS)
        reply = self.stub.Abort(pb.AbortRequest(generation_ids=["to-be-aborted", "never-seen"]), timeout=10)
        self.assertEqual(list(reply.aborted_ids), ["to-be-aborted"])
        with self.assertRaises(grpc.RpcError) as ended:
            list(stream)
        self.assertEqual(ended.exception.code(), grpc.StatusCode.CANCELLED)
        self.server.wait_idle(1.0)

    def test_a_cancelled_call_and_a_passed_deadline_give_their_memory_back(self):
        request = pb.GenerateRequest(text="The code of", stopping=pb.StoppingCriteria(max_tokens=4000, ignore_eos=True))
        stream = self.stub.Generate(request, timeout=60)
        next(e for e in stream if e.HasField("delta"))
        stream.cancel()
        self.server.wait_idle(1.0)
        with self.assertRaises(grpc.RpcError) as late:
            list(self.stub.Generate(request, timeout=0.2))
        self.assertEqual(late.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.server.wait_idle(1.0)

    def test_bad_fields_are_invalid_argument(self):
        for request in (pb.GenerateRequest(text="a", sampling=pb.SamplingParams(temperature=9)),
                        pb.GenerateRequest(token_ids=pb.TokenIds(ids=[10 ** 6])),
                        pb.GenerateRequest(),
                        pb.GenerateRequest(text="a", sampling=pb.SamplingParams(n=2)),
                        pb.GenerateRequest(text="a", constraint=pb.Constraint(regex="a+"))):
            with self.assertRaises(grpc.RpcError) as refused:
                list(self.stub.Generate(request, timeout=10))
            self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, refused.exception.details())
        with self.assertRaises(grpc.RpcError) as unknown:
            list(self.stub.Generate(pb.GenerateRequest(model="gpt-4", text="a"), timeout=10))
        self.assertEqual(unknown.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_tokenize_detokenize_and_get_model(self):
        reply = self.stub.Tokenize(pb.TokenizeRequest(chat=self.chat_request()), timeout=10)
        self.assertEqual(list(reply.token_ids), EXAMPLE["prompt_ids"])
        text = self.stub.Detokenize(pb.DetokenizeRequest(token_ids=EXAMPLE["output_ids"][:-1]), timeout=10).text
        self.assertEqual(text, EXAMPLE["output_text"])
        model = self.stub.GetModel(pb.GetModelRequest(), timeout=10)
        self.assertEqual(model.name, "levin-demo")
        self.assertEqual(model.state, pb.MODEL_STATE_ACTIVE)
        self.assertIn(1492, model.eos_token_ids)

    def test_health_is_serving_and_reflection_lists_every_service(self):
        health = health_pb2_grpc.HealthStub(self.channel)
        for name in ("", "levin.v1.Inference", "levin.live"):
            status = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=10).status
            self.assertEqual(status, health_pb2.HealthCheckResponse.SERVING, name)
        reflection = reflection_pb2_grpc.ServerReflectionStub(self.channel)
        replies = reflection.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=10)
        names = {s.name for s in next(iter(replies)).list_services_response.service}
        print("reflection:", sorted(names), flush=True)
        self.assertLessEqual({"levin.v1.Inference", "grpc.health.v1.Health"}, names)

    def test_sixteen_streams_at_once(self):
        wanted, got = EXAMPLE["output_ids"], [None] * 16

        def ask(index):
            request = pb.GenerateRequest(token_ids=pb.TokenIds(ids=EXAMPLE["prompt_ids"]),
                                         sampling=pb.SamplingParams(temperature=0),
                                         output=pb.OutputOptions(return_token_ids=True))
            got[index] = [i for e in self.stub.Generate(request, timeout=60) for i in e.delta.token_ids]
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, [wanted] * 16)


if __name__ == "__main__":
    unittest.main(verbosity=2)
