"""Held-out questions, task by task: what evaluate.py asks the network and tests/golden/accuracy.py the server.

Needs nothing but Python.
"""
import chat
import tasks

# Filler sentences that give about this many tokens.
LENGTHS = {"recall_short": 6, "recall_512": 42, "recall_1k": 88, "recall_2k": 180, "recall_4k": 365}


def last_turn(messages, tools=None):
    """(messages without the last answer, tools, the answer)."""
    return messages[:-1], tools, chat.assistant_text(messages[-1])


def tool_call(rng, generic):
    chosen = tasks.tool_set(rng, "test", generic=float(generic))
    if generic:
        wanted = [t for t in chosen if t.kind not in tasks.TOOLS]
    else:
        wanted = chosen
    messages = tasks.use_tool(rng, "test", wanted, 0)
    return messages, [t.schema for t in chosen]


def make(task, rng):
    if task in LENGTHS:
        return last_turn(tasks.recall(rng, "test", needles=rng.randrange(2, 7), sentences=LENGTHS[task], questions=1))
    if task == "tool_call":
        messages, tools = tool_call(rng, False)
        return last_turn(messages[:2], tools)
    if task == "unseen_tool_call":
        messages, tools = tool_call(rng, True)
        return last_turn(messages[:2], tools)
    if task == "tool_answer":
        messages, tools = tool_call(rng, False)
        return last_turn(messages, tools)
    if task == "no_call_needed":
        tools = [t.schema for t in tasks.tool_set(rng, "test")]
        return last_turn(rng.choice((tasks.fact, tasks.addition, tasks.greeting))(rng, "train"), tools)
    if task == "second_turn":
        first = rng.choice((tasks.fact, tasks.addition, tasks.greeting, tasks.echo))(rng, "train")
        return last_turn(tasks.without_thinking(first + rng.choice((tasks.addition, tasks.subtraction))(rng, "test")))
    if task in ("fact_known_words", "identity_known_words"):
        return last_turn(getattr(tasks, task.partition("_")[0])(rng, "train"))
    if task == "fact_new_words":
        return last_turn(tasks.fact(rng, "test"))
    return last_turn(getattr(tasks, task)(rng, "test"))


TASKS = ("greeting", "identity_known_words", "identity", "fact_known_words", "fact_new_words", "unknown", "addition", "subtraction", "word_problem", "multiplication", "recall_short",
         "recall_512", "recall_1k", "recall_2k", "recall_4k", "tool_call", "unseen_tool_call", "tool_answer", "no_call_needed", "second_turn", "json_object", "echo", "count")


def final_answer(text):
    """What counts: the text after the reasoning."""
    return text.partition("</think>\n")[2] if text.startswith("<think>") else text
