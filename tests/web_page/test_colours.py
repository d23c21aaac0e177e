"""The eight colours of lines, seen with each usual kind of colour blindness: none looks like another.

What is seen is simulated by the matrices of Machado, Oliveira and Fernandes (2009), of linear light, at their full
severity; the distance of two colours is that in CIELAB.
"""

import itertools
import math
import re

import pytest

from trainvitals.web.app import STATIC

# 2.3 is just noticeable; a thin line wants a good deal more.
LEAST_DISTANCE, LEAST_CONTRAST = 20.0, 3.0
Colour = tuple[float, ...]
Matrix = tuple[tuple[float, float, float], ...]
SEEN: dict[str, Matrix] = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}  # fmt: skip
XYZ: Matrix = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.072175), (0.0193339, 0.119192, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)
SCHEMES = ("light", "dark")


def colours(name: str, scheme: str, sheet: str = "charts") -> list[Colour]:
    text = (STATIC / "css" / f"{sheet}.css").read_text()
    found = re.findall(rf"--{name}: light-dark\(#(\w{{6}}), #(\w{{6}})\)", text)
    return [linear(pair[SCHEMES.index(scheme)]) for pair in found]


def linear(digits: str) -> Colour:
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def times(matrix: Matrix, colour: Colour) -> Colour:
    return tuple(sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)


def lab(colour: Colour) -> Colour:
    shares = [part / white for part, white in zip(times(XYZ, colour), WHITE, strict=True)]
    x, y, z = (share ** (1 / 3) if share > 216 / 24389 else (24389 / 27 * share + 16) / 116 for share in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(colour: Colour, matrix: Matrix) -> Colour:
    return lab(tuple(min(1.0, max(0.0, part)) for part in times(matrix, colour)))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("sight", SEEN)
def test_lines_are_told_apart_by_everybody(sight: str, scheme: str) -> None:
    places = [seen(colour, SEEN[sight]) for colour in colours(r"c\d", scheme)]
    assert len(places) == 8
    near = {(one, other): math.dist(places[one], places[other]) for one, other in itertools.combinations(range(8), 2)}
    assert {pair: distance for pair, distance in near.items() if distance < LEAST_DISTANCE} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_stands_out_from_its_card(scheme: str) -> None:
    [card] = (times(XYZ, colour)[1] for colour in colours("card", scheme, "base"))
    for colour in colours(r"c\d", scheme):
        low, high = sorted((card, times(XYZ, colour)[1]))
        assert (high + 0.05) / (low + 0.05) >= LEAST_CONTRAST
