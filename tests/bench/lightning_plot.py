#!/usr/bin/env python3
"""The cost of a token in a lightning layer against its context, as an SVG.

  levin bench --kernel lightning-context | lightning_plot.py > docs/lightning_cost.svg
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 320, 70, 20, 40, 50
CURVES = (("prefill_ns_per_token", "prompt", "#1f77b4"), ("decode_ns_per_token", "one token at a time", "#d62728"))


def context_name(tokens):
    return f"{tokens >> 20}M" if tokens >= 1 << 20 else f"{tokens >> 10}K"


def step_of(top):
    """A round step that cuts [0, top] into four to ten."""
    power = 10 ** math.floor(math.log10(top))
    return next(power * f for f in (0.1, 0.2, 0.5, 1, 2) if top / (power * f) <= 8)


def plot(result):
    points = result["points"]
    first, last = (math.log2(points[i]["context"]) for i in (0, -1))
    top = 1.25 * max(point[key] for point in points for key, _, _ in CURVES)
    x = lambda tokens: LEFT + (math.log2(tokens) - first) / (last - first) * (WIDTH - LEFT - RIGHT)
    y = lambda ns: HEIGHT - BOTTOM - ns / top * (HEIGHT - TOP - BOTTOM)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14">Lightning layer, {result["heads"]} heads of {result["head_dim"]}: '
           'microseconds a token</text>']
    step = step_of(top)
    for i in range(int(top / step) + 1):
        at = y(i * step)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{i * step / 1000:g}</text>')
    for point in points:
        out.append(f'<text x="{x(point["context"]):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                   f'{context_name(point["context"])}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">tokens of context</text>')
    for key, name, colour in CURVES:
        places = [(x(point["context"]), y(point[key])) for point in points]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in places]
        out.append(f'<text x="{WIDTH - RIGHT}" y="{places[-1][1] - 8:.1f}" text-anchor="end" fill="{colour}">{name}</text>')
    return "\n".join(out + ["</svg>"])


if __name__ == "__main__":
    print(plot(json.loads(sys.stdin.read().splitlines()[-1])))
