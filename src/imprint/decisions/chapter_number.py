"""A chapter's number, read from a source's own fields or from the name somebody gave it.

Numbers are exact decimals. What has no number of its own (an extra, a prologue, a notice) has a slug instead, so that
two of them are never taken for one; the slug of a numbered chapter is its number, after its season if that is not the
first. Neither volume nor version is part of it: sources fill in volumes later, a second version is the same chapter.
"""

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256

LONGEST_NAME = 500  # what is read of a name; nobody writes the number behind that
LONGEST_SLUG = 120
WIDEST_RANGE = 100  # «Chapter 3 - 2049» is a title, not two thousand chapters
_WHOLE, _FRACTION = 6, 6  # longer ones are ids and timestamps


class Kind(StrEnum):
    """What a name announces."""

    CHAPTER = "chapter"
    EXTRA = "extra"  # beside the story: omake, side story, afterword
    SPECIAL = "special"  # of the story, but outside the count: prologue, oneshot, special
    NOTICE = "notice"  # nothing to read


@dataclass(frozen=True)
class ChapterNumber:
    """What a name says; `slug` tells the chapters of a series apart and is the same in every language we know."""

    kind: Kind
    slug: str
    number: Decimal | None = None
    end: Decimal | None = None  # of a range: this upload carries `number` up to and with `end`
    volume: Decimal | None = None
    season: int | None = None
    version: int | None = None

    @property
    def label(self) -> str:
        """Write it as people do; a numbered chapter reads back as the same."""
        if self.number is None:
            return self.slug
        season = f"Season {self.season} " if self.season is not None else ""
        volume = f"Vol.{self.volume:f} " if self.volume is not None else ""
        end = f"-{self.end:f}" if self.end is not None else ""
        version = f"v{self.version}" if self.version is not None else ""
        return f"{season}{volume}Ch.{self.number:f}{end}{version}"

    @property
    def place(self) -> tuple[bool, int, Decimal, Decimal, str]:
        """Give what sorts the chapters of a series: by season and number, those without one at the end."""
        number = Decimal(0) if self.number is None else self.number
        return self.number is None, self.season or 1, number, number if self.end is None else self.end, self.slug


def from_name(name: str, *, series: str = "", fallback: str = "") -> ChapterNumber:
    """Read a name; the series' title is not part of it, and the fallback tells apart what has no name at all."""
    return _read(_Facts(name, fallback), _without(normal(name[:LONGEST_NAME]), series), bare=True)


def from_fields(
    number: str | None, *, volume: str | None = None, name: str | None = None, series: str = "", fallback: str = ""
) -> ChapterNumber:
    """Read a source's own fields; a source that leaves the number empty means it, so a title's «5» is no chapter 5."""
    facts = _Facts(name or "", fallback)
    if volume and (whole := _DIGITS.fullmatch(normal(volume[:LONGEST_NAME]))):
        facts.volume = _exact(whole)
    if not (text := normal((number or "")[:LONGEST_NAME])):
        return _read(facts, _without(normal((name or "")[:LONGEST_NAME]), series), bare=False)
    if (found := _NUMBER.match(_take_version(text, facts))) and (first := _exact(found)) is not None:
        return facts.numbered(first, found.string[found.end() :])
    return _read(facts, _without(text, series), bare=True)


def normal(text: str) -> str:
    """Write the same letters, digits, dashes and brackets the same way; once is enough."""
    for sign, digits in _HALVES.items():  # or NFKC would write 12½ as 121/2
        text = text.replace(sign, digits)
    before = None
    while text != before:  # what one step uncovers may be for the one before it
        before = text
        text = "".join(each for each in text if unicodedata.category(each) not in {"Cf", "Cs", "Co", "Cn"})
        text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
        text = "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in text)
        text = " ".join(text.split())
    return text


def slugged(text: str) -> str:
    """Make a short, stable name of any text; a long one ends with a digest, so that no two become one."""
    words = re.findall(r"[^\W_]+", normal(normal(text).casefold()))
    slug = "-".join(words)
    if len(slug) <= LONGEST_SLUG:
        return slug
    digest = sha256(slug.encode()).hexdigest()[:12]
    return f"{slug[: LONGEST_SLUG - 13]}-{digest}"


# ---------------------------------------------------------------------------------------------------------- the words

_HALVES = {"½": ".5", "¼": ".25", "¾": ".75"}
_SIGNS = str.maketrans(
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\u301c\u223c\uff5e\u02dc\u2019【】「」『』〈〉《》",
    "---------~~~~'[][][][][]",
)

_LETTER = r"[^\W\d_]"
_START = rf"(?<!{_LETTER})"  # a word begins here, also right behind a digit or an underscore
_STOP = rf"(?!{_LETTER})"

_CHAPTER_WORD = (
    r"chapters?|chapitres?|chapter|chap|chp|ch|cap[ií]tulos?|capitolo|cap|kapitel|kapitola|kapittel|kap|episodes?"
    r"|[ée]pisodes?|epis[oó]dios?|eps?|folge|глава|гл|серия|эпизод|выпуск|chương|chuong|hồi|bab|bölüm|bolum|rozdział"
    r"|rozdzial|fejezet|hoofdstuk|luku|issue|strip|ตอนที่|บทที่|ตอน|الفصل|فصل|अध्याय|nº|n°|no(?=\.? ?\d)|[ce](?=\d)"
)
_CHAPTER_UNIT = r"話|话|章|回|集|節|节|화|회|장"
_SEASON_WORD = r"seasons?|temporada|saison|staffel|stagione|сезон|sezon|mùa|시즌|シーズン"
_VOLUME_WORD = r"volumes?|vols?|tome|tomo|band|том|tom|tập|quyển|cilt|v(?=\.? ?\d)"
_VOLUME_UNIT = r"巻|卷|冊|册|권"
_PART_WORD = r"parts?|pt|parte|partie|teil|часть|phần"
_END_WORD = r"end|fin|final|finale|completed?|season finale|完|完結|완결|끝|конец"

# In the order in which they are looked for: «side story special» is a side story.
_KINDS: tuple[tuple[str, Kind, str], ...] = (
    (
        "side-story",
        Kind.EXTRA,
        r"side[- ]?stor(?:y|ies)|gaiden|外伝|外传|외전|ngoại truyện|spin[- ]?off|historia paralela",
    ),
    ("omake", Kind.EXTRA, r"omake|おまけ|омаке"),
    ("afterword", Kind.EXTRA, r"afterword|あとがき|後書き|后记|후기|послесловие|postface|nachwort"),
    ("interlude", Kind.EXTRA, r"interludes?|intermission|幕間|интерлюдия|interludio|zwischenspiel"),
    ("extra", Kind.EXTRA, r"extras?|bonus(?:kapitel)?|番外[編篇话話]?|phiên ngoại|экстра|бонус|hors[- ]série|号外"),
    ("prologue", Kind.SPECIAL, r"prologue|prolog|pr[oó]logo|プロローグ|프롤로그|пролог|序章|序幕|楔子|mở đầu"),
    ("epilogue", Kind.SPECIAL, r"[ée]pilogue|epilog|ep[ií]logo|エピローグ|에필로그|эпилог|終章|终章|尾声"),
    ("oneshot", Kind.SPECIAL, r"one[- ]?shot|読み?切り?|단편|ваншот|ワンショット"),
    ("preview", Kind.SPECIAL, r"previews?|teasers?|trailers?|予告[編篇]?|예고편?|превью|avance|vorschau"),
    (
        "final",
        Kind.SPECIAL,
        r"(?:final|last) (?:chapter|episode)|(?:chapitre|cap[ií]tulo) final|последняя глава|最[終终][話话回]|마지막화",
    ),
    (
        "special",
        Kind.SPECIAL,
        r"specials?|especial|spécial|sonderkapitel|спешл|特別[編篇話]?|特别[篇话]?|특별편|đặc biệt|sp",
    ),
)
_NOTICE_WORD = (
    r"notices?|announcements?|hiatus|on break|break notice|author'?s? notes?|q ?& ?a|delay(?:ed)?(?: notice)?"
    r"|schedule change|공지사항|공지|휴재|お知らせ|休載|公告|通知|请假条?|thông báo|объявление"
    r"|avisos?|annonces?|ankündigung"
)

_ORDINAL = r"(?:st|nd|rd|th|[ºª]|er|ère|e|ème|\.)?"
_DIGITS = re.compile(r"(?P<whole>\d{1,3}(?:,\d{3})+(?![\d])|\d+)(?:\.(?P<dot>\d+)|,(?P<comma>\d)(?!\d))?")
_NUMBER = re.compile(_DIGITS.pattern + rf"(?P<letter>[a-zA-Z]{_STOP}(?!\d))?")
_ROMAN = re.compile(
    r"(?=[IVXLC])(?P<roman>(?:C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3}))(?![^\W_])"
    r"|(?P<small>x{0,3}(?:ix|iv|v?i{0,3}))(?<=[ivx])(?![^\W_])"
)
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_WORDS = {word: at for at, word in enumerate([*_ONES.split(), "seventeen", "eighteen", "nineteen"])}
_TENS = dict(twenty=20, thirty=30, forty=40, fifty=50, sixty=60, seventy=70, eighty=80, ninety=90)  # noqa: C408 - a line
_SPELLED = re.compile(
    rf"(?:(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<unit>{'|'.join(list(_WORDS)[1:10])}))?"
    rf"|(?P<word>{'|'.join(_WORDS)})){_STOP}",
    re.IGNORECASE,
)

_GAP = r"[ ._:#-]*(?:no\.? ?)?"
_MARKER = re.compile(rf"{_START}(?:{_CHAPTER_WORD}){_STOP}{_GAP}|#[ ]?", re.IGNORECASE)
_COUNTED = re.compile(
    rf"(?:第 ?)?(?P<first>{_DIGITS.pattern.replace('?P<', '?P<a_')})"
    rf"(?: ?[-~] ?(?P<last>{_DIGITS.pattern.replace('?P<', '?P<b_')}))? ?(?:{_CHAPTER_UNIT})(?![目数])"
)
_COUNTED_WORD = re.compile(
    rf"(?<![\w.,])(?P<first>{_DIGITS.pattern}){_ORDINAL}[ -](?:{_CHAPTER_WORD}){_STOP}", re.IGNORECASE
)
_SMALL = r"(\d{1,3})(?!\d)"
_SEASON = re.compile(
    rf"{_START}(?:{_SEASON_WORD}){_STOP}[ .:#-]*{_SMALL}|(?<!\w){_SMALL}{_ORDINAL} (?:{_SEASON_WORD}){_STOP}"
    rf"|第 ?{_SMALL} ?(?:季|期|部)|(?<!\w){_SMALL} ?(?:기|부)(?!\w)"
    rf"|{_START}s{_SMALL}(?=[ \])_.:-]*(?:#|\d|$|{_LETTER}))|(?<!\w){_SMALL}x(?=\d{{2,3}}(?!\w))",
    re.IGNORECASE,
)
_VOLUME = re.compile(
    rf"{_START}(?:{_VOLUME_WORD}){_STOP}{_GAP}(?P<word>{_DIGITS.pattern})(?: ?- ?\d+(?![\w.]))?"
    rf"|{_START}(?:{_VOLUME_WORD}){_STOP}[ .]+(?P<numeral>[IVX]+)(?!\w)"
    rf"|(?:第 ?)?(?P<unit>\d+)(?: ?[-~] ?\d+)? ?(?:{_VOLUME_UNIT})",
    re.IGNORECASE,
)
_VERSION = re.compile(
    rf"(?<=[\da-z\])]) ?[\[(]?(?:v|ver\.?|version|rev\.?) ?(\d{{1,2}})(?!\d)[\])]?(?! ?(?:{_CHAPTER_WORD}|#)[ .]?\d)",
    re.IGNORECASE,
)
_NOISE = re.compile(  # numbers that count something else
    r"\d{13,}|(?<!\d)\d{4}([-./])\d{1,2}\1\d{1,2}(?!\d)|(?<!\d)\d{1,2}([-./])\d{1,2}\2\d{4}(?!\d)"
    r"|[$€£¥] ?\d[\d.,]*|\d[\d.,]* ?[%€]|(?<!\d)\d{1,2}:\d{2}(?::\d{2})?(?!\d)"
)
_RANGE = re.compile(rf" ?(?P<sign>-|~|to|&|\+|,|and|bis|à|y|und|и) ?(?P<last>{_DIGITS.pattern})(?![\w%]|[.,]\d)")
_THROUGH = {"-", "~", "to", "bis", "à"}  # the other signs join neighbours: «10 & 11», but not «5 & 20»
_SUB = re.compile(
    rf"[ ,:-]*[\[(]?(?:{_PART_WORD}){_STOP}[ .#]*(?P<part>\d{{1,2}}(?!\d)|[IVX]+(?!\w))[\])]?"
    r"|[ ]?\((?P<bracket>\d{1,2})(?:/\d{1,2})?\)|[ ]?[\[(]?(?P<half>[前中後后]) ?[編篇][\])]?"
    r"|[ ]?\((?P<syllable>[상중하上中下])\)",
    re.IGNORECASE,
)
_HALF = {"前": 1, "中": 2, "後": 3, "后": 3, "상": 1, "중": 2, "하": 3, "上": 1, "下": 3}
_PART = re.compile(rf"{_START}(?:{_PART_WORD}){_STOP}[ .#]*", re.IGNORECASE)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\[\]? ]+")  # scripts that leave no gap between words


def _anywhere(words: str) -> str:
    """Write a pattern for words that stand alone, or, where their script leaves no gaps, inside others."""
    unspaced = [word for word in words.split("|") if _UNSPACED.fullmatch(word)]
    return "|".join([rf"{_START}(?:{words}){_STOP}", *unspaced])


_KIND = re.compile("|".join(f"(?P<k{at}>{_anywhere(words)})" for at, (_, _, words) in enumerate(_KINDS)), re.IGNORECASE)
_KIND_NOUN = re.compile(
    rf"[ -]*(?:(?:{_CHAPTER_WORD}|story|edition|comic|编|編|篇){_STOP})?{_GAP}[\])]? ?", re.IGNORECASE
)
_NOTICE = re.compile(_anywhere(_NOTICE_WORD), re.IGNORECASE)
_NOTICE_STOP = re.compile(r" ?(?:[.:!,;\])&-]|$|(?:of|about|on|for|from|regarding|until|and)\b)", re.IGNORECASE)
_EDGES = " -:.,[]()|"
_LIKE_A_NUMBER = re.compile(r"(?:s\d+-)?[\d.]+(?:-[\d.]+)?")
_ENDING = re.compile(rf"[ -]*[\[(]? ?{_START}(?:{_END_WORD}) ?[\])]?[ .!]*$", re.IGNORECASE)
_ENDED = re.compile(rf"[ -]*[\[(] ?(?:{_END_WORD}) ?[\])] *$", re.IGNORECASE)  # in brackets it is never part of a title
_LONE = re.compile(rf"(?<![\w.,/:$'-])(?P<first>{_NUMBER.pattern})(?![\w%/']|[.,:]\d)")
_CJK = {each: int(digit) for each, digit in zip("\u3007零一二両两三四五六七八九", "0012223456789", strict=True)}
_CJK_PLACE = {"十": 10, "百": 100, "千": 1000}
_CJK_NUMBER = re.compile(
    rf"(?:第 ?|^)([{''.join(_CJK)}{''.join(_CJK_PLACE)}]{{1,12}})(?= ?[話话章回集節节巻卷冊册季期部])"
)


# -------------------------------------------------------------------------------------------------------- the reading


class _Facts:
    """What was found so far, on the way to a ChapterNumber."""

    def __init__(self, name: str, fallback: str) -> None:
        self.name = name
        self.fallback = fallback
        self.volume: Decimal | None = None
        self.season: int | None = None
        self.version: int | None = None
        self.noise = ""

    def numbered(self, number: Decimal, tail: str) -> ChapterNumber:
        """Make a numbered chapter; what follows the number may still change it."""
        number, end, tail = _spread(number, tail)
        beside = _KIND.match(tail.lstrip())
        if beside and tail[:1] == " " and not _ENDING.sub("", tail.lstrip()[beside.end() :]).strip(" 0123456789"):
            slug, kind = _kind(beside)
            if kind is Kind.EXTRA and number == number.to_integral_value():  # «Ch.12 Omake» is beside 12, not 12
                return self.unnumbered(kind, f"{_plain(number)}-{slugged(f'{slug} {tail.lstrip()[beside.end() :]}')}")
        season = "" if self.season in {None, 1} else f"s{self.season}-"
        slug = f"{season}{_plain(number)}" + (f"-{_plain(end)}" if end is not None else "")
        return ChapterNumber(Kind.CHAPTER, slug, number, end, self.volume, self.season, self.version)

    def unnumbered(self, kind: Kind, slug: str) -> ChapterNumber:
        """Make what has no number; its volume and season are part of its name."""
        season = "" if self.season in {None, 1} else f"s{self.season}-"
        volume = f"v{_plain(self.volume)}-" if self.volume is not None else ""
        if _LIKE_A_NUMBER.fullmatch(slug):
            slug = f"name-{slug}"
        return ChapterNumber(kind, f"{season}{volume}{slug}", None, None, self.volume, self.season, self.version)

    def notice(self) -> ChapterNumber:
        """Make a notice; all of its words are its name."""
        name = slugged(f"{normal(self.name[:LONGEST_NAME])} {self.apart()}").removeprefix("notice-")
        return self.unnumbered(Kind.NOTICE, "notice" if name == "notice" else f"notice-{name}")

    def apart(self) -> str:
        """Give what else tells names apart: their dates, and what is too long to be read."""
        return f"{self.noise} {_digest(self) if len(self.name) > LONGEST_NAME else ''}"

    def nameless(self) -> str:
        """Give the last resort of an identity."""
        return slugged(self.name) or (f"id-{slugged(self.fallback)}" if slugged(self.fallback) else _digest(self))


def _digest(facts: _Facts) -> str:
    return "x-" + sha256(f"{normal(facts.name)}\0{facts.fallback}".encode("utf-8", "replace")).hexdigest()[:12]


def _read(facts: _Facts, text: str, *, bare: bool) -> ChapterNumber:
    notice = _NOTICE.search(text)
    if notice and not text[: notice.start()].strip(" [(*!") and _NOTICE_STOP.match(text[notice.end() :]):
        return facts.notice()
    facts.noise = " ".join(found[0] for found in _NOISE.finditer(text))
    text = _NOISE.sub(" ", _CJK_NUMBER.sub(lambda found: f"第{_from_cjk(found[1])}", text))
    text = _take_season(text, facts)
    text = _take_version(text, facts)
    text = _take_volume(text, facts)
    if found := _marked(text, facts):
        return found
    strong = re.match(rf"(?P<first>{_NUMBER.pattern})(?= ?[.:)-](?: |$)|$)", text) if bare else None
    if strong and (number := _exact(strong)) is not None and not (_year(strong) and strong.end() < len(text)):
        return facts.numbered(number, text[strong.end() :])
    if notice:
        return facts.notice()
    return _beside(text, facts, bare=bare) or _counted(text, facts, bare=bare) or _named(text, facts)


def _marked(text: str, facts: _Facts) -> ChapterNumber | None:
    """Find the number that a word or a unit says is the chapter's."""
    if (unit := _COUNTED.search(text)) and (number := _exact(unit, "a_")) is not None:
        if slug := _kind_before(text[: unit.start()]):
            return facts.unnumbered(slug[1], f"{slug[0]}-{_plain(number)}")
        last = f"-{unit['last']}" if unit["last"] else ""
        return facts.numbered(number, last + text[unit.end() :])
    for marker in _MARKER.finditer(text):
        rest = text[marker.end() :]
        number, tail = _numeral(rest)
        if number is None:
            continue
        if slug := _kind_before(text[: marker.start()]):
            number, _, _ = _spread(number, tail)
            return facts.unnumbered(slug[1], f"{slug[0]}-{_plain(number)}")
        return facts.numbered(number, tail)
    if (counted := _COUNTED_WORD.search(text)) and (number := _exact(counted)) is not None:
        return facts.numbered(number, text[counted.end() :])
    return None


def _beside(text: str, facts: _Facts, *, bare: bool) -> ChapterNumber | None:
    """Find what stands beside the count: an extra, a special, with a number of its own or without."""
    core = _ENDED.sub("", text)
    for found in _KIND.finditer(text):
        slug, kind = _kind(found)
        noun = _KIND_NOUN.match(text, found.end())
        after = noun.end() if noun else found.end()
        number, tail = _numeral(text[after:])
        if number is not None:
            number, _, _ = _spread(number, tail)
            return facts.unnumbered(kind, f"{slug}-{_plain(number)}")
    for found in _KIND.finditer(core):
        slug, kind = _kind(found)
        noun = _KIND_NOUN.match(core, found.end())
        before, behind = (
            core[: found.start()].strip(_EDGES),
            core[noun.end() if noun else found.end() :].strip(_EDGES),
        )
        if not before or not behind:
            if bare and behind and _lone(behind) is not None and not before:
                continue  # «Special Forces 12»: a number counts more than a word that happens to stand first
            rest = slugged(f"{before} {behind} {facts.apart()}")
            return facts.unnumbered(
                kind, f"{rest}-{slug}" if rest.isdecimal() else "-".join(filter(None, [slug, rest]))
            )
    return None


def _counted(text: str, facts: _Facts, *, bare: bool) -> ChapterNumber | None:
    """Find a number that no word explains: a part's, or the one that stands where chapters' numbers stand."""
    if part := _PART.search(text):
        number, tail = _numeral(text[part.end() :])
        if number is not None and bare:
            return facts.numbered(number, tail)
    core = _ENDING.sub("", text)
    found = _lone(core) if bare else None
    number = _exact(found) if found else None
    return facts.numbered(number, core[found.end() :]) if found and number is not None else None


def _named(text: str, facts: _Facts) -> ChapterNumber:
    """Make what has no number at all."""
    rest = slugged(f"{_ENDED.sub('', text)} {facts.apart()}")
    if facts.volume is not None and not rest:
        volume, facts.volume = facts.volume, None
        made = facts.unnumbered(Kind.CHAPTER, f"volume-{_plain(volume)}")
        return ChapterNumber(made.kind, made.slug, volume=volume, season=facts.season, version=facts.version)
    return facts.unnumbered(Kind.CHAPTER, rest or facts.nameless())


def _lone(text: str) -> re.Match[str] | None:
    """Choose among the numbers that stand alone: the last word, then one before a separator, the first word."""
    found = [each for each in _LONE.finditer(text) if _exact(each) is not None]
    if len(found) > 1 or (found and found[0][0] != text.strip()):
        found = [each for each in found if not _year(each)]
    if not found:
        return None
    for each in found:
        behind = text[each.end() :]
        if not behind.strip(" .!])") or re.match(r" ?[-~] ?\d+ *$", behind):
            return each
    for each in found:
        if re.match(r" ?[:.\])|-](?: |$)", text[each.end() :]):
            return each
    if found[0].start() == 0 or len(found) == 1:
        return found[0]
    return None


def _spread(number: Decimal, tail: str) -> tuple[Decimal, Decimal | None, str]:
    """Read what may follow a number: the end of a range, «-5» for a part, «Part 2», «(2)»."""
    found = _RANGE.match(tail)
    last = _exact(found) if found else None
    if found and last is not None:
        spaced = tail[:1] == " "
        behind = tail[found.end() :]
        titled = spaced and re.match(r" *[^\W_]", behind)  # «10 - 11 Days Later»
        near = last - number <= WIDEST_RANGE or not spaced
        if number < last and near and not titled and (found["sign"] in _THROUGH or last == number + 1):
            return number, last, behind
        whole = number == number.to_integral_value() and last == last.to_integral_value()
        if found["sign"] == "-" and not spaced and whole and 0 < last <= min(number, Decimal(9)):
            return number + _part(int(last)), None, behind
    if (sub := _SUB.match(tail)) and number == number.to_integral_value():
        digits = sub["part"] or sub["bracket"]
        if digits:
            part = int(digits) if digits.isdecimal() else (_from_roman(digits) or 0)
        else:
            part = _HALF[sub["half"] or sub["syllable"]]
        if part:
            return number + _part(part), None, tail[sub.end() :]
    return number, None, tail


def _part(at: int) -> Decimal:
    """Write the first nine parts as .1 to .9, as scanlators do, and later ones behind .9: .901, .902, and on."""
    return Decimal(at).scaleb(-1) if at < 10 else Decimal("0.9") + Decimal(at - 9).scaleb(-3)  # noqa: PLR2004 - nine digits


def _numeral(text: str) -> tuple[Decimal | None, str]:
    """Read the number a text begins with, in digits, Roman or spelled out; give it and what follows."""
    if found := _NUMBER.match(text):
        return _exact(found), text[found.end() :]
    if (found := _ROMAN.match(text)) and (value := _from_roman(found[0])):
        alone = len(found[0]) > 1 or not re.match(rf" {_LETTER}", text[found.end() :])  # «Chapter I Am Here»
        return (Decimal(value), text[found.end() :]) if alone else (None, text)
    if found := _SPELLED.match(text):
        if found["word"]:
            return Decimal(_WORDS[found["word"].lower()]), text[found.end() :]
        unit = _WORDS[found["unit"].lower()] if found["unit"] else 0
        return Decimal(_TENS[found["tens"].lower()] + unit), text[found.end() :]
    return None, text


def _exact(found: re.Match[str], prefix: str = "") -> Decimal | None:
    """Make the exact number of a match; None when it is too long to be one."""
    groups = found.groupdict()
    whole = groups[f"{prefix}whole"].replace(",", "").lstrip("0") or "0"
    fraction = (groups[f"{prefix}dot"] or groups[f"{prefix}comma"] or "").rstrip("0")
    if len(whole) > _WHOLE or len(fraction) > _FRACTION:
        return None
    number = Decimal(f"{whole}.{fraction}") if fraction else Decimal(whole)
    letter = groups.get(f"{prefix}letter")
    return number + _part(ord(letter.lower()) - ord("a") + 1) if letter and not fraction else number


def _year(found: re.Match[str]) -> bool:
    return re.fullmatch(r"(?:19|20)\d\d", found["first"]) is not None


def _kind(found: re.Match[str]) -> tuple[str, Kind]:
    slug, kind, _ = _KINDS[int((found.lastgroup or "k0")[1:])]
    return slug, kind


def _kind_before(text: str) -> tuple[str, Kind] | None:
    """Name the kind that the word right before a chapter's marker gives it: «Extra Chapter 3»."""
    found = list(_KIND.finditer(text))
    return _kind(found[-1]) if found and not text[found[-1].end() :].strip(_EDGES) else None


def _take_season(text: str, facts: _Facts) -> str:
    if found := _SEASON.search(text):
        facts.season = int(next(filter(None, found.groups())))
        return f"{text[: found.start()]} {text[found.end() :]}".strip()
    return text


def _take_version(text: str, facts: _Facts) -> str:
    if found := _VERSION.search(text):
        facts.version = int(found[1])
        return f"{text[: found.start()]}{text[found.end() :]}".strip()
    return text


def _take_volume(text: str, facts: _Facts) -> str:
    if not (found := _VOLUME.search(text)):
        return text
    if found["numeral"]:
        value = _from_roman(found["numeral"].upper())
        volume = Decimal(value) if value else None
    elif found["unit"]:
        volume = Decimal(int(found["unit"])) if len(found["unit"]) <= _WHOLE else None
    else:
        volume = _exact(found)
    if facts.volume is None:
        facts.volume = volume
    return f"{text[: found.start()]} {text[found.end() :]}".strip()


def _without(text: str, series: str) -> str:
    """Take the series' title out of a name, however its words are joined."""
    words = re.findall(r"[^\W_]+", normal(series[:LONGEST_NAME]))
    if not words:
        return text
    title = r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, words)) + r"(?![^\W_])[%!?.]*"
    found = re.search(title, text, re.IGNORECASE)
    if not found:
        return text
    rest = f"{text[: found.start()]} {text[found.end() :]}".strip(" -:|,")
    return rest or text


def _from_roman(text: str) -> int | None:
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
    total = 0
    digits = [values[each] for each in text.upper()]
    for at, value in enumerate(digits):
        total += -value if at + 1 < len(digits) and digits[at + 1] > value else value
    return total or None


def _from_cjk(text: str) -> int:
    if not any(each in _CJK_PLACE for each in text):
        return int("".join(str(_CJK[each]) for each in text))
    total, digit = 0, None
    for each in text:
        if each in _CJK_PLACE:
            total += (1 if digit is None else digit) * _CJK_PLACE[each]
            digit = None
        elif _CJK[each]:
            digit = _CJK[each]
    return total + (digit or 0)


def _plain(number: Decimal) -> str:
    return f"{number:f}"
