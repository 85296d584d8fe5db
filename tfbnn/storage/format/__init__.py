"""Names, limits, seals and checks shared by model files and the files of run folders."""
