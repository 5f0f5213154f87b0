"""The official openai client, unmodified, against a running server. Needs `pip install openai`."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from levin_server import DEMO, Server  # noqa: E402

try:
    import openai
except ImportError:
    print("SKIPPED: the openai package is not installed; 0 of its tests run")
    sys.exit(77)

CASES = json.loads((DEMO / "examples.json").read_text())["cases"]
EXAMPLE = next(c for c in CASES if not c.get("tools"))
NAME = "MiniMaxAI/MiniMax-M1"


class OpenAIClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--tensor-parallel-size", 2, "--dtype", "float32", "--served-model-name", NAME, "--api-key", "secret")
        cls.client = openai.OpenAI(base_url=f"http://{cls.server.host}:{cls.server.port}/v1", api_key="secret", max_retries=0)
        print("openai", openai.__version__, flush=True)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def test_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], [NAME])
        self.assertEqual(self.client.models.retrieve(NAME).id, NAME)

    def test_chat_whole(self):
        reply = self.client.chat.completions.create(model=NAME, messages=EXAMPLE["messages"], temperature=0)
        self.assertEqual(reply.choices[0].message.content, EXAMPLE["output_text"])
        self.assertEqual(reply.choices[0].finish_reason, "stop")
        self.assertEqual(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens)
        self.assertEqual(reply.usage.completion_tokens, len(EXAMPLE["output_ids"]))

    def test_chat_streamed(self):
        chunks = list(self.client.chat.completions.create(
            model=NAME, messages=EXAMPLE["messages"], temperature=0, stream=True, stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, EXAMPLE["output_text"])
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, len(EXAMPLE["output_ids"]))

    def test_the_stream_helper_accumulates(self):
        with self.client.chat.completions.stream(model=NAME, messages=EXAMPLE["messages"], temperature=0) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, EXAMPLE["output_text"])

    def test_completions(self):
        whole = self.client.completions.create(model=NAME, prompt="The code of Anna is", max_tokens=12, temperature=0)
        parts = self.client.completions.create(model=NAME, prompt="The code of Anna is", max_tokens=12, temperature=0, stream=True)
        self.assertEqual("".join(c.choices[0].text for c in parts), whole.choices[0].text)
        self.assertEqual(whole.object, "text_completion")

    def test_logprobs(self):
        reply = self.client.chat.completions.create(model=NAME, messages=EXAMPLE["messages"], temperature=0, logprobs=True, top_logprobs=5)
        content = reply.choices[0].logprobs.content
        self.assertEqual(len(content), len(EXAMPLE["output_ids"]))
        for entry in content:
            values = [t.logprob for t in entry.top_logprobs]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertEqual(len(values), 5)

    def test_errors_have_the_clients_types(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="gpt-4", messages=EXAMPLE["messages"])
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(model=NAME, messages=EXAMPLE["messages"], temperature=3)
        wrong = openai.OpenAI(base_url=self.client.base_url, api_key="wrong", max_retries=0)
        with self.assertRaises(openai.AuthenticationError):
            wrong.models.list()

    def test_the_request_id_comes_back(self):
        raw = self.client.chat.completions.with_raw_response.create(
            model=NAME, messages=EXAMPLE["messages"], max_tokens=1, extra_headers={"X-Request-Id": "mine-1"})
        self.assertEqual(raw.headers["x-request-id"], "mine-1")

    def test_the_published_guides_request_with_content_parts(self):
        status, _, text = self.server.request("POST", "/v1/chat/completions", {
            "model": NAME, "messages": [
                {"role": "system", "content": [{"type": "text", "text": "You are a helpful assistant."}]},
                {"role": "user", "content": [{"type": "text", "text": "Who won the world series in 2020?"}]}]},
            headers={"Authorization": "Bearer secret"})
        self.assertEqual(status, 200, text)
        reply = json.loads(text)
        self.assertIsInstance(reply["choices"][0]["message"]["content"], str)
        self.assertEqual(reply["object"], "chat.completion")


if __name__ == "__main__":
    unittest.main(verbosity=2)
