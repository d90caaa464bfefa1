"""Texts that try a WordPiece tokeniser hard: adversarial by hand, and random with a fixed seed.

Lone surrogates are absent: they have no UTF-8 form, and a runtime replaces them by U+FFFD first.
"""

from __future__ import annotations

import random
import unicodedata

SEED = 4242

_ASCII_SYMBOLS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

# Spaces, line ends, and invisible characters that look like them; all between two words.
_SEPARATORS = (
    *range(0x00, 0x21),
    *range(0x7F, 0xA1),
    0xAD,
    0x034F,
    0x061C,
    0x115F,
    0x1680,
    0x180E,
    *range(0x2000, 0x2010),
    *range(0x2028, 0x2030),
    *range(0x205F, 0x2070),
    0x3000,
    0x3164,
    0xFE0F,
    0xFEFF,
    0xFFF9,
    0xFFFC,
    0xFFFD,
    0xFFFE,
    0xFFFF,
    0xE000,
    0xE0001,
    0xE0020,
    0xF0000,
    0x10FFFD,
)

_EDGES_OF_IDEOGRAPH_RANGES = (
    *(0x2E7F, 0x2E80, 0x2FDF, 0x3007, 0x3041, 0x30A2, 0x3105, 0x31C0, 0x33FF, 0x3400, 0x4DBF),
    *(0x4DC0, 0x4DFF, 0x4E00, 0x9FFF, 0xA000, 0xABFF, 0xAC00, 0xD7A3, 0xF8FF, 0xF900, 0xFA2D),
    *(0xFAFF, 0xFB00, 0x1FFFF, 0x20000, 0x2A6DF, 0x2A6E0, 0x2A700, 0x2B73F, 0x2B740, 0x2B81F),
    *(0x2B820, 0x2B91F, 0x2B920, 0x2CEAF, 0x2CEB0, 0x2F7FF, 0x2F800, 0x2FA1F, 0x2FA20, 0x30000),
)

_BY_HAND = (
    "",
    " ",
    "\n",
    "\r\n",
    "\t\t  \t",
    "\u00a0",
    "\u3000\u2003",
    "\u200b",
    "a",
    "A",
    ".",
    "...",
    "?!?!",
    "[UNK]",
    "[CLS] hello [SEP] world [MASK] [PAD]",
    "[mask][MASK]",
    "the [SEP]arator",
    "[unused5] ##ing ## # ###a",
    "don't can't won't rock'n'roll ‘quoted’ “double” «guillemets» „low“",
    "naïve café résumé coöperate ångström Đorđe Łódź Øresund",
    "nai\u0308ve cafe\u0301 re\u0301sume\u0301 a\u030angstro\u0308m",
    "\u0301leading accent, a\u0301\u0301\u0301 stacked, e\u0327\u0301 two kinds",
    "\u1e9b\u0323 \u212b \u2126 \u212a \u017f",
    "İstanbul ISPARTA ıspanak Iğdır i\u0307 \u0130\u0130",
    "Straße GROẞE ẞ ß groß",
    "ﬁnance eﬀect oﬃce ﬂow ﬆop ſtreet",
    "ΑΒΓΔ ΣΊΣΥΦΟΣ ὈΔΥΣΣΕΎΣ ἄνθρωπος ᾳ ΐ",
    "ПРИВЕТ, мир! Ёлка ёж Йод Їжак ўсё",
    "Ǆ ǅ ǆ Ǉ ǈ ǉ Ǌ ǋ ǌ Ǳ ǲ ǳ",
    "Ⅷ ⅷ ½ ² ³ ① Ⓐ ⓐ ㎏ ㏒ №",
    "𝐁𝐨𝐥𝐝 𝒮𝒸𝓇𝒾𝓅𝓉 𝔉𝔯𝔞𝔨𝔱𝔲𝔯 𝟘𝟙𝟚",
    "𐐀𐐨 𐓐𐓸 𞤀𞤢 𑢠𑣀",
    "你好世界",
    "使用必应search搜索hello世界2024年",
    "東京タワーへ行きたいです。カタカナ ｶﾀｶﾅ が か\u3099",
    "안녕하세요 세계 한국어 \u1112\u1161\u11ab 각",
    "𠀀𠀁 𪛖 𫜴 𬺡 丽 \ufa0e\ufa29",
    "ㄅㄆㄇ 〇 々 〆 ㍿ ㈱",
    "مرحبا بالعالم، كيف حالك؟ السَّلامُ عَلَيْكُمْ لا ﷲ",
    "שלום עולם שָׁלוֹם",
    "สวัสดีชาวโลก น้ำ ที่นี่",
    "नमस्ते दुनिया क्षत्रिय हिन्दी ज़िंदगी",
    "বাংলা தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල ខ្មែរ မြန်မာ",
    "ქართული ᲥᲐᲠᲗᲣᲚᲘ Հայերեն አማርኛ ᏣᎳᎩ ꮳꮃꭹ",
    "Tiếng Việt: Nguyễn Ẩn Ậ ệ ữ",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ❤️ ☺ ☺️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "good👍morning 🎉🎉party",
    "zero\u200bwidth joi\u200dner non\u200cjoiner word\u2060joiner bom\ufeff soft\u00adhyphen",
    "left\u200eright\u200f \u202aembed\u202c \u2066isolate\u2069",
    "nul\u0000here bell\u0007 escape\u001b[31mred\u001b[0m del\u007f",
    "replacement \ufffd character",
    "price: $5.00 ^caret `tick` ~tilde a|b a+b=c <tag> 5€ 7£ 9¥ 3¢ ±2 ×3 ÷4 °C",
    "§ ¶ † ‡ • … ‰ ′ ″ ‹ › ⁂ ⸮ 。 、 「」 ！ ？ ： ； ～ ｜ ＄",
    "snake_case camelCase PascalCase kebab-case dot.case SCREAMING_SNAKE",
    "https://example.com/a/b?c=d&e=%20#frag user+tag@mail.example",
    '{"key": [1, 2.5e-3, null], "nested": {"a": true}}',
    "SELECT * FROM t WHERE a >= 10 AND b != 'x'; -- comment",
    "C:\\Users\\name\\file.txt /usr/local/bin ../up ./here ~/home",
    "0 1 12 123 1234 12345678901234567890 3.14159 1,000,000 0x1F 1e10",
    "x" * 99,
    "x" * 100,
    "x" * 101,
    "x" * 300,
    "é" * 100,
    "e\u0301" * 100,
    "e\u0301" * 101,
    "漢" * 101,
    "が" * 100,
    "が" * 101,
    "각" * 34,
    "😀" * 100,
    "😀" * 101,
    "a" * 101 + " fine " + "b" * 101,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "unaffable unwanted running qwrtzpsdfg zzzzzzzz",
    "a " * 253,
    "a " * 254,
    "a " * 255,
    "a " * 256,
    "a " * 400,
    "tokenization " * 200,
    "." * 300,
    "\n".join(["line of text"] * 120),
)

_RANDOM_RANGES = (
    *((0x20, 0x7E), (0x00, 0xFF), (0x100, 0x24F), (0x250, 0x36F), (0x370, 0x52F), (0x530, 0x6FF)),
    *((0x700, 0x8FF), (0x900, 0xDFF), (0xE00, 0x12FF), (0x1300, 0x17FF), (0x1800, 0x1CFF)),
    *((0x1D00, 0x1FFF), (0x2000, 0x23FF), (0x2400, 0x2BFF), (0x2C00, 0x2FFF), (0x3000, 0x33FF)),
    *((0x3400, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7FF), (0xE000, 0xFAFF), (0xFB00, 0xFFFF)),
    *((0x10000, 0x11FFF), (0x12000, 0x1BFFF), (0x1C000, 0x1EFFF), (0x1F000, 0x1FFFF)),
    *((0x20000, 0x2FFFF), (0x30000, 0x3FFFF), (0xE0000, 0xE0FFF), (0x00, 0x10FFFF)),
)


def adversarial_texts() -> list[str]:
    """Cases by hand, and each separator, symbol and range edge between two words."""
    texts = [form for text in _BY_HAND for form in _forms(text)]
    texts += [f"left{chr(point)}right {chr(point)} end" for point in _SEPARATORS]
    texts += [f"a{symbol}b {symbol}c d{symbol} {symbol}" for symbol in _ASCII_SYMBOLS]
    texts += [f"x{chr(point)}y" for point in _EDGES_OF_IDEOGRAPH_RANGES]
    return texts


def random_texts() -> list[str]:
    """Random characters from every part of Unicode, alone and mixed with words."""
    source = random.Random(SEED)
    texts = []
    for low, high in _RANDOM_RANGES:
        for _ in range(16):
            points = [_character(source, low, high) for _ in range(source.randint(1, 24))]
            texts.append("".join(points))
            gap = source.choice(["", " ", "a", "The ", "-"])
            texts.append(gap.join(points))
    return texts


def _forms(text: str) -> list[str]:
    """The text, and its decomposed form where that differs."""
    decomposed = unicodedata.normalize("NFD", text)
    return [text] if decomposed == text else [text, decomposed]


def _character(source: random.Random, low: int, high: int) -> str:
    while True:
        point = source.randint(low, high)
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)
