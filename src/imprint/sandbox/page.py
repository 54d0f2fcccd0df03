"""The pages of the sandbox: what has arrived, and one work of it; no script, nothing from elsewhere."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from time import gmtime, strftime

from imprint.sandbox.log import Entry, Log

NEWEST = 200
LATEST_TROUBLES = 8


def gallery(log: Log) -> str:
    """Draw what has arrived, the newest first; whatever came twice is marked."""
    effects = log.effects()
    keys = Counter((entry.site, entry.data["key"]) for entry in effects)
    twice = len(effects) - len(keys)
    uploads, faults = len(log.entries("upload")), log.entries("fault")
    cards = "".join(
        _card(entry, again=keys[entry.site, entry.data["key"]] > 1) for entry in reversed(effects[-NEWEST:])
    )
    body = _GALLERY.format(
        count=len(effects),
        twice=twice,
        alarm="alarm" if twice else "calm",
        uploads=uploads,
        faults=len(faults),
        troubles=_troubles(faults),
        cards=f'<ul class="cards">{cards}</ul>' if cards else _EMPTY,
    )
    return _PAGE.format(title="What has arrived", refresh=_REFRESH, body=body)


def work(title: str, account: str, description: str, tags: Sequence[str], picture: str, at: float) -> str:
    """Draw one work as its visitors would see it."""
    body = _WORK.format(
        title=escape(title),
        account=escape(account),
        description=escape(description),
        tags="".join(f"<li>#{escape(tag)}</li>" for tag in tags),
        picture=escape(picture),
        at=_when(at),
    )
    return _PAGE.format(title=escape(title), refresh="", body=body)


def _card(entry: Entry, *, again: bool) -> str:
    name, account = str(entry.data["title"]), escape(str(entry.data["account"]))
    picture, url = entry.data.get("picture"), entry.data.get("url")
    letter = f'<span class="none">{escape(name[:1]) or "?"}</span>'
    image = f'<img src="{escape(str(picture))}" alt="">' if picture else letter
    head = f'<a href="{escape(str(url))}">{image}</a>' if url else image
    mark = ' <mark title="This key arrived more than once.">twice</mark>' if again else ""
    return (
        f"<li>{head}<div><strong>{escape(name)}</strong>{mark}"
        f"<small>{escape(entry.site)} · {account}<br>{_when(entry.at)}</small></div></li>"
    )


def _troubles(faults: Sequence[Entry]) -> str:
    if not faults:
        return ""
    latest = reversed(faults[-LATEST_TROUBLES:])
    told = (f"{_when(each.at)} {escape(each.site)} {escape(str(each.data['does']))}" for each in latest)
    return f'<p class="troubles">Made to go wrong: {" · ".join(told)}</p>'


def _when(at: float) -> str:
    return strftime("%H:%M:%S UTC", gmtime(at))


_REFRESH = '<meta http-equiv="refresh" content="3">\n'

_EMPTY = '<p class="empty">Nothing yet.</p>'

_GALLERY = """<h1>What has arrived</h1>
<p class="said">{count} published here, {twice} of them more than once. Nothing of this has left your machine.</p>
<dl>
  <div><dt>published</dt><dd>{count}</dd></div>
  <div class="{alarm}"><dt>more than once</dt><dd>{twice}</dd></div>
  <div><dt>files uploaded</dt><dd>{uploads}</dd></div>
  <div><dt>made to go wrong</dt><dd>{faults}</dd></div>
</dl>
{troubles}
{cards}
<p class="foot"><a href="/_sandbox/log">the log</a></p>"""

_WORK = """<p><a href="/">← What has arrived</a></p>
<figure><img class="whole" src="{picture}" alt="{title}"></figure>
<h1>{title}</h1>
<p class="said">by {account} · {at}</p>
<p class="words">{description}</p>
<ul class="tags">{tags}</ul>"""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
{refresh}<title>{title} · Imprint's sandbox</title>
<style>
  :root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; --line: #8884; --faint: #8881; }}
  body {{ max-width: 68rem; margin: 2.5rem auto; padding: 0 1.25rem; }}
  h1 {{ font-size: 1.6rem; margin: 0; }}
  a {{ color: inherit; }}
  .said, .troubles, .foot, small {{ opacity: .7; }}
  .said {{ margin: .25rem 0 1.5rem; }}
  .troubles, .foot {{ font-size: .85rem; }}
  dl {{ display: flex; flex-wrap: wrap; gap: 1rem; margin: 0 0 1.5rem; }}
  dl div {{ border: 1px solid var(--line); border-radius: .6rem; padding: .5rem .9rem; min-width: 7rem; }}
  dt {{ font-size: .8rem; opacity: .7; }}
  dd {{ margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums; }}
  .alarm {{ border-color: #c33; color: #c33; }}
  .cards {{ list-style: none; padding: 0; display: grid; gap: 1rem;
           grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); }}
  .cards li {{ border: 1px solid var(--line); border-radius: .6rem; overflow: hidden; }}
  .cards img, .none {{ display: grid; place-items: center; width: 100%; height: 9rem; object-fit: cover;
                      background: var(--faint); font-size: 2.5rem; opacity: .9; }}
  .cards div {{ padding: .6rem .8rem; overflow-wrap: anywhere; }}
  small {{ display: block; }}
  mark {{ background: #c33; color: #fff; border-radius: .3rem; padding: 0 .35rem; font-size: .75rem; }}
  .empty {{ border: 1px dashed var(--line); border-radius: .6rem; padding: 3rem; text-align: center; }}
  figure {{ margin: 1rem 0; }}
  .whole {{ max-width: 100%; max-height: 70vh; border-radius: .6rem; }}
  .words {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
  .tags {{ list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .5rem; opacity: .7; }}
</style>
{body}
"""
