"""Cross-section networks for scans of new-physics models; see `tfbnn.hep.predictor`."""

from tfbnn.hep.calculation import Calculation
from tfbnn.hep.cross_sections import CrossSections
from tfbnn.hep.predictor import CrossSectionPredictor
from tfbnn.hep.process import Process
from tfbnn.hep.process_folder import write_processes

__all__ = ["Calculation", "CrossSectionPredictor", "CrossSections", "Process", "write_processes"]
