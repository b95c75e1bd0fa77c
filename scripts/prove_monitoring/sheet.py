"""Draws what `scripts/prove monitoring --save FILE` wrote: one PNG for each dashboard, with a picture for each panel.

    python3 sheet.py FILE FOLDER    needs matplotlib, which nothing else here does
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use('Agg')
from matplotlib import pyplot

from legend import legend_of


def draw(board, panels, folder):
    columns = 4
    lines = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(5.2 * columns, 3.1 * lines), squeeze=False)
    for axis in axes.flat[len(panels):]:
        axis.axis('off')
    for axis, (title, queries) in zip(axes.flat, panels.items()):
        first = min(point[0] for query in queries for series in query['series'] for point in series['points'])
        for query in queries:
            for series in query['series']:
                times, values = zip(*series['points'])
                axis.plot([at - first for at in times], values, linewidth=1.2,
                          label=legend_of(query['legend'] or '{{alertname}} {{alertstate}}', series['labels'])[:46])
        unit = queries[0]['unit']
        axis.set_title(f'{title} [{unit}]' if unit else title, fontsize=9)
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=7)
        handles, labels = axis.get_legend_handles_labels()
        if any(labels):
            axis.legend(handles[:7], labels[:7], fontsize=6, loc='best')
    figure.suptitle(f'{board}: what the queries of its panels gave, over seconds', fontsize=12)
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    figure.savefig(folder / f'{board}.png', dpi=70)
    pyplot.close(figure)


def main():
    boards = {}
    for query in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        if query['series']:
            boards.setdefault(query['board'], {}).setdefault(query['panel'], []).append(query)
    for board, panels in boards.items():
        draw(board, panels, pathlib.Path(sys.argv[2]))


if __name__ == '__main__':
    main()
