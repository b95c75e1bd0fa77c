"""Legends as Grafana writes them."""

import re


def legend_of(pattern, labels):
    """The legend of a curve; a label that it does not have leaves a blank, which a browser does not show."""
    return ' '.join(re.sub(r'{{(\w+)}}', lambda match: labels.get(match[1], ''), pattern).split())
