"""What notebooks show of an object: its text, and more of it on request."""


def folded(text: str, details: str) -> str:
    """HTML of a text, the first line bold, above details that unfold on a click.

    It has no colours of its own, so that it suits light and dark pages, and nothing in the texts
    acts as HTML.
    """
    from html import escape  # which those who only predict need not wait for

    first, *others = text.splitlines()
    lines = [f"<b>{escape(first)}</b>", *map(escape, others)]
    return (
        f"<div>{'<br>'.join(lines)}"
        f"<details><summary>details</summary><pre>{escape(details)}</pre></details></div>"
    )
