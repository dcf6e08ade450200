"""`cloche completion`: the shells ask this program, so that there is one truth."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from cloche.cli.arguments import Rest, UsageError, actions_of, arguments_of
from cloche.cli.main import COMMANDS, load, make_parser
from cloche.errors import ClocheError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

EXAMPLE: Final = "cloche completion bash > /etc/bash_completion.d/cloche"

SCRIPTS: Final = {
    "bash": r"""
_cloche() {
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    mapfile -t COMPREPLY < <(cloche completion --candidates -- "${words[@]//[\\\"\']/}" 2>/dev/null)
    # Names may have spaces, which are quoted where the person has not begun with a quote.
    if (( ${#COMPREPLY[@]} )) && [[ ${words[-1]} != [\"\']* ]]; then
        mapfile -t COMPREPLY < <(printf '%q\n' "${COMPREPLY[@]}")
    fi
}
complete -o default -F _cloche cloche
""".lstrip(),
    "zsh": """\
#compdef cloche
_cloche() {
    local -a found
    found=(${(f)"$(cloche completion --candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${#found} )); then compadd -a found; else _files; fi
}
if [ "$funcstack[1]" = _cloche ]; then _cloche "$@"; else compdef _cloche cloche; fi
""",
    "fish": """\
complete -c cloche -n 'test (count (commandline -opc)) -eq 1' -f
complete -c cloche -a '(cloche completion --candidates -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("shell", nargs="?", choices=tuple(SCRIPTS), help="the shell that the script is for")
    parser.add_argument("--candidates", action="store_true", help=argparse.SUPPRESS)


REST: Final = Rest("WORD", argparse.SUPPRESS)
"""For the scripts: the words so far, the last of them unfinished."""


def run(args: argparse.Namespace) -> int:
    """Prints a script, or for the script what may come next."""
    if args.candidates:
        words: list[str] = args.rest or [""]
        print("".join(f"{word}\n" for word in candidates(words)), end="")
        return 0
    if args.shell is None:
        raise UsageError(f"no shell is named; expected one of: {', '.join(SCRIPTS)}")
    if args.json:
        from cloche.cli.tables import print_json

        print_json({"shell": args.shell, "script": SCRIPTS[args.shell]})
    else:
        print(SCRIPTS[args.shell], end="")
    return 0


def candidates(words: Sequence[str]) -> list[str]:
    """What the last word, which may be empty, can become; none where it is a file or anything at all."""
    name, current = words[0], words[-1]
    if len(words) == 1:
        found: Iterable[str] = COMMANDS
    elif name not in COMMANDS:
        return []
    else:
        found = _of_command(make_parser(name, load(name)), words[1:-1], current)
    return sorted(word for word in found if word.startswith(current))


def _of_command(parser: argparse.ArgumentParser, before: Sequence[str], current: str) -> Iterable[str]:
    actions = arguments_of(parser)
    flags = {flag: action for action in actions for flag in action.option_strings}
    if "--" in before:
        return ()
    if before and (last := flags.get(before[-1])) is not None and last.nargs != 0:
        return _values(last)
    if current.startswith("-"):
        return (flag for flag, action in flags.items() if action.help != argparse.SUPPRESS)
    given = _positionals(before, flags)
    for action in actions:
        if action.option_strings:
            continue
        inner = actions_of(parser).get(given[0]) if given else None
        if inner and isinstance(action.choices, dict):
            return _of_command(inner, before[before.index(given[0]) + 1 :], current)
        if not given or action.nargs in ("*", "+", argparse.REMAINDER):
            return _values(action)
        given = given[1:]
    return ()


def _positionals(words: Sequence[str], flags: dict[str, argparse.Action]) -> list[str]:
    """The words that belong to no option."""
    found: list[str] = []
    is_value = False
    for word in words:
        if not is_value and not word.startswith("-"):
            found.append(word)
        is_value = not is_value and word in flags and flags[word].nargs != 0
    return found


def _values(action: argparse.Action) -> Iterable[str]:
    if action.choices:
        return action.choices
    find = _VALUES.get(str(action.metavar or action.dest))
    if find is None:
        return ()
    try:
        return find()
    except ClocheError:
        # Nothing to offer: the command itself tells what is wrong.
        return ()


def _sandboxes() -> list[str]:
    from cloche.sandboxes import boxes

    found = boxes.rows().present()
    return [word for row in found for word in (row.id, row.name) if word]


def _engines() -> Iterable[str]:
    from cloche.engines import ENGINES

    return ENGINES


def _images() -> list[str]:
    from cloche import settings
    from cloche.images import list_images

    return [image.name for image in list_images(settings.home())]


def _added_images() -> list[str]:
    from cloche import settings
    from cloche.images.archives import image_names

    return image_names(settings.home())


def _added_runtimes() -> list[str]:
    from cloche import settings
    from cloche.images.additions import added_names

    return added_names(settings.home())


def _languages() -> Iterable[str]:
    from cloche.images.additions import SOURCES

    return SOURCES


def _runtimes() -> Iterable[str]:
    from cloche import settings
    from cloche.images import find_host_image

    return find_host_image(settings.home()).interpreters


_VALUES: Final[dict[str, Callable[[], Iterable[str]]]] = {
    "ID": _sandboxes,
    "E": _engines,
    "I": _images,
    "R": _runtimes,
    "IMAGE": _added_images,
    "ADDED": _added_runtimes,
    "LANGUAGE": _languages,
    "U": lambda: ("user", "root"),
    "SIGNAL": lambda: ("HUP", "INT", "KILL", "QUIT", "TERM", "USR1", "USR2", "STOP", "CONT"),
}
"""By what the help calls the value."""
