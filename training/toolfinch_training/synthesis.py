"""Queries for tools without a large model: templates over descriptions, arguments and servers.

Every query is put together from what a tool says of itself, in the words of somebody who does not
know the tool: verbs and nouns are replaced (`phrase_tables`), the tool's own name is left out,
words are dropped, contexts that say nothing about the tool are put in front, and the requests of
two or three tools are joined.

python -m toolfinch_training synthesise --data FOLDER --out FILE
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from toolfinch_training import phrase_tables as tables
from toolfinch_training.index_text import Tool, split_words

LEAST_WORDS = 3
MOST_WORDS = 18
SINGLE_SHARE = 0.62
SAME_GROUP_SHARE = 0.6

_JUNK = re.compile(r"^deploy server\b.*\btry in playground\b\s*\S*|description not available", re.I)
_SECTION = re.compile(
    r"\b(args|arguments|parameters|params|returns|example|examples|note|notes|usage|inputs?"
    r"|options|example usage|important)\b\s*:|\*\*|```|⚠️|\n\s*[-*•]\s",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"(])|\n\s*\n")
_PARENTHESIS = re.compile(r"\s*[\(\[][^)\]]*[\)\]]")
_LEAD_IN = re.compile(
    r"^(this (tool|function|endpoint|api|method)( is used to| allows you to| lets you| can| will)?"
    r"|(use|call) this (tool|function|endpoint)?\s*(to|when you need to|for)?"
    r"|allows? (you|users?) to|a? ?tool (to|that|for|used to)|used to|helps? (you )?(to )?"
    r"|useful for|the api for|api (to|for)|quickly|easily)\s+",
    re.I,
)
_TAIL = re.compile(
    r"\s*\b(using|via|through|with|from|on|in) (the )?[\w.\-]+( [\w.\-]+)?"
    r" (api|mcp|server|sdk)\b.*$"
    r"|\s*\b(by|based on|using|given) (its|their|the|an?) (unique )?"
    r"(id|ids|identifier|slug|uuid)\b.*$",
    re.I,
)
_CLAUSE_END = re.compile(r",| including | with optional | such as | and | - ")


@dataclass(frozen=True)
class SyntheticQuery:
    """A request and the ids of the tools that answer it."""

    text: str
    gold: tuple[str, ...]


@dataclass(frozen=True)
class Phrase:
    """What a tool does: verb in its base form (or none), and what the verb is applied to."""

    verb: str
    rest: str


def phrase_of(tool: Tool) -> Phrase | None:
    """The first sentence of a description as a phrase, or None where it says too little."""
    text = _JUNK.sub("", tool.description).strip()
    text = _SECTION.split(text, maxsplit=1)[0]
    text = " ".join(_SENTENCE.split(text.strip(), maxsplit=1)[0].split())
    text = _TAIL.sub("", _PARENTHESIS.sub("", text)).strip(" .:;,-")
    for _ in range(2):
        text = _LEAD_IN.sub("", text)
    words = text.split()
    letters = sum(character.isascii() for character in text)
    if len(words) < LEAST_WORDS or letters < 0.98 * len(text):
        return None
    words = words[:MOST_WORDS]
    verb = base_form(words[0])
    if verb is None:
        return Phrase("", _lowered(" ".join(words)))
    rest = " ".join(words[1:])
    return Phrase(verb, rest) if rest else None


def base_form(word: str) -> str | None:
    """The base form of a known verb: retrieves, retrieving and retrieve give retrieve."""
    lowered = word.lower().strip(".,:;")
    stems = [lowered]
    if lowered.endswith("s"):
        stems += [lowered[:-1], lowered[:-2]]
    if lowered.endswith("ies"):
        stems.append(f"{lowered[:-3]}y")
    if lowered.endswith("ing"):
        stems += [lowered[:-3], f"{lowered[:-3]}e", lowered[:-4]]
    for stem in stems:
        if stem in tables.VERBS or stem in tables.MORE_VERBS:
            return stem
    return None


class QueryWriter:
    """Writes queries for tools; the same seed gives the same queries."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def single(self, tool: Tool) -> str | None:
        """A request that one tool answers."""
        phrase = phrase_of(tool)
        if phrase is None:
            return None
        roll = self._random.random()
        if roll < 0.12:
            return self._keywords(tool, phrase)
        if roll < 0.27:
            return self._noise(self._situation([tool], [phrase]))
        if roll < 0.45 or not phrase.verb:
            text = self._object_request(tool, phrase)
        else:
            text = self._asked(self._said(tool, phrase))
        if self._random.random() < 0.35:
            text = f"{self._context()} {text}"
        return self._noise(text)

    def joined(self, tools: Sequence[Tool]) -> str | None:
        """A request that takes all of the tools."""
        phrases = [phrase for tool in tools if (phrase := phrase_of(tool)) is not None]
        if len(phrases) < len(tools):
            return None
        if self._random.random() < 0.3:
            return self._noise(self._situation(tools, phrases))
        said = [
            self._said(tool, phrase) if phrase.verb else f"tell me about {phrase.rest}"
            for tool, phrase in zip(tools, phrases, strict=True)
        ]
        if len(said) == 2 and self._random.random() < 0.4:
            both = f"{said[0]} and {said[1]}"
            text = self._asked(both)
        else:
            text = self._asked(said[0])
            text = text if text.endswith((".", "?", "!")) else f"{text}."
            for more in said[1:]:
                text += f" {self._random.choice(tables.JOINERS).format(r=more)}."
        if self._random.random() < 0.6:
            text = f"{self._context()} {text}"
        return self._noise(text)

    def _asked(self, said: str) -> str:
        """A request. `show me ...` asks by itself; "I need to show me" is not English."""
        asks = re.match(r"\w+ me\b", said) is not None
        templates = tables.REQUESTS[: tables.IMPERATIVES] if asks else tables.REQUESTS
        return self._random.choice(templates).format(d=said, D=_capital(said))

    def _said(self, tool: Tool, phrase: Phrase) -> str:
        verb = phrase.verb
        if verb in tables.VERBS and self._random.random() < 0.6:
            verb = self._random.choice(tables.VERBS[verb])
        return f"{verb} {self._reworded(tool, phrase.rest)}{self._argument(tool)}"

    def _object_request(self, tool: Tool, phrase: Phrase) -> str:
        rest = self._reworded(tool, phrase.rest)
        return self._random.choice(tables.OBJECT_REQUESTS).format(o=rest) + (
            f" It is{value}." if (value := self._argument(tool)) else ""
        )

    def _situation(self, tools: Sequence[Tool], phrases: Sequence[Phrase]) -> str:
        """What somebody is at, and with what values; what is to be done is left unsaid."""
        topics = [
            f"{self._topic(tool, phrase)}{self._argument(tool)}{self._argument(tool)}"
            for tool, phrase in zip(tools, phrases, strict=True)
        ]
        text = self._random.choice(tables.SITUATIONS).format(o=topics[0])
        for more in topics[1:]:
            text += self._random.choice(tables.BESIDES).format(o=more)
        return f"{text}."

    def _topic(self, tool: Tool, phrase: Phrase) -> str:
        rest = self._reworded(tool, phrase.rest)
        words = [
            bare
            for word in rest.split()
            if (bare := word.strip(".,:;'\"`")) and bare.lower() not in tables.STOP_WORDS
        ]
        return " ".join(words[: self._random.randint(2, 4)]) or rest

    def _keywords(self, tool: Tool, phrase: Phrase) -> str:
        words = [
            word
            for word in (*split_words(tool.name), *split_words(phrase.rest))
            if word not in tables.STOP_WORDS and len(word) > 2
        ]
        words = list(dict.fromkeys(words))
        kept = self._random.sample(words, min(len(words), self._random.randint(2, 5)))
        return " ".join(self._synonym(word) for word in kept) or phrase.rest

    def _reworded(self, tool: Tool, rest: str) -> str:
        """Replaces nouns, leaves out the group's own name half of the time, drops some words."""
        own = {word for word in split_words(tool.group) if len(word) > 3}
        omit = self._random.random() < 0.5
        drop = 0.12 if self._random.random() < 0.4 else 0.0
        kept = []
        for word in rest.split():
            bare = word.lower().strip(".,:;'\"`")
            if omit and bare in own:
                continue
            if drop and bare not in tables.STOP_WORDS and self._random.random() < drop:
                continue
            kept.append(
                word.replace(word.strip(".,:;'\"`"), self._synonym(bare), 1)
                if bare in tables.NOUNS
                else word
            )
        text = " ".join(kept) or rest
        # A long description is cut where a clause ends, as people say less than descriptions do.
        if self._random.random() < 0.4:
            clause = _CLAUSE_END.split(text, maxsplit=1)[0]
            if len(clause.split()) >= LEAST_WORDS:
                text = clause
        return text

    def _synonym(self, word: str) -> str:
        if word in tables.NOUNS and self._random.random() < 0.5:
            return self._random.choice(tables.NOUNS[word])
        return word

    def _argument(self, tool: Tool) -> str:
        if not tool.arguments or self._random.random() < 0.55:
            return ""
        name = self._random.choice(tool.arguments[:4])
        words = split_words(name)
        for keys, values in tables.VALUES:
            if any(key in words for key in keys):
                value = self._random.choice(values)
                shape = self._random.choice(
                    (" for {v}", " with {n} {v}", " ({n}: {v})", " where the {n} is '{v}'")
                )
                return shape.format(v=value, n=" ".join(words))
        return ""

    def _context(self) -> str:
        template = self._random.choice(tables.CONTEXTS)
        return template.format(
            **{slot: self._random.choice(values) for slot, values in tables.SLOTS.items()}
        )

    def _noise(self, text: str) -> str:
        roll = self._random.random()
        if roll < 0.15:
            return text.lower()
        return text.rstrip(".?!") if roll < 0.22 else text


def synthesise(tools: Sequence[Tool], *, count: int, seed: int) -> list[SyntheticQuery]:
    """`count` queries: for one tool, for tools of one group, for tools of different groups."""
    source = random.Random(seed)
    writer = QueryWriter(seed + 1)
    usable = [tool for tool in tools if phrase_of(tool) is not None]
    if not usable:
        return []
    groups: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in usable:
        groups[tool.group].append(tool)
    queries: list[SyntheticQuery] = []
    seen: set[str] = set()
    order: list[Tool] = []
    for _ in range(count * 4):
        if len(queries) == count:
            break
        if not order:
            order = source.sample(usable, len(usable))
        first = order.pop()
        chosen = [first]
        if source.random() >= SINGLE_SHARE:
            near = [tool for tool in groups[first.group] if tool.id != first.id]
            size = source.choice((1, 1, 2))
            if near and source.random() < SAME_GROUP_SHARE:
                chosen += source.sample(near, min(size, len(near)))
            else:
                chosen += source.sample(usable, min(size, len(usable)))
        if len({tool.id for tool in chosen}) < len(chosen):
            continue
        text = writer.single(first) if len(chosen) == 1 else writer.joined(chosen)
        if text is None or text in seen:
            continue
        seen.add(text)
        queries.append(SyntheticQuery(text, tuple(tool.id for tool in chosen)))
    return queries


def _lowered(text: str) -> str:
    first = text.split(" ", 1)[0]
    return text if first[1:] != first[1:].lower() else text[:1].lower() + text[1:]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
