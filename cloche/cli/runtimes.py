"""`cloche runtimes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloche.cli.arguments import add_action
from cloche.cli.tables import print_json, print_table
from cloche.cli.terminal import say
from cloche.errors import ClocheError, InvalidRequest
from cloche.images.host import NAME
from cloche.images.runtimes import DEFAULT_VERSIONS, how_to_get

if TYPE_CHECKING:
    import argparse

    from cloche.images.base import Image
    from cloche.images.inventory import Listed

EXAMPLE: Final = "cloche runtimes add node 22"
IDLE_SECONDS: Final = 10.0
"""Should this program be killed while it looks into an image."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--image", metavar="I", default="host", help="those of that image (default: host)")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    add = add_action(actions, "add", "install one into Cloche's own folder: node by npm, python by uv")
    add.add_argument("language", metavar="LANGUAGE", help="node or python; node22, node@22 and node-22 will do as well")
    add.add_argument("version", metavar="VERSION", nargs="?", help="22, 22.11.0 (default: the one that is preferred)")
    remove = add_action(actions, "remove", "remove one that was added")
    remove.add_argument("language", metavar="ADDED", help="its language, or all of its name")
    remove.add_argument("version", metavar="VERSION", nargs="?", help="all of it, where more than one begins like that")


def run(args: argparse.Namespace) -> int:
    """Lists, adds or removes."""
    if args.action is None:
        return _list(args.image, as_json=args.json)
    if args.image != NAME:
        raise InvalidRequest(f"--image is {args.image!r}; runtimes are added to {NAME!r} alone, and removed from it")
    name = f"{args.language} {args.version}" if args.version else args.language
    return _add(name, as_json=args.json) if args.action == "add" else _remove(name, as_json=args.json)


def _list(image: str, *, as_json: bool) -> int:
    there = _runtimes_of(image)
    if as_json:
        print_json([_describe(each) for each in there])
        return 0
    rows = [(each.runtime, each.version, each.origin, _standing(each), each.path) for each in there]
    print_table(("RUNTIME", "VERSION", "FROM", "DEFAULT", "PATH"), rows)
    for each in there:
        if each.note:
            say(each.note)
    for language in sorted(set(DEFAULT_VERSIONS) - {each.language for each in there}):
        say(f"there is no {language}" + (f"; to get it: {', or '.join(how_to_get(language))}" if image == NAME else ""))
    return 0


def _standing(runtime: Listed) -> str:
    if not runtime.is_default:
        return ""
    return "nearest" if runtime.note else "default"


def _runtimes_of(image: str) -> list[Listed]:
    from cloche import settings

    if image == NAME:
        from cloche.images.inventory import list_host_runtimes

        return list_host_runtimes(settings.home())
    from cloche.images.archives import find_image
    from cloche.images.inventory import list_runtimes

    found = find_image(settings.home(), image)
    versions = _ask_inside(found)
    return list_runtimes(found, lambda runtime, _: (f"image {image}", versions.get(runtime)))


def _ask_inside(image: Image) -> dict[str, str | None]:
    """What an archive holds is started in a sandbox only."""
    from cloche.client._sync.sandbox import Sandbox
    from cloche.images.runtimes import split
    from cloche.images.toolchains import read_version

    if not image.interpreters:
        return {}
    try:
        with Sandbox.create(image=image.name, bound=True, idle_timeout=IDLE_SECONDS) as box:
            answers = {runtime: box.commands.run([path, "--version"]) for runtime, path in image.interpreters.items()}
            return {
                runtime: read_version(said.stdout or said.stderr, split(runtime)[0])
                for runtime, said in answers.items()
            }
    except ClocheError as error:
        say(f"the versions are not known in full, as no sandbox could be made on that image: {error.message}")
        return {}


def _add(name: str, *, as_json: bool) -> int:
    from cloche import settings
    from cloche.images.additions import add_runtime

    added, is_new = add_runtime(settings.home(), name, (lambda _: None) if as_json else say)
    if as_json:
        print_json({**_describe(added), "added": is_new})
    elif is_new:
        print(f"added {added.runtime} ({added.version}): cloche run --runtime {added.runtime} …")
    else:
        print(f"{added.runtime} is there already: {added.version}, from {added.origin}, {added.path}")
    return 0


def _remove(name: str, *, as_json: bool) -> int:
    from cloche.sandboxes.removals import remove_runtime

    removed = remove_runtime(name)
    if as_json:
        print_json({"removed": removed})
    else:
        print(f"removed {removed}")
    return 0


def _describe(runtime: Listed) -> dict[str, object]:
    from dataclasses import asdict

    fields = asdict(runtime)
    return {"from": fields.pop("origin"), "default": fields.pop("is_default"), **fields}
