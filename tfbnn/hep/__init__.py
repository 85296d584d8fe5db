"""Cross-section networks for scans of new-physics models; see `tfbnn.hep.predictor`."""

from tfbnn.hep.predictor import CrossSectionPredictor, CrossSections
from tfbnn.hep.process import Calculation, Process
from tfbnn.hep.process_folder import write_processes

__all__ = ["Calculation", "CrossSectionPredictor", "CrossSections", "Process", "write_processes"]
