"""The command that opens a search in a browser."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tinybayes.cli._console import say, suggest
from tinybayes.files import exists


def serve(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The directory of a search; it may still run, or begin later.")
    ],
    host: Annotated[str, typer.Option(help="Where to listen; others can reach it only if you change this.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Show a search in the browser, live while it runs, and ask its models.

    Ctrl-C ends it; a search goes on until its own end, or until Stop is pressed on the page.
    """
    from tinybayes.serve.app import serve as run
    from tinybayes.serve.guard import is_loopback

    with ExitStack() as ended:

        def started(link: str) -> None:
            say(f"Open {link} in a browser. Ctrl-C ends this.")
            if not exists(directory):
                say(f"There is no {directory} yet; the page shows the search as soon as one begins there.")
            if not is_loopback(host):
                said = f"Whoever reaches {host} and has this link, or reads the traffic, which is not encrypted,"
                say(f"{said} can read these models and stop the search.", err=True)
            if not no_browser:
                import webbrowser

                webbrowser.open(ended.enter_context(_only_for_me(link)))

        run(directory, host=host, port=port, started=started)
    say("Ended.")
    if exists(directory):
        say(suggest("export", directory, "--to", "c", "-o", "firmware"))


@contextmanager
def _only_for_me(link: str) -> Iterator[str]:
    """Give the address of a page that only this user can read and that leads to the link.

    All users of a machine see the arguments of a browser that is started, and would see the token.
    """
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="tinybayes-", suffix=".html") as page:  # readable by its owner only
        page.write('<!doctype html><title>tinybayes</title><meta name="referrer" content="no-referrer">')
        page.write(f'<meta http-equiv="refresh" content="0; url={link}"><a href="{link}">Open the search</a>')
        page.flush()
        yield Path(page.name).as_uri()
