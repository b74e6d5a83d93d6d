"""Positions of a graph's nodes: the same graph always gets the same picture.

Each connected part is laid out by its distances to a few pivots, the parts are packed side by side,
and forces then pull neighbours together and push the others apart.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Pairs = tuple[tuple[int, int], ...]

_PIVOTS = 16
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_WORK = 14_000_000
"""Forces between pairs that are computed: a tenth of a second of one core."""

_MAX_STEPS, _MIN_STEPS = 60, 8
_CACHED = 32


@lru_cache(maxsize=_CACHED)
def layout(count: int, edges: Pairs) -> tuple[tuple[float, float], ...]:
    """Return the positions of nodes 0 to `count`, within -1 and 1."""
    if count == 0:
        return ()
    ends = np.array(edges, np.int64).reshape(-1, 2)
    ends = ends[ends[:, 0] != ends[:, 1]]
    positions = _pack_parts(count, ends)
    positions = _refine(positions, ends)
    return tuple(map(tuple, np.round(_fit(positions), 4).tolist()))


def _neighbours(count: int, ends: NDArray[np.int64]) -> list[list[int]]:
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in ends.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)
    return neighbours


def _pack_parts(count: int, ends: NDArray[np.int64]) -> Floats:
    """Lay out each connected part, and put the parts on a spiral, the largest in the middle."""
    neighbours = _neighbours(count, ends)
    parts = sorted(_connected_parts(neighbours), key=lambda part: (-len(part), part[0]))
    positions = np.zeros((count, 2), np.float32)
    area = 0.0
    for place, part in enumerate(parts):
        radius = np.sqrt(len(part))
        area += (radius + 0.5) ** 2
        away = 0.0 if place == 0 else np.sqrt(area) * 1.1
        angle = place * _GOLDEN_ANGLE
        centre = np.array([away * np.cos(angle), away * np.sin(angle)], np.float32)
        positions[part] = centre + radius * _lay_out_part(part, neighbours)
    return positions


def _connected_parts(neighbours: list[list[int]]) -> list[list[int]]:
    seen = [False] * len(neighbours)
    parts = []
    for start in range(len(neighbours)):
        if seen[start]:
            continue
        seen[start] = True
        part, place = [start], 0
        while place < len(part):
            for other in neighbours[part[place]]:
                if not seen[other]:
                    seen[other] = True
                    part.append(other)
            place += 1
        parts.append(sorted(part))
    return parts


def _lay_out_part(part: list[int], neighbours: list[list[int]]) -> Floats:
    """Return positions of a connected part within a circle: PivotMDS (Brandes and Pich, 2006)."""
    size = len(part)
    angles = np.arange(size) * _GOLDEN_ANGLE
    spiral = np.sqrt((np.arange(size) + 0.5) / size)[:, None] * np.stack(
        [np.cos(angles), np.sin(angles)], axis=1
    )
    if size < 3:
        return np.asarray(spiral, np.float32)
    place_of = {n: place for place, n in enumerate(part)}
    distances = np.zeros((size, min(_PIVOTS, size)), np.float64)
    pivot, nearest = 0, np.full(size, np.inf)
    for column in range(distances.shape[1]):
        distances[:, column] = _distances(part, place_of, neighbours, pivot)
        nearest = np.minimum(nearest, distances[:, column])
        pivot = int(nearest.argmax())
    squares = distances**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    _, _, axes = np.linalg.svd(centred.T @ centred)
    flat = -0.5 * centred @ axes[:2].T
    flat *= np.where(flat[np.abs(flat).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    widest = float(np.abs(flat).max()) or 1.0
    # Leaves of one parent have the same distances: the spiral tells them apart.
    return np.asarray(0.85 * flat / widest + 0.15 * spiral, np.float32)


def _distances(
    part: list[int], place_of: dict[int, int], neighbours: list[list[int]], pivot: int
) -> NDArray[np.float64]:
    distances = np.full(len(part), -1.0)
    distances[pivot] = 0
    queue, place = [pivot], 0
    while place < len(queue):
        here = queue[place]
        place += 1
        for other in neighbours[part[here]]:
            there = place_of[other]
            if distances[there] < 0:
                distances[there] = distances[here] + 1
                queue.append(there)
    return distances


def _refine(positions: Floats, ends: NDArray[np.int64]) -> Floats:
    """Move nodes by forces, in smaller and smaller steps (Fruchterman and Reingold, 1991)."""
    count = len(positions)
    if count == 1:
        return positions
    steps = int(np.clip(_WORK // (count * count), _MIN_STEPS, _MAX_STEPS))
    x, y = positions[:, 0].copy(), positions[:, 1].copy()
    for step in range(steps):
        dx, dy = x[:, None] - x[None, :], y[:, None] - y[None, :]
        push = np.float32(1.0) / (dx * dx + dy * dy + np.float32(0.01))
        np.fill_diagonal(push, 0.0)
        move_x = np.einsum("ij,ij->i", dx, push)
        move_y = np.einsum("ij,ij->i", dy, push)
        if len(ends):
            a, b = ends[:, 0], ends[:, 1]
            pull_x, pull_y = x[b] - x[a], y[b] - y[a]
            length = np.sqrt(pull_x * pull_x + pull_y * pull_y)
            pull_x, pull_y = pull_x * length, pull_y * length
            move_x += np.bincount(a, pull_x, count) - np.bincount(b, pull_x, count)
            move_y += np.bincount(a, pull_y, count) - np.bincount(b, pull_y, count)
        move_x, move_y = move_x - 0.03 * x, move_y - 0.03 * y
        far = np.sqrt(move_x * move_x + move_y * move_y) + 1e-6
        reach = np.minimum(far, 1.5 * (1 - step / steps) + 0.02) / far
        x, y = (x + move_x * reach).astype(np.float32), (y + move_y * reach).astype(np.float32)
    return np.stack([x, y], axis=1)


def _fit(positions: Floats) -> Floats:
    """Return positions moved and scaled to lie within -1 and 1."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    half = float((high - low).max()) / 2 or 1.0
    fitted: Floats = np.clip((positions - (low + high) / 2) / half, -1.0, 1.0)
    return fitted
