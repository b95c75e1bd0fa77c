"""No attack: what the honest callers measure by themselves, so that what the machine adds is known."""

from prove_hostile.registry import attack
from prove_hostile.siege import run_siege


@attack("calibration")
def calibration(options, tokens):
    """nobody attacks: what the honest callers measure by themselves"""
    return run_siege(options, tokens, [])
