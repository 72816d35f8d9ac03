"""Shows that OpenAI's and Anthropic's SDKs for Python work through the program as they are.

Run it on the stage (see ../stage/doc.go): go run . PROGRAM python python/test_sdk.py
"""

import asyncio
import hashlib
import json
import os
import re
import sys
import time
import unittest
import urllib.parse
import urllib.request
import warnings

for name in list(os.environ):  # what would change the SDKs' settings
    if name.startswith(("OPENAI_", "ANTHROPIC_")) or name.lower().endswith("_proxy"):
        del os.environ[name]

import anthropic
import openai

PLACES = json.loads(os.environ["SDK_PLACES"])
CLOUD = os.environ.get("SDK_CLOUD", "")  # why providers cannot be played, "" if they can
CLIENT_KEY, CLOUD_KEY, TEAM_KEY = "client-key", "cloud-key", "team-key"
PATIENCE = 10
# Python's SDK for Anthropic is of a later generation than Go's: another version of the API, keys as bearer tokens.
ANTHROPIC_VERSION = "2026-10-21"
ANSWER = 'Käse 🧀 costs <b>5 €</b> & "more".\n\tRead [2], then \\n.'
SEARCH = {"type": "object", "properties": {"query": {"type": "string"}}}


class Place:
    """Where a client asks, and the name under which the fake keeps what reaches it."""

    def __init__(self, test, name, tag=""):
        self.name, self.scenario = name, f"python {test.id()} {name} {tag}".strip()
        self.clients = {}

    def openai(self, **options):
        return self.client(openai.OpenAI, PLACES[self.name] + "/v1", options)

    def anthropic(self, **options):
        return self.client(anthropic.Anthropic, PLACES[self.name], options)

    def client(self, kind, url, options):
        """One client for each set of options: making one takes some 50 ms."""
        key = (kind, *sorted(options.items()))
        if key not in self.clients:
            options = {"api_key": CLIENT_KEY, "timeout": PATIENCE, "max_retries": 0, **options}
            self.clients[key] = kind(base_url=url, default_headers={"X-Scenario": self.scenario}, **options)
        return self.clients[key]

    def control(self, method, path):
        url = f"{PLACES['control']}/{path}?{urllib.parse.urlencode({'scenario': self.scenario})}"
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=2 * PATIENCE) as answer:
            return answer.read()

    def sent(self):
        return json.loads(self.control("GET", "sent")) or []

    def open(self):
        self.control("POST", "open")

    def gone(self):
        """Waits until the fake has noticed that the client is gone."""
        self.control("GET", "gone")


class Scenario(unittest.TestCase):
    maxDiff = None

    def at(self, name, tag=""):
        return Place(self, name, tag)

    def alike(self, do, place="sidecar", tag=""):
        """Plays a scenario at the fake itself and through the sidecar: the SDK must show the same, and not nothing."""
        direct, through = self.at("direct", tag), self.at(place, tag)
        want, got = do(direct), do(through)
        self.assertTrue(want)
        self.assertEqual(want, got)
        self.assertTrue(direct.sent())
        self.assertEqual(len(direct.sent()), len(through.sent()))
        return direct.sent(), through.sent()

    def untouched(self, do, tag=""):
        """As alike, and what reaches the upstream is what the SDK sent: bytes and headers."""
        for there, through in zip(*self.alike(do, tag=tag)):
            for member in "Method", "Path", "Body":
                self.assertEqual(there[member], through[member])
            self.assertEqual(own(there["Header"]), own(through["Header"]))

    def passages(self):
        d = [f'Passage {i} of {self.id()}: what it says is of no importance, <b>but</b> "long" enough.' for i in range(4)]
        return d, [documents(d[0], d[1], d[2]), documents(d[1], d[3], d[2]), documents(d[3], d[0])]

    def deduplicated(self, there, through, tool_results):
        """Checks an agent's last request: of repeated documents none is sent twice, and all else is as the client sent it."""
        d, results = self.passages()
        want, got = json.loads(there[-1]["Body"]), json.loads(through[-1]["Body"])
        sent, arrived = take(tool_results(want)), take(tool_results(got))
        self.assertEqual(want, got)
        self.assertEqual(results, sent)
        self.assertEqual(results[0], arrived[0])
        for result, full, gone in (arrived[1], [d[3]], [d[1], d[2]]), (arrived[2], [], [d[3], d[0]]):
            self.assertEqual([1] * len(full) + [0] * len(gone), [result.count(text) for text in full + gone])
            names = '", "'.join(text[:40] for text in gone)
            self.assertIn(f'[Documents "{names}" — identical to earlier ', result)


def documents(*texts):
    return "<documents>\n<document>" + "</document>\n<document>".join(texts) + "</document>\n</documents>"


def own(headers):
    """Headers without those of the connection, of the scenario and of the moment."""
    return {k: v for k, v in headers.items() if k.lower() not in ("x-scenario", "connection", "date", "x-ragpilot-request-id")}


def take(spots):
    """Takes the texts out of places in a decoded body, each an object and a member."""
    texts = []
    for owner, member in spots:
        texts.append(owner[member])
        owner[member] = ""
    return texts


def chat_results(body):
    return [(m, "content") for m in body["messages"] if m["role"] == "tool"]


def message_results(body):
    return [(b, "content") for m in body["messages"] if isinstance(m["content"], list) for b in m["content"] if b["type"] == "tool_result"]


def response_results(body):
    return [(i, "output") for i in body["input"] if i.get("type") == "function_call_output"]


def chat(model, *more):
    return {
        "model": model,
        "messages": [{"role": "system", "content": "You know „cheese“ & <prices>."}, {"role": "user", "content": "What does it cost?"}, *more],
        "tools": [{"type": "function", "function": {"name": "search", "parameters": SEARCH}}],
    }


def response(model, *more):
    return {
        "model": model, "instructions": "You know „cheese“.", "input": [{"role": "user", "content": "What does it cost?"}, *more],
        "tools": [{"type": "function", "name": "search", "parameters": SEARCH, "strict": False}],
    }


def message(model, *more):
    return {
        "model": model, "max_tokens": 1024, "system": "You know „cheese“ & <prices>.", "messages": [{"role": "user", "content": "What does it cost?"}, *more],
        "tools": [{"name": "search", "input_schema": SEARCH}],
    }


def shown(value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic's, about the helpers' generic types
        return value.model_dump_json(exclude_unset=True)


def error(err):
    """An error by its type and what it carries."""
    answer = getattr(err, "response", None)
    extra = [answer.headers.get(n) for n in ("retry-after", "x-request-id")] if answer is not None else []
    return [type(err).__module__, type(err).__name__, getattr(err, "status_code", None), getattr(err, "body", None), re.sub(r":\d+", "", str(err)), *extra]


class OpenAIChat(Scenario):
    def test_answer(self):
        """openai chat: an answer, its usage and its headers"""

        def do(p):
            raw = p.openai().chat.completions.with_raw_response.create(**chat("text"))
            answer = raw.parse()
            self.assertEqual(ANSWER, answer.choices[0].message.content)
            self.assertEqual((2048, 1920), (answer.usage.prompt_tokens, answer.usage.prompt_tokens_details.cached_tokens))
            return shown(answer), own(raw.headers)

        self.untouched(do)

    def test_streamed(self):
        """openai chat: streamed, torn, compressed; all events, and the helper's accumulated answer"""

        def do(p):
            out = []
            for way in "", "torn/", "gzip/":
                events = list(p.openai().chat.completions.create(**chat(way + "text"), stream=True, stream_options={"include_usage": True}))
                self.assertEqual(ANSWER, "".join(c.delta.content or "" for e in events for c in e.choices))
                self.assertEqual((6, 1920), (len(events), events[-1].usage.prompt_tokens_details.cached_tokens))
                with p.openai().chat.completions.stream(**chat(way + "text"), stream_options={"include_usage": True}) as stream:
                    kinds = [e.type for e in stream]
                    final = stream.get_final_completion()
                self.assertEqual((ANSWER, "stop", 1920), (final.choices[0].message.content, final.choices[0].finish_reason, final.usage.prompt_tokens_details.cached_tokens))
                out += [shown(e) for e in events] + kinds
            return out

        self.untouched(do)

    def test_gate(self):
        """openai chat: streams arrive as they are made"""
        p = self.at("sidecar")
        stream = iter(p.openai().chat.completions.create(**chat("gate/text"), stream=True))
        next(stream)
        p.open()  # only now the second event is sent
        self.assertEqual(5, len(list(stream)))

    def agent(self, streamed):
        def do(p):
            _, results = self.passages()
            history, out = [], []
            for step in range(4):
                if streamed:
                    with p.openai().chat.completions.stream(**chat("agent", *history)) as stream:
                        out += [e.type for e in stream]
                        answer = stream.get_final_completion()
                else:
                    raw = p.openai().chat.completions.with_raw_response.create(**chat("agent", *history))
                    answer = raw.parse()
                out.append(shown(answer))
                said = answer.choices[0].message
                if step == 3:
                    self.assertEqual(ANSWER, said.content)
                    break
                call = said.tool_calls[0]
                self.assertEqual({"query": f"step {step}", "limit": 3}, json.loads(call.function.arguments))
                calls = [{"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}}]
                history += [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": call.id, "content": results[step]}]
            if p.name == "sidecar" and not streamed:
                self.assertEqual(2, json.loads(raw.headers["X-ContextPilot-Result"])["documents_deduplicated"])
            return out

        self.deduplicated(*self.alike(do), chat_results)

    def test_agent(self):
        """openai chat: an agent's tool calls, repeated documents left out"""
        self.agent(streamed=False)

    def test_agent_streamed(self):
        """openai chat: an agent's tool calls, streamed"""
        self.agent(streamed=True)

    def test_headers(self):
        """openai chat: X-ContextPilot-* as default_headers and extra_headers"""
        _, results = self.passages()
        history = []
        for i in range(2):
            calls = [{"id": f"c{i}", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
            history += [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": f"c{i}", "content": results[i]}]
        p = self.at("sidecar")
        client = p.openai()
        client.with_options(default_headers={"X-ContextPilot-Enabled": "false"}).chat.completions.create(**chat("text", *history))
        client.chat.completions.create(**chat("text", *history), extra_headers={"X-ContextPilot-Scope": "tool_results"})
        sent = p.sent()
        self.assertEqual([2, 1], [r["Body"].count(f"Passage 1 of {self.id()}: what") for r in sent])
        self.assertFalse([name for r in sent for name in r["Header"] if name.startswith("X-Contextpilot-")])

    def test_async(self):
        """openai chat: the asynchronous client, streams at once"""

        def do(p):
            async def ask(client):
                stream = await client.chat.completions.create(**chat("torn/text"), stream=True)
                return [shown(e) async for e in stream]

            async def both():
                async with openai.AsyncOpenAI(base_url=PLACES[p.name] + "/v1", api_key=CLIENT_KEY, timeout=PATIENCE, default_headers={"X-Scenario": p.scenario}) as client:
                    return await asyncio.gather(*(ask(client) for _ in range(4)))

            return asyncio.run(both())

        self.alike(do)

    def test_environment(self):
        """openai: the address from OPENAI_BASE_URL"""
        p = self.at("sidecar")
        os.environ.update(OPENAI_BASE_URL=PLACES["sidecar"] + "/v1", OPENAI_API_KEY=CLIENT_KEY)
        try:
            openai.OpenAI().chat.completions.create(**chat("text"), extra_headers={"X-Scenario": p.scenario})
        finally:
            del os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
        self.assertEqual([["Bearer " + CLIENT_KEY]], [r["Header"]["Authorization"] for r in p.sent()])

    def test_others(self):
        """openai: models, embeddings, a file sent and a binary one fetched"""

        def do(p):
            client = p.openai()
            out = [shown(client.models.list()), client.embeddings.create(model="fake-1", input="a").data[0].embedding]
            self.assertEqual([0.5, -1.0, 2.0], out[1])
            content = b"\x00\xff line\n" * 10_000
            file = client.files.create(file=("b.jsonl", content), purpose="batch")
            self.assertEqual((len(content), "b.jsonl-" + hashlib.sha256(content).hexdigest()), (file.bytes, file.filename))
            self.assertEqual(bytes(i % 256 for i in range(100_000)), client.files.content("file-fake").read())
            return out

        self.alike(do)


class OpenAIResponses(Scenario):
    def test_answer(self):
        """openai responses: an answer and its usage, previous_response_id, get and delete"""

        def do(p):
            client = p.openai()
            answer = client.responses.create(**response("text"))
            self.assertEqual((ANSWER, 1920), (answer.output_text, answer.usage.input_tokens_details.cached_tokens))
            after = client.responses.create(model="text", previous_response_id=answer.id, input="And then?")
            kept = client.responses.retrieve("resp_fake")
            client.responses.delete("resp_fake")
            return [shown(a) for a in (answer, after, kept)]

        self.untouched(do)

    def test_streamed(self):
        """openai responses: streamed, torn, compressed; all events, and the helper's accumulated answer"""

        def do(p):
            out = []
            for way in "", "torn/", "gzip/":
                events = list(p.openai().responses.create(**response(way + "text"), stream=True))
                self.assertEqual(list(range(11)), [e.sequence_number for e in events])
                with p.openai().responses.stream(**response(way + "text")) as stream:
                    text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
                    final = stream.get_final_response()
                self.assertEqual((ANSWER, ANSWER, 1920), (text, final.output_text, final.usage.input_tokens_details.cached_tokens))
                out += [shown(e) for e in events]
            return out

        self.untouched(do)

    def test_agent(self):
        """openai responses: an agent's tool calls, streamed or not, repeated lines left out"""
        for streamed in False, True:

            def do(p):
                history, out = [], []
                for step in range(4):
                    if streamed:
                        with p.openai().responses.stream(**response("agent", *history)) as stream:
                            out += [e.type for e in stream]
                            answer = stream.get_final_response()
                    else:
                        answer = p.openai().responses.create(**response("agent", *history))
                    out.append(shown(answer))
                    if step == 3:
                        self.assertEqual(ANSWER, answer.output_text)
                        break
                    call = answer.output[0]
                    self.assertEqual({"query": f"step {step}", "limit": 3}, json.loads(call.arguments))
                    text = "".join(f"line {i} of a file says {i * 7919 % 1009}, read by {self.id()}\n" for i in range(40 * step, 40 * step + 200))
                    made = {"type": "function_call", "id": call.id, "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
                    history += [made, {"type": "function_call_output", "call_id": call.call_id, "output": text}]
                return out

            there, through = self.alike(do)
            want, got = json.loads(there[-1]["Body"]), json.loads(through[-1]["Body"])
            sent, arrived = take(response_results(want)), take(response_results(got))
            self.assertEqual(want, got)
            self.assertEqual(sent[0], arrived[0])
            for i in 1, 2:
                self.assertLess(len(arrived[i]), len(sent[i]) * 3 / 4)
                self.assertIn("identical to earlier", arrived[i])
                lost = set(sent[i].splitlines()) - set("".join(arrived[: i + 1]).splitlines())
                self.assertFalse(lost)


class AnthropicMessages(Scenario):
    def whole(self, m):
        self.assertEqual(["thinking", "text"], [b.type for b in m.content])
        self.assertEqual(("Which cheese?", "c2lnbmF0dXJl"), (m.content[0].thinking, m.content[0].signature))
        self.assertEqual((ANSWER, "end_turn"), (m.content[1].text, m.stop_reason))
        u = m.usage
        self.assertEqual((1856, 64, 128, 17), (u.cache_read_input_tokens, u.cache_creation_input_tokens, u.input_tokens, u.output_tokens))

    def test_answer(self):
        """anthropic: an answer, its usage and its headers"""

        def do(p):
            raw = p.anthropic().messages.with_raw_response.create(**message("text"))
            self.whole(raw.parse())
            return shown(raw.parse()), own(raw.headers)

        self.untouched(do)

    def test_streamed(self):
        """anthropic: streamed, torn, compressed; all events, and the helper's accumulated answer"""

        def do(p):
            out = []
            for way in "", "torn/", "gzip/":
                events = list(p.anthropic().messages.create(**message(way + "text"), stream=True))
                self.assertEqual(13, len(events))
                with p.anthropic().messages.stream(**message(way + "text")) as stream:
                    text = "".join(stream.text_stream)
                    final = stream.get_final_message()
                self.whole(final)
                self.assertEqual(ANSWER, text)
                out += [shown(e) for e in events] + [shown(final)]
            return out

        self.untouched(do)

    def test_gate(self):
        """anthropic: streams arrive as they are made"""
        p = self.at("sidecar")
        stream = iter(p.anthropic().messages.create(**message("gate/text"), stream=True))
        next(stream)
        p.open()  # only now the second event is sent
        self.assertEqual(12, len(list(stream)))

    def agent(self, streamed):
        def do(p):
            _, results = self.passages()
            history, out = [], []
            for step in range(4):
                if streamed:
                    with p.anthropic().messages.stream(**message("agent", *history)) as stream:
                        out += [e.type for e in stream]
                        answer = stream.get_final_message()
                else:
                    raw = p.anthropic().messages.with_raw_response.create(**message("agent", *history))
                    answer = raw.parse()
                out.append(shown(answer))
                if step == 3:
                    self.whole(answer)
                    break
                call = answer.content[1]
                self.assertEqual(({"query": f"step {step}", "limit": 3}, 256), (call.input, answer.usage.cache_read_input_tokens))
                said = [b.model_dump(include={"type", "text", "id", "name", "input"}, exclude_none=True) for b in answer.content]
                history += [
                    {"role": "assistant", "content": said},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": results[step]}]},
                ]
            if p.name == "sidecar" and not streamed:
                self.assertEqual(2, json.loads(raw.headers["X-ContextPilot-Result"])["documents_deduplicated"])
            return out

        self.deduplicated(*self.alike(do), message_results)

    def test_agent(self):
        """anthropic: an agent's tool calls, repeated documents left out"""
        self.agent(streamed=False)

    def test_agent_streamed(self):
        """anthropic: an agent's tool calls, streamed"""
        self.agent(streamed=True)

    def test_headers(self):
        """anthropic: X-ContextPilot-* as default_headers and extra_headers"""
        _, results = self.passages()
        history = []
        for i in range(2):
            history += [
                {"role": "assistant", "content": [{"type": "tool_use", "id": f"c{i}", "name": "search", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{i}", "content": results[i]}]},
            ]
        p = self.at("sidecar")
        client = p.anthropic()
        client.with_options(default_headers={"X-ContextPilot-Enabled": "false"}).messages.create(**message("text", *history))
        client.messages.create(**message("text", *history), extra_headers={"X-ContextPilot-Scope": "tool_results"})
        sent = p.sent()
        self.assertEqual([2, 1], [r["Body"].count(f"Passage 1 of {self.id()}: what") for r in sent])
        self.assertFalse([name for r in sent for name in r["Header"] if name.startswith("X-Contextpilot-")])

    def test_async(self):
        """anthropic: the asynchronous client, streams at once"""

        def do(p):
            async def ask(client):
                async with client.messages.stream(**message("torn/text")) as stream:
                    return shown(await stream.get_final_message())

            async def both():
                async with anthropic.AsyncAnthropic(base_url=PLACES[p.name], api_key=CLIENT_KEY, timeout=PATIENCE, default_headers={"X-Scenario": p.scenario}) as client:
                    return await asyncio.gather(*(ask(client) for _ in range(4)))

            return asyncio.run(both())

        self.alike(do)

    def test_others(self):
        """anthropic: count_tokens, models and a beta"""

        def do(p):
            client = p.anthropic()
            count = client.messages.count_tokens(model="text", messages=message("text")["messages"])
            models = client.models.list(limit=7)
            beta = client.beta.messages.create(model="text", max_tokens=5, betas=["some-beta-2026-01-01"], messages=[{"role": "user", "content": "q"}])
            self.assertEqual(["some-beta-2026-01-01"], p.sent()[-1]["Header"]["Anthropic-Beta"])
            return [shown(a) for a in (count, models, beta)]

        self.untouched(do)

    def test_environment(self):
        """anthropic: the address from ANTHROPIC_BASE_URL"""
        p = self.at("sidecar")
        os.environ.update(ANTHROPIC_BASE_URL=PLACES["sidecar"], ANTHROPIC_API_KEY=CLIENT_KEY)
        try:
            anthropic.Anthropic().messages.create(**message("text"), extra_headers={"X-Scenario": p.scenario})
        finally:
            del os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
        self.assertEqual([["Bearer " + CLIENT_KEY]], [r["Header"]["Authorization"] for r in p.sent()])


# How each API is asked: the SDK, its client, and a call that takes the model.
CALLS = {
    "openai chat": (openai, Place.openai, lambda c, model, **o: c.chat.completions.create(**chat(model), **o)),
    "openai responses": (openai, Place.openai, lambda c, model, **o: c.responses.create(**response(model), **o)),
    "anthropic": (anthropic, Place.anthropic, lambda c, model, **o: c.messages.create(**message(model), **o)),
}
TYPES = {
    400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError", 404: "NotFoundError", 422: "UnprocessableEntityError",
    429: "RateLimitError", 500: "InternalServerError", 529: "InternalServerError",
}


class Errors(Scenario):
    def fails(self, do):
        with self.assertRaises(Exception) as caught:
            do()
        return caught.exception

    def test_types(self):
        """errors of 400, 401, 403, 404, 422, 429, 500 and 529 have the SDKs' types and bodies, streamed or not"""
        for api, (sdk, client, call) in CALLS.items():

            def do(p):
                out = []
                for status, name in TYPES.items():
                    for stream in False, True:
                        err = self.fails(lambda: call(client(p), f"{status}/text", stream=stream))
                        self.assertIsInstance(err, getattr(sdk, name))
                        self.assertEqual(status, err.status_code)
                        out.append(error(err))
                return out

            with self.subTest(api):
                self.untouched(do, api)

    def test_retries(self):
        """429 with Retry-After, then the answer: asked again when told; 500: at once; X-Should-Retry: false: never"""
        for api, (sdk, client, call) in CALLS.items():
            with self.subTest(api):
                p = self.at("sidecar", api)
                call(client(p, max_retries=2), "once-429/text")
                times = [r["At"] for r in p.sent()]
                self.assertEqual(2, len(times))
                gap = seconds(times[1]) - seconds(times[0])
                self.assertGreaterEqual(gap, 0.95)  # without the header the SDKs wait at most half a second
                p = self.at("sidecar", api + " 500")
                call(client(p, max_retries=2), "once-500/text")
                self.assertEqual(2, len(p.sent()))
                p = self.at("sidecar", api + " 529")
                self.fails(lambda: call(client(p, max_retries=2), "529/text"))
                self.assertEqual(1, len(p.sent()))

    def test_broken(self):
        """an error within a stream, and a stream or an answer that breaks off, reach the client as such"""
        for api, (sdk, client, call) in CALLS.items():

            def read(p, model):
                n = 0
                try:
                    for _ in call(client(p), model, stream=True):
                        n += 1
                except Exception as err:
                    return [n, *error(err)]
                return [n, None]

            def do(p):
                return [read(p, "error/text"), read(p, "cut/text")]

            with self.subTest(api):
                self.alike(do, tag=api)
                within, cut = do(self.at("sidecar"))
                self.assertTrue(within[0] > 0 and cut[0] > 0 and cut[1])
                self.assertTrue(within[1] or api == "openai responses", within)  # there it is an event
                self.fails(lambda: call(client(self.at("sidecar")), "cut/text"))

    def test_cancelled(self):
        """a stream that the client leaves, and a call that it waits for no longer, end at the upstream"""
        for api, (sdk, client, call) in CALLS.items():
            with self.subTest(api):
                p = self.at("sidecar", api)
                stream = call(client(p), "hang/text", stream=True)
                next(iter(stream))
                stream.close()
                p.gone()
                p = self.at("sidecar", api + " silent")
                self.assertIsInstance(self.fails(lambda: call(client(p, timeout=1), "silent/text")), sdk.APITimeoutError)
                p.gone()

    def test_sidecar(self):
        """the sidecar's own answers: a wrong key, a right one, an upstream that is down"""
        for api, (sdk, client, call) in CALLS.items():
            with self.subTest(api):
                p = self.at("keyed", api)
                self.assertIsInstance(self.fails(lambda: call(client(p), "text")), sdk.AuthenticationError)
                self.assertFalse(p.sent())
                call(client(p, api_key=TEAM_KEY), "text")
                self.assertNotIn(TEAM_KEY, str(p.sent()))
                down = self.fails(lambda: call(client(self.at("dead")), "text"))
                self.assertIsInstance(down, sdk.InternalServerError)
                self.assertIn("Backend error", down.response.text)


def seconds(stamp):
    """The seconds of a time such as 2026-11-21T18:29:15.299638708Z."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return time.mktime(time.strptime(re.sub(r"[+-]\d\d:\d\d$", "", whole), "%Y-%m-%dT%H:%M:%S")) + float("0." + (re.match(r"\d*", fraction)[0] or "0"))


@unittest.skipIf(CLOUD, CLOUD)
class Cloud(Scenario):
    def replaced(self, through, host, header, value):
        for r in through:
            self.assertEqual((host, [value], "HTTP/2.0"), (r["Host"], r["Header"][header], r["Proto"]))
            self.assertNotIn(CLIENT_KEY, str(r["Header"]))
            self.assertEqual(1, sum(name in r["Header"] for name in ("Authorization", "X-Api-Key")))

    def test_anthropic(self):
        """--cloud-provider anthropic, minimax: the key is replaced, the prompt marked, the answers as they are"""
        for place, host in ("anthropic", "api.anthropic.com"), ("minimax", "api.minimax.io"):

            def do(p):
                raw = p.anthropic().messages.with_raw_response.create(**message("text"))
                if p.name != "direct":
                    self.assertEqual(1856, json.loads(raw.headers["X-ContextPilot-Cloud-Cache"])["cache_read_tokens"])
                with p.anthropic().messages.stream(**message("torn/text")) as stream:
                    return shown(raw.parse()), [shown(e) for e in stream]

            _, through = self.alike(do, place, place)
            self.replaced(through, host, "X-Api-Key", CLOUD_KEY)
            for r in through:
                self.assertEqual(2, r["Body"].count('"cache_control":{"type":"ephemeral"}'), r["Body"])

    def test_version(self):
        """--cloud-provider anthropic --cloud-api-key asks for the API version that the SDK asks for"""
        p = self.at("anthropic")
        p.anthropic().messages.create(**message("text"))
        got = p.sent()[0]["Header"]["Anthropic-Version"]
        self.assertEqual([ANTHROPIC_VERSION], got)

    def test_openai(self):
        """--cloud-provider openai: the key is replaced, the answers as they are"""

        def do(p):
            client = p.openai(organization="org-of-the-client", project="project-of-the-client")
            raw = client.chat.completions.with_raw_response.create(**chat("text"))
            if p.name != "direct":
                self.assertEqual(1920, json.loads(raw.headers["X-ContextPilot-Cloud-Cache"])["cache_read_tokens"])
            with client.responses.stream(**response("torn/text")) as stream:
                return shown(raw.parse()), [shown(e) for e in stream], shown(client.models.list())

        there, through = self.alike(do, "openai")
        self.replaced(through, "api.openai.com", "Authorization", "Bearer " + CLOUD_KEY)
        for want, r in zip(there, through):
            self.assertEqual(want["Body"], r["Body"])
            self.assertFalse({"Openai-Organization", "Openai-Project"} & set(r["Header"]))

    def test_own(self):
        """without --cloud-api-key clients keep their own keys"""
        p, q = self.at("anthropic-own"), self.at("openai-own")
        p.anthropic().messages.create(**message("text"))
        q.openai().chat.completions.create(**chat("text"))
        self.assertEqual(["Bearer " + CLIENT_KEY], p.sent()[0]["Header"]["Authorization"])
        self.assertEqual([ANTHROPIC_VERSION], p.sent()[0]["Header"]["Anthropic-Version"])
        self.assertEqual(["Bearer " + CLIENT_KEY], q.sent()[0]["Header"]["Authorization"])


class Simulated(Scenario):
    """The simulated engine, a process of its own whose prefix cache is real."""

    def test_chat(self):
        """bench upstream: models, chat and completions, whole and streamed, with cached tokens"""
        direct, client = self.at("bench").openai(), self.at("simulated").openai()
        self.assertEqual(["sim"], [m.id for m in client.models.list()])
        q = {"model": "sim", "seed": 41, "max_tokens": 20, "messages": [{"role": "user", "content": f"One question of {self.id()}, " + "long " * 40}]}
        want, got = (c.chat.completions.create(**q) for c in (direct, client))
        self.assertEqual(want.choices[0].message.content, got.choices[0].message.content)
        self.assertEqual((want.usage.prompt_tokens, 20), (got.usage.prompt_tokens, got.usage.completion_tokens))
        self.assertGreater(got.usage.prompt_tokens_details.cached_tokens, 0)
        with client.chat.completions.stream(**q, stream_options={"include_usage": True}) as stream:
            final = stream.get_final_completion()
        self.assertEqual(want.choices[0].message.content, final.choices[0].message.content)
        self.assertGreater(final.usage.prompt_tokens_details.cached_tokens, 0)
        q = {"model": "sim", "seed": 7, "max_tokens": 20, "prompt": "Once upon a time"}
        want, got = (c.completions.create(**q).choices[0].text for c in (direct, client))
        self.assertEqual(want, got)
        self.assertEqual(want, "".join(c.text for e in client.completions.create(**q, stream=True) for c in e.choices))

    def test_errors(self):
        """bench upstream: 400 and 404"""
        for name in "bench", "simulated":
            client = self.at(name).openai()
            with self.assertRaises(openai.BadRequestError):
                client.chat.completions.create(model="sim", max_tokens=0, messages=[{"role": "user", "content": "q"}])
            with self.assertRaises(openai.NotFoundError):
                client.embeddings.create(model="sim", input="a")


class Lines(unittest.TextTestResult):
    """One line for each scenario."""

    def line(self, result, test, more=""):
        print(f"{result:7} python  {test.shortDescription()}{more}", flush=True)

    def startTest(self, test):
        unittest.TestResult.startTest(self, test)

    def addSuccess(self, test):
        self.line("defect" if test.shortDescription().startswith("DEFECT") else "ok", test)

    def addSkip(self, test, reason):
        self.line("not run", test, f" ({reason})")

    def addFailure(self, test, err):
        unittest.TestResult.addFailure(self, test, err)
        self.line("FAILED", test)

    def addError(self, test, err):
        unittest.TestResult.addError(self, test, err)
        self.line("FAILED", test)

    def addSubTest(self, test, subtest, err):
        unittest.TestResult.addSubTest(self, test, subtest, err)
        if err is not None:
            self.line("FAILED", test, f" [{subtest._message}]")


if __name__ == "__main__":
    unittest.main(testRunner=unittest.TextTestRunner(stream=sys.stdout, resultclass=Lines, verbosity=0))
