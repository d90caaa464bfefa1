#!/usr/bin/env python3
"""Writes native/onnx/unicode_tables.inc: what BERT's text cleaning must know of a code point.

Base: Python's unicodedata (Unicode 14, so Python 3.11). BERT vocabularies are used with Hugging
Face's `tokenizers`, whose category tables are older (about Unicode 8), whose canonical classes are
of Unicode 9 and whose lower-casing is newer; the constants below are the differences, found by
asking that library about every code point. `--check` asks it again.

    python3.11 scripts/unicode-tables.py            # writes the file
    python3.11 scripts/unicode-tables.py --check    # compares with the installed `tokenizers`
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

REMOVE, SPACE, PUNCTUATION, MARK, CHINESE, DECOMPOSES = 1, 2, 4, 8, 16, 32
LAST = 0x110000

# Marks, punctuation and format characters too new for the reference's category tables: it sees none
# of these in them.
CATEGORY_LATER = """
61D 7FD 890-891 898-89F 8CA-8E2 9FD-9FE A76 AFA-AFF B55 C04 C3C C77 C84 D00 D3B-D3C D81 EBA 180F
1885-1886 1ABF-1ACE 1B7D-1B7E 1DF6-1DFB 2E43-2E4F 2E52-2E5D A82C A8C5 A8FF A9BD 10D24-10D27
10EAB-10EAD 10F46-10F50 10F55-10F59 10F82-10F89 11070 11073-11074 110C2 110CD 111C9 111CF 1123E
1133B 11438-1143F 11442-11444 11446 1144B-1144F 1145A-1145B 1145D-1145E 11660-1166C 116B9
1182F-11837 11839-1183B 1193B-1193C 1193E 11943-11946 119D4-119D7 119DA-119DB 119E0 119E2
11A01-11A0A 11A33-11A38 11A3B-11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A9C 11A9E-11AA2
11C30-11C36 11C38-11C3D 11C3F 11C41-11C45 11C70-11C71 11C92-11CA7 11CAA-11CB0 11CB2-11CB3
11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11EF3-11EF4
11EF7-11EF8 11FFF 12FF1-12FF2 13430-13438 16E97-16E9A 16F4F 16FE2 16FE4 1CF00-1CF2D 1CF30-1CF46
1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A 1E130-1E136 1E2AE 1E2EC-1E2EF
1E944-1E94A 1E95E-1E95F
"""
# Characters whose category was another one in those tables.
PUNCTUATION_BEFORE = "166D 111C9"
MARK_BEFORE = "1734"
# Characters whose canonical combining class the reference does not know (it takes 0), and one whose
# decomposition it lacks.
CLASS_LATER = """
7FD 898-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ACE 1DF6-1DFA A82C 10D24-10D27 10EAB-10EAC
10F46-10F50 10F82-10F85 11070 1133B 1145E 11839-1183A 1193D-1193E 11943 119E0 11A34 11A47 11A99
11D42 11D44-11D45 11D97 16FF0-16FF1 1E130-1E136 1E2AE 1E2EC-1E2EF
"""
DECOMPOSITION_LATER = "11938"
# Lower case that Unicode 14 does not have: ranges and the distance to the small letter.
LOWER_LATER = [
    (0x1C89, 0x1C89, 1),
    (0xA7CB, 0xA7CB, 0x264 - 0xA7CB),
    (0xA7CC, 0xA7CC, 1),
    (0xA7CE, 0xA7CE, 1),
    (0xA7D2, 0xA7D2, 1),
    (0xA7D4, 0xA7D4, 1),
    (0xA7DA, 0xA7DA, 1),
    (0xA7DC, 0xA7DC, 0x19B - 0xA7DC),
    (0x10D50, 0x10D65, 0x20),
    (0x16EA0, 0x16EB8, 0x1B),
]
# The reference's idea of a Chinese character.
CHINESE_RANGES = "3400-4DBF 4E00-9FFF F900-FAFF 20000-2A6DF 2A700-2B81F 2B920-2CEAF 2F800-2FA1F"
# The one letter whose small form is two code points; the C++ knows it by name.
DOTTED_I = 0x130


def points(text: str) -> set[int]:
    """The code points of hexadecimal numbers and ranges."""
    found: set[int] = set()
    for part in text.split():
        first, _, last = part.partition("-")
        found.update(range(int(first, 16), int(last or first, 16) + 1))
    return found


CATEGORY_LATER_SET = points(CATEGORY_LATER)
PUNCTUATION_BEFORE_SET = points(PUNCTUATION_BEFORE)
MARK_BEFORE_SET = points(MARK_BEFORE)
CLASS_LATER_SET = points(CLASS_LATER)
DECOMPOSITION_LATER_SET = points(DECOMPOSITION_LATER)
CHINESE_SET = points(CHINESE_RANGES)
LOWER_LATER_MAP = {c: c + by for first, last, by in LOWER_LATER for c in range(first, last + 1)}


def scalars() -> Iterator[int]:
    """Every code point but the surrogates."""
    yield from range(0xD800)
    yield from range(0xE000, LAST)


def category(c: int) -> str:
    """General category as the reference has it."""
    if c in PUNCTUATION_BEFORE_SET:
        return "Po"
    if c in MARK_BEFORE_SET:
        return "Mn"
    if c in CATEGORY_LATER_SET:
        return "Cn"
    return unicodedata.category(chr(c))


def combining(c: int) -> int:
    """Canonical combining class as the reference has it."""
    return 0 if c in CLASS_LATER_SET else unicodedata.combining(chr(c))


def removed(c: int) -> bool:
    """Dropped by text cleaning: NUL, U+FFFD, and control (not tab, line ends), format, private."""
    if c in (9, 10, 13):
        return False
    return c in (0, 0xFFFD) or category(c) in ("Cc", "Cf", "Co")


def space(c: int) -> bool:
    """What text cleaning turns into a space."""
    return c in (9, 10, 13) or category(c) in ("Zs", "Zl", "Zp")


def punctuation(c: int) -> bool:
    """What stands as a word of its own."""
    ascii_symbol = 33 <= c <= 47 or 58 <= c <= 64 or 91 <= c <= 96 or 123 <= c <= 126
    return ascii_symbol or category(c).startswith("P")


def decomposition(c: int) -> list[int]:
    """Canonical decomposition as the reference has it."""
    if c in DECOMPOSITION_LATER_SET:
        return [c]
    return [ord(x) for x in unicodedata.normalize("NFD", chr(c))]


def stripped(c: int) -> list[int]:
    """What is left of a code point after decomposition without its nonspacing marks."""
    return [x for x in decomposition(c) if category(x) != "Mn"]


def lower(c: int) -> list[int]:
    """Lower case as the reference has it."""
    later = LOWER_LATER_MAP.get(c)
    return [later] if later is not None else [ord(x) for x in chr(c).lower()]


def hangul(c: int) -> bool:
    """Syllables, which decompose by arithmetic."""
    return 0xAC00 <= c <= 0xD7A3


def check() -> int:
    """Compares all the above with the installed reference; returns how many points differ."""
    from tokenizers.normalizers import NFD, BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    def normalizer(**on: bool) -> BertNormalizer:
        off = dict.fromkeys(
            ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False
        )
        return BertNormalizer(**{**off, **on})

    clean = normalizer(clean_text=True)
    chinese = normalizer(handle_chinese_chars=True)
    accents = normalizer(strip_accents=True)
    small = normalizer(lowercase=True)
    nfd, split = NFD(), BertPreTokenizer()
    differing = 0
    for c in scalars():
        s = chr(c)
        expected_clean = "" if removed(c) else " " if space(c) else s
        order = all(
            nfd.normalize_str("a" + s + t)
            == (
                "a"
                + (
                    s + t
                    if combining(c) == 0 or combining(c) <= unicodedata.combining(t)
                    else t + s
                )
            )
            for t in ("\u0334", "\u0345")
            if decomposition(c) == [c]
        )
        same = (
            clean.normalize_str(s) == expected_clean
            and (chinese.normalize_str(s) != s) == (c in CHINESE_SET)
            and accents.normalize_str(s) == "".join(map(chr, stripped(c)))
            and small.normalize_str(s) == "".join(map(chr, lower(c)))
            and (
                removed(c)
                or space(c)
                or (len(split.pre_tokenize_str("a" + s + "b")) == 3) == punctuation(c)
            )
            and order
        )
        if not same:
            differing += 1
            print(f"U+{c:04X} differs", file=sys.stderr)
    print(f"{differing} code points differ from the reference")
    return differing


def rows(items: list[str], width: int = 118) -> str:
    """Items joined into lines."""
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 1 > width:
            lines.append(line)
            line = ""
        line += item
    return "\n".join([*lines, line])


def tables() -> str:
    """The text of the table file."""
    records: dict[tuple[int, int, int], int] = {(0, 0, 0): 0}
    starts: list[str] = []
    singles: list[str] = []
    indices: list[str] = []
    data: list[str] = []
    before = -1
    for c in range(LAST):
        flags = by = canonical = 0
        if not 0xD800 <= c < 0xE000:
            flags |= REMOVE if removed(c) else 0
            flags |= SPACE if space(c) else 0
            flags |= PUNCTUATION if punctuation(c) else 0
            flags |= CHINESE if c in CHINESE_SET else 0
            canonical = combining(c)
            parts, left = decomposition(c), stripped(c)
            if not left:
                flags |= MARK
            elif left != [c] and not hangul(c) and not space(c):
                # The C++ relies on these: a starter first, and no mark of class 0 dropped behind a
                # class above 0.
                assert combining(parts[0]) == 0
                assert all(
                    x in left or combining(x) or not any(map(combining, left)) for x in parts
                )
                assert not any(removed(x) or space(x) for x in left)
                flags |= DECOMPOSES
                if len(left) == 1:
                    singles.append(f"{{{c:#x},{left[0]:#x}}},")
                else:
                    indices.append(f"{{{c:#x},{len(data)},{len(left)}}},")
                    data.extend(f"{x:#x}," for x in left)
            small = lower(c)
            if c != DOTTED_I:
                assert len(small) == 1
                by = small[0] - c
        record = records.setdefault((flags, canonical, by), len(records))
        if record != before:
            starts.append(f"{{{c:#x},{record}}},")
            before = record
    assert len(records) <= 256
    record_rows = [f"{{{f},{k},{by}}}," for f, k, by in records]
    return f"""// Made by scripts/unicode-tables.py, Unicode {unicodedata.unidata_version}.
// clang-format off
// Kinds of code point: flags, canonical combining class, distance to the small letter.
constexpr Kind kKinds[] = {{
{rows(record_rows)}
}};
// The code points where another kind begins.
constexpr Start kStarts[] = {{
{rows(starts)}
}};
// Decompositions that leave one code point once nonspacing marks are gone.
constexpr Single kSingles[] = {{
{rows(singles)}
}};
// The others: a place in kParts and a length.
constexpr Several kSeverals[] = {{
{rows(indices)}
}};
constexpr char32_t kParts[] = {{
{rows(data)}
}};
// clang-format on
"""


def main() -> int:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--check", action="store_true", help="compare with the installed tokenizers package"
    )
    options = parser.parse_args()
    if unicodedata.unidata_version != "14.0.0":
        print(
            f"needs Unicode 14.0.0 (Python 3.11), this Python has {unicodedata.unidata_version}",
            file=sys.stderr,
        )
        return 2
    if options.check:
        return 1 if check() else 0
    target = Path(__file__).resolve().parent.parent / "native" / "onnx" / "unicode_tables.inc"
    target.write_text(tables(), encoding="ascii")
    print(f"{target}: {target.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
